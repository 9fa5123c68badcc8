/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_RUN_H
#define SL_TESTS_SIM_RUN_H

#include "base/attr.h"
#include "base/rng.h"
#include "broker/broker.h"
#include "history.h"
#include "io/sim/sim.h"

/*
 * One run: a world, a broker that dies and comes back in it, clients that outlive it, and what
 * they were told. Everything follows from the seed. The memory of a run is the test's own: no
 * crash touches it. One thread; clients' callbacks and the steps between them.
 */

#define MS 1000000LL
#define SECOND 1000000000LL

#define BROKER_PORT 9092
#define PRODUCERS_MAX 4
#define CONSUMERS_MAX 3

/* What a run is of, told by its seed: seeds of a kind begin behind its number of millions. */
enum run_kind {
    RUN_BROKER = 0,  /* one broker, topics that come and go */
    RUN_GROUPS = 1,  /* one broker, consumer groups (group.h) */
    RUN_CLUSTER = 2, /* three brokers (cluster.h) */
    RUN_KINDS = 3,
};

#define RUN_KIND_SEEDS 1000000

static inline enum run_kind run_kind_of(uint64_t seed)
{
    return (enum run_kind)MIN((seed - 1) / RUN_KIND_SEEDS, RUN_KINDS - 1);
}

#define OFFSETS_RETENTION_MINUTES 5

/* Who chooses: kinds of choices of their own, so that each can be made dull alone (shrink.h). */
enum chooser {
    BY_FATE = 0, /* the plan, the lives and their faults */
    BY_ADMIN = 1,
    BY_PRODUCERS = 2,
    BY_CONSUMERS = 3,
    BY_PEERS = 4,
};

/* What a seed decides about its run: a mix of its own, so that rare mixes are tried as well. */
struct plan {
    int shards;
    int dirs;
    int lives;
    int producers;
    int consumers;
    bool has_crashes;
    bool has_power_cuts;
    bool has_network_faults;
    bool has_disk_errors;
    bool has_small_disk;
    bool has_weather;           /* short reads, cold caches, chopped segments: slow, never wrong */
    bool has_page_cache_topics; /* some have flush.on.ack=false */
    uint32_t crash_calls_max;
    int retention_check_ms;
    /* runs with groups */
    int groups; /* 0: none */
    int members;
    bool has_clock_jumps;
    int rebalance_delay_ms;
    int offsets_segment_bytes;
    int offsets_load_bytes;
    int offsets_partitions;
    bool has_slow_syncs;
    /* runs with a cluster */
    bool has_keeper_faults; /* sessions end, answers and requests are lost */
    bool has_slow_network;
    bool has_disk_loss; /* one disk is replaced by an empty one */
    bool has_racks;     /* each broker its own, and consumers are sent to the one in theirs */
};

/* What was exercised: a run without it shows nothing. */
struct counts {
    int64_t requests;
    int64_t answers;
    int64_t connections;
    int64_t connections_lost;
    int64_t acks;       /* batches */
    int64_t duplicates; /* acknowledged when they were sent again */
    int64_t refused;
    int64_t unknown;
    int64_t batches_read;
    int64_t records_read;
    int64_t topics_made;
    int64_t topics_deleted;
    int64_t configs_changed;
    int64_t partitions_added;
    int64_t times_asked;     /* offsets by time */
    int64_t records_deleted; /* requests that moved a log's start */
    int64_t starts;
    int64_t clean_stops;
    int64_t crashes;
    int64_t power_cuts;
    int64_t failed_starts;
    int64_t cut_bytes; /* torn tails that recovery kept aside */
    int64_t retained;  /* offsets that retention took */
    int64_t woken;     /* parked fetches that an append has woken */
    int64_t events;
    int64_t lost; /* writes and names that power cuts took */
    int64_t disk_errors;
    /* groups */
    int64_t joins;
    int64_t generations; /* whose assignment was told */
    int64_t beats;
    int64_t commits; /* of one partition, acknowledged */
    int64_t commits_refused;
    int64_t offsets_read;
    int64_t offsets_expired;
    int64_t records_processed;
    int64_t vanished;
    int64_t leaves;
    int64_t pauses;
    int64_t ghosts;       /* answers to processes that were gone */
    int64_t told_to_wait; /* while groups were loaded */
    int64_t clock_jumps;
    int64_t agreed; /* looks at a group that has had time to agree */
    /* clusters */
    int64_t rules;      /* controllers that took over */
    int64_t resigned;   /* of them, and went on as other brokers do */
    int64_t renewed;    /* sessions of brokers that live */
    int64_t led;        /* leaders of partitions that were seen, one after the other */
    int64_t expired;    /* sessions */
    int64_t isolations; /* of a broker from others */
    int64_t disks_lost;
    int64_t without_space; /* logs that took appends back for want of it */
    int64_t undecided;     /* runs that ended without the one who has everything */
    int64_t truncations;   /* logs that a new leader has cut */
    int64_t cut_committed; /* of them, below their high watermark */
    int64_t logs_compared; /* of replicas, at the end */
    int64_t sent_near;     /* consumers, to a follower */
    int64_t read_near;     /* answers of a follower with records */
};

