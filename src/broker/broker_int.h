/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_BROKER_INT_H
#define SL_BROKER_BROKER_INT_H

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/uuid.h"
#include "broker/broker.h"
#include "broker/figures.h"
#include "broker/import_int.h"
#include "broker/quota.h"
#include "io/io.h"
#include "keeper/keeper.h"
#include "log/log.h"
#include "metadata/metadata.h"
#include "record/record.h"
#include "replica/replica.h"
#include "wire/apis.h"
#include "wire/header.h"
#include "wire/messages.h"

/*
 * What the files of the broker share. Who may touch what:
 *  - struct broker: set up before io_run, constant afterwards;
 *  - struct control: the control loop;
 *  - struct shard, its connections, requests and topic slots: the shard's loop;
 *  - struct partition: constant but for what is marked, which belongs to the owner shard or is
 *    atomic.
 * Everything between loops is a message (io_post) that carries what it is about.
 */

struct control;
struct conn;
struct request;
struct shard;
struct fetch;
struct coordinator;
struct fetcher;

/* How often there are records: of a partition, and of the fetches that it is in. */
enum fetch_pace {
    FETCH_BUSY = 0,
    FETCH_RESTING = 1,
    FETCH_PACES = 2,
};

struct client;
struct shard_update;

/* ---- broker ----------------------------------------------------------------------------- */

#define LISTENERS_MAX 8

struct listener {
    struct broker *broker;
    char *name; /* of the listener: PLAINTEXT */
    char *host; /* as configured; "" is all addresses */
    uint16_t port;
    int backlog;           /* connections that may wait to be accepted */
    char *advertised_host; /* NULL: the address that the client came in by */
    uint16_t advertised_port;
    struct io_listener *io[2]; /* a second one where a name has an IPv4 and an IPv6 address */
    int io_count;
};

struct broker {
    struct io *io;
    struct broker_args args;
    int32_t node_id;
    struct str cluster_id;                /* of the directories */
    char cluster_id_new[UUID_TEXT_BYTES]; /* what new directories get */
    int64_t start_ns;
    struct io_budget budget; /* frames and response chunks of all connections */
    struct log_dir **dirs;
    struct log_dir_found *found; /* by directory; released once loaded */
    int dir_count;
    struct import import; /* configurations for topics that are adopted */
    struct listener listeners[LISTENERS_MAX];
    int listener_count;
    struct shard *shards;
    int shard_count;
    struct control *control;
    struct keeper *keeper;
    struct list past_keepers;      /* whose sessions have ended; they are being closed */
    bool is_in_cluster;            /* its keeper is ZooKeeper, and there may be other brokers */
    _Atomic int64_t sure_until_ns; /* lease.c */
    _Atomic int32_t conn_count;
};

/* ---- keeper_session.c ---- */

/* Before io_run. Where there may be other brokers it makes the control's cluster, too. */
must_use enum err keeper_session_open(struct broker *b, const struct config *c, char **message);
void keeper_session_free(struct broker *b);

/* ---- lease.c ---- */

/* Whether nobody else can have been elected leader of what this broker leads. */
bool broker_is_sure(const struct shard *s);
/* Returns the request when this broker is sure, or has not been for so long that it answers with
 * what it knows. On the control loop, in a cluster. */
void lease_await(struct control *c, struct request *r);

/* ---- counting --------------------------------------------------------------------------- */

struct api_counts {
    struct latency total;
    struct latency local;
    struct counter errors[FIGURES_ERRORS];
};

struct listener_counts {
    struct counter opened;
    struct counter closed;
};

struct traffic_counts {
    struct counter messages_in;
    struct counter bytes_in;
    struct counter bytes_out;
};

/* Which duty of a replica a throttle is for. */
enum throttle_side {
    THROTTLE_LEADER = 0,
    THROTTLE_FOLLOWER = 1,
    THROTTLE_SIDES = 2,
};

