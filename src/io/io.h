/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_IO_H
#define SL_IO_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/trace.h"

/*
 * The seam to the kernel: the only way to time, entropy, network, disk and threads. Two
 * implementations, chosen by the linker: io/real (epoll, eventfd, signalfd, our own threads) and
 * io/sim (virtual time, a seeded choice among what may happen next, disks and networks that fail).
 * Both pass io/conformance_test.c.
 *
 * Three kinds of work:
 *  - operations (sockets, timers, messages) are submitted on a loop and complete on that loop;
 *  - lanes are serial queues with a thread of their own: one per log directory for commits and one
 *    for checkpoints;
 *  - jobs are plain blocking C on a worker thread: recovery, retention, scans, cold reads.
 *
 * Rule of operations: an operation is a struct embedded in its owner's. It is completed exactly
 * once, on the loop that submitted it, never inside the submitting call; until then its memory
 * belongs to io. io_cancel completes it with ERR_CANCELLED (unless it was already done), still as
 * a later callback.
 *
 * Rule of blocking calls: io_file_*, io_dir_*, io_path_* and io_fs_* block. They are for lanes,
 * jobs and the time before io_run, and assert that no loop runs on the calling thread. A loop reads
 * files through io_read_cached alone.
 *
 * "Any thread" below means any loop, lane, job or the thread that runs io_run.
 */

struct io;      /* one broker process: its loops, lanes, workers, files and sockets */
struct io_loop; /* one event loop: a shard, or the control loop */
struct io_lane;
struct io_conn;
struct io_listener;
struct io_file;
struct io_lock;

/* ---- process ---------------------------------------------------------------------------- */

struct io_options {
    enum trace_level trace_level;
    trace_sink_fn trace_sink; /* called from any thread, one line at a time */
    void *trace_ctx;
};

/* The real one. The simulated world makes its own: io/sim/sim.h. */
struct io *io_new(const struct io_options *options);
/* All loops have ended; lanes must have been freed. */
void io_free(struct io *io);

/*
 * Makes a loop; `start` runs on it once when io_run begins (or at once, if it has begun, as a
 * callback of the new loop). The first loop made is the control loop: it runs on the thread that
 * calls io_run, the others on threads of their own.
 */
struct io_loop *io_loop_new(struct io *io, const char *name, void (*start)(void *ctx), void *ctx);
/* Runs until io_stop; returns when every loop has ended. */
void io_run(struct io *io);
/* Ends all loops after their current turn. Pending operations are dropped. Any thread. */
void io_stop(struct io *io);

/* The loop that runs on this thread; NULL off-loop. */
struct io_loop *io_loop_current(void);
struct io *io_loop_io(struct io_loop *loop);
const char *io_loop_name(const struct io_loop *loop);

/* ---- time and entropy ------------------------------------------------------------------- */

/* Monotonic nanoseconds since some moment before start. Any thread. */
int64_t io_mono_ns(struct io *io);
/* Milliseconds since 1970: only where Kafka's semantics need the wall clock. Any thread. */
int64_t io_wall_ms(struct io *io);
/* Both as of the beginning of the loop's current turn: free of charge. On that loop. */
int64_t io_loop_mono_ns(struct io_loop *loop);
int64_t io_loop_wall_ms(struct io_loop *loop);
/* Bytes for ids and secrets. Any thread. */
void io_random(struct io *io, void *p, size_t n);
/* Process CPU time in nanoseconds; 0 in the simulated world. Any thread. */
int64_t io_cpu_ns(struct io *io);

struct io_usage {
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t cpu_ns;
    int64_t start_ms; /* wall clock */
    int64_t threads;
    int64_t open_files;
    int64_t open_files_max;
};

/* What the process takes of the machine; what is not known is 0, as is all in the simulated world.
 * Any thread: the kernel answers from memory. */
void io_usage_read(struct io *io, struct io_usage *out);

/* ---- messages --------------------------------------------------------------------------- */

/* A message is embedded in what it carries; it is on one queue at a time. */
struct io_msg {
    void (*fn)(struct io_msg *msg); /* runs on the receiving loop (unused on a lane) */
    struct io_msg *_next;           /* private */
};

/* Runs msg->fn on `to`. Messages of one sender arrive in order. Any thread. */
void io_post(struct io_loop *to, struct io_msg *msg);

