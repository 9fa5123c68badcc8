/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_SIM_SIM_H
#define SL_IO_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/trace.h"

/*
 * The simulated world: an implementation of io.h in which time is virtual, machines have disks
 * that forget what was not synced, networks stall and break, and one seed decides what happens
 * next. Many processes live in one world; nothing is shared between worlds.
 *
 * A world belongs to the thread that made it: that thread steps it, and runs the callbacks of all
 * loops. Unless a comment says otherwise, the functions here are for that thread, between steps or
 * in a loop's callback. Calls of io.h that block may be made there too, between steps ("outside"):
 * they take no virtual time and meet no faults but planned ones (sim_disk_fail_nth).
 */

struct io;
struct io_options;
struct sim_world;
struct sim_host; /* a machine: an address, disks, processes */

/* ---- choices ---------------------------------------------------------------------------- */

/* What a choice is about. 0 is always the dull answer: first come first served, no fault. */
enum sim_choice {
    SIM_NEXT = 0,   /* which of the things that may happen */
    SIM_QUEUE,      /* completion, message or retired memory first */
    SIM_ACCEPT,     /* which of the waiting accepts */
    SIM_DELAY,      /* of a segment */
    SIM_CHUNK,      /* size of a segment, or of what recv takes */
    SIM_RESET,      /* the connection breaks */
    SIM_REFUSE,     /* the connection is refused */
    SIM_LATENCY,    /* of a sync */
    SIM_STALL,      /* of any disk call */
    SIM_CACHE,      /* io_read_cached misses or is short */
    SIM_EIO,        /* a disk call fails */
    SIM_PARTIAL,    /* how much of a failed write was done */
    SIM_LOST_NAMES, /* at a power cut: how many changes of a directory */
    SIM_LOST_SIZES, /* ... how many changes of a file's size */
    SIM_LOST_DATA,  /* ... whether a write was kept, dropped or torn */
    SIM_LOST_SECTOR,
    SIM_LOST_SOCKET,            /* after a kill: the peer sees an end or a reset */
    SIM_USER,                   /* the test's own: its workload is then part of the list too */
    SIM_CHOICES = SIM_USER + 8, /* SIM_USER + 1 to 7: the same, for tests that tell them apart */
};

/* One of [0, n), n > 0. Every choice of a run is made here, and recorded unless n is 1. */
uint32_t sim_choose(struct sim_world *w, enum sim_choice kind, uint32_t n);
/* True with a probability of ppm / 1,000,000; nothing is recorded when ppm is 0. */
bool sim_chance(struct sim_world *w, enum sim_choice kind, uint32_t ppm);
/* The choices so far: with the seed of the world a complete description of the run. */
const uint32_t *sim_choices(const struct sim_world *w, size_t *count);
/* The enum sim_choice of each of them. */
const uint8_t *sim_choice_kinds(const struct sim_world *w);

/* Choices of a run, and of which kind (enum sim_choice) each is. */
struct sim_list {
    uint32_t *values;
    uint8_t *kinds; /* may be NULL: all are of the first one */
    size_t count;
};

/*
 * Shortens and dulls the list of a failing run in place, while it fails: whole kinds, the tail,
 * blocks and single choices are set to 0 or taken out, and what is left is made smaller. `cost`
 * runs a list in a whole world, in a child if it crashes anything; it is negative when that does
 * not fail in the way that is wanted, and else says how much there is to read: no change may make
 * it more. Returns how many runs it took, at most `tries_max`.
 */
typedef int64_t (*sim_cost_fn)(void *ctx, const struct sim_list *list);
unsigned sim_shrink(struct sim_list *list, unsigned tries_max, sim_cost_fn cost, void *ctx);
/* Choices that are not 0, of one kind, or of any (SIM_CHOICES). */
size_t sim_list_interesting(const struct sim_list *list, enum sim_choice kind);

/* ---- the world -------------------------------------------------------------------------- */