/* What a shard has done: it alone writes, the control loop reads (figures.c). */
struct shard_counts {
    struct api_counts apis[API_COUNT];
    struct listener_counts listeners[LISTENERS_MAX];
    struct traffic_counts traffic;
    struct counter produce_parts;
    struct counter produce_parts_failed;
    struct counter fetch_parts;
    struct counter fetch_parts_failed;
    struct counter throttled_bytes[THROTTLE_SIDES]; /* between replicas, of throttled partitions */
};

/* A request's answer is ready: its time here, and the errors in it (but for produces and fetches,
 * which tell of theirs with the next). */
void count_reply(struct request *r);
/* An answer to this request says `err`. */
void count_error(struct request *r, enum err err);
/* The answer has left; the request is about to go. */
void count_sent(const struct request *r);

/* ---- shard ------------------------------------------------------------------------------ */

/* A deadline on a shard: cancelled at once, without a completion. */
struct delay {
    struct heap_node node;
    void (*expired)(struct delay *d);
};

/* What a shard knows of a topic. */
struct topic_slot {
    UT_hash_handle by_name;
    UT_hash_handle by_id;
    char *name;
    int32_t name_n;
    struct uuid id;
    struct topic_config config;
    const struct metadata_topic *topic; /* NULL: not published. Of the image that config was made */
    const struct config *resolved_with; /* from, and the broker's configuration */
    struct partition **partitions;      /* by index; NULL while one is not there */
    int32_t partition_count;
};

/* One loop's accepting from one listening socket. */
struct shard_accept {
    struct io_accept accept;
    struct delay retry; /* after ERR_LIMIT */
    struct shard *shard;
    struct listener *listener;
    struct io_listener *io;
};

struct shard {
    struct broker *broker;
    int index;
    struct shard_counts *counts;
    struct io_loop *loop;
    struct metadata_image *image; /* a reference */
    const struct config *config;  /* of the control loop, alive until every shard has a newer */
    struct topic_slot *topics_by_name;
    struct topic_slot *topics_by_id;
    struct list conns;            /* struct conn by link */
    struct shard_accept *accepts; /* one per io_listener */
    int accept_count;
    struct heap delays;
    struct io_timer delay_timer;
    struct list dirty; /* connections with something to send */
    struct io_msg flush_msg;
    bool flush_posted;
    int request_count;        /* in flight, of all connections */
    struct list starved;      /* connections that wait for the budget */
    struct list coordinators; /* struct coordinator: of the partitions of groups */
    struct delay starved_delay;
    int64_t relief_ns; /* not before this is it looked for who holds the memory */
    struct delay idle_delay;
    struct decompressor *decompressor;
    struct fetch_cache *fetch_cache;
    int64_t conns_at_hand;             /* that descriptors were found for: descriptors.c */
    struct client *peers[FETCH_PACES]; /* other brokers, to fetch from; NULL until there is one */
    int peers_open;                    /* of these; each ends after it was closed */
    struct list fetchers;              /* struct fetcher */
    struct quota quotas[THROTTLE_SIDES];
    bool is_deaf;
    bool stopping;
    struct shard_update *stop; /* while it waits for the last connection to end */
    struct delay drain_delay;  /* which it does not do for ever */
};

void shard_init(struct shard *s, struct broker *b, int index);
void shard_fini(struct shard *s);
/* Starts to accept connections. On the shard. */
void shard_start_listening(struct shard *s);
/* A connection has been freed: the last one ends a stop that is under way. On the shard. */
void shard_conn_gone(struct shard *s);

/* ---- descriptors.c ---- */

/* Partitions that may still be made, by the limit of open files. Any loop. */
int64_t descriptors_partition_room(struct broker *b);
/* NULL when there is room to open so many partitions, else what to say of it (the caller's). */
char *descriptors_lack(struct broker *b, int64_t partitions);
/* Whether one more connection may stay. On the shard. */
bool descriptors_take_conn(struct shard *s);

int64_t shard_now_ns(const struct shard *s);
int64_t shard_now_ms(const struct shard *s); /* wall clock */
void shard_delay_set(struct shard *s, struct delay *d, int64_t deadline_ns);
void shard_delay_cancel(struct shard *s, struct delay *d);

