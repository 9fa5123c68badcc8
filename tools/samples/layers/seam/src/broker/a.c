/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sim/world.h"
