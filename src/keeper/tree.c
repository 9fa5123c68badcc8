/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of versioned nodes. A path is walked name by name; children are kept sorted, so that a
 * listing needs no sort and iteration never depends on hashing.
 *
 * A multi is applied operation by operation, since later ones see what earlier ones did; each
 * leaves an undo record, and the first failure takes all of them back in reverse order. Only when
 * the last has succeeded are deleted nodes freed and watches fired, so nobody hears of a change
 * that did not happen. An undo record of a deleted node keeps the node itself, watches included.
 *
 * Of the children two numbers are stored: how many there are, and how many were ever created. The
 * second is the counter of sequential names, which therefore never goes back; creations plus
 * deletions, 2 * creates - count, is the children's version.
 *
 * Watches hang on the node that they watch; only those for nodes that do not exist wait in a list
 * of their own, with their path.
 */
#include "keeper/tree_int.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

struct tree_undo {
    struct keeper_op *op;
    struct tree_node *node;    /* that the operation made, changed or took out */
    struct tree_record before; /* SET; owns its data */
};

/* ---- Nodes. */

static struct tree_node *node_new(const char *name, size_t n)
{
    struct tree_node *node = xcalloc(1, sizeof(*node));

    node->name = xstrndup(name, n);
    node->rec.data = bytes_null();
    list_init(&node->owned);
    list_init(&node->watches);
    list_init(&node->child_watches);
    return node;
}

void tree_data_free(struct bytes data)
{
    free((void *)(uintptr_t)data.p);
}

struct bytes tree_data_copy(struct bytes data)
{
    if (data.n <= 0)
        return (struct bytes){.p = NULL, .n = data.n};
    return (struct bytes){.p = xmemdup(data.p, (size_t)data.n), .n = data.n};
}

static void node_free(struct tree_node *node)
{
    list_remove(&node->owned);
    tree_data_free(node->rec.data);
    free(node->children);
    free(node->name);
    free(node);
}

