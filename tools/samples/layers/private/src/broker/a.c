/* SPDX-License-Identifier: Apache-2.0 */
#include "log/log_int.h"
