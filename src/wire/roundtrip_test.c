/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random messages of every schema and version: what is encoded is decoded to the same values and
 * encoded again to the same bytes; every prefix is refused; and no change of the bytes makes the
 * decoder read outside its input (each lies in a heap block of its exact size, for ASan) or take
 * more memory than it may. Messages are made, and compared, by walking the tables. Seeds are fixed.
 */
#include "wire/kinds_test_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/rng.h"
#include "wire/apis.h"
#include "wire/messages.h"
#include "wire/print.h"

#define MESSAGES_PER_VERSION 20
#define MUTATIONS_PER_MESSAGE 20
#define MESSAGE_WORDS 64

struct maker {
    struct rng rng;
    struct arena *arena;
    int16_t version;
};

static void make_struct(struct maker *m, const struct schema *s, void *msg);
static bool struct_is_same(const struct schema *s, const void *a, const void *b);

static struct bytes make_slice(struct maker *m)
{
    int32_t n = (int32_t)rng_below(&m->rng, rng_below(&m->rng, 20) ? 12 : 300);
    uint8_t *p = arena_alloc(m->arena, (size_t)n);

    for (int32_t i = 0; i < n; i++)
        p[i] = (uint8_t)rng_u64(&m->rng);
    return (struct bytes){.p = p, .n = n};
}