struct topic_slot *shard_find_topic(struct shard *s, struct str name);
struct topic_slot *shard_find_topic_id(struct shard *s, struct uuid id);
/* NULL when the slot is NULL or has no such partition, or its topic is not published. */
struct partition *slot_partition(const struct topic_slot *slot, int32_t index);
/* What a client is told that asks for a partition that slot_partition has not, of a topic of the
 * image or NULL. It looks elsewhere if the partition is there; Java's ListOffsets only then. */
enum err shard_absent_error(const struct metadata_topic *topic, int32_t index);
/* By name where it is not null, else by id. */
struct topic_slot *shard_find_topic_either(struct shard *s, struct str name, struct uuid id);

/* The epoch of this broker's registration, -1: none, as far as this shard knows. */
int64_t broker_own_epoch(const struct shard *s);
/* For calls to other brokers, of which broker_tell_client tells. */
struct client *broker_client(struct io_loop *loop, const struct broker *b, int32_t timeout_ms,
                             int32_t backoff_max_ms);
/* Where the brokers of an image are, and in which life; on the client's loop. */
void broker_tell_client(const struct broker *self, struct client *peers,
                        const struct metadata_image *image, const struct config *config);
/* Connections are refused from now on. On the control loop, or when no loop runs. */
void broker_close_listeners(struct broker *b);
/* Where a broker is reached by other brokers; NULL: nowhere. */
const struct metadata_endpoint *broker_peer_endpoint(const struct config *config,
                                                     const struct metadata_broker *b);

/* Which shard owns a partition. */
int shard_for_partition(const struct broker *b, struct uuid topic_id, int32_t index);

/* Changes that the control loop sends to every shard; it waits for all of them. */
enum shard_update_kind {
    SHARD_IMAGE = 0,            /* a new image (and config): topics gone from it are dropped */
    SHARD_ADD_PARTITION = 1,    /* it can be found from now on */
    SHARD_REMOVE_PARTITION = 2, /* likewise not */
    SHARD_LISTEN = 3,
    SHARD_DEAF = 4, /* it accepts no more connections */
    SHARD_STOP = 5,
};

struct shard_update {
    struct io_msg msg;
    struct shard *shard;
    enum shard_update_kind kind;
    struct metadata_image *image; /* a reference for the shard */
    const struct config *config;
    struct partition *partition;
    struct shard_broadcast *broadcast;
};

/* One update for all shards; `done` on the control loop when each has carried it out. */
struct shard_broadcast {
    void (*done)(struct shard_broadcast *b);
    void *ctx;
    int pending;
    struct shard_update *updates;
};

void shard_broadcast(struct control *c, enum shard_update_kind kind, struct partition *p,
                     void (*done)(struct shard_broadcast *b), void *ctx);

/* ---- throttle.c: how much replication may take (KIP-73); on any shard, of all of them ------ */

/* Once there is a configuration. */
void throttle_init(struct shard *s);
/* Bytes of a throttled partition have been sent to a follower, or fetched from a leader. */
void throttle_count(struct shard *s, enum throttle_side side, int64_t bytes);
/* The broker's rate is above the configured one: no bytes for replicas that nobody waits for. */
bool throttle_is_exceeded(struct shard *s, enum throttle_side side);
/* When to ask again. */
int64_t throttle_allows_ns(struct shard *s, enum throttle_side side);

/* ---- connections ------------------------------------------------------------------------ */

#define CONN_INLINE_BYTES 1024
#define CONN_CHUNKS_MAX 4

