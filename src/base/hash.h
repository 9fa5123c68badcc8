/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_HASH_H
#define SL_BASE_HASH_H

/*
 * Hash tables of structs that embed their handle: uthash, as this program uses it. Memory comes
 * from alloc.h. The function is FNV, because uthash's default falls through cases, which clang
 * will not have. Nothing may depend on the order of a table but through HASH_ITER, which is the
 * order of insertion. One thread.
 */
#include "base/alloc.h"

#define uthash_malloc(size) xmalloc(size)
#define HASH_FUNCTION HASH_FNV

#include <uthash.h>

#endif
