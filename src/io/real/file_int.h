/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_REAL_FILE_INT_H
#define SL_IO_REAL_FILE_INT_H

#include <sys/stat.h>

#include "io/io.h"

/* Private to io/real: what file.c, path.c and lock.c share. */

void assert_off_loop(void);
/* errno as an error of ours; traced unless callers expect it. */
enum err file_failed(const char *call, const char *path);
void stat_convert(const struct stat *st, struct io_stat *out);

#endif