/* ---- operations: timers, signals, sockets ------------------------------------------------ */

struct io_op {
    void (*done)(struct io_op *op); /* set by the owner */
    enum err err;                   /* result */
    /* private */
    struct io_loop *_loop;
    struct list _ready;
    uint8_t _kind;
    uint8_t _state;
};

/* Completes the operation with ERR_CANCELLED, later, on its loop. Harmless when idle. */
void io_cancel(struct io_op *op);
/* Submitted and not yet completed. */
bool io_op_is_pending(const struct io_op *op);

struct io_timer {
    struct io_op op;
    struct heap_node _node;
};

/* Completes at `deadline_ns` of io_mono_ns or soon after. On the loop. A pending timer may be set
 * again: that moves it. */
void io_timer_set(struct io_loop *loop, struct io_timer *t, int64_t deadline_ns);

struct io_signal {
    struct io_op op;
    int signo; /* result: SIGTERM or SIGINT */
};

/* Completes at the next SIGTERM or SIGINT. Control loop. */
void io_signal_wait(struct io_loop *loop, struct io_signal *s);

enum io_watch_events {
    IO_READABLE = 1,
    IO_WRITABLE = 2,
};

struct io_watch {
    struct io_op op;
    unsigned ready;         /* result: which of the events have come */
    struct watched *_entry; /* private: NULL when it waits no more */
};

/*
 * Watches a descriptor that io did not make: a library's that brings its own. Completes when it is
 * ready for one of `events` (at once, if it is so already), or broken, which counts as ready for
 * all of them. One watch at a time a descriptor; complete or cancelled before its owner closes it.
 */
void io_watch(struct io_loop *loop, int fd, unsigned events, struct io_watch *w);

#define IO_ADDR_TEXT_MAX 64 /* "[ipv6]:port" with its NUL */

/*
 * Listens on a numeric address or a host name of /etc/hosts; port 0 takes a free one. Several
 * loops may accept from one listener. Before io_run or on the control loop; resolves and binds
 * at once. ERR_ADDR_IN_USE, ERR_ACCESS, ERR_NOT_FOUND (host), ERR_IO.
 */
must_use enum err io_listen(struct io *io, const char *host, uint16_t port, int backlog,
                            struct io_listener **out);
uint16_t io_listener_port(const struct io_listener *l);
/* Pending accepts complete with ERR_CANCELLED. */
void io_listener_close(struct io_listener *l);

struct io_accept {
    struct io_op op;
    struct io_conn *conn; /* result: belongs to the accepting loop and to the caller */
    struct io_listener *_listener;
};

/* ERR_LIMIT when the process is out of descriptors: accept again later (a timer). */
void io_accept(struct io_loop *loop, struct io_listener *l, struct io_accept *a);

struct io_connect {
    struct io_op op;
    struct io_conn *conn; /* result */
    /* private */
    struct io_conn *_conn;
};

/* Numeric address, or a name (resolved on a worker). ERR_REFUSED, ERR_TIMEOUT, ERR_NOT_FOUND. */
void io_connect(struct io_loop *loop, const char *host, uint16_t port, struct io_connect *c);

struct io_recv {
    struct io_op op;
    uint8_t *p; /* where to */
    size_t n;   /* at most; result: bytes received, > 0 on success */
    struct io_conn *_conn;
};

/* One at a time a connection. ERR_EOF when the peer has closed, ERR_RESET. */
void io_recv(struct io_conn *conn, struct io_recv *r);

#define IO_IOV_MAX 64

struct io_send {
    struct io_op op;
    struct iovec iov[IO_IOV_MAX]; /* consumed: modified by io */
    int iov_count;
    struct io_conn *_conn;
    int _at; /* private: first unsent element */
};

/* One at a time a connection; completes when every byte is in the kernel's buffer. */
void io_send(struct io_conn *conn, struct io_send *s);

/* The address on our side and the peer's, as text. */
const char *io_conn_local(const struct io_conn *conn);
const char *io_conn_peer(const struct io_conn *conn);
/* Host part of the local address without brackets, and its port: what the client came in by. */
void io_conn_local_host(const struct io_conn *conn, char host[static IO_ADDR_TEXT_MAX],
                        uint16_t *port);
