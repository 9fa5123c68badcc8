/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that we did not make: frames caught between real clients and real brokers, and among the
 * brokers of a cluster, kept as tests/golden/<frames|control>/<Api>-v<version>-<request|response>-
 * <n>.hex. Each is decoded to its last byte and encoded again, and must come out the same. Our
 * encoder and decoder share a schema, so only this can show that the schema is right. Two numbers
 * of one width in the wrong order come back all the same; so what the controller says is also
 * compared with what is known about its cluster. Each version that we serve needs its frames, and
 * so does each that we only know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "wire/control_test_int.h"
#include "wire/header.h"
#include "wire/messages.h"
#include "wire/print.h"

#define FRAMES "tests/golden/frames"
#define CONTROL "tests/golden/control"
#define FILE_BYTES_MAX (4 * 1024 * 1024)
#define MESSAGE_BYTES_MAX 512
#define VERSIONS_MAX 32

struct golden {
    char name[256];
    const struct api *api;
    int16_t version;
    bool is_request;
    struct bytes frame; /* owned */
};

/* Frames with tagged fields that are in no schema of ours, which the copy therefore lacks. */
static const char *const with_unknown_tags[] = {
    NULL,
};

/* "ListOffsets" and "list_offsets" are the same API. */
static bool name_matches(const char *kafka, size_t n, const char *ours)
{
    size_t i = 0;

    for (; *ours; ours++) {
        if (*ours == '_')
            continue;
        if (i == n || tolower((unsigned char)kafka[i]) != *ours)
            return false;
        i++;
    }
    return i == n;
}

static const struct api *find_by_name(const char *name, size_t n)
{
    for (int i = 0; i < API_KNOWN_COUNT; i++)
        if (name_matches(name, n, api_at(i)->name))
            return api_at(i);
    return NULL;
}