struct conn {
    struct list link;    /* shard->conns */
    struct list dirty;   /* shard->dirty */
    struct list starved; /* shard->starved */
    struct shard *shard;
    struct listener *listener;
    struct io_conn *io;
    struct io_recv recv;
    struct io_send send;
    int64_t active_ns; /* last byte received or sent */
    /* input */
    uint8_t in[CONN_INLINE_BYTES];
    size_t in_n;
    struct io_buf *frame; /* being received; NULL between frames */
    size_t frame_n;       /* bytes of it that are there */
    size_t frame_size;
    size_t frame_trust; /* largest frame received whole: allocated at once up to this */
    /* requests in order of arrival */
    struct list requests;
    int request_count;
    size_t request_bytes;
    int64_t refused_producer; /* whose batch was last refused for now, when */
    int64_t refused_ns;       /* 0: none was */
    struct gap *gaps;         /* in what its producers send (produce.c); NULL: never one */
    bool start_blocked;       /* a validation is under way: nothing starts behind it */
    bool starting;
    bool read_closed; /* the peer has closed, or sent something that ends the connection */
    bool closing;
    /* output: replied requests at the head of `requests` are being sent */
    struct list sending;                    /* wholly handed to the send that is under way */
    struct io_buf *chunks[CONN_CHUNKS_MAX]; /* file bytes of the send that is under way */
    int chunk_count;
    bool reading;               /* a job reads the next chunk from the disk */
    struct io_buf *ready_chunk; /* its result */
    /* for logs */
    char client_software[64];
    uint64_t unserved_logged; /* bit per api key: logged once */
};

/* How soon a connection that waits for the budget looks again. */
#define STARVED_RETRY_NS 5000000

void conn_accepted(struct shard *s, struct listener *l, struct io_conn *io);
/* Closes; it goes when its last request has ended. */
void conn_close(struct conn *c, const char *why);
/* Takes no more requests, answers those that have begun, and closes. */
void conn_drain(struct conn *c);
void conn_mark_dirty(struct conn *c);
/* Sends what is ready, frees what was sent. */
void conn_flush(struct conn *c);
void conn_sent(struct conn *c, enum err err);
void conn_start_requests(struct conn *c);
/* Reads on if its limits allow. */
void conn_resume(struct conn *c);
/* Closes who exhausts the budget with what only it could finish, and does not move. */
void conn_relieve(struct shard *s);
/* Frees it if it is closing and nothing refers to it any more. */
void conn_try_free(struct conn *c);
/* Closes connections that have been silent for connections.max.idle.ms. */
void conn_close_idle(struct shard *s);

/* ---- requests --------------------------------------------------------------------------- */

enum request_state {
    REQUEST_QUEUED = 0,  /* received */
    REQUEST_STARTED = 1, /* with its handler */
    REQUEST_REPLIED = 2, /* the response is encoded, or there is none */
};

struct request {
    struct list link; /* conn->requests, or conn->sending */
    struct conn *conn;
    struct shard *shard;
    struct io_buf *frame;
    size_t frame_n;
    struct request_header header;
    const struct api *api;
    struct arena arena;
    void *in;  /* the decoded message, in the arena */
    void *out; /* the response, in the arena */
    enum request_state state;
    bool close_after; /* the connection ends behind this request */
    int64_t arrived_ns;
    int64_t started_ns;
    int64_t waited_ns; /* of a fetch: for records to come */
    struct io_msg msg; /* to the control loop and back */
    void (*on_control)(struct control *c, struct request *r);
    void (*on_home)(struct request *r);
    struct fetch *fetch; /* while it is parked */
    /* response */
    struct wire_out encoded;
    size_t sent_at;     /* of encoded.p */
    size_t hole_at;     /* index of the next hole */
    int64_t hole_sent;  /* bytes of it */
    struct list ranges; /* struct file_range: freed with the request */
};

/* Stored bytes that a response carries: the ext of its records field. */
struct file_range {
    struct list link;
    struct io_file *file; /* a reference */
    int64_t pos;
    int64_t n;
};

bool request_is_served(const struct request *r, const struct api *api);
/* Decodes and hands to the handler, or ends the connection as the protocol says. */
void request_start(struct request *r);
/* Encodes r->out and sends it in its turn. On the request's shard. */
void request_reply(struct request *r);
/* acks=0: no bytes. */
void request_finish_silently(struct request *r);
/* Nothing more can be said: the connection is closed behind what was answered before. */
void request_abort(struct request *r, const char *why);
/* False, and the request is aborted, when it names more partitions than any may. */
bool request_allows_partitions(struct request *r, int64_t count);
void request_free(struct request *r);
/*
 * Runs fn on the control loop, which ends with request_return (any thread): then on_home runs on
 * the request's shard, usually request_reply.
 */