/* Pending operations complete with ERR_CANCELLED; the connection is freed after them. */
void io_conn_close(struct io_conn *conn);

/* ---- lanes and jobs --------------------------------------------------------------------- */

/*
 * Runs on the lane's thread with the head of a singly linked chain (through _next; use
 * io_msg_take) of all messages submitted since the last call, in order of submission. It answers
 * each with io_post to whatever loop should know.
 */
typedef void (*io_lane_fn)(void *ctx, struct io_msg *chain);

struct io_lane *io_lane_new(struct io *io, const char *name, io_lane_fn fn, void *ctx);
/* Any thread. */
void io_lane_submit(struct io_lane *lane, struct io_msg *msg);
/* Finishes what was submitted, then ends the thread. Not on a loop: a job, or after io_run. */
void io_lane_free(struct io_lane *lane);

/* Takes the first message off a chain; NULL at its end. */
static inline struct io_msg *io_msg_take(struct io_msg **chain)
{
    struct io_msg *m = *chain;

    if (m) {
        *chain = m->_next;
        m->_next = NULL;
    }
    return m;
}

struct io_job {
    void (*run)(struct io_job *job);  /* on a worker: may block */
    void (*done)(struct io_job *job); /* on the loop that submitted */
    atomic_bool cancel;               /* set by the owner; run looks at it now and then */
    _Atomic int64_t progress;         /* set by run, in units of its own; read by anyone */
    /* private */
    struct io_msg _msg;
    struct io_loop *_loop;
    struct list _node;
};

/* On a loop. Jobs start in order; up to IO_WORKERS_MAX at once, threads start on demand. */
void io_job_submit(struct io_loop *loop, struct io_job *job);

/* Jobs wait for disks more than they compute, and a file system that is asked for several syncs at
 * a time makes one of them. */
#define IO_WORKERS_MAX 8

/* ---- memory that is shared between threads ----------------------------------------------- */

/*
 * Deferred free of something that other loops may be reading right now. The owner unpublishes the
 * pointer, then retires it; `free_fn` runs on the retiring loop when every loop has finished the
 * turn it was in. A reader may use what it found until the end of its turn.
 */
struct io_retired {
    void (*free_fn)(struct io_retired *r);
    struct io_retired *_next;
    uint64_t _after;
};

void io_retire(struct io_loop *loop, struct io_retired *r);

/* Bytes that buffers hold, against a limit. Zero-initialised but for the limit. It keeps a few
 * large buffers, not charged, for those who will want one next: at most 17 MiB. */
#define IO_SPARE_BUFS 16

struct io_budget {
    _Atomic int64_t used;
    int64_t limit; /* bytes; set once */
    /* private */
    struct io_buf *_Atomic _spare[IO_SPARE_BUFS];
};

/* Frees what is kept: when traffic has ended, and before the budget goes. Any thread. */
void io_budget_trim(struct io_budget *budget);

/* Whether readers of sockets should wait: used is above the limit. */
static inline bool io_budget_is_over(const struct io_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed) > b->limit;
}

/* A reference-counted piece of memory, charged to a budget while it lives. Any thread. */
struct io_buf {
    _Atomic int32_t refs;
    size_t size; /* of data */
    struct io_budget *budget;
    size_t _capacity; /* of data: at least size */
    _Alignas(16) uint8_t data[];
};

/* One reference for the caller. `budget` may be NULL. */
struct io_buf *io_buf_new(struct io_budget *budget, size_t size);
struct io_buf *io_buf_ref(struct io_buf *b);
/* Harmless with NULL. */
void io_buf_unref(struct io_buf *b);

/* ---- files: off-loop, blocking ----------------------------------------------------------- */

enum io_open_flags {
    IO_OPEN_READ = 1,
    IO_OPEN_WRITE = 2,  /* read and write */
    IO_OPEN_CREATE = 4, /* make it if missing */
    IO_OPEN_EXCL = 8,   /* ERR_EXISTS if it is there */
    IO_OPEN_TRUNC = 16,
};

/* A file is a reference-counted handle, closed when the last reference goes: any thread. */
must_use enum err io_file_open(struct io *io, const char *path, unsigned flags,
                               struct io_file **out);
struct io_file *io_file_ref(struct io_file *f);
void io_file_unref(struct io_file *f);

