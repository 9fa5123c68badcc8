/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that must not be called anywhere in this program.
 *
 * The build puts this file in front of every source file. The standard headers come first, so
 * that their own declarations are not touched; afterwards each banned name is a macro that
 * expands to an identifier nobody has declared, and the compiler's message names the reason.
 *
 *   strcpy strcat sprintf strtok gets   write past a buffer or keep hidden state
 *   atoi                                cannot report an error
 *   gmtime localtime rand               keep hidden state; the time is an argument here
 *   usleep                              nothing here may sleep
 *   <assert.h>                          base/assert.h is always on, this one is not
 */
#ifndef SL_BASE_BANNED_H
#define SL_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef strcpy
#undef strcat
#undef sprintf
#undef strtok
#undef gets
#undef atoi
#undef gmtime
#undef localtime
#undef rand
#undef usleep

#define strcpy(...) banned_strcpy_use_memcpy_or_snprintf
#define strcat(...) banned_strcat_use_snprintf
#define sprintf(...) banned_sprintf_use_snprintf
#define strtok(...) banned_strtok_keeps_hidden_state
#define gets(...) banned_gets
#define atoi(...) banned_atoi_use_a_checked_parser
#define gmtime(...) banned_gmtime_use_gmtime_r
#define localtime(...) banned_localtime
#define rand(...) banned_rand_entropy_comes_from_io
#define usleep(...) banned_usleep

/* <assert.h> declares this function, so that including it does not compile. */
#define __assert_fail(...) banned_assert_h_use_base_assert_h

#endif