/* Where a child of this name is, or where it would have to be. */
static int32_t child_place(const struct tree_node *parent, struct str name, bool *found)
{
    int32_t low = 0, high = parent->child_count;

    *found = false;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = str_cmp(str_of(parent->children[middle]->name), name);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct tree_node *child_find(const struct tree_node *parent, struct str name)
{
    bool found;
    int32_t place = child_place(parent, name, &found);

    return found ? parent->children[place] : NULL;
}

static void child_attach(struct tree *t, struct tree_node *parent, struct tree_node *node)
{
    bool found;
    int32_t place = child_place(parent, str_of(node->name), &found);

    assert(!found);
    if (parent->child_count == parent->child_cap) {
        parent->child_cap = MAX(4, parent->child_cap * 2);
        parent->children =
            xreallocarray(parent->children, (size_t)parent->child_cap, sizeof(struct tree_node *));
    }
    memmove(&parent->children[place + 1], &parent->children[place],
            (size_t)(parent->child_count - place) * sizeof(struct tree_node *));
    parent->children[place] = node;
    parent->child_count++;
    node->parent = parent;
    t->node_count++;
}

/* The node keeps its parent pointer: undo needs it. */
static void child_detach(struct tree *t, struct tree_node *node)
{
    struct tree_node *parent = node->parent;
    bool found;
    int32_t place = child_place(parent, str_of(node->name), &found);

    assert(found);
    parent->child_count--;
    memmove(&parent->children[place], &parent->children[place + 1],
            (size_t)(parent->child_count - place) * sizeof(struct tree_node *));
    t->node_count--;
}

/* ---- Paths. */

static bool name_is_valid(struct str name)
{
    if (name.n == 0 || str_eq_c(name, ".") || str_eq_c(name, ".."))
        return false;
    for (int32_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
            return false;
    return true;
}

/* Cuts the next name off "/a/b"; false at the end. */
static bool path_next(const char **path, struct str *name)
{
    if (**path == '\0')
        return false;
    const char *from = *path + 1;
    size_t n = strcspn(from, "/");

    *name = (struct str){.p = from, .n = (int32_t)n};
    *path = from + n;
    return true;
}

bool tree_path_is_valid(const char *path)
{
    struct str name;

    if (path[0] != '/' || strlen(path) > KEEPER_PATH_BYTES_MAX)
        return false;
    if (path[1] == '\0')
        return true;
    while (path_next(&path, &name))
        if (!name_is_valid(name))
            return false;
    return true;
}

/* The node that the first n bytes of the path name. */
static struct tree_node *find_prefix(const struct tree *t, const char *path, size_t n)
{
    const char *end = path + n;
    struct tree_node *node = t->root;
    struct str name;

    if (n <= 1)
        return node;
    while (node && path < end && path_next(&path, &name))
        node = child_find(node, name);
    return node;
}

struct tree_node *tree_find(const struct tree *t, const char *path)
{
    return find_prefix(t, path, strlen(path));
}

struct tree_node *tree_find_parent(const struct tree *t, const char *path)
{
    return find_prefix(t, path, (size_t)(strrchr(path, '/') - path));
}

/* ---- Operations. */

static enum err op_check(struct tree_node *node, const struct keeper_op *op)
{
    if (!node)
        return ERR_NOT_FOUND;
    if (op->version >= 0 && op->version != node->rec.version)
        return ERR_BAD_VERSION;
    return ERR_NONE;
}

static void op_made(struct tree *t, struct tree_session *s, struct tree_node *parent,
                    struct tree_undo *u)
{
    struct keeper_op *op = u->op;
    struct tree_node *node = u->node;

    node->rec.created_zxid = node->rec.modified_zxid = t->zxid + 1;
    node->rec.data = tree_data_copy(op->data);
    if (op->is_ephemeral) {
        node->owner = s->id;
        list_push_back(&s->nodes, &node->owned);
    }
    child_attach(t, parent, node);
    parent->rec.child_creates++;
}

static enum err op_create(struct tree *t, struct tree_session *s, struct tree_undo *u)
{
    struct keeper_op *op = u->op;

    if (strcmp(op->path, "/") == 0)
        return ERR_EXISTS;
    struct tree_node *parent = tree_find_parent(t, op->path);

    if (!parent)
        return ERR_NOT_FOUND;
    if (parent->owner != 0)
        return ERR_INVALID_ARG;
    char *path = op->is_sequential ? xasprintf("%s%010d", op->path, parent->rec.child_creates)
                                   : NULL;
    struct str name = str_of(strrchr(path ? path : op->path, '/') + 1);

    if (child_find(parent, name)) {
        free(path);
        return ERR_EXISTS;
    }
    op->created_path = path;
    u->node = node_new(name.p, (size_t)name.n);
    op_made(t, s, parent, u);
    return ERR_NONE;
}

static enum err op_set(struct tree *t, struct tree_undo *u)
{
    struct tree_node *node = tree_find(t, u->op->path);
    enum err err = op_check(node, u->op);

    if (err)
        return err;
    u->node = node;
    u->before = node->rec;
    node->rec.data = tree_data_copy(u->op->data);
    node->rec.modified_zxid = t->zxid + 1;
    node->rec.version++;
    return ERR_NONE;
}

static enum err op_delete(struct tree *t, struct tree_undo *u)
{
    struct tree_node *node = tree_find(t, u->op->path);
    enum err err = op_check(node, u->op);

    if (err)
        return err;
    if (node == t->root)
        return ERR_INVALID_ARG;
    if (node->child_count > 0)
        return ERR_NOT_EMPTY;
    u->node = node;
    child_detach(t, node);
    return ERR_NONE;
}

static enum err op_apply(struct tree *t, struct tree_session *s, struct tree_undo *u)
{
    struct keeper_op *op = u->op;

    if (!tree_path_is_valid(op->path))
        return ERR_INVALID_ARG;
    if (op->data.n > KEEPER_DATA_BYTES_MAX)
        return ERR_LIMIT;
    switch (op->kind) {
    case KEEPER_CHECK: u->node = tree_find(t, op->path); return op_check(u->node, op);
    case KEEPER_CREATE: return op_create(t, s, u);
    case KEEPER_SET: return op_set(t, u);
    case KEEPER_DELETE: return op_delete(t, u);
    }
    UNREACHABLE();
}

static void op_take_back(struct tree *t, struct tree_undo *u)
{
    struct tree_node *node = u->node;

    switch (u->op->kind) {
    case KEEPER_CHECK: break;
    case KEEPER_CREATE:
        child_detach(t, node);
        node->parent->rec.child_creates--;
        node_free(node);
        break;
    case KEEPER_SET:
        tree_data_free(node->rec.data);
        node->rec.data = u->before.data;
        node->rec.modified_zxid = u->before.modified_zxid;
        node->rec.version = u->before.version;
        break;
    case KEEPER_DELETE: child_attach(t, node->parent, node); break;
    }
}

/* ---- Watches. */

static void fire(struct list *watches, enum keeper_event_kind event, struct list *fired)
{
    LIST_EACH (l, watches)
        LIST_ENTRY(l, struct keeper_watch, _node)->_event = event;
    list_splice_back(fired, watches);
}

static void fire_created(struct tree *t, const char *path, struct list *fired)
{
    LIST_EACH_SAFE (l, &t->absent) {
        struct keeper_watch *w = LIST_ENTRY(l, struct keeper_watch, _node);

        if (strcmp(w->_path, path) != 0)
            continue;
        tree_unwatch(w);
        w->_event = KEEPER_NODE_CREATED;
        list_push_back(fired, &w->_node);
    }
}

static void fire_deleted(struct tree_node *node, struct list *fired)
{
    fire(&node->watches, KEEPER_NODE_DELETED, fired);
    fire(&node->child_watches, KEEPER_NODE_DELETED, fired);
    fire(&node->parent->child_watches, KEEPER_CHILDREN_CHANGED, fired);
}

static void op_fire(struct tree *t, struct tree_undo *u, struct list *fired)
{
    struct keeper_op *op = u->op;

    switch (op->kind) {
    case KEEPER_CHECK: break;
    case KEEPER_CREATE:
        fire_created(t, op->created_path ? op->created_path : op->path, fired);
        fire(&u->node->parent->child_watches, KEEPER_CHILDREN_CHANGED, fired);
        break;
    case KEEPER_SET: fire(&u->node->watches, KEEPER_NODE_CHANGED, fired); break;
    case KEEPER_DELETE: fire_deleted(u->node, fired); break;
    }
}

void tree_watch(struct tree_node *n, struct keeper_watch *w)
{
    list_push_back(&n->watches, &w->_node);
}

void tree_watch_children(struct tree_node *n, struct keeper_watch *w)
{
    list_push_back(&n->child_watches, &w->_node);
}

void tree_watch_absent(struct tree *t, const char *path, struct keeper_watch *w)
{
    w->_path = xstrdup(path);
    list_push_back(&t->absent, &w->_node);
}

void tree_unwatch(struct keeper_watch *w)
{
    list_remove(&w->_node);
    free(w->_path);
    w->_path = NULL;
}

/* ---- Multi. */

static void multi_take_back(struct tree *t, struct tree_undo *undo, int applied, int op_count)
{
    struct keeper_op *ops = undo[0].op;

    for (int i = applied - 1; i >= 0; i--)
        op_take_back(t, &undo[i]);
    for (int i = 0; i < op_count; i++) {
        free(ops[i].created_path);
        ops[i].created_path = NULL;
        ops[i].stat = (struct keeper_stat){0};
        if (i != applied)
            ops[i].err = ERR_CANCELLED;
    }
}

static void multi_keep(struct tree *t, struct tree_undo *undo, int op_count, struct list *fired)
{
    bool has_changed = false;

    for (int i = 0; i < op_count; i++) {
        has_changed |= undo[i].op->kind != KEEPER_CHECK;
        op_fire(t, &undo[i], fired);
    }
    for (int i = 0; i < op_count; i++) {
        if (undo[i].op->kind == KEEPER_SET)
            tree_data_free(undo[i].before.data);
        if (undo[i].op->kind == KEEPER_DELETE)
            node_free(undo[i].node);
    }
    t->zxid += has_changed;
}

enum err tree_multi(struct tree *t, struct tree_session *s, struct keeper_op *ops, int op_count,
                    int *failed, struct list *fired)
{
    struct tree_undo *undo = xcalloc((size_t)op_count, sizeof(*undo));
    enum err err = ERR_NONE;
    int i;

    assert(op_count > 0);
    *failed = -1;
    for (i = 0; i < op_count && !err; i++) {
        ops[i].created_path = NULL;
        undo[i].op = &ops[i];
        err = ops[i].err = op_apply(t, s, &undo[i]);
        if (!err && ops[i].kind != KEEPER_DELETE)
            ops[i].stat = tree_stat(undo[i].node);
    }
    if (err) {
        *failed = i - 1;
        for (; i < op_count; i++)
            ops[i].created_path = NULL;
        multi_take_back(t, undo, *failed, op_count);
    } else {
        multi_keep(t, undo, op_count, fired);
    }
    free(undo);
    return err;
}

void tree_end_session(struct tree *t, struct tree_session *s, struct list *fired)
{
    struct list *l;

    t->zxid += !list_is_empty(&s->nodes);
    while ((l = list_pop_front(&s->nodes))) {
        struct tree_node *node = LIST_ENTRY(l, struct tree_node, owned);

        assert(node->child_count == 0);
        child_detach(t, node);
        fire_deleted(node, fired);
        node_free(node);
    }
}

/* ---- Reading, loading, life. */

struct keeper_stat tree_stat(const struct tree_node *n)
{
    return (struct keeper_stat){
        .created_zxid = n->rec.created_zxid,
        .modified_zxid = n->rec.modified_zxid,
        .version = n->rec.version,
        .children_version = 2 * n->rec.child_creates - n->child_count,
        .children_count = n->child_count,
        .ephemeral_owner = n->owner,
    };
}

char **tree_children(const struct tree_node *n)
{
    char **names = n->child_count ? xcalloc((size_t)n->child_count, sizeof(*names)) : NULL;

    for (int32_t i = 0; i < n->child_count; i++)
        names[i] = xstrdup(n->children[i]->name);
    return names;
}

static void node_load(struct tree *t, struct tree_node *node, const struct tree_record *from)
{
    tree_data_free(node->rec.data);
    node->rec = *from;
    node->rec.data = tree_data_copy(from->data);
    t->zxid = MAX(t->zxid, MAX(from->created_zxid, from->modified_zxid));
}

enum err tree_load(struct tree *t, const char *path, const struct tree_record *from)
{
    if (!tree_path_is_valid(path) || from->data.n > KEEPER_DATA_BYTES_MAX ||
        from->child_creates < 0 || from->version < 0)
        return ERR_CORRUPT;
    if (strcmp(path, "/") == 0) {
        node_load(t, t->root, from);
        return ERR_NONE;
    }
    struct tree_node *parent = tree_find_parent(t, path);
    struct str name = str_of(strrchr(path, '/') + 1);

    if (!parent || parent->child_count >= parent->rec.child_creates || child_find(parent, name))
        return ERR_CORRUPT;
    struct tree_node *node = node_new(name.p, (size_t)name.n);

    node_load(t, node, from);
    child_attach(t, parent, node);
    return ERR_NONE;
}

void tree_init(struct tree *t)
{
    *t = (struct tree){.root = node_new("", 0), .node_count = 1};
    list_init(&t->absent);
}

/* Goes down to the last leaf and frees it until the root is one: no recursion. */
void tree_fini(struct tree *t)
{
    struct tree_node *node = t->root;

    while (node) {
        if (node->child_count > 0) {
            node = node->children[node->child_count - 1];
            continue;
        }
        struct tree_node *parent = node->parent;

        if (parent)
            parent->child_count--;
        node_free(node);
        node = parent;
    }
    t->root = NULL;
}
