/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's output: replied requests, in order of arrival, to bytes on the socket.
 *
 * A response is encoded memory with holes where stored batches belong. One send takes the memory
 * of as many responses as fit and at most CONN_CHUNKS_MAX pieces of file, which are read into
 * buffers when their turn comes: however large a response is, and however slowly the peer reads, a
 * connection holds a few hundred kilobytes, and a few once half of the budget is taken: peers that
 * do not read cannot exhaust it. Reading into memory costs a fifth of what the send
 * costs, and TLS or tiered storage need no second path. What the page cache does not hold is read
 * by a job, so that a loop never waits for a disk.
 */
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/planted.h"

#define CHUNK_BYTES (128 * 1024)
#define CHUNK_BYTES_SCARCE (16 * 1024)

struct chunk_job {
    struct io_job job;
    struct conn *conn;
    struct io_file *file;
    int64_t pos;
    struct io_buf *buf; /* of the size wanted */
    enum err err;
};

static void read_chunk(struct io_job *job)
{
    struct chunk_job *j = CONTAINER_OF(job, struct chunk_job, job);
    size_t got = 0;

    j->err = io_file_read(j->file, j->buf->data, j->buf->size, j->pos, &got);
    if (!j->err && got < j->buf->size)
        j->err = ERR_EOF;
}

static void chunk_read(struct io_job *job)
{
    struct chunk_job *j = CONTAINER_OF(job, struct chunk_job, job);
    struct conn *c = j->conn;

    c->reading = false;
    c->ready_chunk = j->buf;
    io_file_unref(j->file);
    if (j->err && !c->closing) {
        trace_error("fetch.read_failed", "error=%s position=%lld", err_name(j->err),
                    (long long)j->pos);
        conn_close(c, "stored bytes could not be read");
    } else if (!c->closing) {
        conn_flush(c);
    } else {
        conn_try_free(c);
    }
    free(j);
}

static void submit_read(struct conn *c, struct io_file *file, int64_t pos, size_t n)
{
    struct chunk_job *j = xcalloc(1, sizeof(*j));

    j->job.run = read_chunk;
    j->job.done = chunk_read;
    j->conn = c;
    j->file = io_file_ref(file);
    j->pos = pos;
    j->buf = io_buf_new(&c->shard->broker->budget, n);
    c->reading = true;
    io_job_submit(c->shard->loop, &j->job);
}

static void add_iov(struct io_send *s, const void *p, size_t n)
{
    s->iov[s->iov_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

static bool is_scarce(const struct conn *c)
{
    const struct io_budget *b = &c->shard->broker->budget;

    return atomic_load_explicit(&b->used, memory_order_relaxed) > b->limit / 2;
}

static bool is_full(const struct conn *c)
{
    return c->send.iov_count == IO_IOV_MAX ||
           c->chunk_count >= (is_scarce(c) ? 1 : CONN_CHUNKS_MAX);
}

/* The next piece of a hole. False when it has to be read from the disk first. */
static bool add_chunk(struct conn *c, struct request *r, const struct file_range *range)
{
    size_t most = is_scarce(c) ? CHUNK_BYTES_SCARCE : CHUNK_BYTES;
    size_t want = MIN((size_t)(range->n - r->hole_sent), most);
    int64_t pos = range->pos + r->hole_sent;
    struct io_buf *buf = c->ready_chunk;
    size_t got = buf ? buf->size : 0;

    c->ready_chunk = NULL;
    if (!buf) {
        buf = io_buf_new(&c->shard->broker->budget, want);
        if (io_read_cached(range->file, buf->data, want, pos, &got) || got == 0) {
            io_buf_unref(buf);
            submit_read(c, range->file, pos, want);
            return false;
        }
    }
    c->chunks[c->chunk_count++] = buf;
    add_iov(&c->send, buf->data, got);
    r->hole_sent += (int64_t)got;
    return true;
}

/* Adds what fits of one response; true when all of it is in the send. */
static bool add_response(struct conn *c, struct request *r)
{
    struct wire_out *out = &r->encoded;

    while (!is_full(c)) {
        bool at_hole = r->hole_at < out->holes_n && out->holes[r->hole_at].at == r->sent_at;
        size_t end = r->hole_at < out->holes_n ? out->holes[r->hole_at].at : out->n;

        if (at_hole) {
            const struct file_range *range = out->holes[r->hole_at].ext;

            if (!add_chunk(c, r, range))
                return false;
            if (r->hole_sent == range->n) {
                r->hole_at++;
                r->hole_sent = 0;
            }
        } else if (r->sent_at < end) {
            add_iov(&c->send, out->p + r->sent_at, end - r->sent_at);
            r->sent_at = end;
        } else {
            return true;
        }
    }
    return r->sent_at == out->n && r->hole_at == out->holes_n;
}

static struct request *next_replied(struct conn *c)
{
    struct request *r = LIST_FIRST(&c->requests, struct request, link);

    if (PLANTED(ANSWER_OUT_OF_TURN) && r && r->state != REQUEST_REPLIED &&
        r->link.next != &c->requests)
        r = LIST_ENTRY(r->link.next, struct request, link);
    return r && r->state == REQUEST_REPLIED ? r : NULL;
}

static void gather(struct conn *c)
{
    struct request *r;

    c->send.iov_count = 0;
    while (!c->reading && !is_full(c) && (r = next_replied(c))) {
        if (!add_response(c, r))
            break;
        list_remove(&r->link);
        list_push_back(&c->sending, &r->link);
        if (r->close_after)
            break;
    }
}

static bool free_sent(struct conn *c)
{
    struct list *node;
    bool close_after = false;

    for (int i = 0; i < c->chunk_count; i++)
        io_buf_unref(c->chunks[i]);
    c->chunk_count = 0;
    while ((node = list_pop_front(&c->sending))) {
        struct request *r = LIST_ENTRY(node, struct request, link);

        close_after = close_after || r->close_after;
        if (!c->closing)
            count_sent(r);
        request_free(r);
    }
    return close_after;
}

void conn_flush(struct conn *c)
{
    if (io_op_is_pending(&c->send.op))
        return;
    if (c->closing) {
        free_sent(c);
        conn_try_free(c);
        return;
    }
    if (c->reading)
        return;
    gather(c);
    if (c->send.iov_count > 0) {
        io_send(c->io, &c->send);
        return;
    }
    /* Requests without a response end here. */
    if (free_sent(c))
        conn_close(c, "ended behind its last answer");
    else if (c->read_closed && c->request_count == 0)
        conn_close(c, "closed by the peer");
    else
        conn_resume(c);
}

void conn_sent(struct conn *c, enum err err)
{
    bool close_after = free_sent(c);

    c->active_ns = shard_now_ns(c->shard);
    if (c->closing) {
        conn_try_free(c);
    } else if (err || close_after) {
        conn_close(c, err ? err_text(err) : "ended behind its last answer");
    } else {
        conn_mark_dirty(c);
        conn_resume(c);
    }
}