void request_to_control(struct request *r, void (*fn)(struct control *c, struct request *r),
                        void (*on_home)(struct request *r));
void request_return(struct request *r);
/* Allocates n elements of a response's array in the request's arena, each initialised. */
void *request_array(struct request *r, const struct schema *element, int32_t n);
/* Plain zeroed memory of the request. */
void *request_alloc(struct request *r, size_t size);
/* The range becomes the ext of a records field; takes the file's reference. */
void request_add_range(struct request *r, struct records *field, const struct log_range *range);

/* One function per API: `handle_produce`, ... */
#define API(key, NAME, name, ...) void handle_##name(struct request *r);
#include "wire/apis.def"
#undef API

/* ApiVersions in a version that we do not know: answered in version 0. */
void api_versions_unsupported(struct request *r);

/* ---- partitions ------------------------------------------------------------------------- */

/* A follower's next fetch, while it waits to be sent. */
struct following {
    struct list link;        /* fetcher->waiting, or fetcher->held */
    struct fetcher *fetcher; /* NULL: it does not wait */
    struct fetcher *out;     /* whose request is out with it, if the answer is still wanted */
    bool is_held;            /* the rate of throttled partitions is exceeded */
    bool is_expected;        /* it got records, and wants its next fetch when the disk has them */
    int64_t records_ns;      /* when it got some last; 0: never */
    int32_t leader_epoch;
    int64_t offset;
};

/* Compared byte by byte. */
struct partition_key {
    struct uuid topic_id;
    int32_t index;
};
static_assert(sizeof(struct partition_key) == 20, "without padding");

struct partition {
    _Atomic int32_t refs;
    struct broker *broker;
    struct traffic_counts *traffic; /* by shard: each counts what it has done */
    struct shard *owner;
    char *topic;
    union {
        struct partition_key key;
        struct {
            struct uuid topic_id;
            int32_t index;
        };
    };
    int dir; /* index of its log directory */
    struct log_view *view;
    _Atomic int32_t leader_epoch; /* of its replica, as of its last step */
    _Atomic bool is_leading;
    _Atomic bool is_serving;     /* a follower that consumers may read at */
    UT_hash_handle of_control;   /* control->partitions; control loop */
    bool is_leaving;             /* control loop: its view may be gone */
    struct isr_change *proposal; /* control loop: of its leader, if it waits to be sent */
    struct io_msg retention_msg; /* in flight while retention_runs */
    _Atomic bool retention_runs;
    _Atomic bool is_compacted; /* by its topic's cleanup.policy */
    struct io_msg clean_msg;   /* the cleaner's question, one at a time, and its answer */
    struct log_dirt clean_dirt;
    struct counter group_count; /* of its coordinator; the owner counts */
    struct counter offset_count;
    /* owner only */
    struct log *log;
    struct replica replica;
    struct delay replica_delay; /* when it wants to look at the time */
    struct following following;
    struct topic_throttle throttle;
    bool is_moving_start;            /* the log start follows the leader's */
    struct list commit_waiters;      /* acks=all: struct produce_part by link, ascending offset */
    struct list ack_waiters;         /* acks=1: likewise */
    struct list fetch_waiters;       /* struct fetch_waiter by link */
    struct coordinator *coordinator; /* of groups; NULL for any other topic */
    bool refusing;                   /* deletion or stop is under way */
    void (*closed)(struct partition *p, enum err err); /* on the owner, when the log is gone */
    void *closed_ctx;
};

struct partition *partition_new(struct broker *b, const char *topic, struct uuid topic_id,
                                int32_t index);
/* Any thread. The last reference frees; the log must be gone by then. */
struct partition *partition_ref(struct partition *p);
void partition_unref(struct partition *p);
/* Takes the loaded log, and the role that `state` gives to this broker. On the owner. */
void partition_open(struct partition *p, struct log_loaded *loaded,
                    const struct metadata_partition *state);
