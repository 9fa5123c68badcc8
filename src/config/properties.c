/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's properties syntax, in which Kafka's configuration files are written.
 *
 * Lines are joined first: a line that ends in an odd number of backslashes goes on in the next
 * one, whose leading blanks do not count; blank lines and comments are dropped where an entry
 * could begin. Then the key ends at the first '=', ':' or blank that is not escaped, and both
 * parts are unescaped in place. Java reads Latin-1; we take the bytes as they are, so that UTF-8
 * survives, and \uXXXX becomes UTF-8.
 *
 * Both steps only ever shrink the text, so one buffer of its size serves all entries. A NUL byte
 * is refused: values are C strings behind this point.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "config/config_int.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

/* The next line without its end; false when the text has ended. */
static bool next_line(struct config_properties *p, struct str *line)
{
    int32_t n = 0;

    if (p->rest.n <= 0)
        return false;
    while (n < p->rest.n && p->rest.p[n] != '\n' && p->rest.p[n] != '\r')
        n++;
    *line = (struct str){p->rest.p, n};
    if (n + 1 < p->rest.n && p->rest.p[n] == '\r' && p->rest.p[n + 1] == '\n')
        n++;
    n = MIN(n + 1, p->rest.n);
    p->rest = (struct str){p->rest.p + n, p->rest.n - n};
    p->line++;
    return true;
}

static struct str skip_blanks(struct str s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    return s;
}

static bool goes_on(struct str line)
{
    int32_t backslashes = 0;

    while (backslashes < line.n && line.p[line.n - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

/* Joins the lines of one entry in the buffer; returns its length, 0 at the end of the text. */
static int32_t join_entry(struct config_properties *p)
{
    int32_t used = 0;
    bool is_first = true;
    struct str line;

    while (next_line(p, &line)) {
        bool more = goes_on(line);

        line = skip_blanks(line);
        if (is_first && (line.n == 0 || line.p[0] == '#' || line.p[0] == '!'))
            continue;
        if (is_first)
            p->entry_line = p->line;
        is_first = false;
        if (more)
            line.n--;
        memcpy(p->buffer + used, line.p, (size_t)line.n);
        used += line.n;
        if (more)
            continue;
        if (used > 0)
            return used;
        is_first = true; /* nothing but a backslash */
    }
    return used;
}

static int32_t put_utf8(char *to, uint32_t c)
{
    int32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0x00, 0xc0, 0xe0, 0xf0};

    to[0] = (char)(lead[more] | c >> (6 * more));
    for (int32_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The number of \uXXXX at s; false unless it is there. */
static bool get_unit(struct str s, uint32_t *out)
{
    *out = 0;
    if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
        return false;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(s.p[i]);

        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* One \uXXXX, or two of them that are a surrogate pair. Returns the bytes read, 0 if it is bad. */
static int32_t get_code_point(struct str s, uint32_t *out)
{
    uint32_t low;

    if (!get_unit(s, out) || *out == 0 || (*out >= 0xdc00 && *out <= 0xdfff))
        return 0;
    if (*out < 0xd800 || *out > 0xdbff)
        return 6;
    if (!get_unit((struct str){s.p + 6, s.n - 6}, &low) || low < 0xdc00 || low > 0xdfff)
        return 0;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return 12;
}

static char plain_escape(char c)
{
    switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'f': return '\f';
    default: return c;
    }
}

/* In place: what is written never overtakes what is read. */
static enum err unescape(char *text, int32_t n, struct str *out)
{
    int32_t from = 0;
    int32_t to = 0;

    while (from < n) {
        uint32_t c;
        int32_t used;

        if (text[from] != '\\') {
            text[to++] = text[from++];
        } else if (from + 1 < n && text[from + 1] == 'u') {
            used = get_code_point((struct str){text + from, n - from}, &c);
            if (used == 0)
                return ERR_MALFORMED;
            to += put_utf8(text + to, c);
            from += used;
        } else {
            if (from + 1 < n)
                text[to++] = plain_escape(text[from + 1]);
            from += 2;
        }
        assert(to <= from);
    }
    *out = (struct str){text, to};
    return ERR_NONE;
}

static int32_t key_length(struct str entry)
{
    int32_t i = 0;

    while (i < entry.n && !is_blank(entry.p[i]) && entry.p[i] != '=' && entry.p[i] != ':')
        i += entry.p[i] == '\\' ? 2 : 1;
    return MIN(i, entry.n);
}

static struct str value_part(struct str rest)
{
    rest = skip_blanks(rest);
    if (rest.n > 0 && (rest.p[0] == '=' || rest.p[0] == ':'))
        rest = skip_blanks((struct str){rest.p + 1, rest.n - 1});
    return rest;
}

void config__properties_init(struct config_properties *p, struct str text)
{
    *p = (struct config_properties){.rest = text};
    p->buffer = xmalloc((size_t)MAX(text.n, 1));
}

void config__properties_fini(struct config_properties *p)
{
    free(p->buffer);
    p->buffer = NULL;
}

enum err config__properties_next(struct config_properties *p, struct str *key, struct str *value)
{
    struct str entry = {p->buffer, join_entry(p)};
    int32_t key_n = key_length(entry);
    struct str rest = value_part((struct str){entry.p + key_n, entry.n - key_n});
    enum err err;

    *key = str_null();
    *value = str_null();
    if (entry.n == 0)
        return ERR_EOF;
    if (memchr(entry.p, '\0', (size_t)entry.n))
        return ERR_MALFORMED;
    err = unescape(p->buffer, key_n, key);
    if (err)
        return err;
    return unescape(p->buffer + (rest.p - entry.p), rest.n, value);
}
