/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BROKER_CONTROL_H
#define SL_BROKER_CONTROL_H

#include "broker/broker_int.h"
#include "client/client.h"
#include "keeper/znodes.h"

/*
 * The control loop's files: control.c (tasks, publishing, partitions), store.c (what the keeper
 * holds), load.c (start), topics.c, configs_api.c, producer_ids.c. Everything here runs on the
 * control loop unless it says otherwise.
 */

/*
 * Where ids of producers begin. Apache Kafka's KRaft keeps its counter in its own metadata and
 * begins at 0: when a directory moves there and back, neither may give an id that the other one's
 * producers still use, or a new producer's first batch would pass for a repetition of an old one.
 */
#define PRODUCER_ID_FIRST ((int64_t)1 << 40)

/* An administrative change. They run one after the other, in order of arrival. */
struct task {
    struct list link;
    void (*run)(struct control *c, struct task *t);
};

struct control {
    struct broker *broker;
    struct io_loop *loop;
    struct keeper *keeper;
    struct config *config;        /* in force; owned */
    struct metadata_image *image; /* the newest; a reference */
    struct list tasks;            /* waiting; the first one runs */
    bool task_runs;
    struct partition *partitions; /* by topic id and index, in the order in which they came */
    int32_t partition_count;
    int32_t *dir_partitions; /* partitions by log directory, for placing new ones */
    struct io_signal signal;
    struct io_timer retention_timer;
    struct cleaner_turn *cleaner_turns; /* by log directory; NULL without a cleaner */
    struct figures_cleaner cleaned;
    bool is_serving;
    bool stopping;
    enum err stop_err;
    const char *stop_why;
    int closing;             /* partitions that have not closed */
    struct load *load;       /* while the broker starts */
    struct cluster *cluster; /* NULL: a broker alone, which is its own controller */
    struct producer_ids *producer_ids;
    int64_t producer_id_least; /* PRODUCER_ID_FIRST, and above all that the logs knew at start */
};

void control_enqueue(struct control *c, struct task *t,
                     void (*run)(struct control *, struct task *));
/* The running task has ended; its memory is the caller's. */
void control_task_end(struct control *c);

/* The next image, without telling anybody yet; the delta is emptied. */
void control_set_image(struct control *c, struct metadata_delta *delta);
/*
 * Applies a delta (emptied here) and tells all shards; `done` when each has the new image. With
 * `config` the configuration in force is replaced too (taken).
 */
void control_publish(struct control *c, struct metadata_delta *delta, struct config *config,
                     void (*done)(struct control *c, void *ctx), void *ctx);

/*
 * Makes a partition's log in the directory with the fewest partitions, or takes over a loaded one,
 * opens it on its owner and lets all shards find it; `done` then.
 */
struct partition_spec {
    const char *topic; /* borrowed until done */
    struct uuid topic_id;
    int32_t index;
    const struct metadata_partition *state; /* borrowed until done */
    struct topic_config config;
    struct log_loaded *loaded; /* taken; NULL: make a new one */
    int dir;                   /* of the loaded one */
};

void control_add_partition(struct control *c, const struct partition_spec *spec,
                           void (*done)(struct control *c, void *ctx, enum err err), void *ctx);
/* Takes it from all shards, closes or deletes its log; `done` when it is gone. */
void control_remove_partition(struct control *c, struct partition *p, bool delete_files,
                              void (*done)(struct control *c, void *ctx, enum err err), void *ctx);
struct partition *control_find_partition(struct control *c, struct uuid topic_id, int32_t index);

/* What is in force for a topic with these overrides. */
struct topic_config control_topic_config(const struct control *c, const struct config_overrides *o);

struct store_ops;

/* ---- cluster.c: this broker among others */

/* Blocking, before io_run. */
struct cluster *cluster_new(struct control *c);
void cluster_free(struct cluster *k);
/* Everything is loaded and listens: registers, and stands for election. */
void cluster_start(struct control *c);
/* Whether this broker decides: alone, or as the elected controller. */
bool control_decides(const struct control *c);
/* Adds what makes a multi of the controller void when it is not the controller any more: so many
 * operations. Nothing where this broker is alone. */
void control_fence(const struct control *c, struct store_ops *ops);
int control_fence_ops(const struct control *c);
/* A multi of the controller has failed, or nobody knows: what is stored may not be what its image
 * says, so its rule ends. Nothing where this broker is alone. */
void control_commit_failed(struct control *c);
/* What its client is told: in a cluster to ask the next controller. */
enum err control_commit_error(const struct control *c);
/* Asks the controller, another broker, to make topics; then the request returns. In cluster mode.
 */
void forward_creation(struct control *c, struct request *r, const struct metadata_topic *const *v,
                      int32_t n);
/* The image has changed: others are told. */
void control_announce(struct control *c);

struct heard {
    void (*done)(struct heard *h); /* set by the owner */
    /* private */
    struct list _link;
    uint64_t _version;
    struct client_alarm _alarm;
};