static int64_t make_int(struct maker *m)
{
    /* Small numbers, numbers of any size, and the edges. */
    static const int64_t edges[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    uint64_t choice = rng_below(&m->rng, 3);

    if (choice == 0)
        return (int64_t)rng_below(&m->rng, 100);
    if (choice == 1)
        return edges[rng_below(&m->rng, ARRAY_LEN(edges))];
    return (int64_t)(rng_u64(&m->rng) >> rng_below(&m->rng, 64));
}

static void make_value(struct maker *m, enum kind kind, const struct schema *child, void *at)
{
    struct bytes b = {0};

    if (kind == KIND_STR || kind == KIND_BYTES || kind == KIND_RECORDS)
        b = make_slice(m);
    if (kind == KIND_BOOL)
        *(bool *)at = rng_below(&m->rng, 2);
    else if (schema__kind_is_int(kind))
        schema__int_put(kind, at, make_int(m));
    else if (kind == KIND_F64)
        *(double *)at = (double)make_int(m) / 3;
    else if (kind == KIND_UUID)
        *(struct uuid *)at = uuid_from_random(rng_u64(&m->rng), rng_u64(&m->rng));
    else if (kind == KIND_STR)
        *(struct str *)at = (struct str){.p = (const char *)b.p, .n = b.n};
    else if (kind == KIND_BYTES)
        *(struct bytes *)at = b;
    else if (kind == KIND_RECORDS)
        *(struct records *)at = (struct records){.b = b};
    else
        make_struct(m, child, at);
}

static void make_array(struct maker *m, const struct field *f, struct wire_array *at)
{
    size_t size = schema__kind_size(f->element, f->child);

    at->n = (int32_t)rng_below(&m->rng, 4);
    at->v = at->n ? arena_calloc(m->arena, (size_t)at->n, size) : NULL;
    for (int32_t i = 0; i < at->n; i++)
        make_value(m, f->element, f->child, (char *)at->v + (size_t)i * size);
}

static void make_null(const struct field *f, void *at)
{
    int32_t n = -1;

    memset(at, 0, schema__kind_size(f->kind, f->child));
    if (f->kind != KIND_MAYBE)
        memcpy((char *)at + offsetof(struct str, n), &n, sizeof(n));
}

static void make_field(struct maker *m, const struct field *f, void *msg)
{
    void *at = (char *)msg + f->offset;

    if (!field__is_in(f, m->version) || rng_below(&m->rng, 8) == 0)
        return;
    if (field__is_nullable(f, m->version) && rng_below(&m->rng, 4) == 0) {
        make_null(f, at);
    } else if (f->kind == KIND_ARRAY) {
        make_array(m, f, at);
    } else if (f->kind == KIND_MAYBE) {
        void *p = arena_alloc(m->arena, f->child->size);

        make_struct(m, f->child, p);
        memcpy(at, &p, sizeof(p));
    } else {
        make_value(m, f->kind, f->child, at);
    }
}

static void make_struct(struct maker *m, const struct schema *s, void *msg)
{
    wire_init(s, msg);
    for (const struct field *f = s->fields(); f->kind; f++)
        make_field(m, f, msg);
}

static bool value_is_same(enum kind kind, const struct schema *child, const void *a, const void *b)
{
    const struct bytes *x = a, *y = b; /* the head of STR, BYTES and RECORDS */

    if (kind == KIND_ONE)
        return struct_is_same(child, a, b);
    if (kind == KIND_STR || kind == KIND_BYTES || kind == KIND_RECORDS)
        return x->n == y->n && (x->n <= 0 || memcmp(x->p, y->p, (size_t)x->n) == 0);
    return memcmp(a, b, schema__kind_size(kind, child)) == 0;
}

static bool array_is_same(const struct field *f, const struct wire_array *a,
                          const struct wire_array *b)
{
    size_t size = schema__kind_size(f->element, f->child);

    if (a->n != b->n)
        return false;
    for (int32_t i = 0; i < a->n; i++)
        if (!value_is_same(f->element, f->child, (char *)a->v + (size_t)i * size,
                           (char *)b->v + (size_t)i * size))
            return false;
    return true;
}

static bool field_is_same(const struct field *f, const void *a, const void *b)
{
    const void *p, *q;

    if (f->kind == KIND_ARRAY)
        return array_is_same(f, a, b);
    if (f->kind != KIND_MAYBE)
        return value_is_same(f->kind, f->child, a, b);
    memcpy(&p, a, sizeof(p));
    memcpy(&q, b, sizeof(q));
    return p && q ? struct_is_same(f->child, p, q) : p == q;
}

static bool struct_is_same(const struct schema *s, const void *a, const void *b)
{
    for (const struct field *f = s->fields(); f->kind; f++)
        if (!field_is_same(f, (const char *)a + f->offset, (const char *)b + f->offset))
            return false;
    return true;
}

/* One round of one message; everything it takes comes from two arenas and goes with them. */
struct round {
    const struct schema *schema;
    int16_t version;
    struct rng rng;
    struct arena ours;    /* the random message */
    struct arena decoded; /* what the decoder takes */
    struct wire_out out;
    struct wire_out again;
};

/* Decodes a copy that ends where its heap block ends. */
static enum err decode_copy(struct round *r, const uint8_t *p, size_t n, void *msg, size_t *used,
                            uint8_t **copy)
{
    enum err err;

    *copy = xmemdup(p, n);
    arena_reset(&r->decoded);
    err = wire_decode(r->schema, r->version, (struct bytes){.p = *copy, .n = (int32_t)n},
                      &r->decoded, msg, used);
    assert_true(r->decoded.used <= n * DECODE_AMPLIFICATION_MAX);
    return err;
}

static void check_round_trip(struct round *r)
{
    max_align_t made[MESSAGE_WORDS], msg[MESSAGE_WORDS];
    struct maker m = {.rng = r->rng, .arena = &r->ours, .version = r->version};
    uint8_t *copy;
    size_t used;

    assert_true(r->schema->size <= sizeof(msg));
    make_struct(&m, r->schema, made);
    r->rng = m.rng;
    wire_out_reset(&r->out);
    wire_encode(r->schema, r->version, made, &r->out);
    assert_int_equal(r->out.err, ERR_NONE);
    assert_int_equal(decode_copy(r, r->out.p, r->out.n, msg, &used, &copy), ERR_NONE);
    assert_int_equal(used, r->out.n);
    if (!struct_is_same(r->schema, made, msg))
        fail_msg("%s version %d came back changed", r->schema->name, r->version);
    wire_out_reset(&r->again);
    wire_encode(r->schema, r->version, msg, &r->again);
    assert_int_equal(r->again.n, r->out.n);
    assert_memory_equal(r->again.p, r->out.p, r->out.n);
    free(copy);
}

static void check_truncations(struct round *r)
{
    max_align_t msg[MESSAGE_WORDS];

    for (size_t n = 0; n < r->out.n; n++) {
        uint8_t *copy;
        size_t used;

        assert_int_not_equal(decode_copy(r, r->out.p, n, msg, &used, &copy), ERR_NONE);
        assert_int_equal(used, 0);
        free(copy);
    }
}

/* Whatever was decoded can be printed and encoded: nothing in it points astray. */
static void use_decoded(struct round *r, const void *msg)
{
    char line[100];

    wire_print(r->schema, r->version, msg, line, sizeof(line));
    wire_out_reset(&r->again);
    wire_encode(r->schema, r->version, msg, &r->again);
    assert_int_equal(r->again.err, ERR_NONE);
}

static void check_mutations(struct round *r)
{
    max_align_t msg[MESSAGE_WORDS];

    for (int i = 0; i < MUTATIONS_PER_MESSAGE && r->out.n > 0; i++) {
        size_t changes = 1 + rng_below(&r->rng, 3);
        uint8_t *mutant = xmemdup(r->out.p, r->out.n);
        uint8_t *copy;
        size_t used;

        while (changes--)
            mutant[rng_below(&r->rng, r->out.n)] = (uint8_t)rng_u64(&r->rng);
        if (decode_copy(r, mutant, r->out.n, msg, &used, &copy) == ERR_NONE)
            use_decoded(r, msg);
        free(copy);
        free(mutant);
    }
}

static void check_message(const struct schema *schema, void (*check)(struct round *), uint64_t seed)
{
    struct round r = {.schema = schema, .rng = rng_seeded(seed)};

    arena_init(&r.ours, 0);
    arena_init(&r.decoded, 0);
    for (r.version = schema->first; r.version <= schema->last; r.version++)
        for (int i = 0; i < MESSAGES_PER_VERSION; i++) {
            arena_reset(&r.ours);
            check_round_trip(&r);
            if (check)
                check(&r);
        }
    arena_fini(&r.ours);
    arena_fini(&r.decoded);
    wire_out_fini(&r.out);
    wire_out_fini(&r.again);
}

static void check_all(void (*check)(struct round *), uint64_t seed)
{
    for (int i = 0; i < API_KNOWN_COUNT; i++) {
        check_message(api_at(i)->request, check, seed + (uint64_t)i);
        check_message(api_at(i)->response, check, seed + 1000 + (uint64_t)i);
    }
    check_message(&kinds_schema, check, seed);
}

static void random_messages_come_back_unchanged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        check_all(NULL, seed << 16);
}

static void every_prefix_of_a_message_is_refused(void **state)
{
    (void)state;
    check_all(check_truncations, 11);
}

static void changed_bytes_are_survived(void **state)
{
    (void)state;
    check_all(check_mutations, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_messages_come_back_unchanged),
        cmocka_unit_test(every_prefix_of_a_message_is_refused),
        cmocka_unit_test(changed_bytes_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
