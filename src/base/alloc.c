/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that cannot fail from the caller's point of view. Handling NULL everywhere would be a
 * second program made of error paths that no test reaches; admission control keeps us from getting
 * here, and if we do, stopping loses nothing that was acknowledged.
 */
#include "base/alloc.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void *check(void *ptr, size_t size)
{
    assert(ptr != NULL || size == 0);
    return ptr;
}

void *xmalloc(size_t size)
{
    return check(malloc(size), size);
}

void *xcalloc(size_t count, size_t size)
{
    assert(size == 0 || count <= SIZE_MAX / size);
    return check(calloc(count, size), count * size);
}

void *xrealloc(void *ptr, size_t size)
{
    return check(realloc(ptr, size), size);
}

void *xreallocarray(void *ptr, size_t count, size_t size)
{
    return check(reallocarray(ptr, count, size), count);
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
    char *copy = xmalloc(n + 1);

    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);

    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

char *xvasprintf(const char *fmt, va_list args)
{
    char *out = NULL;
    int n = vasprintf(&out, fmt, args);

    assert(n >= 0);
    return out;
}

char *xasprintf(const char *fmt, ...)
{
    char *out;
    va_list args;

    va_start(args, fmt);
    out = xvasprintf(fmt, args);
    va_end(args);
    return out;
}

void alloc_trim(void)
{
    malloc_trim(0);
}