static bool parse_name(const char *name, struct golden *g)
{
    const char *dash = strstr(name, "-v");
    char *end;

    if (!dash)
        return false;
    snprintf(g->name, sizeof(g->name), "%s", name);
    g->api = find_by_name(name, (size_t)(dash - name));
    g->version = (int16_t)strtol(dash + 2, &end, 10);
    g->is_request = strncmp(end, "-request-", 9) == 0;
    return g->api && end > dash + 2 && (g->is_request || strncmp(end, "-response-", 10) == 0);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hex digits in any number of lines; lines that begin with '#' say where the frame is from. */
static struct bytes parse_hex(const char *text)
{
    uint8_t *p = xmalloc(strlen(text) / 2 + 1);
    int32_t digits = 0;

    for (; *text; text++) {
        int d = hex_digit(*text);

        if (*text == '#')
            text = strchrnul(text, '\n') - 1;
        if (d < 0)
            continue;
        p[digits / 2] = (uint8_t)(digits % 2 ? p[digits / 2] << 4 | d : d);
        digits++;
    }
    assert_int_equal(digits % 2, 0);
    return (struct bytes){.p = p, .n = digits / 2};
}

static struct bytes read_frame(const char *dir, const char *name)
{
    static char text[FILE_BYTES_MAX];
    char path[512];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    return parse_hex(text);
}

static bool has_unknown_tags(const char *name)
{
    for (const char *const *p = with_unknown_tags; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}

/* Decodes the header of g's frame and writes it again to out; returns where the body starts. */
static size_t copy_header(const struct golden *g, struct wire_out *out)
{
    struct request_header header;
    int32_t correlation_id;
    size_t body_at = 0;

    if (g->is_request) {
        enum err err = wire_request_header_decode(g->frame, &header, &body_at);

        if (err && !(err == ERR_UNSUPPORTED_VERSION && body_at > 0))
            fail_msg("%s: header: %s", g->name, err_name(err));
        assert_ptr_equal(header.api, g->api);
        assert_int_equal(header.api_version, g->version);
        wire_request_header_encode(&header, out);
        return body_at;
    }
    if (wire_response_header_decode(g->frame, g->api->key, g->version, &correlation_id, &body_at))
        fail_msg("%s: header", g->name);
    wire_response_header_encode(g->api->key, g->version, correlation_id, out);
    return body_at;
}

static void check_same(const struct golden *g, const struct wire_out *out)
{
    size_t at = 0;

    while (at < out->n && at < (size_t)g->frame.n && out->p[at] == g->frame.p[at])
        at++;
    if (out->n != (size_t)g->frame.n || at != out->n)
        fail_msg("%s: differs at byte %zu of %d; the copy has %zu", g->name, at, g->frame.n,
                 out->n);
}

static void check_body(const struct golden *g, const struct schema *schema, int16_t version,
                       size_t body_at, struct wire_out *out)
{
    max_align_t msg[MESSAGE_BYTES_MAX / sizeof(max_align_t)];
    struct bytes body = {.p = g->frame.p + body_at, .n = g->frame.n - (int32_t)body_at};
    struct arena arena;
    size_t used;
    enum err err;
    char line[64];

    assert_true(schema_size(schema) <= sizeof(msg));
    arena_init(&arena, 0);
    err = wire_decode(schema, version, body, &arena, msg, &used);
    if (err)
        fail_msg("%s: %s", g->name, err_name(err));
    if (used != (size_t)body.n)
        fail_msg("%s: %zu of %d bytes understood", g->name, used, body.n);
    assert_true(wire_print(schema, version, msg, line, sizeof(line)) > 1);
    check_control(g->api, version, g->is_request, msg);
    wire_encode(schema, version, msg, out);
    assert_int_equal(out->err, ERR_NONE);
    arena_fini(&arena);
}

/* An unsupported version of ApiVersions is answered in version 0, whatever was asked. */
static int16_t body_version(const struct golden *g)
{
    if (g->api->key == API_API_VERSIONS && !g->is_request && g->frame.n >= 6 &&
        get_i16(g->frame.p + 4) == ERR_UNSUPPORTED_VERSION)
        return 0;
    return g->version;
}

static void check_golden(const struct golden *g)
{
    const struct schema *schema = g->is_request ? g->api->request : g->api->response;
    struct wire_out out = {0};
    size_t body_at = copy_header(g, &out);

    check_body(g, schema, body_version(g), body_at, &out);
    if (!has_unknown_tags(g->name))
        check_same(g, &out);
    wire_out_fini(&out);
}

/* How often each version of each API was seen: responses at 0, requests at 1. */
struct seen {
    int count[API_KNOWN_COUNT][VERSIONS_MAX][2];
};

static void check_file(const char *dir, const char *name, struct seen *seen)
{
    struct golden g;

    if (!parse_name(name, &g))
        fail_msg("%s: name of no API", name);
    assert_in_range(g.version, 0, VERSIONS_MAX - 1);
    g.frame = read_frame(dir, name);
    check_golden(&g);
    free((void *)(uintptr_t)g.frame.p);
    for (int i = 0; i < API_KNOWN_COUNT; i++)
        seen->count[i][g.version][g.is_request] += api_at(i) == g.api;
}

static void check_directory(const char *path, struct seen *seen)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        fail_msg("no directory %s: run from the top of the source tree", path);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "README.md") != 0)
            check_file(path, entry->d_name, seen);
    closedir(dir);
}

static void check_seen(const struct api *api, const int count[VERSIONS_MAX][2])
{
    bool is_served = api->max >= 0;
    int first = is_served ? api->min : schema_first(api->request);
    int last = is_served ? api->max : schema_last(api->request);

    for (int version = first; version <= last; version++)
        if (!count[version][0] || !count[version][1])
            fail_msg("%s version %d: no golden %s", api->name, version,
                     count[version][0] ? "request" : "response");
}

static void every_version_has_golden_frames_and_they_come_back(void **state)
{
    struct seen seen = {0};

    (void)state;
    check_directory(FRAMES, &seen);
    check_directory(CONTROL, &seen);
    for (int i = 0; i < API_KNOWN_COUNT; i++)
        check_seen(api_at(i), seen.count[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_has_golden_frames_and_they_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