struct run {
    uint64_t seed;
    struct sim_world *world;
    struct sim_host *broker_host;
    struct sim_host *client_host;
    struct plan plan;
    /* the broker's present life */
    struct io *broker_io;
    bool is_ready;
    bool has_failed_dir; /* told by the broker's answers: storage errors are no surprise */
    bool is_stopped;
    enum err stop_err;
    /* clients */
    struct io *client_io;
    struct io_loop *client_loop;
    struct clients *clients;
    struct list peers;             /* struct peer by link */
    struct group_world *groups;    /* NULL: a run without */
    struct cluster_world *cluster; /* NULL: a run with one broker */
    int life;                      /* of the broker, counted */
    bool is_sparse;    /* this life: bursts and silences, so that nobody hides a lost wake-up */
    bool no_producing; /* the end: only what is there is read */
    bool ends;         /* the clients' process ends */
    /* Since when nothing is wrong with the world; INT64_MAX while something is. */
    int64_t calm_since_ns;
    int64_t power_cut_ns; /* the last one: older answers about the page cache are worth nothing */
    int64_t unclean_ns;   /* the last end that was no clean stop: what had begun may be undone */
    struct history history;
    struct counts counts;
    bool tells; /* prints what happens, for a person who looks for a mistake */
    int64_t story_lines;
    size_t told_bytes; /* of the world's trace */
    char violation[300];
};

/* The first violation counts. */
void violate(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ---- story.c: one line of the story, with the time, if the run tells it */
void tell(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tell_plan(struct run *run);
static inline bool run_is_over(const struct run *run)
{
    return run->violation[0] != '\0';
}

/* Nanoseconds of the clients' clock. */
int64_t run_now(const struct run *run);
/* One of [0, n), recorded as a choice of the run; 0 is the dull one. run_choose: by fate. */
uint32_t run_choose_by(struct run *run, enum chooser who, uint32_t n);
uint32_t run_choose(struct run *run, uint32_t n);
/* True once in n. */
bool run_once_in(struct run *run, uint32_t n);

/* ---- node.c: the broker's process, and what all brokers' processes do */
void node_set(struct config *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From broker_open to broker_close; `args` lacks what is the same for all. */
void node_live(struct run *run, struct broker_args *args);
void node_start(struct run *run);
bool node_is_alive(const struct run *run);

/* ---- clients.c: the clients' process */
void clients_start(struct run *run);
/* Nothing waits for an answer any more, apart from readers. */
bool clients_are_idle(const struct run *run);
/* Everybody has read all there is, from the first offset to the end, since clients_verify. */
void clients_verify(struct run *run);
bool clients_have_verified(const struct run *run);
/* They have not, and had all the time of the world: says what is missing. */
void clients_complain(const struct run *run);
void clients_free(struct run *run);

/* ---- group_world.c: the fleet: all members of all groups, on the clients' loop */
void fleet_choose_plan(struct run *run);
void fleet_start(struct run *run);
void fleet_tick(struct run *run);
/* The broker starts again: what was on its way to the one before will not arrive. */
void fleet_new_life(struct run *run);
/* All groups agree, and have processed and committed all that is known. */
bool fleet_is_settled(struct run *run);
void fleet_complain(struct run *run);
void fleet_free(struct run *run);

/* ---- lives.c: runs one seed; the world is freed if nothing in it was killed */
void run_seed(struct run *run, const struct sim_options *options);

#endif
