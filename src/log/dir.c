/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log directory: opening, closing, and what it remembers.
 *
 * Opening goes in an order that a crash at any point forgives: lock, identity, then the clean-stop
 * marker is removed before anything else is touched, so that a life that ends now counts as
 * unclean. Checkpoints are read once; what they said is kept unchanged for the loads, a copy is the
 * checkpoint lane's to change. A partition is loaded at most once between opening and closing.
 *
 * Closing writes the marker only if every log that was found or made has left cleanly.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "log/dir_int.h"

#define KRAFT_TOPIC "__cluster_metadata"
#define CHECKPOINT_BYTES_MAX ((size_t)1 << 30)

struct opening {
    struct log_dir *dir;
    const struct log_dir_identity *identity;
    struct log_dir_found *found;
    char **message;
};

static char *file_path(const struct log_dir *dir, const char *name)
{
    return xasprintf("%s/%s", dir->path, name);
}

/* Says what went wrong once, and passes the error on. */
static enum err say(struct opening *o, enum err err, const char *name, const char *what)
{
    if (err && !*o->message)
        *o->message = xasprintf("%s/%s: %s (%s)", o->dir->path, name, what, err_text(err));
    return err;
}

/* ---- Steps of opening ------------------------------------------------------------------- */

/* Makes one directory, and its name durable: it may be there from a life that ended before that. */
static enum err make_one(struct io *io, const char *path, bool is_last)
{
    const char *slash = strrchr(path, '/');
    char *parent = !slash ? xstrdup(".") : xstrndup(path, (size_t)MAX(slash - path, 1));
    enum err err = io_dir_make(io, path);

    if (!err || (err == ERR_EXISTS && is_last)) {
        err = io_dir_sync(io, parent);
        if (err == ERR_ACCESS && is_last)
            err = ERR_NONE; /* Somebody else's directory around ours may be closed to us. */
    }
    if (err == ERR_EXISTS)
        err = ERR_NONE;
    free(parent);
    return err;
}

/* Makes the directory and those above it. */
static enum err make_path(struct io *io, const char *path)
{
    char *p = xstrdup(path);
    enum err err = ERR_NONE;

    for (char *slash = strchr(p + 1, '/'); slash && !err; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        err = make_one(io, p, false);
        *slash = '/';
    }
    if (!err)
        err = make_one(io, p, true);
    free(p);
    return err;
}

static enum err take_lock(struct opening *o)
{
    char *path = file_path(o->dir, LOCK_NAME);
    enum err err = io_lock_take(o->dir->io, path, &o->dir->lock);

    free(path);
    if (err == ERR_LOCKED)
        return say(o, err, LOCK_NAME, "another broker uses this directory: stop it first");
    return say(
        o, err, LOCK_NAME,
        "cannot write it: let this user write here, or choose another directory in 'log.dirs'");
}

static enum err read_meta(struct opening *o, struct meta_properties *m)
{
    char *path = file_path(o->dir, META_NAME);
    char *text;
    size_t n;
    enum err err = io_file_read_all(o->dir->io, path, 65536, &text, &n);

    free(path);
    *m = (struct meta_properties){.node_id = -1};
    if (err == ERR_NOT_FOUND)
        return ERR_NONE;
    if (err)
        return say(o, err, META_NAME, "cannot read it");
    err = meta_properties_parse((struct str){.p = text, .n = (int32_t)n}, m);
    free(text);
    return say(o, err, META_NAME, "not a meta.properties that this version understands");
}

static enum err write_meta(struct opening *o, const struct meta_properties *m)
{
    char *path = file_path(o->dir, META_NAME);
    struct buf text;
    enum err err;

    buf_init(&text);
    meta_properties_format(m, &text);
    err = io_file_replace(o->dir->io, path, buf_bytes(&text, 0));
    buf_fini(&text);
    free(path);
    return say(o, err, META_NAME, "cannot write it");
}

static enum err check_identity(struct opening *o, const struct meta_properties *m)
{
    const struct log_dir_identity *want = o->identity;

    if (m->cluster_id && !str_is_null(want->cluster_id) &&
        !str_eq_c(want->cluster_id, m->cluster_id)) {
        *o->message = xasprintf("%s belongs to cluster %s, not to %.*s: choose another directory",
                                o->dir->path, m->cluster_id, STR_ARG(want->cluster_id));
        return ERR_INVALID_ARG;
    }
    if (m->node_id >= 0 && want->node_id >= 0 && m->node_id != want->node_id) {
        *o->message = xasprintf("%s belongs to node %d, not to %d: check node.id or log.dirs",
                                o->dir->path, m->node_id, want->node_id);
        return ERR_INVALID_ARG;
    }
    return ERR_NONE;
}

