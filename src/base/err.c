/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of errors, expanded from err.def. Look-up is a scan: errors are rare, the list is
 * short, and a second index would be one more thing to keep true.
 */
#include "base/err.h"

#include <stddef.h>

struct err_row {
    const char *name;
    const char *text;
    int16_t number;
    int16_t wire;
    bool retriable;
};

static const struct err_row rows[] = {
#define ERR(name, number, retriable, wire, text) {#name, text, number, wire, retriable},
#include "base/err.def"
#undef ERR
};

static const struct err_row *find(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

const char *err_name(enum err err)
{
    const struct err_row *row = find(err);

    return row ? row->name : "?";
}

const char *err_text(enum err err)
{
    const struct err_row *row = find(err);

    return row ? row->text : "unknown error";
}

int16_t err_wire(enum err err)
{
    const struct err_row *row = find(err);

    return row ? row->wire : ERR_UNKNOWN_SERVER_ERROR;
}

bool err_is_retriable(enum err err)
{
    const struct err_row *row = find(err);

    return row && row->retriable;
}

enum err err_from_wire(int16_t code)
{
    const struct err_row *row = code < 1000 ? find(code) : NULL;

    return row ? (enum err)row->number : ERR_UNKNOWN_SERVER_ERROR;
}
