/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: every cell is kept until the end, because how wide a column is nobody knows before. The
 * last cell of a line has nothing behind it, so that no line ends in spaces.
 */
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

void table_add(struct table *t, const char *fmt, ...)
{
    va_list args;
    char *text;

    if (t->count == t->cap) {
        t->cap = MAX(2 * t->cap, 64);
        t->cells = xreallocarray(t->cells, (size_t)t->cap, sizeof(*t->cells));
    }
    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    t->cells[t->count++] = arena_str(&t->arena, str_of(text));
    free(text);
}

static int32_t width_of(const struct table *t, int32_t column)
{
    int32_t width = 0;

    for (int32_t i = column; i < t->count; i += t->columns)
        width = MAX(width, t->cells[i].n);
    return width;
}

static void print_line(const struct str *cells, const int32_t *widths, int32_t columns,
                       const char *indent)
{
    int32_t missing = 0; /* spaces that are due when something follows */

    printf("%s", indent);
    for (int32_t i = 0; i < columns; i++) {
        if (widths[i] == 0)
            continue;
        if (cells[i].n > 0) {
            printf("%*s%.*s", missing, "", STR_ARG(cells[i]));
            missing = 0;
        }
        missing += widths[i] - cells[i].n + 2;
    }
    printf("\n");
}

void table_print(const struct table *t, const char *indent)
{
    int32_t *widths = xcalloc((size_t)t->columns, sizeof(*widths));

    assert(t->columns > 0);
    assert(t->count % t->columns == 0);
    for (int32_t i = 0; i < t->columns; i++)
        widths[i] = width_of(t, i);
    for (int32_t i = 0; i < t->count; i += t->columns)
        print_line(&t->cells[i], widths, t->columns, indent);
    free(widths);
}

void table_fini(struct table *t)
{
    free(t->cells);
    arena_fini(&t->arena);
}