/* Reads up to n bytes at pos; *got < n only at the end of the file. */
must_use enum err io_file_read(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got);
/* Writes everything or fails. ERR_NO_SPACE, ERR_IO. The vector is modified. */
must_use enum err io_file_write(struct io_file *f, struct iovec *iov, int iov_count, int64_t pos);
/* Data and size on the device (fdatasync). A failure is never retried by the caller. */
must_use enum err io_file_sync(struct io_file *f);
must_use enum err io_file_truncate(struct io_file *f, int64_t size);
/* Reserves space for [pos, pos + n) without changing the size. ERR_NO_SPACE; ERR_UNSUPPORTED. */
must_use enum err io_file_reserve(struct io_file *f, int64_t pos, int64_t n);
must_use enum err io_file_set_mtime(struct io_file *f, int64_t wall_ms);

struct io_stat {
    int64_t size;     /* bytes */
    int64_t mtime_ms; /* wall clock */
    bool is_dir;
};

must_use enum err io_file_stat(struct io_file *f, struct io_stat *out);

/*
 * On a loop: reads what the page cache holds. ERR_AGAIN when it would wait for the disk (then a
 * job reads); otherwise as io_file_read, except that *got may be short anywhere.
 */
must_use enum err io_read_cached(struct io_file *f, void *p, size_t n, int64_t pos, size_t *got);

/* ERR_NOT_FOUND, ERR_EXISTS, ERR_NOT_EMPTY, ERR_ACCESS, ERR_IO. */
must_use enum err io_path_stat(struct io *io, const char *path, struct io_stat *out);
must_use enum err io_path_rename(struct io *io, const char *from, const char *to);
must_use enum err io_path_unlink(struct io *io, const char *path);
must_use enum err io_path_link(struct io *io, const char *from, const char *to);
/* One level; ERR_EXISTS. */
must_use enum err io_dir_make(struct io *io, const char *path);
must_use enum err io_dir_remove(struct io *io, const char *path);
/* Makes names in the directory durable. */
must_use enum err io_dir_sync(struct io *io, const char *path);

/* Names in a directory, sorted by bytes, without "." and "..". */
struct io_names {
    char **v;
    size_t n;
};

must_use enum err io_dir_list(struct io *io, const char *path, struct io_names *out);
void io_names_free(struct io_names *names);

/* Whole small files. *out is owned by the caller and NUL-terminated. ERR_LIMIT beyond `max`. */
must_use enum err io_file_read_all(struct io *io, const char *path, size_t max, char **out,
                                   size_t *n);
/*
 * Replaces a file so that after a crash either the old or the new content is there: writes
 * "<path>.tmp", syncs it, renames it, syncs the directory.
 */
must_use enum err io_file_replace(struct io *io, const char *path, struct bytes content);

/* Exclusive lock of a file (a POSIX record lock, as Apache Kafka takes it): ERR_LOCKED. */
must_use enum err io_lock_take(struct io *io, const char *path, struct io_lock **out);
/* Releases and removes the file. */
void io_lock_release(struct io_lock *lock);

/*
 * Standard input, which may be a terminal or a pipe: waits at most wait_ms for bytes. ERR_AGAIN:
 * none came; ERR_EOF; ERR_IO. Blocking: in a job, which can so look at its cancel flag. The
 * simulated world has no input: ERR_EOF.
 */
must_use enum err io_stdin_read(struct io *io, void *p, size_t n, int wait_ms, size_t *got);

/* Whether standard error is the file "DEVICE:INODE", as systemd names the stream of its journal
 * in JOURNAL_STREAM. Any thread. */
bool io_stderr_is(struct io *io, const char *device_inode);

/*
 * One datagram to the Unix socket at `path` (beginning with '@': in the abstract namespace), for
 * whoever supervises this process. Never waits: ERR_AGAIN when its queue is full. ERR_NOT_FOUND,
 * ERR_REFUSED: nobody listens there, as in the simulated world. Any thread.
 */
must_use enum err io_notify(struct io *io, const char *path, struct str text);

struct io_space {
    int64_t total;     /* bytes of the file system */
    int64_t available; /* bytes that this process may still take */
};

must_use enum err io_fs_space(struct io *io, const char *path, struct io_space *out);

#endif
