/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cleaner: which log is compacted when. Each log directory has its own turn, so that one run at
 * a time uses its disk and its share of the cleaner's memory and pace:
 *
 *   timer -> ask the owners of the directory's compacted partitions -> the dirtiest log, one that
 *   has waited too long before all others -> run -> ask again; nothing to do -> timer
 *
 * A directory without compacted partitions asks nobody. What a run does is the log's (log/clean.c).
 */
#include "broker/control.h"

#include <stdlib.h>

#include "base/alloc.h"

/* One log directory; control loop. */
struct cleaner_turn {
    struct control *control;
    int dir;
    struct io_timer timer;
    int asked;              /* owners that have not answered */
    struct partition *best; /* a reference */
    struct log_dirt best_dirt;
};

/* ---- a run ------------------------------------------------------------------------------ */

struct clean_run {
    struct io_msg msg;
    struct cleaner_turn *turn;
    struct partition *partition; /* a reference */
    struct log_clean_args args;
    enum err err;
};

static void ask_all(struct cleaner_turn *t);
static void arm(struct cleaner_turn *t);

static void count_run(struct control *c, enum err err)
{
    c->cleaned.runs++;
    c->cleaned.failed += err && err != ERR_CANCELLED;
    c->cleaned.last_ms = io_loop_wall_ms(c->loop);
}

static void run_ended(struct io_msg *msg)
{
    struct clean_run *r = CONTAINER_OF(msg, struct clean_run, msg);
    struct cleaner_turn *t = r->turn;

    count_run(t->control, r->err);
    if (t->control->stopping)
        ; /* No more turns. */
    else if (r->err)
        arm(t);
    else
        ask_all(t);
    partition_unref(r->partition);
    free(r);
}

static void cleaned(void *ctx, enum err err)
{
    struct clean_run *r = ctx;

    r->err = err;
    r->msg.fn = run_ended;
    io_post(r->turn->control->loop, &r->msg);
}

static void run_at_owner(struct io_msg *msg)
{
    struct clean_run *r = CONTAINER_OF(msg, struct clean_run, msg);
    struct partition *p = r->partition;
    struct log_dirt dirt = {.is_due = false};

    r->args.now_ms = shard_now_ms(p->owner);
    if (p->log && !p->refusing)
        log_dirt(p->log, r->args.now_ms, &dirt);
    if (dirt.is_due)
        log_clean(p->log, &r->args, cleaned, r);
    else
        cleaned(r, ERR_CANCELLED); /* It has changed since it was asked. */
}

/* Takes the turn's best. Directories share the cleaner's memory and pace evenly. */
static void begin_run(struct cleaner_turn *t)
{
    const struct config *config = t->control->config;
    int dirs = t->control->broker->dir_count;
    struct clean_run *r = xcalloc(1, sizeof(*r));

    r->turn = t;
    r->partition = t->best;
    t->best = NULL;
    r->args.map_bytes = config_i64(config, CONFIG_LOG_CLEANER_DEDUPE_BUFFER_SIZE) / dirs;
    r->args.bytes_per_second =
        MAX(config_f64(config, CONFIG_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND) / dirs, 1.0);
    r->msg.fn = run_at_owner;
    io_post(r->partition->owner->loop, &r->msg);
}

/* ---- a round of questions ---------------------------------------------------------------- */

static bool is_better(const struct log_dirt *a, const struct log_dirt *b)
{
    if (a->is_overdue != b->is_overdue)
        return a->is_overdue;
    return a->ratio > b->ratio;
}

static void end_round(struct cleaner_turn *t)
{
    if (t->control->stopping) {
        partition_unref(t->best);
        t->best = NULL;
    } else if (t->best) {
        begin_run(t);
    } else {
        arm(t);
    }
}

static void answered(struct io_msg *msg)
{
    struct partition *p = CONTAINER_OF(msg, struct partition, clean_msg);
    struct cleaner_turn *t = &p->broker->control->cleaner_turns[p->dir];
    struct log_dirt dirt = p->clean_dirt;

    if (dirt.is_due && (!t->best || is_better(&dirt, &t->best_dirt))) {
        partition_unref(t->best);
        t->best = partition_ref(p);
        t->best_dirt = dirt;
    }
    partition_unref(p);
    if (--t->asked == 0)
        end_round(t);
}

static void look_at_owner(struct io_msg *msg)
{
    struct partition *p = CONTAINER_OF(msg, struct partition, clean_msg);

    p->clean_dirt = (struct log_dirt){.is_due = false};
    if (p->log && !p->refusing)
        log_dirt(p->log, shard_now_ms(p->owner), &p->clean_dirt);
    p->clean_msg.fn = answered;
    io_post(p->broker->control->loop, &p->clean_msg);
}

static void ask_all(struct cleaner_turn *t)
{
    struct partition *p;
    struct partition *next;

    HASH_ITER (of_control, t->control->partitions, p, next) {
        if (p->dir != t->dir || !atomic_load_explicit(&p->is_compacted, memory_order_relaxed))
            continue;
        t->asked++;
        partition_ref(p);
        p->clean_msg.fn = look_at_owner;
        io_post(p->owner->loop, &p->clean_msg);
    }
    if (t->asked == 0)
        arm(t);
}

static void due(struct io_op *op)
{
    struct io_timer *timer = CONTAINER_OF(op, struct io_timer, op);
    struct cleaner_turn *t = CONTAINER_OF(timer, struct cleaner_turn, timer);

    if (!op->err && !t->control->stopping)
        ask_all(t);
}

static void arm(struct cleaner_turn *t)
{
    struct io_loop *loop = t->control->loop;
    int64_t ms = MAX(config_i64(t->control->config, CONFIG_LOG_CLEANER_BACKOFF_MS), 1);

    io_timer_set(loop, &t->timer, io_loop_mono_ns(loop) + MIN(ms, INT64_MAX / 4000000) * 1000000);
}

/* ---- life ------------------------------------------------------------------------------- */

void cleaner_start(struct control *c)
{
    if (!config_bool(c->config, CONFIG_LOG_CLEANER_ENABLE))
        return;
    c->cleaner_turns = xcalloc((size_t)c->broker->dir_count, sizeof(*c->cleaner_turns));
    for (int i = 0; i < c->broker->dir_count; i++) {
        struct cleaner_turn *t = &c->cleaner_turns[i];

        t->control = c;
        t->dir = i;
        t->timer.op.done = due;
        arm(t);
    }
}

void cleaner_stop(struct control *c)
{
    for (int i = 0; c->cleaner_turns && i < c->broker->dir_count; i++)
        io_cancel(&c->cleaner_turns[i].timer.op);
}

void cleaner_free(struct control *c)
{
    free(c->cleaner_turns);
}
