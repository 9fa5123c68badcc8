/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkpoint lane of a log directory: recovery points, high watermarks, log starts.
 *
 * Logs register here with a card. Once a second the lane looks at the published records of all
 * cards and asks the owners of a few to save: those with the most unsaved bytes, and those that
 * have waited longest, more of them the more there is to scan at a start. So a directory with a
 * thousand slow logs pays for a few at a time, a busy log is never more than about a second behind,
 * and a thousand busy ones a few. Every fifth second high watermarks are written, if any has
 * changed. A look that finds nothing to do is the last one for ten seconds, so that an idle
 * directory costs next to nothing; a log that becomes busy then is behind by as much, once.
 *
 * A round of the lane is: carry out every request, write the files that have changed once, then
 * answer. So an answer means durable, and a burst of requests costs one file.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "log/dir_int.h"

#define TICK_NS ((int64_t)1000 * 1000 * 1000)
#define QUIET_TICK_NS (10 * TICK_NS)
#define MARK_TICKS 5
/* Appends are refused from when there is too little until the next look. */
#define ROOM_BYTES_LITTLE ((int64_t)256 * 1024 * 1024)
/* Logs that are asked to save per tick, by unsaved bytes and by turn. */
#define SAVES_BY_BYTES 8
#define SAVES_BY_TURN 8
/* More by turn for what a start would have to scan, a save for each of so many bytes. */
#define BYTES_A_SAVE ((int64_t)4 * 1024 * 1024)
#define SAVES_MORE_MAX 256

static enum err write_one(struct log_dir *dir, const char *name, const struct checkpoint *c)
{
    char *path = xasprintf("%s/%s", dir->path, name);
    struct buf text;
    enum err err;

    buf_init(&text);
    checkpoint_format(c, &text);
    err = io_file_replace(dir->io, path, buf_bytes(&text, 0));
    buf_fini(&text);
    free(path);
    return err;
}

static void write_if(struct log_dir *dir, bool *dirty, const char *name, const struct checkpoint *c)
{
    enum err err;

    if (!*dirty || journal_has_failed(dir->journal))
        return;
    err = write_one(dir, name, c);
    if (err == ERR_NO_SPACE)
        return; /* It stays dirty; the old file is whole. */
    *dirty = false;
    if (err)
        journal_fail(dir->journal, err);
}

void checkpoints_write(struct log_dir *dir)
{
    write_if(dir, &dir->points_dirty, POINTS_NAME, &dir->now.points);
    write_if(dir, &dir->starts_dirty, STARTS_NAME, &dir->now.starts);
    write_if(dir, &dir->marks_dirty, MARKS_NAME, &dir->now.marks);
    write_if(dir, &dir->cleaned_dirty, CLEANED_NAME, &dir->now.cleaned);
}

void checkpoints_fini(struct checkpoints *c)
{
    checkpoint_fini(&c->points);
    checkpoint_fini(&c->marks);
    checkpoint_fini(&c->starts);
    checkpoint_fini(&c->cleaned);
}

/* ---- Requests --------------------------------------------------------------------------- */

static void put_point(struct log_dir *dir, struct log_card *c, int64_t offset)
{
    c->recovery_point = offset;
    dir->points_dirty |= checkpoint_put(&dir->now.points, c->topic, c->partition, offset);
}

static void put_bounds(struct log_dir *dir, struct log_card *c)
{
    struct view_record r;

    view_load(c->view, &r);
    if (r.is_damaged)
        return; /* What is known of it stays. */
    dir->marks_dirty |=
        checkpoint_put(&dir->now.marks, c->topic, c->partition, r.bounds.high_watermark);
    if (r.bounds.log_start > 0)
        dir->starts_dirty |=
            checkpoint_put(&dir->now.starts, c->topic, c->partition, r.bounds.log_start);
}

void checkpoints_collect(struct log_dir *dir)
{
    for (struct list *at = dir->cards.next; at != &dir->cards; at = at->next)
        put_bounds(dir, CONTAINER_OF(at, struct log_card, node));
}

static void answer(struct log_dir *dir, struct save *s)
{
    struct save **at = &dir->answers;

    while (*at)
        at = &(*at)->next_answer;
    s->next_answer = NULL;
    *at = s;
}

