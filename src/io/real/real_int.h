/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_REAL_REAL_INT_H
#define SL_IO_REAL_REAL_INT_H

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>

#include "io/io.h"
#include "io/mailbox.h"

/* Private to io/real: what its files know of each other. */

#define IO_LOOPS_MAX 64
/* What our code needs with room to spare, and too little for a huge page. */
#define IO_STACK_BYTES (256 * 1024)

/* ---- process.c ---- */

struct io {
    struct io_options options;
    struct io_loop *loops[IO_LOOPS_MAX];
    _Atomic int loop_count;
    atomic_bool stop;
    _Atomic uint64_t epoch; /* how many times something was retired, plus one */
    _Atomic int lane_count;

    pthread_mutex_t lock; /* guards what follows; leaf: nothing is locked inside */
    bool running;         /* io_run has begun */
    struct list listeners;
    struct list jobs; /* not yet begun, oldest first */
    int jobs_waiting; /* length of jobs */
    pthread_cond_t job_came;
    pthread_t workers[IO_WORKERS_MAX];
    int worker_count;
    int workers_idle;
    bool workers_end;
};

/* Starts a thread with a small stack and all signals blocked. Aborts when that is impossible. */
pthread_t thread_start(const char *name, void *(*run)(void *arg), void *arg);
void trace_init_from(struct trace *t, const struct io *io);

/* ---- waker.c ---- */

struct waker {
    int fd;             /* eventfd */
    atomic_bool asleep; /* set by the sleeper: it wants to be woken */
};

/* flags: of eventfd. */
void waker_init(struct waker *w, int flags);
void waker_fini(struct waker *w);
/* Any thread. */
void waker_wake(struct waker *w);

/* ---- loop.c ---- */

/* Something registered with a loop's epoll. Called in the turn, before any callback of a user. */
struct source {
    void (*on_event)(struct source *source, uint32_t events);
};

struct io_loop {
    struct io *io;
    char name[16];
    void (*start)(void *ctx);
    void *ctx;
    pthread_t thread; /* unused by the control loop: it runs on the thread of io_run */

    int epoll_fd;
    struct waker waker;   /* edge-triggered, so nobody reads it */
    struct source wakeup; /* of the waker */
    struct heap timers;
    struct list ready; /* io_op._ready: completed, to be called back */
    int64_t mono_ns;   /* at the beginning of the turn */
    int64_t wall_ms;

    struct mailbox mailbox;

    _Atomic uint64_t seen;      /* epoch at the beginning of the turn, or one of the two below */
    struct io_retired *retired; /* oldest first */
    struct io_retired *retired_last;

    struct list conns;    /* io_conn.node */
    struct list resolves; /* names being looked up */
    struct list watches;  /* of foreign descriptors: struct watched by node */
    struct list points;   /* listeners that this loop has accepted from */
    struct io_signal *signal;
    struct source signal_source;
    int signal_fd; /* -1: never waited */
    sigset_t signal_mask_before;
    struct trace trace;
};

#define SEEN_ENTERING 0u       /* has begun a turn, may see anything */
#define SEEN_ASLEEP UINT64_MAX /* holds nothing */

struct io_loop *loop_new(struct io *io, const char *name, void (*start)(void *ctx), void *ctx);
/* Runs turns on this thread until the process stops. */
void loop_run(struct io_loop *loop);
/* The loop has ended. */
void loop_free(struct io_loop *loop);
void loop_watch(struct io_loop *loop, int fd, uint32_t events, struct source *source);

enum op_state {
    OP_IDLE = 0,
    OP_WAITING = 1,
    OP_READY = 2, /* result is set, the callback is due */
};

enum op_kind {
    OP_TIMER = 1,
    OP_SIGNAL,
    OP_ACCEPT,
    OP_CONNECT,
    OP_RECV,
    OP_SEND,
    OP_WATCH,
    OP_CONN_FREE, /* ours: frees a closed connection behind its last callback */
};

/* The life of an operation: begin, then ready, then its callback. */
void op_begin(struct io_op *op, struct io_loop *loop, enum op_kind kind);
void op_ready(struct io_op *op, enum err err);

/* ---- clock.c ---- */

int64_t clock_mono_ns(void);
int64_t clock_wall_ms(void);

/* ---- errno.c ---- */

enum err err_of_errno(int number);

/* ---- addr.c ---- */

#define ADDRS_MAX 8

struct addrs {
    int n;
    struct addr {
        socklen_t size;
        struct sockaddr_storage sa;
    } v[ADDRS_MAX];
};

/* A numeric address. ERR_NOT_FOUND when it is none. Never waits. */
enum err addrs_parse(struct addrs *out, const char *host, uint16_t port);
/* A name or a numeric address. Waits for the network. */
enum err addrs_resolve(struct addrs *out, const char *host, uint16_t port);
/* "1.2.3.4:5" or "[::1]:5". */
void addr_text(const struct sockaddr_storage *sa, char text[static IO_ADDR_TEXT_MAX]);
void addr_host(const struct sockaddr_storage *sa, char host[static IO_ADDR_TEXT_MAX]);
uint16_t addr_port(const struct sockaddr_storage *sa);

/* ---- conn.c, listen.c, connect.c ---- */

struct io_conn {
    struct source source;
    struct io_loop *loop;
    struct list node;
    int fd;        /* -1: not yet connected, or closed */
    bool readable; /* a recv may succeed: false after one came short, until an edge */
    bool writable;
    bool ended;           /* the peer has closed or broken it: always readable */
    struct io_recv *recv; /* until its callback */
    struct io_send *send;
    struct io_connect *connect;
    struct addrs *to; /* while connecting */
    int to_next;      /* the first address not yet tried */
    struct io_op free_op;
    struct sockaddr_storage local;
    char local_text[IO_ADDR_TEXT_MAX];
    char peer_text[IO_ADDR_TEXT_MAX];
};

/* A connection to be: conn_use gives it its descriptor. */
struct io_conn *conn_new(struct io_loop *loop);
/* Takes a connected descriptor; the caller registers it. */
void conn_use(struct io_conn *conn, int fd, const struct sockaddr_storage *peer);
/* Closes and frees at once: no operation is pending. */
void conn_free(struct io_conn *conn);
void conn_forget(struct io_op *op);
/* io_connect to the first of these addresses that accepts. */
void connect_addrs(struct io_loop *loop, const struct addrs *to, struct io_connect *c);
/* The operation was cancelled: gives up the attempt. */
void connect_abandon(struct io_connect *c);
void connect_on_event(struct io_conn *conn, uint32_t events);
void connect_drop_resolves(struct io_loop *loop);
void accept_forget(struct io_accept *a);
/* Frees what a loop and the process keep of listeners. */
void listen_drop_points(struct io_loop *loop);
void listen_drop_all(struct io *io);

/* ---- signal.c ---- */

void signal_fini(struct io_loop *loop);

/* ---- watch.c ---- */

/* The descriptor is watched no more; harmless when it is not. */
void watch_forget(struct io_watch *w);
void watch_drop_all(struct io_loop *loop);

/* ---- job.c ---- */

/* Lets running jobs end, forgets the others, joins the workers. */
void jobs_end(struct io *io);

#endif
