/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the SQLite keeper costs: opening an empty directory, opening one with many nodes, commits
 * per second one at a time and with many in flight, and memory per node. The directory is in
 * $TMPDIR or /tmp; a tmpfs there shows the processor's share alone.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "keeper/keeper.h"

#define WRITERS_MAX 64
#define COMMITS 4000
#define NODES 100000
#define NODES_PER_MULTI 500
#define DATA                                                                                       \
    "{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1,2,3]}"

struct bench;

struct writer {
    struct keeper_call call;
    struct bench *bench;
    struct keeper_op ops[NODES_PER_MULTI];
    char paths[NODES_PER_MULTI][24];
};

struct bench {
    struct io *io;
    struct keeper *keeper;
    char path[128];
    struct writer writers[WRITERS_MAX];
    int in_flight;
    int left; /* multis still to be submitted */
    int pending;
    int nodes; /* created so far */
    int nodes_per_multi;
};

static struct bytes data_of(const char *s)
{
    return (struct bytes){.p = (const uint8_t *)s, .n = (int32_t)strlen(s)};
}

static void submit(struct writer *w)
{
    struct bench *b = w->bench;
    int n = MAX(b->nodes_per_multi, 1);

    b->left--;
    b->pending++;
    for (int i = 0; i < n; i++) {
        enum keeper_op_kind kind = b->nodes_per_multi ? KEEPER_CREATE : KEEPER_SET;

        snprintf(w->paths[i], sizeof(w->paths[i]), "/n%d", kind == KEEPER_SET ? 0 : b->nodes++);
        w->ops[i] = (struct keeper_op){
            .kind = kind, .path = w->paths[i], .data = data_of(DATA), .version = -1};
    }
    keeper_multi(b->keeper, w->ops, n, &w->call);
}

static void done(struct keeper_call *call)
{
    struct writer *w = CONTAINER_OF(call, struct writer, call);
    struct bench *b = w->bench;

    assert(call->err == ERR_NONE);
    keeper_call_release(call);
    b->pending--;
    if (b->left > 0)
        submit(w);
    else if (b->pending == 0)
        io_stop(b->io);
}

static void start(void *ctx)
{
    struct bench *b = ctx;

    for (int i = 0; i < b->in_flight && b->left > 0; i++) {
        b->writers[i].bench = b;
        b->writers[i].call.done = done;
        submit(&b->writers[i]);
    }
    if (b->pending == 0)
        io_stop(b->io);
}

struct figures {
    double open_ms;
    double run_ms;
    size_t heap_bytes; /* that opening took */
};

static struct figures run(struct bench *b, int in_flight, int multis, int nodes_per_multi)
{
    struct figures f;
    char *message;

    b->in_flight = in_flight;
    b->left = multis;
    b->nodes_per_multi = nodes_per_multi;
    b->io = io_new(&(struct io_options){.trace_level = TRACE_WARN});
    struct io_loop *loop = io_loop_new(b->io, "control", start, b);
    size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    int64_t begin = io_mono_ns(b->io);
    enum err err = keeper_sqlite_open(b->io, b->path, loop, NULL, NULL, &b->keeper, &message);
    int64_t opened = io_mono_ns(b->io);

    if (err)
        fprintf(stderr, "%s\n", message);
    assert(!err);
    f.heap_bytes = mallinfo2().uordblks + mallinfo2().hblkhd - heap;
    io_run(b->io);
    f.open_ms = (double)(opened - begin) / 1e6;
    f.run_ms = (double)(io_mono_ns(b->io) - opened) / 1e6;
    keeper_free(b->keeper);
    io_free(b->io);
    return f;
}

int main(void)
{
    struct bench *b = xcalloc(1, sizeof(*b));
    const char *tmp = getenv("TMPDIR");
    char dir[96];

    snprintf(dir, sizeof(dir), "%s/keeper-bench.XXXXXX", tmp ? tmp : "/tmp");
    assert(mkdtemp(dir));
    for (int i = 0; i < 5; i++) {
        snprintf(b->path, sizeof(b->path), "%s/keeper.db", dir);
        unlink(b->path);
        printf("open, empty directory      %8.2f ms\n", run(b, 1, 0, 0).open_ms);
    }
    run(b, 1, 1, 1);
    for (int in_flight = 1; in_flight <= WRITERS_MAX; in_flight *= 4) {
        struct figures f = run(b, in_flight, COMMITS, 0);

        printf("commits, %2d in flight      %8.0f /s\n", in_flight, COMMITS / f.run_ms * 1e3);
    }
    struct figures f = run(b, 2, NODES / NODES_PER_MULTI, NODES_PER_MULTI);

    printf("create %d nodes        %8.0f ms\n", NODES, f.run_ms);
    f = run(b, 1, 0, 0);
    printf("open with %d nodes     %8.1f ms\n", NODES, f.open_ms);
    printf("memory of a node           %8.0f bytes (of them %zu data)\n",
           (double)f.heap_bytes / NODES, sizeof(DATA) - 1);
    unlink(b->path);
    rmdir(dir);
    free(b);
    return 0;
}