/* Adds what the directory does not know yet; true when that is something. */
static bool complete_identity(struct opening *o, struct meta_properties *m)
{
    bool added = false;

    if (!m->cluster_id && !str_is_null(o->identity->cluster_id_new)) {
        m->cluster_id = str_dup(o->identity->cluster_id_new);
        added = true;
    }
    if (m->node_id < 0 && o->identity->node_id_new >= 0) {
        m->node_id = o->identity->node_id_new;
        added = true;
    }
    if (uuid_is_zero(m->directory_id)) {
        uint64_t random[2];
        io_random(o->dir->io, random, sizeof(random));
        m->directory_id = uuid_from_random(random[0], random[1]);
        added = true;
    }
    return added;
}

/*
 * A life that was killed may have left a name behind that is not on the device. Other directories
 * are about to take this identity: it must not be another one after the next power cut.
 */
static enum err keep_meta(struct opening *o)
{
    return say(o, io_dir_sync(o->dir->io, o->dir->path), META_NAME, "cannot sync the directory");
}

static enum err settle_identity(struct opening *o)
{
    struct meta_properties m;
    enum err err = read_meta(o, &m);

    if (!err)
        err = check_identity(o, &m);
    if (!err)
        err = complete_identity(o, &m) ? write_meta(o, &m) : keep_meta(o);
    if (!err) {
        o->dir->id = m.directory_id;
        o->found->node_id = m.node_id;
        o->found->cluster_id = m.cluster_id;
        m.cluster_id = NULL;
    }
    meta_properties_fini(&m);
    return err;
}

static enum err take_marker(struct opening *o)
{
    char *path = file_path(o->dir, CLEAN_NAME);
    enum err err = io_path_unlink(o->dir->io, path);

    free(path);
    o->dir->was_clean = o->found->clean = err == ERR_NONE;
    if (err == ERR_NOT_FOUND)
        return ERR_NONE;
    if (!err)
        err = io_dir_sync(o->dir->io, o->dir->path);
    return say(o, err, CLEAN_NAME, "cannot remove the marker of the last clean stop");
}

static enum err read_checkpoint(struct opening *o, const char *name, struct checkpoint *known,
                                struct checkpoint *now)
{
    char *path = file_path(o->dir, name);
    struct str s = {.p = "", .n = 0};
    char *text = NULL;
    size_t n = 0;
    enum err err = io_file_read_all(o->dir->io, path, CHECKPOINT_BYTES_MAX, &text, &n);

    free(path);
    if (err == ERR_NOT_FOUND)
        err = ERR_NONE;
    else if (!err)
        s = (struct str){.p = text, .n = (int32_t)n};
    if (!err)
        err = checkpoint_parse(s, known);
    if (!err)
        err = checkpoint_parse(s, now);
    free(text);
    return say(o, err, name, "unusable; remove it to have every log read from its start");
}

static enum err read_checkpoints(struct opening *o)
{
    struct log_dir *d = o->dir;
    enum err err = read_checkpoint(o, POINTS_NAME, &d->known.points, &d->now.points);

    if (!err)
        err = read_checkpoint(o, MARKS_NAME, &d->known.marks, &d->now.marks);
    if (!err)
        err = read_checkpoint(o, STARTS_NAME, &d->known.starts, &d->now.starts);
    if (!err)
        err = read_checkpoint(o, CLEANED_NAME, &d->known.cleaned, &d->now.cleaned);
    return err;
}

/* ---- Partitions ------------------------------------------------------------------------- */

static enum err read_topic_id(struct opening *o, const char *name, struct uuid *id)
{
    char *path = xasprintf("%s/%s/partition.metadata", o->dir->path, name);
    char *text;
    size_t n;
    enum err err = io_file_read_all(o->dir->io, path, 4096, &text, &n);

    free(path);
    *id = uuid_zero();
    if (err == ERR_NOT_FOUND)
        return ERR_NONE;
    if (err)
        return say(o, err, name, "cannot read partition.metadata");
    err = partition_metadata_parse((struct str){.p = text, .n = (int32_t)n}, id);
    free(text);
    return say(o, err, name, "partition.metadata is damaged");
}

static enum err look_at(struct opening *o, const char *name)
{
    struct log_dir_found *f = o->found;
    struct log_partition_name p;
    char *path = xasprintf("%s/%s", o->dir->path, name);
    struct io_stat st;
    enum err err = io_path_stat(o->dir->io, path, &st);

