/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"
#include "replica/replica.h"
