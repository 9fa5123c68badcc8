/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_TREE_INT_H
#define SL_KEEPER_TREE_INT_H

#include "base/list.h"
#include "keeper/keeper.h"

/*
 * The tree of nodes as plain data: what keepers in memory and in SQLite have in common. No I/O, no
 * loop; one thread at a time. It tells by lists: the watches that a change fires are moved to the
 * caller's list, with their event set, and are then the caller's to report.
 */

/* What of a node is stored. */
struct tree_record {
    struct bytes data;     /* null and empty differ */
    int32_t child_creates; /* ever: the sequence counter; with the count it gives the version */
    int32_t version;
    int64_t created_zxid;
    int64_t modified_zxid;
};

struct tree_node {
    struct tree_record rec;      /* owns its data */
    char *name;                  /* last part of the path; "" for the root */
    struct tree_node *parent;    /* NULL for the root */
    struct tree_node **children; /* by the bytes of their names */
    int32_t child_count;
    int32_t child_cap;
    int64_t owner;       /* session of an ephemeral node; 0: persistent */
    struct list owned;   /* in tree_session.nodes */
    struct list watches; /* of get and exists */
    struct list child_watches;
};

struct tree {
    struct tree_node *root;
    int64_t zxid;       /* of the last change */
    int64_t node_count; /* the root counts */
    struct list absent; /* watches for nodes that do not exist: few, so they are searched */
};

/* Who makes changes, and its ephemeral nodes. */
struct tree_session {
    int64_t id;
    struct list nodes;
};

void tree_init(struct tree *t);
/* Watches that are still armed are forgotten as they are. */
void tree_fini(struct tree *t);

bool tree_path_is_valid(const char *path);
/* NULL: there is none. The path is valid. */
struct tree_node *tree_find(const struct tree *t, const char *path);
/* Of any path but the root's. */
struct tree_node *tree_find_parent(const struct tree *t, const char *path);
struct keeper_stat tree_stat(const struct tree_node *n);
/* Names, an array and strings of the caller's; NULL when there are none. */
char **tree_children(const struct tree_node *n);

/*
 * All or nothing. Sets err, stat and created_path of each operation, and *failed to the index of
 * the one that failed (-1). Raises the zxid when something changed.
 */
must_use enum err tree_multi(struct tree *t, struct tree_session *s, struct keeper_op *ops,
                             int op_count, int *failed, struct list *fired);
/* Deletes the session's ephemeral nodes, under one zxid. */
void tree_end_session(struct tree *t, struct tree_session *s, struct list *fired);

void tree_watch(struct tree_node *n, struct keeper_watch *w);
void tree_watch_children(struct tree_node *n, struct keeper_watch *w);
/* Waits for the node to be created. */
void tree_watch_absent(struct tree *t, const char *path, struct keeper_watch *w);
void tree_unwatch(struct keeper_watch *w);

/* Takes in a stored node, its parent first; copies. ERR_CORRUPT: it cannot be. */
must_use enum err tree_load(struct tree *t, const char *path, const struct tree_record *from);

/* The copy is owned by the caller. */
struct bytes tree_data_copy(struct bytes data);
void tree_data_free(struct bytes data);

#endif
