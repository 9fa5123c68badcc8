/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a crash may leave half done in a partition directory, by the names of files (Kafka's rules):
 *
 *   .deleted   doomed: removed
 *   .cleaned   a compaction that was not complete: removed, and with it every .swap from the lowest
 *              such base on, since their set is not whole
 *   .swap      complete and about to take the place of what it was made from: everything in its
 *   range
 *              of offsets is removed, then it is renamed
 *   .index, .timeindex, .txnindex without a .log: removed
 *   .tmp       a file that was about to replace another: removed
 *
 * Every step may be repeated after another crash. Our own `.cut` files are left alone.
 */
#include "base/alloc.h"
#include "log/log_int.h"

static enum err unlink_in(struct io *io, const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    enum err err = io_path_unlink(io, path);

    free(path);
    return err == ERR_NOT_FOUND ? ERR_NONE : err;
}

/* The number before the first dot; -1. */
static int64_t stem_of(const char *name)
{
    int64_t offset;
    const char *dot = strchr(name, '.');

    return dot && offset_name_parse(name, dot, &offset) ? offset : -1;
}

static enum err remove_ending(struct io *io, const char *dir, const struct io_names *names,
                              const char *suffix, int64_t from)
{
    for (size_t i = 0; i < names->n; i++) {
        enum err err = ERR_NONE;
        if (name_ends_with(names->v[i], suffix) && stem_of(names->v[i]) >= from)
            err = unlink_in(io, dir, names->v[i]);
        if (err)
            return err;
    }
    return ERR_NONE;
}

/* -1 when there is none. */
static int64_t lowest_ending(const struct io_names *names, const char *suffix)
{
    for (size_t i = 0; i < names->n; i++) {
        if (name_ends_with(names->v[i], suffix) && stem_of(names->v[i]) >= 0)
            return stem_of(names->v[i]);
    }
    return -1;
}

static enum err undo_cleaned(struct io *io, const char *dir)
{
    struct io_names names;
    int64_t lowest;
    enum err err = io_dir_list(io, dir, &names);

    if (err)
        return err;
    lowest = lowest_ending(&names, ".cleaned");
    err = remove_ending(io, dir, &names, ".deleted", 0);
    if (!err && lowest >= 0)
        err = remove_ending(io, dir, &names, ".swap", lowest);
    if (!err)
        err = remove_ending(io, dir, &names, ".cleaned", 0);
    io_names_free(&names);
    return err;
}

/* The offset behind the last batch of a swapped log file. */
static enum err swap_end(struct io *io, const char *dir, const char *name, int64_t *end)
{
    char *path = xasprintf("%s/%s", dir, name);
    struct header_walk w;
    struct io_file *f;
    struct io_stat st;
    enum err err = io_file_open(io, path, IO_OPEN_READ, &f);

    free(path);
    *end = stem_of(name);
    if (err)
        return err;
    err = io_file_stat(f, &st);
    if (!err) {
        header_walk_init(&w, f, 0, st.size, LOG_BLOCKING);
        while (!(err = header_walk_next(&w)))
            *end = batch_last_offset(&w.header) + 1;
    }
    io_file_unref(f);
    return err == ERR_EOF ? ERR_NONE : err;
}

static bool is_replaced(const char *name, int64_t low, int64_t high)
{
    int64_t stem = stem_of(name);

    return stem >= low && stem < high && !name_ends_with(name, ".swap") &&
           !name_ends_with(name, CUT_SUFFIX);
}

static enum err make_room(struct io *io, const char *dir, const struct io_names *names)
{
    int64_t low = lowest_ending(names, ".log.swap");
    int64_t high = -1;
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < names->n; i++) {
        int64_t end = -1;
        if (name_ends_with(names->v[i], ".log.swap"))
            err = swap_end(io, dir, names->v[i], &end);
        high = MAX(high, end);
    }
    for (size_t i = 0; !err && i < names->n; i++) {
        if (is_replaced(names->v[i], low, high))
            err = unlink_in(io, dir, names->v[i]);
    }
    return err;
}

static enum err finish_swap(struct io *io, const char *dir)
{
    struct io_names names;
    enum err err = io_dir_list(io, dir, &names);

    if (err)
        return err;
    err = make_room(io, dir, &names);
    for (size_t i = 0; !err && i < names.n; i++) {
        char *from = xasprintf("%s/%s", dir, names.v[i]);
        char *to = xstrdup(from);
        if (name_ends_with(from, ".swap") && stem_of(names.v[i]) >= 0) {
            to[strlen(to) - strlen(".swap")] = '\0';
            err = io_path_rename(io, from, to);
        }
        free(from);
        free(to);
    }
    io_names_free(&names);
    return err ? err : io_dir_sync(io, dir);
}

static bool is_orphan(const struct io_names *names, size_t at)
{
    static const char *const suffixes[] = {INDEX_SUFFIX, TIMEINDEX_SUFFIX, TXNINDEX_SUFFIX};
    const char *name = names->v[at];
    bool is_index = false;
    int64_t stem = stem_of(name);
    int64_t other;

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        is_index |= offset_name_parse(name, suffixes[i], &other);
    for (size_t i = 0; is_index && i < names->n; i++) {
        if (offset_name_parse(names->v[i], LOG_SUFFIX, &other) && other == stem)
            return false;
    }
    return is_index;
}

static enum err remove_orphans(struct io *io, const char *dir, const struct io_names *names)
{
    enum err err = ERR_NONE;

    for (size_t i = 0; !err && i < names->n; i++) {
        if (is_orphan(names, i) || name_ends_with(names->v[i], ".tmp"))
            err = unlink_in(io, dir, names->v[i]);
    }
    return err;
}

static bool has_swap(const struct io_names *names)
{
    return lowest_ending(names, ".swap") >= 0 || lowest_ending(names, ".cleaned") >= 0 ||
           lowest_ending(names, ".deleted") >= 0;
}

enum err leftovers_clear(struct io *io, const char *dir, struct io_names *names)
{
    enum err err = io_dir_list(io, dir, names);

    if (!err && has_swap(names)) {
        io_names_free(names);
        err = undo_cleaned(io, dir);
        if (!err)
            err = finish_swap(io, dir);
        if (!err)
            err = io_dir_list(io, dir, names);
    }
    return err ? err : remove_orphans(io, dir, names);
}
