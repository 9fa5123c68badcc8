/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as text. The printer counts every character and stores those that fit, so that callers
 * may ask for the length first or live with a cut line. Text comes from peers: whatever is not
 * printable is escaped, and no string can break the line.
 */
#include "wire/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "wire/schema_int.h"

struct printer {
    char *out;
    size_t size;
    size_t n; /* characters so far, stored or not */
    int16_t version;
};

static void print_struct(struct printer *p, const struct schema *schema, const void *msg);

static void put_char(struct printer *p, char c)
{
    if (p->n < p->size)
        p->out[p->n] = c; /* the last one gives way to the NUL */
    p->n++;
}

static printf_like(2, 3) void put(struct printer *p, const char *fmt, ...)
{
    char text[64];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text));
    for (int i = 0; i < n; i++)
        put_char(p, text[i]);
}

static void print_quoted(struct printer *p, struct str s)
{
    put_char(p, '"');
    for (int32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < ' ' || c > '~') {
            put(p, "\\x%02x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            put_char(p, '\\');
        put_char(p, (char)c);
    }
    put_char(p, '"');
}

static void print_uuid(struct printer *p, const void *at)
{
    char text[UUID_TEXT_BYTES];
    struct uuid id;

    memcpy(&id, at, sizeof(id));
    uuid_to_text(id, text);
    put(p, "%s", text);
}

static void print_f64(struct printer *p, const void *at)
{
    double v;

    memcpy(&v, at, sizeof(v));
    put(p, "%g", v);
}

static void print_str(struct printer *p, const void *at)
{
    struct str s;

    memcpy(&s, at, sizeof(s));
    if (str_is_null(s))
        put(p, "null");
    else
        print_quoted(p, s);
}

static void print_size(struct printer *p, enum kind kind, const void *at)
{
    int64_t n = schema__length(kind, at);

    if (n < 0)
        put(p, "null");
    else
        put(p, "<%" PRId64 " bytes>", n);
}

static void print_maybe(struct printer *p, const struct schema *child, const void *at)
{
    const void *msg;

    memcpy(&msg, at, sizeof(msg));
    if (msg)
        print_struct(p, child, msg);
    else
        put(p, "null");
}

/* A value of any kind but an array. */
static void print_value(struct printer *p, enum kind kind, const struct schema *child,
                        const void *at)
{
    switch (kind) {
    case KIND_BOOL: put(p, "%s", schema__int_get(kind, at) ? "true" : "false"); break;
    case KIND_F64: print_f64(p, at); break;
    case KIND_UUID: print_uuid(p, at); break;
    case KIND_STR: print_str(p, at); break;
    case KIND_BYTES:
    case KIND_RECORDS: print_size(p, kind, at); break;
    case KIND_ONE: print_struct(p, child, at); break;
    case KIND_MAYBE: print_maybe(p, child, at); break;
    default: put(p, "%" PRId64, schema__int_get(kind, at));
    }
}

static void print_array(struct printer *p, const struct field *f, const void *at)
{
    size_t size = schema__kind_size(f->element, f->child);
    struct wire_array a;

    memcpy(&a, at, sizeof(a));
    if (a.n < 0) {
        put(p, "null");
        return;
    }
    put_char(p, '[');
    for (int32_t i = 0; i < a.n; i++) {
        if (i > 0)
            put_char(p, ' ');
        print_value(p, f->element, f->child, (const char *)a.v + (size_t)i * size);
    }
    put_char(p, ']');
}

static bool is_shown(const struct printer *p, const struct field *f, const void *msg)
{
    return field__is_in(f, p->version) &&
           !(field__is_tagged(f) && schema__field_is_default(f, msg));
}

static void print_struct(struct printer *p, const struct schema *schema, const void *msg)
{
    const char *separator = "";

    put_char(p, '{');
    for (const struct field *f = schema->fields(); f->kind; f++) {
        const char *at = (const char *)msg + f->offset;

        if (!is_shown(p, f, msg))
            continue;
        put(p, "%s%s=", separator, f->name);
        separator = " ";
        if (f->kind == KIND_ARRAY)
            print_array(p, f, at);
        else
            print_value(p, f->kind, f->child, at);
    }
    put_char(p, '}');
}

size_t wire_print(const struct schema *schema, int16_t version, const void *msg, char *out,
                  size_t size)
{
    struct printer p = {.out = out, .size = size, .version = version};

    print_struct(&p, schema, msg);
    if (size > 0)
        out[MIN(p.n, size - 1)] = '\0';
    return p.n;
}