static void forget(struct log_dir *dir, struct log_card *c)
{
    dir->points_dirty |= checkpoint_remove(&dir->now.points, c->topic, c->partition);
    dir->marks_dirty |= checkpoint_remove(&dir->now.marks, c->topic, c->partition);
    dir->starts_dirty |= checkpoint_remove(&dir->now.starts, c->topic, c->partition);
    dir->cleaned_dirty |= checkpoint_remove(&dir->now.cleaned, c->topic, c->partition);
}

static void enter(struct log_dir *dir, struct save *s)
{
    struct log_card *c = s->card;

    list_push_back(&dir->cards, &c->node);
    dir->open_count++;
    dir->loaded_count += c->was_found;
    if (!c->was_found)
        forget(dir, c); /* What is left of one of this name that is gone. */
    put_point(dir, c, s->offset);
    put_bounds(dir, c);
}

static void put_cleaned(struct log_dir *dir, struct log_card *c, int64_t offset)
{
    dir->cleaned_dirty |= checkpoint_put(&dir->now.cleaned, c->topic, c->partition, offset);
}

/* What will be written again above the cut was never compacted (KAFKA-3330). */
static void lower(struct log_dir *dir, struct save *s)
{
    struct log_card *c = s->card;

    put_point(dir, c, s->offset);
    if (checkpoint_get(&dir->now.cleaned, c->topic, c->partition, -1) > s->offset)
        put_cleaned(dir, c, s->offset);
}

static void leave(struct log_dir *dir, struct save *s)
{
    struct log_card *c = s->card;

    if (c->is_asked) {
        c->leaving = s; /* The owner has still to answer: the card must live until then. */
        return;
    }
    list_remove(&c->node);
    dir->open_count--;
    if (s->kind == SAVE_FORGET) {
        forget(dir, c);
    } else {
        put_bounds(dir, c);
        if (s->offset >= 0)
            put_point(dir, c, s->offset);
        dir->is_unclean |= s->offset < 0;
    }
    answer(dir, s);
}

static void save_point(struct log_dir *dir, struct save *s)
{
    struct log_card *c = s->card;

    c->is_asked = false;
    s->err = journal_has_failed(dir->journal) ? ERR_FAILED_DIR : save_write(s, dir->io);
    if (s->err && s->err != ERR_FAILED_DIR && s->err != ERR_NO_SPACE)
        journal_fail(dir->journal, s->err);
    if (!s->err && s->segment_count > 0) {
        put_point(dir, c, s->offset);
        c->saved_bytes = s->acked_bytes;
    }
    answer(dir, s);
    if (c->leaving) {
        struct save *l = c->leaving;
        c->leaving = NULL;
        leave(dir, l);
    }
}

static void carry_out(struct log_dir *dir, struct save *s)
{
    switch (s->kind) {
    case SAVE_REGISTER: enter(dir, s); break;
    case SAVE_POINT: save_point(dir, s); return;
    case SAVE_LOWER: lower(dir, s); break;
    case SAVE_CLEAN: put_cleaned(dir, s->card, s->offset); break;
    case SAVE_START:
        if (PLANTED(START_NOT_STORED))
            break;
        dir->starts_dirty |=
            checkpoint_put(&dir->now.starts, s->card->topic, s->card->partition, s->offset);
        break;
    case SAVE_STRAY: forget(dir, s->card); break;
    case SAVE_LEAVE:
    case SAVE_FORGET: leave(dir, s); return;
    }
    answer(dir, s);
}

static void deliver_answer(struct io_msg *msg)
{
    struct save *s = CONTAINER_OF(msg, struct save, msg);

    s->done(s);
}

static bool is_dirty(const struct log_dir *dir)
{
    return dir->points_dirty || dir->marks_dirty || dir->starts_dirty || dir->cleaned_dirty;
}

static void send_answers(struct log_dir *dir)
{
    while (dir->answers) {
        struct save *s = dir->answers;
        dir->answers = s->next_answer;
        if (journal_has_failed(dir->journal) && !s->err)
            s->err = ERR_FAILED_DIR;
        else if (s->kind == SAVE_POINT && !dir->points_dirty)
            save_remove_old(s, dir->io);
        else if ((s->kind == SAVE_LOWER && (dir->points_dirty || dir->cleaned_dirty)) ||
                 (s->kind == SAVE_START && dir->starts_dirty) ||
                 (s->kind == SAVE_STRAY && is_dirty(dir)) ||
                 (s->kind == SAVE_CLEAN && dir->cleaned_dirty))
            s->err = ERR_NO_SPACE;
        s->msg.fn = deliver_answer;
        io_post(s->loop, &s->msg);
    }
}

