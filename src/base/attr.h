/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_ATTR_H
#define SL_BASE_ATTR_H

/* The caller has to look at the result. */
#define must_use __attribute__((warn_unused_result))

#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define CACHE_LINE_BYTES 64

#endif