/* Rates are in parts per million, 0 = never. Other fields: 0 takes the default in brackets. */
struct sim_options {
    const uint32_t *choices;     /* replay: taken instead of the seed's, then 0 for ever; copied */
    const uint8_t *choice_kinds; /* each kind takes its own ones only; copied; may be NULL */
    size_t choice_count;
    bool is_replay;               /* the list above counts, even if it is empty */
    bool keep_text;               /* sim_trace returns the whole text and not just the hash */
    enum trace_level trace_level; /* of the processes' own lines [TRACE_ERROR] */
    int64_t step_ns;              /* time that any event takes [1,000] */

    int64_t net_delay_ns_max;       /* between hosts; a tenth of it inside one [500,000] */
    int64_t net_connect_timeout_ns; /* [30 s] */
    size_t net_window_bytes;        /* sent and not yet received by the peer's code [131,072] */
    uint32_t net_chunk_ppm;         /* a segment or a recv is cut short */
    uint32_t net_reset_ppm;         /* per segment */
    uint32_t net_refuse_ppm;        /* per connect */

    int64_t disk_bytes;         /* size of each host's file system [1 TiB] */
    int64_t disk_sync_ns_max;   /* [400,000] */
    int64_t disk_stall_ns;      /* length of a stall [2 s] */
    uint32_t disk_stall_ppm;    /* per call */
    uint32_t disk_uncached_ppm; /* io_read_cached answers ERR_AGAIN */
    uint32_t disk_short_ppm;    /* io_read_cached answers less than it could */
    uint32_t eio_read_ppm;
    uint32_t eio_write_ppm;
    uint32_t eio_sync_ppm; /* and what was dirty is silently clean afterwards */
    uint32_t eio_meta_ppm; /* open, rename, unlink, directories ... */
};

/*
 * Pins the process to one CPU until the world is freed, so that handing over between its threads
 * is cheap. `options` may be NULL.
 */
struct sim_world *sim_world_new(uint64_t seed, const struct sim_options *options);
/* Every process must have ended, or have been killed: then its memory is left behind. */
void sim_world_free(struct sim_world *w);
/* May be changed between steps, for instance to end all faults. */
struct sim_options *sim_world_options(struct sim_world *w);
/* Virtual nanoseconds since the world began. */
int64_t sim_now_ns(const struct sim_world *w);

/* Lets one thing happen; false when nothing can ever happen again. */
bool sim_step(struct sim_world *w);
typedef bool (*sim_pred_fn)(void *ctx);
/*
 * Steps until `pred` (may be NULL) is true or the time has come; returns whether `pred` is. Time
 * goes on to the deadline even when nothing happens any more.
 */
bool sim_run_until(struct sim_world *w, int64_t deadline_ns, sim_pred_fn pred, void *ctx);

/* ---- what happened ---------------------------------------------------------------------- */

/* An event is one choice that the world carried out. */
enum sim_event {
    SIM_EV_TIMER = 0, /* callbacks of loops */
    SIM_EV_SIGNAL,
    SIM_EV_ACCEPT,
    SIM_EV_CONNECT,
    SIM_EV_RECV,
    SIM_EV_SEND,
    SIM_EV_WATCH,
    SIM_EV_MESSAGE,
    SIM_EV_RETIRE,
    SIM_EV_SEGMENT, /* the network */
    SIM_EV_DIAL,
    SIM_EV_THREAD, /* a lane, a job or a main function goes on to its next blocking call */
    SIM_EV_RESET,  /* faults */
    SIM_EV_CUT,
    SIM_EV_EIO,
    SIM_EV_STALL,
    SIM_EV_NO_SPACE,
    SIM_EV_PAUSE,
    SIM_EV_KILL,
    SIM_EV_POWER_CUT,
    SIM_EV_LOST, /* writes and names that a power cut took */
    SIM_EV_TORN, /* writes that it tore */
    SIM_EVENTS,
};

uint64_t sim_event_count(const struct sim_world *w, enum sim_event kind);
uint64_t sim_event_total(const struct sim_world *w);
/* "name=count" of every kind that occurred, on one line. */
void sim_print_counts(const struct sim_world *w, FILE *to);
/* Identifies the run: equal only if the same events happened in the same order at the same time. */
uint64_t sim_trace_hash(const struct sim_world *w);
/* One line an event, with options.keep_text; else "". NUL-terminated, valid until the next step. */
const char *sim_trace(const struct sim_world *w);

