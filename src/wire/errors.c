/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors in a response, wherever they stand. Kafka's messages name such a field error_code and
 * nothing else so; the walk follows the schema, whose depth bounds it.
 */
#include <string.h>

#include "wire/schema_int.h"

struct walk {
    void (*fn)(void *ctx, int16_t code);
    void *ctx;
};

static void walk_struct(const struct walk *w, const struct schema *schema, const void *msg);

static void walk_array(const struct walk *w, const struct schema *child, const void *at)
{
    size_t size = schema__kind_size(KIND_ONE, child);
    struct wire_array a;

    memcpy(&a, at, sizeof(a));
    for (int32_t i = 0; i < a.n; i++)
        walk_struct(w, child, (const char *)a.v + (size_t)i * size);
}

static void walk_maybe(const struct walk *w, const struct schema *child, const void *at)
{
    const void *msg;

    memcpy(&msg, at, sizeof(msg));
    if (msg)
        walk_struct(w, child, msg);
}

static void walk_code(const struct walk *w, const struct field *f, const void *at)
{
    int64_t code = schema__int_get(KIND_I16, at);

    if (code != 0 && strcmp(f->name, "error_code") == 0)
        w->fn(w->ctx, (int16_t)code);
}

static void walk_struct(const struct walk *w, const struct schema *schema, const void *msg)
{
    for (const struct field *f = schema->fields(); f->kind; f++) {
        const void *at = (const char *)msg + f->offset;

        if (f->kind == KIND_I16)
            walk_code(w, f, at);
        else if (f->kind == KIND_ONE)
            walk_struct(w, f->child, at);
        else if (f->kind == KIND_MAYBE)
            walk_maybe(w, f->child, at);
        else if (f->kind == KIND_ARRAY && f->element == KIND_ONE)
            walk_array(w, f->child, at);
    }
}

void wire_each_error(const struct schema *schema, const void *msg,
                     void (*fn)(void *ctx, int16_t code), void *ctx)
{
    const struct walk w = {.fn = fn, .ctx = ctx};

    walk_struct(&w, schema, msg);
}
