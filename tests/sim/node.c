/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's process: the program's own code from broker_open to broker_close, with settings
 * that make rare things frequent. Segments are small, checkpoints and retention come often, so that
 * a second of virtual time holds what a real broker does in days.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "run.h"

#define SPARSE_RETENTION_MS 30000

void node_set(struct config *c, const char *fmt, ...)
{
    char *message = NULL;
    char setting[128];
    va_list ap;
    enum err err;

    va_start(ap, fmt);
    vsnprintf(setting, sizeof(setting), fmt, ap);
    va_end(ap);
    err = config_load_setting(c, str_of(setting), &message);
    assert(!err);
}

/* Sessions of a moment, and a topic of offsets that is compacted all the time. */
static void set_groups(struct config *c, const struct plan *p)
{
    node_set(c, "group.min.session.timeout.ms=%d", 100);
    node_set(c, "group.initial.rebalance.delay.ms=%d", p->rebalance_delay_ms);
    node_set(c, "offsets.topic.num.partitions=%d", p->offsets_partitions);
    node_set(c, "offsets.topic.segment.bytes=%d", p->offsets_segment_bytes);
    node_set(c, "offsets.load.buffer.size=%d", p->offsets_load_bytes);
    node_set(c, "offsets.retention.minutes=%d", OFFSETS_RETENTION_MINUTES);
    node_set(c, "offsets.retention.check.interval.ms=%d", 300);
    node_set(c, "log.cleaner.backoff.ms=%d", 100);
    node_set(c, "log.cleaner.dedupe.buffer.size=%d", 1 << 20);
    node_set(c, "log.cleaner.delete.retention.ms=%d", 200);
}

static struct config *settings(const struct run *run)
{
    struct config *c = config_new();
    char *message = NULL;
    enum err err;

    node_set(c, "listeners=PLAINTEXT://%s:%d", sim_host_address(run->broker_host), BROKER_PORT);
    node_set(c, "log.dirs=%s", run->plan.dirs == 1 ? "/data" : "/data,/more");
    node_set(c, "num.shards=%d", run->plan.shards);
    node_set(c, "auto.create.topics.enable=false");
    /* Retention wakes fetches: nothing of it in the silences. */
    node_set(c, "log.retention.check.interval.ms=%d",
             run->is_sparse ? SPARSE_RETENTION_MS : run->plan.retention_check_ms);
    node_set(c, "log.flush.offset.checkpoint.interval.ms=%d", 300);
    node_set(c, "log.flush.start.offset.checkpoint.interval.ms=%d", 400);
    node_set(c, "replica.high.watermark.checkpoint.interval.ms=%d", 250);
    node_set(c, "log.segment.delete.delay.ms=%d", 100);
    node_set(c, "log.index.interval.bytes=%d", 400);
    if (run->plan.groups > 0)
        set_groups(c, &run->plan);
    err = config_validate(c, &message);
    assert(!err);
    return c;
}

static void ready(void *ctx, const struct broker_ready *r)
{
    struct run *run = ctx;

    run->is_ready = true;
    tell(run, "the broker is ready, %lld bytes were cut", (long long)r->bytes_cut);
    run->counts.starts++;
    run->counts.cut_bytes += r->bytes_cut;
    if (r->damaged > 0)
        violate(run, "%d partitions are damaged, and no disk has changed its bytes", r->damaged);
}

static void stopped(void *ctx, enum err err, const char *why)
{
    struct run *run = ctx;

    (void)why;
    run->is_stopped = true;
    run->stop_err = err;
}

static void progress(void *ctx, int64_t bytes, int32_t loaded, int32_t total)
{
    (void)ctx, (void)bytes, (void)loaded, (void)total;
}

void node_live(struct run *run, struct broker_args *args)
{
    struct broker *broker;
    char *message = NULL;

    args->software = "strandline in a simulated world";
    args->progress = progress;
    if (broker_open(args, &broker, &message)) {
        trace_error("sim.open_failed", "message=\"%s\"", message ? message : "");
        run->counts.failed_starts++;
        free(message);
        return;
    }
    io_run(args->io);
    broker_close(broker);
}

static void node_main(struct io *io, void *ctx)
{
    struct run *run = ctx;
    struct broker_args args = {
        .io = io,
        .config = settings(run),
        .ready = ready,
        .stopped = stopped,
        .ctx = run,
    };

    node_live(run, &args);
}

void node_start(struct run *run)
{
    run->is_ready = run->is_stopped = false;
    run->life++;
    fleet_new_life(run);
    run->broker_io = sim_process_start(run->broker_host, NULL, node_main, run);
}

bool node_is_alive(const struct run *run)
{
    return run->broker_io && sim_process_is_alive(run->broker_io);
}
