/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign descriptors of a simulated process: numbers with a readiness that the test sets. A watch
 * completes when what it asks for meets what the number is ready for, at once or when that
 * changes.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/sim/sim_int.h"

struct foreign {
    struct list node; /* of the process */
    int fd;
    unsigned ready;
    struct watched *watched; /* NULL: by nobody */
};

struct watched {
    struct foreign *of;
    struct io_watch *watch;
    unsigned events;
};

static struct foreign *find(struct io *io, int fd)
{
    LIST_EACH (node, &io->foreign) {
        struct foreign *f = LIST_ENTRY(node, struct foreign, node);

        if (f->fd == fd)
            return f;
    }
    return NULL;
}

void sim__watch_forget(struct io_watch *w)
{
    struct watched *entry = w->_entry;

    w->_entry = NULL;
    entry->of->watched = NULL;
    free(entry);
}

static void look(struct foreign *f)
{
    struct io_watch *w;

    if (!f->watched || !(f->watched->events & f->ready))
        return;
    w = f->watched->watch;
    w->ready = f->watched->events & f->ready;
    sim__watch_forget(w);
    sim__op_done(&w->op, ERR_NONE);
}

void io_watch(struct io_loop *loop, int fd, unsigned events, struct io_watch *w)
{
    struct foreign *f = find(loop->io, fd);

    if (!sim__call(loop->io))
        return;
    assert(f && !f->watched);
    assert(events && !(events & ~(unsigned)(IO_READABLE | IO_WRITABLE)));
    sim__op_begin(loop, &w->op, OP_WATCH);
    w->ready = 0;
    w->_entry = f->watched = xmalloc(sizeof(*f->watched));
    *f->watched = (struct watched){.of = f, .watch = w, .events = events};
    look(f);
}

int sim_foreign_new(struct io *io)
{
    struct foreign *f = xcalloc(1, sizeof(*f));

    f->fd = ++io->foreign_count;
    list_push_back(&io->foreign, &f->node);
    return f->fd;
}

void sim_foreign_set(struct io *io, int fd, unsigned ready)
{
    struct foreign *f = find(io, fd);

    assert(f);
    f->ready = ready;
    look(f);
}

void sim_foreign_close(struct io *io, int fd)
{
    struct foreign *f = find(io, fd);

    assert(f && !f->watched);
    list_remove(&f->node);
    free(f);
}

void sim__foreign_fini(struct io *io)
{
    LIST_EACH_SAFE (node, &io->foreign) {
        struct foreign *f = LIST_ENTRY(node, struct foreign, node);

        free(f->watched);
        free(f);
    }
}