static void stray_forgotten(struct save *s)
{
    void (*done)(void *ctx, enum err err) = s->request_done;

    done(s->ctx, s->err);
    free((char *)s->card->topic);
    free(s->card);
    save_free(s);
}

void log_dir_forget(struct log_dir *dir, const char *topic, int32_t partition,
                    void (*done)(void *ctx, enum err err), void *ctx)
{
    struct save *s = xcalloc(1, sizeof(*s));

    s->kind = SAVE_STRAY;
    s->card = xcalloc(1, sizeof(*s->card));
    s->card->topic = xstrdup(topic);
    s->card->partition = partition;
    s->loop = dir->loop;
    s->done = stray_forgotten;
    s->request_done = done;
    s->ctx = ctx;
    dir_submit(dir, s);
}

/* ---- Ticks ------------------------------------------------------------------------------ */

static void asked(struct io_msg *msg)
{
    log_save(CONTAINER_OF(msg, struct log_card, ask)->log);
}

static void ask(struct log_dir *dir, struct log_card *c)
{
    c->is_asked = true;
    c->ask.fn = asked;
    list_remove(&c->node);
    list_push_back(&dir->cards, &c->node); /* It had its turn. */
    io_post(c->loop, &c->ask);
}

/* Bytes that are acknowledgeable and not saved; 0 when there is nothing to do. */
static int64_t unsaved_bytes(struct log_card *c)
{
    struct view_record r;

    if (c->is_asked)
        return 0;
    view_load(c->view, &r);
    if (r.bounds.is_gone || r.is_damaged || r.bounds.ack <= c->recovery_point)
        return 0;
    return MAX(r.acked_bytes - c->saved_bytes, 1);
}

static struct log_card *largest(struct log_dir *dir)
{
    struct log_card *best = NULL;
    int64_t most = 0;

    for (struct list *at = dir->cards.next; at != &dir->cards; at = at->next) {
        struct log_card *c = CONTAINER_OF(at, struct log_card, node);
        int64_t bytes = unsaved_bytes(c);
        if (bytes > most) {
            most = bytes;
            best = c;
        }
    }
    return best;
}

static struct log_card *longest_waiting(struct log_dir *dir)
{
    for (struct list *at = dir->cards.next; at != &dir->cards; at = at->next) {
        struct log_card *c = CONTAINER_OF(at, struct log_card, node);
        if (unsaved_bytes(c) > 0)
            return c;
    }
    return NULL;
}

static int saves_by_turn(struct log_dir *dir)
{
    int64_t bytes = 0;

    for (struct list *at = dir->cards.next; at != &dir->cards; at = at->next)
        bytes += unsaved_bytes(CONTAINER_OF(at, struct log_card, node));
    return SAVES_BY_TURN + (int)MIN(bytes / BYTES_A_SAVE, SAVES_MORE_MAX);
}

/* Returns whether any log had to be asked. */
static bool ask_some(struct log_dir *dir)
{
    int count = SAVES_BY_BYTES + saves_by_turn(dir);

    for (int i = 0; i < count; i++) {
        struct log_card *c = i < SAVES_BY_BYTES ? largest(dir) : longest_waiting(dir);
        if (!c)
            return i > 0;
        ask(dir, c);
    }
    return true;
}

static void tick(struct log_dir *dir)
{
    int64_t room = journal_check_space(dir->journal);

    if (journal_has_failed(dir->journal))
        dir->is_quiet = true;
    else /* Also while space is short: a save takes little, and retention waits for it. */
        dir->is_quiet = !ask_some(dir) && room >= ROOM_BYTES_LITTLE;
    if (dir->ticks == 0)
        dir->is_quiet = false; /* Nobody has registered yet, and there may be much to save. */
    if (++dir->ticks % MARK_TICKS == 0 || dir->is_quiet)
        checkpoints_collect(dir);
}

static void arm(struct log_dir *dir)
{
    int64_t wait = dir->is_quiet ? QUIET_TICK_NS : TICK_NS;

    io_timer_set(dir->loop, &dir->timer, io_loop_mono_ns(dir->loop) + wait);
}

static void tick_answered(struct io_msg *msg)
{
    arm(CONTAINER_OF(msg, struct log_dir, tick));
}