/* Answers all waiters, then closes or deletes the log; p->closed is called. On the owner. */
void partition_shut(struct partition *p, bool delete_files);
void partition_set_config(struct partition *p, const struct topic_config *config);
/* What was appended, for the figures. On the owner. */
void partition_count_append(struct partition *p, const struct log_append *a);
/*
 * Whether it leads, and in the epoch that a request knows (negative: it knows none):
 * ERR_FENCED_LEADER_EPOCH, ERR_UNKNOWN_LEADER_EPOCH, ERR_NOT_LEADER_OR_FOLLOWER. Any shard.
 */
must_use enum err partition_check_leader(const struct partition *p, int32_t epoch);
/* Likewise, but a follower that may serve consumers will do. */
must_use enum err partition_check_replica(const struct partition *p, int32_t epoch);
bool partition_is_led_here(const struct partition *p);
/* On the owner: nobody else leads it, as the session (lease.c) or the in-sync followers say. */
bool partition_is_sure(const struct partition *p);
/* On the owner: who waits for this offset is answered. */
void partition_answer_committed(struct partition *p);
void partition_answer_acked(struct partition *p);
/* On the owner: who waits for acks=all, or for any, gets this error. */
void partition_fail_commits(struct partition *p, enum err err);
void partition_fail_producers(struct partition *p, enum err err);

/* ---- replicate.c: the replica of a partition; on the owner ------------------------------- */

void replicate_begin(struct partition *p, const struct metadata_partition *state);
void replicate_end(struct partition *p);
/* The state in a new image, and who is alive. */
void replicate_follow_image(struct partition *p, const struct metadata_image *image,
                            const struct metadata_partition *state);
void replicate_note_brokers(struct partition *p, const struct metadata_image *image);
void replicate_configure(struct partition *p);
/* The log has grown, or acknowledges more. */
void replicate_advanced(struct partition *p);
/* What was appended did not happen: a follower fetches it again, later. */
void replicate_try_again(struct partition *p);
/* What the controller says of a proposal. */
void replicate_altered(struct partition *p, const struct replica_altered *answer);
/* A follower asks; its last epoch is looked up here. ERR_NONE: it may read from its offset on, or
 * fx->diverging_epoch is not -1. */
must_use enum err replicate_fetch(struct partition *p, struct replica_fetch *fetch,
                                  struct replica_effects *fx);

/* ---- visits: asking the owners of many partitions --------------------------------------- */

/*
 * A request that needs something of partitions: each item travels to the partition's owner, does
 * its work there (now, or later by a completion), and comes home; when all are home, `done` runs
 * on the request's shard. Everything lies in the request's arena, which nobody else uses
 * meanwhile; an item touches its own memory only.
 */
struct visit;

struct visit_item {
    struct io_msg msg;
    struct visit *visit;
    struct partition *partition; /* NULL: nobody to ask, err says why; else a reference */
    enum err err;
    void *out; /* what the caller wants filled in */
    const void *in;
    struct io_job job; /* for work that blocks */
    struct log_snapshot *snapshot;
    int64_t offset;
    int64_t timestamp;
    int32_t epoch;
};

struct visit {
    struct request *request;
    /* On the owner; ends with visit_item_done, now or later. */
    void (*at_owner)(struct visit_item *item);
    /* At home, when all items are back. */
    void (*done)(struct request *r, struct visit *v);
    int count;
    int pending;
    struct visit_item items[];
};

struct visit *visit_new(struct request *r, int count, void (*at_owner)(struct visit_item *item),
                        void (*done)(struct request *r, struct visit *v));
/* Looks the partition up; item->err is set when it is not there. */
void visit_find(struct visit_item *item, struct str topic, int32_t index);
void visit_start(struct visit *v);
/* On the owner. */
void visit_item_done(struct visit_item *item, enum err err);

/* ---- produce ---------------------------------------------------------------------------- */

struct produce;