/* `done` when every broker that can be reached has the image of now, or after a second; at once,
 * within the call, where there are no others. */
void control_when_heard(struct control *c, struct heard *h);

/* ---- store.c: what the keeper holds */

/* Operations for one multi, with the memory that they point to. */
struct store_ops {
    struct keeper_op *v;
    int n;
    int cap;
    int32_t controller_epoch; /* in the states that are written */
    struct arena arena;
    struct keeper_call call;
    struct io_msg msg;
    struct control *control;
    void (*done)(struct control *c, void *ctx, enum err err);
    void *ctx;
};

/* ---- cleaner.c: compaction of the log directories, in the background ---- */

void cleaner_start(struct control *c);
/* No more runs; one that is under way ends with its log. */
void cleaner_stop(struct control *c);
void cleaner_free(struct control *c);

struct store_ops *store_ops_new(void);
/* Instead of a commit. */
void store_ops_free(struct store_ops *ops);
/* The nodes that every cluster has. */
void store_lay_out(struct store_ops *ops, struct str cluster_id);
void store_add_topic(struct store_ops *ops, const struct metadata_topic *topic);
/* Who has and who will have its replicas; its states are apart. */
void store_set_assignments(struct store_ops *ops, const struct metadata_topic *topic);
/* More partitions: the topic as it will be. */
void store_grow_topic(struct store_ops *ops, const struct metadata_topic *topic, int32_t before);
void store_set_partition(struct store_ops *ops, struct str topic, int32_t index,
                         const struct metadata_partition *p);
/* Only if the state is the one that this one follows: by its partition epoch. */
void store_change_partition(struct store_ops *ops, struct str topic, int32_t index,
                            const struct metadata_partition *p);
/* Only while the node of the controller's epoch has this version. */
void store_check_controller(struct store_ops *ops, int32_t version);
void store_set_topic_configs(struct store_ops *ops, struct str name,
                             const struct config_overrides *o);
/* The node is made if it is not there yet. */
void store_set_broker_configs(struct store_ops *ops, int32_t broker_id, bool exists,
                              const struct config_overrides *o);
/* Tells the other brokers of a cluster that this configuration has changed. A null name: of all. */
void store_note_config_change(struct store_ops *ops, enum znode_entity entity, struct str name);
/* Tells the controller that a log directory of this broker has failed. */
void store_note_dir_failure(struct store_ops *ops, int32_t broker_id);
/* The controller has heard. */
void store_remove_dir_event(struct store_ops *ops, const char *child);
/* A note that everybody has read. */
void store_remove_config_note(struct store_ops *ops, const char *child);
void store_mark_deletion(struct store_ops *ops, struct str name);
/* All nodes of a topic and the mark. */
void store_remove_topic(struct store_ops *ops, const struct metadata_topic *topic);
/* All nodes of a topic that has no mark. */
void store_drop_topic(struct store_ops *ops, const struct metadata_topic *topic);
/* Everything that a start needs to know. */
struct store_contents {
    bool is_new;                    /* the tree was empty: it has been laid out now */
    struct str cluster_id;          /* in the store's memory */
    struct metadata_topic **topics; /* references; marked ones have is_deleting */
    int64_t **state_zxids;          /* by topic and partition: when its state was written */
    int32_t topic_count;
    struct metadata_broker_config *broker_configs;
    int32_t broker_config_count;
    char *damage; /* what could not be understood, for people; NULL */
};

/* `contents` stays the store's until done returns. `cluster_id` is for a new tree. */
void store_load(struct control *c, struct str cluster_id,
                void (*done)(struct control *c, void *ctx, enum err err,
                             struct store_contents *contents),
                void *ctx);
/* A block of producer ids that nobody else gets: [first, end). */
void store_take_producer_ids(struct control *c,
                             void (*done)(struct control *c, void *ctx, enum err err, int64_t first,
                                          int64_t end),
                             void *ctx);
/* All or nothing; takes ops. */
void store_commit(struct control *c, struct store_ops *ops,
                  void (*done)(struct control *c, void *ctx, enum err err), void *ctx);

/* ---- load.c */
void load_start(struct control *c, void (*done)(struct control *c));
/* The broker stops: no more logs are recovered. */
void load_cancel(struct load *l);
void load_free(struct load *l);

/* ---- adopt.c */
/* Adds to the delta what the directories hold and the keeper does not know, if it may be adopted,
 * and the configurations that were imported. */
void adopt_directories(struct control *c, const struct store_contents *contents,
                       struct store_ops *ops, struct metadata_delta *delta);
/* One line about all topics that are kept whole because their configuration is not known. */
void adopt_say(const struct metadata_image *image);

/* ---- topics.c */
/* Makes deletions that were interrupted complete: whoever decides, when it begins to. */
void topics_resume_deletions(struct control *c);

/* ---- producer_ids.c */
struct producer_ids *producer_ids_new(void);
void producer_ids_free(struct producer_ids *ids);

#endif