void checkpoints_run(void *ctx, struct io_msg *chain)
{
    struct log_dir *dir = ctx;
    struct io_msg *msg;
    bool has_ticked = false;

    while ((msg = io_msg_take(&chain))) {
        if (msg == &dir->tick) {
            has_ticked = true;
            tick(dir);
        } else {
            carry_out(dir, CONTAINER_OF(msg, struct save, msg));
        }
    }
    checkpoints_write(dir);
    send_answers(dir);
    if (has_ticked) {
        dir->tick.fn = tick_answered;
        io_post(dir->loop, &dir->tick);
    }
}

void dir_submit(struct log_dir *dir, struct save *s)
{
    io_lane_submit(dir->lane, &s->msg);
}

/* ---- What is removed later ---------------------------------------------------------------- */

struct grave {
    struct io_msg msg;
    struct io_job job;
    struct list node;
    struct log_dir *dir;
    char *path;
    bool is_dir;
    int64_t delay_ms;
    int64_t due_ns;
};

enum err remove_partition_dir(struct io *io, const char *path)
{
    struct io_names names;
    enum err err = io_dir_list(io, path, &names);

    if (err)
        return err == ERR_NOT_FOUND ? ERR_NONE : err;
    for (size_t i = 0; !err && i < names.n; i++) {
        char *file = xasprintf("%s/%s", path, names.v[i]);
        err = io_path_unlink(io, file);
        if (err == ERR_NOT_FOUND)
            err = ERR_NONE;
        free(file);
    }
    io_names_free(&names);
    return err ? err : io_dir_remove(io, path);
}

static void grave_run(struct io_job *job)
{
    struct grave *g = CONTAINER_OF(job, struct grave, job);
    struct io *io = g->dir->io;
    enum err err = g->is_dir ? remove_partition_dir(io, g->path) : io_path_unlink(io, g->path);

    /* A file whose directory was deleted in between is gone already; what stays for another reason
     * goes at the next start. */
    if (err && err != ERR_NOT_FOUND)
        trace_warn("dir.remove", "path=%s error=%s", g->path, err_name(err));
}

static void grave_done(struct io_job *job)
{
    struct grave *g = CONTAINER_OF(job, struct grave, job);

    free(g->path);
    free(g);
}

static void dig_up(struct log_dir *dir)
{
    int64_t now = io_loop_mono_ns(dir->loop);
    struct list *at = dir->graves.next;

    while (at != &dir->graves) {
        struct grave *g = CONTAINER_OF(at, struct grave, node);
        at = at->next;
        if (g->due_ns > now)
            continue;
        list_remove(&g->node);
        g->job.run = grave_run;
        g->job.done = grave_done;
        io_job_submit(dir->loop, &g->job);
    }
}

static void grave_arrived(struct io_msg *msg)
{
    struct grave *g = CONTAINER_OF(msg, struct grave, msg);

    g->due_ns = io_loop_mono_ns(g->dir->loop) + g->delay_ms * 1000 * 1000;
    list_push_back(&g->dir->graves, &g->node);
}

void dir_bury(struct log_dir *dir, char *path, bool is_dir, int64_t delay_ms)
{
    struct grave *g;

    if (!dir->loop) {
        free(path); /* Nobody ticks: it goes at the next start. */
        return;
    }
    g = xcalloc(1, sizeof(*g));
    g->dir = dir;
    g->path = path;
    g->is_dir = is_dir;
    g->delay_ms = MIN(delay_ms, INT64_MAX / (1000 * 1000) / 2);
    g->msg.fn = grave_arrived;
    io_post(dir->loop, &g->msg);
}

void dir_graves_free(struct log_dir *dir)
{
    struct list *node;

    while ((node = list_pop_front(&dir->graves)))
        grave_done(&CONTAINER_OF(node, struct grave, node)->job);
}

/* ---- The loop's part ---------------------------------------------------------------------- */

static void timer_done(struct io_op *op)
{
    struct io_timer *t = CONTAINER_OF(op, struct io_timer, op);
    struct log_dir *dir = CONTAINER_OF(t, struct log_dir, timer);

    if (op->err)
        return;
    dig_up(dir);
    io_lane_submit(dir->lane, &dir->tick);
}

void log_dir_start(struct log_dir *dir, struct io_loop *loop)
{
    dir->loop = loop;
    dir->timer.op.done = timer_done;
    arm(dir);
}