/* One partition of a produce request; travels to the partition's owner and back. */
struct produce_part {
    struct list link; /* partition->commit_waiters or ack_waiters */
    struct io_msg msg;
    struct produce *produce;
    struct partition *partition; /* NULL: refused before it got there */
    struct log_append append;
    struct batch_verdict verdict;
    int16_t acks;
    enum err err;
    struct str message; /* for people; null */
    int64_t log_start_offset;
    struct topic_config config; /* as of the request */
    bool is_replicated;         /* others have led the partition, or may */
    bool is_large;              /* validated by a job */
    bool is_home;               /* home shard only: answered */
};

/* Appends, on the owner; answers by produce_part_done now or later. */
void partition_append(struct partition *p, struct produce_part *part);
/* On the owner: the part is answered and goes home. */
void produce_part_done(struct produce_part *part, enum err err);

/* ---- hints.c ---------------------------------------------------------------------------- */

/* Leaders that one answer names; lives as long as its request. Begins as zero but for that. */
struct hints {
    struct request *request;
    const struct metadata_broker **brokers; /* each once: where they are is said once */
    int32_t count;
};

/* Another broker leads that partition. False when none is known that the client can reach. */
bool hints_find(struct hints *h, struct str name, struct uuid topic_id, int32_t index,
                int32_t *leader, int32_t *leader_epoch);

/* ---- fetch ------------------------------------------------------------------------------ */

/* Up to where a fetch reads. */
enum fetch_upto {
    FETCH_UPTO_WATERMARK = 0, /* a consumer */
    FETCH_UPTO_STABLE = 1,    /* a consumer of committed records: the last stable offset */
    FETCH_UPTO_ACKED = 2,     /* a follower: what the leader has acknowledged to itself */
};

/* A parked fetch's registration at one partition. See fetch.c for its life. */
struct fetch_waiter {
    struct list link;     /* partition->fetch_waiters; owner */
    struct io_msg msg;    /* registration, and back when it is woken */
    struct io_msg cancel; /* likewise for the cancellation */
    struct partition *partition;
    struct shard *home;
    int64_t end_seen;     /* the bound that was not enough */
    enum fetch_upto upto; /* which one that was */
    int64_t watermark;    /* a higher one is news to this follower; INT64_MAX: none is */
    struct fetch *fetch;  /* home only: NULL when the fetch is gone */
    struct list of_fetch; /* home only */
    int pending;          /* home only: messages that have not come back */
};

/* On the owner: the partition's bounds have moved or it is going. */
void fetch_wake_partition(struct partition *p);
/* Complete this parked fetch soon. */
void fetch_hurry(struct fetch *f);
/* Likewise the one that the connection's answers wait for, if it is ahead of this request. */
void fetch_hurry_before(const struct request *r);
/* The connection is going: answer now. */
void fetch_abandon(struct fetch *f);
/* fetch_near.c: whether replica.selector.class sends consumers to followers in their rack. */
bool fetch_goes_by_racks(const struct config *c);

struct fetch_cache *fetch_cache_new(int32_t slots);
void fetch_cache_free(struct fetch_cache *cache);

/* ---- control ---------------------------------------------------------------------------- */

struct control *control_new(struct broker *b, struct config *config);
void control_free(struct control *c);
/* Reads the keeper, loads all logs, then listens and reports. Starts as a callback of the loop. */
void control_start(struct control *c);
void control_stop(struct control *c, enum err err, const char *why);
/* Any loop: a log directory has failed; without any, the broker stops. */
void control_dir_failed(struct broker *b);
struct broker *control_broker(struct control *c);
struct io_loop *control_loop(const struct broker *b);
/* The newest image and configuration, borrowed. */
struct metadata_image *control_image(struct control *c);
const struct config *control_config(struct control *c);

/* Control loop: makes the topics that a Metadata request names and that do not exist. */
void topics_auto_create(struct control *c, struct request *r);

/* Where the client of this request reaches a broker; false: by its listener, nowhere. */
bool request_broker_address(struct request *r, const struct metadata_broker *b, struct str *host,
                            int32_t *port);
/* The address of this broker for a client of this connection, in the arena. */
void conn_advertised(const struct conn *c, struct arena *arena, struct str *host, int32_t *port);

#endif