/* ---- machines and processes ------------------------------------------------------------- */

#define SIM_HOSTS_MAX 64

/* A machine with an empty disk and the address 10.0.0.N, N = 1, 2, ... It lives as its world. */
struct sim_host *sim_host_new(struct sim_world *w, const char *name);
const char *sim_host_name(const struct sim_host *h);
const char *sim_host_address(const struct sim_host *h);

/*
 * Starts a process on the host (which comes back up if it had lost power). `options` may be NULL:
 * the process's trace goes into the world's.
 *
 * With a main function: it runs on a thread of the process, makes loops, calls io_run, cleans up
 * and returns, and never calls io_free: that is done behind it. What it answers to io_* before
 * and after io_run may fail and crash. The io stays valid until the world ends.
 *
 * Without one (NULL): the caller uses the io from outside; io_run then steps the world, and
 * io_free ends the process.
 */
typedef void (*sim_main_fn)(struct io *io, void *ctx);
struct io *sim_process_start(struct sim_host *h, const struct io_options *options, sim_main_fn main,
                             void *ctx);
/* Neither killed nor returned from its main function. */
bool sim_process_is_alive(const struct io *io);
/* SIGTERM or SIGINT. */
void sim_process_signal(struct io *io, int signo);
/* Nothing of the host's processes runs for a while (SIGSTOP); its kernel goes on. */
void sim_host_pause(struct sim_host *h, int64_t ns);
/* Moves the wall clock. */
void sim_host_clock_jump(struct sim_host *h, int64_t ms);

enum sim_crash {
    SIM_KILL = 0,  /* one process: everything it had written stays */
    SIM_POWER_CUT, /* the whole host: what was not synced is lost, kept or torn by choice */
};

/* The process dies at once. Its memory is abandoned, its lanes and jobs never run again. */
void sim_process_kill(struct io *io);
/* The host goes down with all its processes, until sim_process_start. */
void sim_host_power_cut(struct sim_host *h);
/* Crashes when the process makes its n-th call of io from now on, wherever that is; 0: never. */
void sim_crash_after(struct io *io, uint32_t calls, enum sim_crash how);

/* ---- foreign descriptors ---------------------------------------------------------------- */

/*
 * There are no other libraries in the world. What io_watch watches is made here, a number that
 * means something in this process only, and is ready for what the test says (enum
 * io_watch_events); for nothing at first. Until it is closed.
 */
int sim_foreign_new(struct io *io);
void sim_foreign_set(struct io *io, int fd, unsigned ready);
void sim_foreign_close(struct io *io, int fd);

/* ---- network and disk faults ------------------------------------------------------------ */

/* Nothing gets from one host to the other until healed. Connections stall and do not break. */
void sim_net_cut(struct sim_host *from, struct sim_host *to);
void sim_net_heal(struct sim_host *from, struct sim_host *to);
/* Ends every cut of the world. */
void sim_net_heal_all(struct sim_world *w);

enum sim_call {
    SIM_CALL_READ = 0,
    SIM_CALL_WRITE,
    SIM_CALL_SYNC,
    SIM_CALL_META,
    SIM_CALLS,
};

/* The n-th call of that kind from now on fails (ERR_IO), n > 0; 0 takes the plan back. */
void sim_disk_fail_nth(struct sim_host *h, enum sim_call call, uint32_t n);
/* Flips bits of one stored byte, on the device and in the cache: ERR_NOT_FOUND, ERR_LIMIT. */
must_use enum err sim_disk_damage(struct sim_host *h, const char *path, int64_t pos, uint8_t mask);

/* ---- children --------------------------------------------------------------------------- */

/*
 * Runs fn in a forked child, because a crash leaves memory and threads behind. `result` (n bytes,
 * may be NULL) is copied from what fn left there. Returns what fn returned, in [0, 127], or 128
 * plus the signal that ended the child; a child that needs more than a minute is ended by SIGALRM.
 * No world may exist on the calling side.
 */
int sim_in_child(int (*fn)(void *arg, void *result), void *arg, void *result, size_t n);

#endif
