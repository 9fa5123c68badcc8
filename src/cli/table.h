/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_TABLE_H
#define SL_CLI_TABLE_H

#include "base/arena.h"
#include "base/attr.h"

/*
 * Lines of cells, printed in columns. A cell says what it is ("leader 3"), so that there is no
 * heading and a line means something by itself. Widths are counted in bytes. Zero-initialised but
 * for `columns`.
 */
struct table {
    int32_t columns;
    int32_t count; /* cells so far, line by line */
    int32_t cap;
    struct str *cells;
    struct arena arena;
};

/* The next cell. */
void table_add(struct table *t, const char *fmt, ...) printf_like(2, 3);
/* To standard output. A column that is empty in all lines is left out. */
void table_print(const struct table *t, const char *indent);
void table_fini(struct table *t);

#endif
