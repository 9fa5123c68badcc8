/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_ASSERT_H
#define SL_BASE_ASSERT_H

/*
 * Assertions stay on in production: a broker that goes on after a broken invariant is worse than
 * one that stops. They state what our own code guarantees; bytes from a peer or a disk are
 * validated first and asserted afterwards.
 */

/* Prints expression, place, a backtrace and the running loop's last trace events; aborts. */
_Noreturn void assert_failed(const char *expr, const char *file, int line, const char *func);

#define assert(expr) ((expr) ? (void)0 : assert_failed(#expr, __FILE__, __LINE__, __func__))

/* a implies b. */
#define IMPLIES(a, b) (!(a) || (b))

/* Marks a place that control flow cannot reach. */
#define UNREACHABLE() assert_failed("unreachable", __FILE__, __LINE__, __func__)

/* Whole-structure checks that cost more than they should in production. */
#ifdef EXPENSIVE_ASSERTS
#define expensive_assert(expr) assert(expr)
#else
#define expensive_assert(expr) ((void)sizeof(expr))
#endif

#ifndef static_assert
#define static_assert _Static_assert
#endif

#endif
