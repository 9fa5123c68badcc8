/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the small files of a log directory as a disk, or another broker, may have left them.
 *
 * The first byte chooses the file; the rest is its content. Producer snapshots carry a checksum
 * that a fuzzer cannot guess: the high bit of the first byte puts the right one in.
 *
 * What must hold: nothing is read outside the input (ASan); what was refused leaves nothing behind
 * and tells nothing; what was accepted is in order, is told entry by entry, and is a fixed point:
 * what is written of it is accepted, and written the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "log/files_int.h"
#include "log/inspect.h"
#include "log/producers_int.h"
#include "record/record.h"

#define SEAL 0x80

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str text_of(const struct buf *b)
{
    return (struct str){.p = b->n > 0 ? (const char *)b->p : "", .n = (int32_t)b->n};
}

static void check_same(const struct buf *a, const struct buf *b)
{
    assert(a->n == b->n);
    assert(a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* ---- Checkpoints -------------------------------------------------------------------------- */

static void count_offset(void *ctx, const char *topic, int32_t partition, int64_t offset)
{
    assert(topic && partition >= 0 && offset >= 0);
    (*(size_t *)ctx)++;
}

static void check_offsets(const struct checkpoint *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct checkpoint_entry *e = &c->v[i];

        assert(checkpoint_get(c, e->topic, e->partition, -1) == e->offset);
        if (i > 0) {
            int order = strcmp(c->v[i - 1].topic, e->topic);
            assert(order < 0 || (order == 0 && c->v[i - 1].partition < e->partition));
        }
    }
}

static void fuzz_offsets(struct str text)
{
    struct buf first = {0}, second = {0};
    struct checkpoint c;
    size_t told = 0;
    enum err err = checkpoint_parse(text, &c);

    assert(inspect_checkpoint(text, count_offset, &told) == err);
    assert(told == c.n);
    assert(IMPLIES(err, c.n == 0 && !c.v));
    check_offsets(&c);
    checkpoint_format(&c, &first);
    checkpoint_fini(&c);
    assert(checkpoint_parse(text_of(&first), &c) == ERR_NONE);
    checkpoint_format(&c, &second);
    check_same(&first, &second);
    checkpoint_fini(&c);
    buf_fini(&first);
    buf_fini(&second);
}

/* ---- Leader epochs ------------------------------------------------------------------------ */

static void count_epoch(void *ctx, int32_t epoch, int64_t start_offset)
{
    assert(epoch >= 0 && start_offset >= 0);
    (*(size_t *)ctx)++;
}

static void check_epochs(const struct epochs *e)
{
    int32_t found;
    int64_t end;

    for (size_t i = 0; i < e->n; i++) {
        bool is_last = i + 1 == e->n;

        assert(is_last || (e->v[i].epoch < e->v[i + 1].epoch && e->v[i].start < e->v[i + 1].start));
        assert(epochs_at(e, e->v[i].start) == e->v[i].epoch);
        epochs_end(e, e->v[i].epoch, INT64_MAX, &found, &end);
        assert(found == e->v[i].epoch);
        assert(end == (is_last ? INT64_MAX : e->v[i + 1].start));
    }
}

/* Cuts at both ends by what is there, so that the cuts meet entries. */
static void cut_epochs(struct epochs *e)
{
    int64_t middle = e->n > 0 ? e->v[e->n / 2].start : 0;

    epochs_truncate_start(e, middle);
    check_epochs(e);
    assert(IMPLIES(e->n > 0, e->v[0].start >= middle));
    epochs_truncate_end(e, middle);
    assert(e->n == 0);
}

static void fuzz_epochs(struct str text)
{
    struct buf first = {0}, second = {0};
    struct epochs e;
    size_t told = 0;
    enum err err = epochs_parse(text, &e);

    assert(inspect_epochs(text, count_epoch, &told) == err);
    assert(told == e.n);
    assert(IMPLIES(err, e.n == 0 && !e.v));
    check_epochs(&e);
    epochs_format(&e, &first);
    epochs_fini(&e);
    assert(epochs_parse(text_of(&first), &e) == ERR_NONE);
    epochs_format(&e, &second);
    check_same(&first, &second);
    cut_epochs(&e);
    epochs_fini(&e);
    buf_fini(&first);
    buf_fini(&second);
}

/* ---- Producer snapshots ------------------------------------------------------------------- */

static void count_producer(void *ctx, const struct inspect_producer *p)
{
    assert(p->producer_id >= 0 && p->epoch >= 0);
    (*(size_t *)ctx)++;
}

static enum err parse_snapshot(struct bytes content, bool is_ours, int64_t *offset,
                               struct producers *ps)
{
    *offset = -1;
    return is_ours ? snapshot_parse(content, offset, ps) : snapshot_parse_kafka(content, ps);
}

static void format_snapshot(const struct producers *ps, bool is_ours, int64_t offset,
                            struct buf *out)
{
    if (is_ours)
        snapshot_format(ps, offset, out);
    else
        snapshot_format_kafka(ps, out);
}

static void check_producers(struct producers *ps)
{
    int64_t open = producers_first_open(ps);

    assert(producers_agree(ps, ps));
    assert(producers_first_unstable(ps, 0) <= open);
    assert((producers_id_max(ps) >= 0) == (producers_count(ps) > 0));
}

static void fuzz_snapshot(struct bytes content, bool is_ours)
{
    struct buf first = {0}, second = {0};
    struct producers ps, again;
    int64_t offset, told_offset;
    size_t told = 0;
    enum err err;

    producers_init(&ps);
    producers_init(&again);
    err = parse_snapshot(content, is_ours, &offset, &ps);
    assert(inspect_producers(content, is_ours, &told_offset, count_producer, &told) == err);
    assert(told >= producers_count(&ps) && told_offset == offset);
    assert(IMPLIES(err, told == 0 && producers_count(&ps) == 0));
    check_producers(&ps);
    format_snapshot(&ps, is_ours, offset, &first);
    assert(parse_snapshot(buf_bytes(&first, 0), is_ours, &offset, &again) == ERR_NONE);
    assert(producers_agree(&ps, &again));
    format_snapshot(&again, is_ours, offset, &second);
    check_same(&first, &second);
    producers_fini(&ps);
    producers_fini(&again);
    buf_fini(&first);
    buf_fini(&second);
}

/* Where the checksum stands, what it covers: see snapshot.c. */
static void seal(uint8_t *p, size_t n, bool is_ours)
{
    size_t at = is_ours ? 6 : 2;

    if (n >= at + 4)
        put_u32(p + at, crc32c(p + at + 4, n - at - 4));
}

/* ---- Identities and names ----------------------------------------------------------------- */

static void fuzz_meta(struct str text)
{
    struct buf first = {0}, second = {0};
    struct meta_properties m;
    enum err err = meta_properties_parse(text, &m);

    assert(IMPLIES(err, !m.cluster_id && m.node_id == -1 && uuid_is_zero(m.directory_id)));
    assert(m.node_id >= -1);
    meta_properties_format(&m, &first);
    meta_properties_fini(&m);
    assert(meta_properties_parse(text_of(&first), &m) == ERR_NONE);
    meta_properties_format(&m, &second);
    check_same(&first, &second);
    meta_properties_fini(&m);
    buf_fini(&first);
    buf_fini(&second);
}

static void fuzz_partition_metadata(struct str text)
{
    struct buf out = {0};
    struct uuid id, again;
    enum err err = partition_metadata_parse(text, &id);

    assert(IMPLIES(err, uuid_is_zero(id)));
    if (!err) {
        partition_metadata_format(id, &out);
        assert(partition_metadata_parse(text_of(&out), &again) == ERR_NONE);
        assert(uuid_eq(id, again));
    }
    buf_fini(&out);
}

static void fuzz_names(struct str text)
{
    char *name = str_dup(text);
    int32_t partition;
    int64_t offset;
    char *topic;

    if (partition_dir_parse(name, &topic, &partition)) {
        char *again = partition_dir_name(topic, partition);
        assert(partition >= 0 && strcmp(name, again) == 0);
        assert(!partition_dir_is_doomed(name));
        free(again);
        free(topic);
    }
    if (offset_name_parse(name, ".log", &offset)) {
        char *again = offset_path("d", offset, ".log");
        assert(offset >= 0 && strcmp(name, again + 2) == 0);
        free(again);
    }
    free(name);
}

/* ---- All ---------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text;
    uint8_t *copy;

    if (size < 1 || size > 65536)
        return 0;
    copy = xmemdup(data + 1, size - 1);
    text = (struct str){.p = (const char *)copy, .n = (int32_t)size - 1};
    if (data[0] & SEAL)
        seal(copy, size - 1, (data[0] & ~SEAL) % 7 == 3);
    switch ((data[0] & ~SEAL) % 7) {
    case 0: fuzz_offsets(text); break;
    case 1: fuzz_epochs(text); break;
    case 2: fuzz_snapshot((struct bytes){.p = copy, .n = text.n}, false); break;
    case 3: fuzz_snapshot((struct bytes){.p = copy, .n = text.n}, true); break;
    case 4: fuzz_meta(text); break;
    case 5: fuzz_partition_metadata(text); break;
    case 6: fuzz_names(text); break;
    }
    free(copy);
    return 0;
}
