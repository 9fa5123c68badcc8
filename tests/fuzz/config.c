/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a configuration file as anybody may have written it.
 *
 * What must hold: nothing is read or written outside (ASan); a refusal comes with a message that
 * starts with a place, an acceptance with none; a file that was accepted validates or is refused
 * with a message, and what validated can be described and its listeners listed. Each line is also
 * tried as a topic's override, by itself and through an append.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct config *c)
{
    struct config_listener *listeners;
    struct config_entry *entries;
    struct topic_config topic;
    struct config_overrides none = {0};
    struct arena a;

    arena_init(&a, 0);
    assert(config_listeners(c, CONFIG_LISTENERS, &a, &listeners) > 0);
    assert(config_describe_broker(c, &a, &entries) > 0);
    assert(config_describe_topic(c, &none, &a, &entries) > 0);
    topic_config_resolve(c, &none, &topic);
    assert(topic.segment_bytes > 0);
    arena_fini(&a);
}

static void load(struct str text)
{
    struct config *c = config_new();
    char *message;
    enum err err = config_load_properties(c, text, "f", &message);

    assert((err != ERR_NONE) == (message != NULL));
    assert(IMPLIES(err, strncmp(message, "f:", 2) == 0));
    free(message);
    if (!err) {
        err = config_validate(c, &message);
        assert((err != ERR_NONE) == (message != NULL));
        free(message);
        if (!err)
            use(c);
        free(config_warning(c));
    }
    config_free(c);
}

static void alter(struct str line, enum config_op op)
{
    const char *equals = memchr(line.p, '=', (size_t)line.n);
    int32_t n = equals ? (int32_t)(equals - line.p) : line.n;
    struct str value = equals ? (struct str){equals + 1, line.n - n - 1} : str_null();
    struct config_overrides o = {0};
    char *message;
    enum err err = config_alter_topic(&o, op, (struct str){line.p, n}, value, &message);

    assert((err != ERR_NONE) == (message != NULL));
    assert(IMPLIES(err, o.count == 0));
    free(message);
    if (!err && o.count > 0) {
        err = topic_config_check(str_of(o.pairs[0].name), str_of(o.pairs[0].value), &message);
        assert(!err);
    }
    config_overrides_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    const char *end = p + size;

    if (size == 0 || size > 65536)
        return 0;
    load((struct str){p, (int32_t)size});
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        struct str line = {p, (int32_t)((newline ? newline : end) - p)};

        for (enum config_op op = CONFIG_OP_SET; op <= CONFIG_OP_SUBTRACT; op++)
            alter(line, op);
        p += line.n + 1;
    }
    return 0;
}