    if (err != ERR_NOT_FOUND)
        err = say(o, err, name, "cannot look at it");
    if (!err && st.is_dir && partition_dir_is_doomed(name))
        err = say(o, remove_partition_dir(o->dir->io, path), name,
                  "cannot finish the deletion of this partition");
    free(path);
    if (err || !st.is_dir || strcmp(name, KRAFT_TOPIC "-0") == 0 ||
        !partition_dir_parse(name, &p.topic, &p.partition))
        return err == ERR_NOT_FOUND ? ERR_NONE : err;
    f->v[f->n++] = p;
    return read_topic_id(o, name, &f->v[f->n - 1].topic_id);
}

static int compare_partitions(const void *a, const void *b)
{
    const struct log_partition_name *x = a;
    const struct log_partition_name *y = b;
    int order = strcmp(x->topic, y->topic);

    return order ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

static enum err list_partitions(struct opening *o)
{
    struct io_names names;
    enum err err = io_dir_list(o->dir->io, o->dir->path, &names);

    if (err)
        return say(o, err, "", "cannot list the directory");
    o->found->v = xcalloc(names.n + 1, sizeof(*o->found->v));
    for (size_t i = 0; !err && i < names.n; i++)
        err = look_at(o, names.v[i]);
    io_names_free(&names);
    if (o->found->n > 0)
        qsort(o->found->v, o->found->n, sizeof(*o->found->v), compare_partitions);
    o->dir->found_count = o->found->n;
    return err;
}

static enum err look_whether_new(struct opening *o)
{
    struct io_names names;
    enum err err = io_dir_list(o->dir->io, o->dir->path, &names);

    if (err)
        return say(o, err, "", "cannot list the directory");
    o->found->is_new = names.n == 0;
    io_names_free(&names);
    return ERR_NONE;
}

/* ---- Directories that belong to no topic ------------------------------------------------- */

enum err log_dir_set_aside(struct log_dir *dir, const char *topic, int32_t partition)
{
    char *live = partition_dir_name(topic, partition);
    char *from = xasprintf("%s/%s", dir->path, live);
    uint64_t random[2];
    char *name;
    char *to;
    enum err err;

    io_random(dir->io, random, sizeof(random));
    name = partition_dir_stray_name(topic, partition, uuid_from_random(random[0], random[1]));
    to = xasprintf("%s/%s", dir->path, name);
    err = io_path_rename(dir->io, from, to);
    if (!err)
        err = io_dir_sync(dir->io, dir->path);
    free(live);
    free(from);
    free(name);
    free(to);
    return err;
}

/* ---- Public ----------------------------------------------------------------------------- */

static void dir_free(struct log_dir *dir)
{
    if (dir->lane)
        io_lane_free(dir->lane);
    if (dir->journal)
        journal_free(dir->journal);
    if (dir->lock)
        io_lock_release(dir->lock);
    dir_graves_free(dir);
    checkpoints_fini(&dir->known);
    checkpoints_fini(&dir->now);
    free(dir->path);
    free(dir);
}

static bool is_found(const struct log_dir_found *found, const struct checkpoint_entry *e)
{
    struct log_partition_name key = {.topic = e->topic, .partition = e->partition};

    if (strcmp(e->topic, KRAFT_TOPIC) == 0)
        return true; /* Another broker's business. */
    return found->n > 0 && bsearch(&key, found->v, found->n, sizeof(key), compare_partitions);
}

/* Entries without a directory: true when there were any. */
static bool drop_absent(struct checkpoint *c, const struct log_dir_found *found)
{
    bool dropped = false;

    for (size_t i = c->n; i > 0; i--)
        if (!is_found(found, &c->v[i - 1]))
            dropped |= checkpoint_remove(c, c->v[i - 1].topic, c->v[i - 1].partition);
    return dropped;
}

/*
 * A crash in the middle of a deletion leaves entries of a log that is gone. A log of the same name
 * that is made later must not be taken for it: it would be damaged, or begin above its own records
 * and be emptied. So they are gone from the device before anything can be made.
 */
static void forget_absent(struct log_dir *dir, const struct log_dir_found *found)
{
    bool points = drop_absent(&dir->now.points, found);
    bool starts = drop_absent(&dir->now.starts, found);
    bool marks = drop_absent(&dir->now.marks, found);
    bool cleaned = drop_absent(&dir->now.cleaned, found);

    dir->points_dirty |= points;
    dir->starts_dirty |= starts;
    dir->marks_dirty |= marks;
    dir->cleaned_dirty |= cleaned;
    if (points || starts || marks || cleaned)
        checkpoints_write(dir);
}

static enum err open_steps(struct opening *o)
{
    enum err err = say(o, make_path(o->dir->io, o->dir->path), "",
                       "cannot make it: make it for this user, or choose another in 'log.dirs'");

    if (!err)
        err = look_whether_new(o);
    if (!err)
        err = take_lock(o);
    if (!err)
        err = take_marker(o);
    if (!err)
        err = settle_identity(o);
    if (!err)
        err = read_checkpoints(o);
    return err ? err : list_partitions(o);
}

enum err log_dir_open(struct io *io, const char *path, const struct log_dir_identity *identity,
                      struct log_dir **out, struct log_dir_found *found, char **message)
{
    struct log_dir *dir = xcalloc(1, sizeof(*dir));
    struct opening o = {.dir = dir, .identity = identity, .found = found, .message = message};
    enum err err;

    *out = NULL;
    *message = NULL;
    *found = (struct log_dir_found){.node_id = -1};
    dir->io = io;
    dir->path = xstrdup(path);
    list_init(&dir->cards);
    list_init(&dir->graves);
    err = open_steps(&o);
    if (err) {
        dir_free(dir);
        log_dir_found_free(found);
        return err;
    }
    /* What was read may be in the page cache alone: the first round writes it again. */
    dir->points_dirty = dir->marks_dirty = dir->starts_dirty = !dir->was_clean && !found->is_new;
    dir->cleaned_dirty = !dir->was_clean && dir->now.cleaned.n > 0;
    dir->journal = journal_new(io, path);
    forget_absent(dir, found);
    dir->lane = io_lane_new(io, "checkpoint", checkpoints_run, dir);
    *out = dir;
    return ERR_NONE;
}

void log_dir_found_free(struct log_dir_found *found)
{
    for (size_t i = 0; i < found->n; i++)
        free(found->v[i].topic);
    free(found->v);
    free(found->cluster_id);
    *found = (struct log_dir_found){.node_id = -1};
}

static void write_marker(struct log_dir *dir)
{
    struct bytes text = {.p = (const uint8_t *)CLEAN_MARKER_TEXT,
                         .n = (int32_t)sizeof(CLEAN_MARKER_TEXT) - 1};
    char *path = file_path(dir, CLEAN_NAME);
    enum err err = io_file_replace(dir->io, path, text);

    if (err)
        trace_error("dir.marker", "path=%s error=%s", path, err_name(err));
    free(path);
}

/* Found logs that were never loaded are as the last clean stop left them, or as it did not. */
static bool is_clean(const struct log_dir *dir)
{
    bool all_loaded = dir->loaded_count >= dir->found_count;

    return dir->open_count == 0 && !dir->is_unclean && (all_loaded || dir->was_clean) &&
           !dir->points_dirty && !dir->starts_dirty && !dir->marks_dirty && !dir->cleaned_dirty;
}

void log_dir_close(struct log_dir *dir)
{
    io_lane_free(dir->lane);
    dir->lane = NULL;
    checkpoints_collect(dir);
    checkpoints_write(dir);
    if (is_clean(dir) && !journal_has_failed(dir->journal))
        write_marker(dir);
    dir_free(dir);
}

const char *log_dir_path(const struct log_dir *dir)
{
    return dir->path;
}

struct uuid log_dir_id(const struct log_dir *dir)
{
    return dir->id;
}

bool log_dir_has_failed(const struct log_dir *dir)
{
    return journal_has_failed(dir->journal);
}

bool log_dir_has_space(const struct log_dir *dir)
{
    return journal_has_space(dir->journal);
}

void log_dir_stats(const struct log_dir *dir, struct journal_stats *out,
                   struct latency_figures *sync)
{
    journal_stats_read(dir->journal, out);
    journal_sync_figures(dir->journal, sync);
}

struct journal *dir_journal(struct log_dir *dir)
{
    return dir->journal;
}

struct dir_known dir_known(const struct log_dir *dir, const char *topic, int32_t partition)
{
    return (struct dir_known){
        .has_point = checkpoint_get(&dir->known.points, topic, partition, -1) >= 0,
        .recovery_point = checkpoint_get(&dir->known.points, topic, partition, 0),
        .high_watermark = checkpoint_get(&dir->known.marks, topic, partition, 0),
        .log_start = checkpoint_get(&dir->known.starts, topic, partition, -1),
        .clean_offset = checkpoint_get(&dir->known.cleaned, topic, partition, -1),
        .clean = dir->was_clean,
    };
}
