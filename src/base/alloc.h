/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_ALLOC_H
#define SL_BASE_ALLOC_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Heap memory that is always there: exhaustion aborts. What a peer can make us allocate is bounded
 * by budgets before the allocation (base/limits.h), so running out is our own mistake or the
 * machine's. Sizes are checked for overflow. Any thread.
 */

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
void *xreallocarray(void *ptr, size_t count, size_t size);
char *xstrdup(const char *s);
/* A NUL-terminated copy of the first n bytes of s. */
char *xstrndup(const char *s, size_t n);
void *xmemdup(const void *p, size_t n);
/* A formatted string, owned by the caller. */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));
/* Gives what is free back to the kernel, of all threads: after a burst that will not come again. */
void alloc_trim(void);

#endif
