/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_SIM_SIM_INT_H
#define SL_IO_SIM_SIM_INT_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/rng.h"
#include "io/io.h"
#include "io/sim/fs_int.h"
#include "io/sim/sim.h"

/* What the files of the simulated world share. Nothing here is for anybody else. */

/* ---- tasks: things that may happen ------------------------------------------------------ */

struct sim_task {
    void (*run)(struct sim_task *t);
    struct io *io;       /* whose work it is; NULL = the network's */
    struct heap_node at; /* waits for a moment */
    bool is_ready;       /* waits to be chosen */
    bool is_instant;     /* runs as soon as its moment comes: not an event of its own */
};

struct sim_world {
    struct sim_options opt;
    uint64_t seed;
    struct rng rng;
    int64_t now_ns;

    uint32_t *choices; /* made so far */
    uint8_t *kinds;    /* of each */
    size_t choice_count;
    size_t choice_cap;
    uint32_t *replay;      /* copy of options.choices */
    uint8_t *replay_kinds; /* and of their kinds; NULL */
    size_t replay_next[SIM_CHOICES];

    struct sim_task **ready; /* in the order in which they became ready */
    size_t ready_count;
    size_t ready_cap;
    struct heap timed;

    struct list hosts;
    uint32_t host_count;
    struct list sockets; /* connections: struct sim_tcp */

    sem_t baton; /* posted by a thread of the world that has paused or ended */
    cpu_set_t cpus_before;
    bool is_pinned;

    uint64_t counts[SIM_EVENTS];
    uint64_t hash;
    char *text;
    size_t text_size;
    size_t text_cap;
};

/* Makes it one of the things that may happen next, now or at a moment. Harmless when it is. */
void sim__task_ready(struct sim_world *w, struct sim_task *t);
void sim__task_at(struct sim_world *w, struct sim_task *t, int64_t when_ns);
void sim__task_drop(struct sim_world *w, struct sim_task *t);

/* Counts an event and puts it into the trace. `what` is a name without spaces. */
void sim__event(struct sim_world *w, enum sim_event kind, const struct sim_host *h,
                const char *what, int64_t detail);
/* A line of a process, as it is. */
void sim__trace_line(struct sim_world *w, const struct sim_host *h, const char *line);

/* ---- machines and processes ------------------------------------------------------------- */

struct sim_host {
    struct sim_world *world;
    struct list node;
    char *name;
    char address[16];
    uint32_t index;
    uint32_t lives; /* processes started so far */
    uint32_t boots; /* power cuts so far */
    bool is_down;
    uint64_t cut_to; /* bit i: nothing arrives at host i */
    int64_t paused_until_ns;
    int64_t wall_skew_ms;
    uint16_t port_next;    /* for listeners */
    uint16_t port_client;  /* for connects */
    struct list processes; /* struct io, dead ones too */
    struct list listeners;
    struct sim_fs fs;
    uint32_t fail_in[SIM_CALLS]; /* counts down; 0 = no plan */
};

struct io {
    struct sim_host *host;
    struct list node;
    uint32_t life;
    struct io_options options;
    struct trace trace;
    struct rng entropy;
    bool is_running; /* between io_run and io_stop */
    bool is_stopping;
    bool is_dead; /* killed */
    bool has_ended;
    uint32_t crash_in; /* calls until it dies; 0 = no plan */
    enum sim_crash crash_how;

    struct list loops;
    struct list conns;
    struct list files; /* open handles */
    struct io_signal *signal;
    int signal_pending;
    struct list foreign; /* struct foreign by node: descriptors of other libraries */
    int foreign_count;

    struct sim_thread *runner; /* sleeps in io_run */
    sim_main_fn main;
    void *main_ctx;
    struct list jobs; /* struct io_job, not started */
    struct list workers;
    unsigned worker_count;
    bool is_quitting; /* workers: leave when there is no job */
    unsigned lane_count;
};

/*
 * At the beginning of each call by which a process asks for something: false when the process is
 * dead (or just died of a planned crash) and the call has to do nothing. Does not return on a
 * thread of a dead process.
 */
bool sim__call(struct io *io);
/* Whether this thread is a lane, worker or main function of a process. */
bool sim__on_thread(void);
void sim__process_end(struct io *io);

/* ---- loops ------------------------------------------------------------------------------ */

struct io_loop {
    struct io *io;
    struct list node;
    char *name;
    struct sim_task task;  /* a callback */
    struct sim_task alarm; /* the next timer */
    struct list ready;     /* completed operations */
    struct io_msg *head;   /* messages */
    struct io_msg **tail;
    struct io_retired *retired;
    struct io_retired **retired_tail;
    struct heap timers;
    int64_t turn_ns;
    bool has_ended;
    struct io_msg start_msg;
    void (*start)(void *ctx);
    void *start_ctx;
};

enum sim_op_kind { OP_TIMER = 1, OP_SIGNAL, OP_ACCEPT, OP_CONNECT, OP_RECV, OP_SEND, OP_WATCH };
enum sim_op_state { OP_IDLE = 0, OP_PENDING, OP_READY };

/* Begins an operation; the caller puts it where it waits. */
void sim__op_begin(struct io_loop *loop, struct io_op *op, enum sim_op_kind kind);
/* The result is known: the callback follows. */
void sim__op_done(struct io_op *op, enum err err);
void sim__loop_kick(struct io_loop *loop);
void sim__loop_end(struct io_loop *loop);
void sim__loop_freeze(struct io_loop *loop);
void sim__loop_free(struct io_loop *loop);
/* Before the callback: the connection of a socket's operation, to be unref'd after it, or NULL. */
struct io_conn *sim__op_detach(struct io_op *op);

/* ---- threads ---------------------------------------------------------------------------- */

struct sim_thread {
    struct sim_task task;
    struct io *io;
    char *name;
    pthread_t id;
    sem_t go;
    void (*fn)(void *arg);
    void *arg;
    struct sim_thread *waiter; /* wakes when this one has ended */
    bool *has_ended;           /* told when it has; may be NULL */
    bool is_over;
};

struct sim_thread *sim__thread_new(struct io *io, const char *name, void (*fn)(void *), void *arg);
/* On a thread: others go on; this one may be chosen again after ns. */
void sim__thread_pause(int64_t ns);
/* On a thread: until somebody makes its task ready. */
void sim__thread_sleep(void);
struct sim_thread *sim__thread_self(void);
/* Waits on a thread or outside until *flag is true; `t` makes it so. */
void sim__wait_for(struct io *io, struct sim_thread *t, const bool *flag);
void sim__workers_end(struct io *io);

/* ---- network ---------------------------------------------------------------------------- */

void sim__accept_cancel(struct io_accept *a);
void sim__connect_cancel(struct io_connect *c);
void sim__conn_unref(struct io_conn *conn);
/* The process is gone: listeners close, connections end (kill) or fall silent (power cut). */
void sim__net_drop(struct io *io, enum sim_crash how);
/* The host is back: who still talks to its old connections is told so. */
void sim__net_boot(struct sim_host *h);
void sim__net_fini(struct sim_world *w);

/* ---- foreign descriptors ---------------------------------------------------------------- */

/* The watch is cancelled. */
void sim__watch_forget(struct io_watch *w);
void sim__foreign_fini(struct io *io);

/* ---- disks ------------------------------------------------------------------------------ */

/* A process has died: what it had locked is free. */
void sim__disk_drop(struct io *io);

#endif
