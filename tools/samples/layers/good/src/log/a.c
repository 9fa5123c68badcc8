/* SPDX-License-Identifier: Apache-2.0 */
#include "log/log.h"
#include "log/log_int.h"
#include "base/err.h"
