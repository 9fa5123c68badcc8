/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a traced line to a log.
 *
 * Lines are traced as logfmt by whoever has something to say, with values of peers in them. Text
 * passes them on and escapes what would end the line or steer a terminal. For JSON the pairs are
 * taken apart again: a value in quotes ends at the quote before a blank or the end, any other at a
 * blank, and a word without a key belongs to the value before it. So a value with blanks or quotes
 * of its own stays whole in the common case, and in no case becomes anything but a string.
 */
#include "base/logline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"

#define NUMBER_DIGITS_MAX 15 /* what a double holds: readers of JSON may use one */

const char *trace_level_name(enum trace_level level)
{
    switch (level) {
    case TRACE_ERROR: return "error";
    case TRACE_WARN: return "warn";
    case TRACE_INFO: return "info";
    case TRACE_DEBUG: return "debug";
    }
    UNREACHABLE();
}

static void put(struct buf *to, const char *text)
{
    buf_append(to, text, strlen(text));
}

static void put_time(struct buf *to, int64_t wall_ms)
{
    time_t seconds = wall_ms / 1000;
    struct tm tm;
    char text[64];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    put(to, text);
    snprintf(text, sizeof(text), ".%03dZ", (int)(wall_ms % 1000));
    put(to, text);
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void put_visible(struct buf *to, const char *text)
{
    char escape[8];

    for (; *text; text++) {
        if (!is_control((unsigned char)*text)) {
            buf_append(to, text, 1);
            continue;
        }
        snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*text);
        put(to, escape);
    }
}

void logline_text(struct buf *to, enum trace_level level, int64_t wall_ms, const char *line)
{
    if (wall_ms >= 0) {
        put(to, "time=");
        put_time(to, wall_ms);
        put(to, " ");
    }
    put(to, "level=");
    put(to, trace_level_name(level));
    put(to, " event=");
    put_visible(to, line);
    put(to, "\n");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at the start of s; 0 when there is none (RFC 3629). */
static size_t utf8_size(const unsigned char *s, size_t n)
{
    unsigned char least = 0x80;
    unsigned char most = 0xbf;
    size_t size;

    if (s[0] < 0x80)
        return 1;
    size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < size)
        return 0;
    if (s[0] == 0xe0)
        least = 0xa0;
    else if (s[0] == 0xed)
        most = 0x9f;
    else if (s[0] == 0xf0)
        least = 0x90;
    else if (s[0] == 0xf4)
        most = 0x8f;
    for (size_t i = 1; i < size; i++, least = 0x80, most = 0xbf)
        if (s[i] < least || s[i] > most)
            return 0;
    return size;
}

static void put_string_bytes(struct buf *to, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    char escape[8];

    while (n > 0) {
        size_t size = utf8_size(s, n);

        if (size == 0) {
            put(to, "\\ufffd");
            size = 1;
        } else if (is_control(*s)) {
            snprintf(escape, sizeof(escape), "\\u%04x", *s);
            put(to, escape);
        } else {
            if (*s == '"' || *s == '\\')
                put(to, "\\");
            buf_append(to, s, size);
        }
        s += size;
        n -= size;
    }
}

static void put_string(struct buf *to, const char *text, size_t n)
{
    put(to, "\"");
    put_string_bytes(to, text, n);
    put(to, "\"");
}

/* As JSON writes whole numbers: no zeros in front. */
static bool is_number(const char *text, size_t n)
{
    size_t sign = n > 0 && *text == '-';

    if (n == sign || n - sign > NUMBER_DIGITS_MAX || (text[sign] == '0' && n > 1))
        return false;
    return strspn(text + sign, "0123456789") >= n - sign;
}

static void put_value(struct buf *to, const char *text, size_t n)
{
    if (is_number(text, n))
        buf_append(to, text, n);
    else
        put_string(to, text, n);
}

/* Bytes of the key at the start of a word; 0 when the word has none. */
static size_t key_size(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return word[n] == '=' ? n : 0;
}

/* The end of a value in quotes, which begins behind the first: at the last quote, or the end. */
static const char *quoted_end(const char *at)
{
    for (; *at; at++)
        if (*at == '"' && (at[1] == ' ' || !at[1]))
            return at;
    return at;
}

/* The end of a value without: the next blank that is followed by a key, or the end. */
static const char *plain_end(const char *at)
{
    for (; *at; at++)
        if (*at == ' ' && key_size(at + 1) > 0)
            return at;
    return at;
}

static const char *put_pair(struct buf *to, const char *at)
{
    size_t n = key_size(at);
    const char *value = n > 0 ? at + n + 1 : at;
    const char *end;

    put(to, ",");
    if (n > 0)
        put_string(to, at, n);
    else
        put(to, "\"message\"");
    put(to, ":");
    if (*value == '"') {
        end = quoted_end(value + 1);
        put_string(to, value + 1, (size_t)(end - value - 1));
        return *end ? end + 1 : end;
    }
    end = plain_end(value);
    put_value(to, value, (size_t)(end - value));
    return end;
}

static void begin_json(struct buf *to, enum trace_level level, int64_t wall_ms, const char *event,
                       size_t n)
{
    put(to, "{");
    if (wall_ms >= 0) {
        put(to, "\"time\":\"");
        put_time(to, wall_ms);
        put(to, "\",");
    }
    put(to, "\"level\":\"");
    put(to, trace_level_name(level));
    put(to, "\",\"module\":");
    put_string(to, event, MIN(strcspn(event, "."), n));
    put(to, ",\"event\":");
    put_string(to, event, n);
}

void logline_json(struct buf *to, enum trace_level level, int64_t wall_ms, const char *line)
{
    const char *at = line + strcspn(line, " ");

    begin_json(to, level, wall_ms, line, (size_t)(at - line));
    while (*(at += strspn(at, " ")))
        at = put_pair(to, at);
    put(to, "}\n");
}

void logline_json_message(struct buf *to, enum trace_level level, int64_t wall_ms,
                          const char *event, const char *message)
{
    begin_json(to, level, wall_ms, event, strlen(event));
    put(to, ",\"message\":");
    put_string(to, message, strlen(message));
    put(to, "}\n");
}
