/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of other libraries. Unlike our own sockets, whose readiness is remembered between
 * edges, nothing is known of what their owner does with them. So each watch registers its
 * descriptor anew, and the kernel says at once what it is ready for now; with the first event it
 * is taken off again, before its owner may close it and the number may mean something else.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/real/real_int.h"

struct watched {
    struct source source;
    struct list node; /* of the loop's watches */
    struct io_watch *watch;
    int fd;
    unsigned events; /* enum io_watch_events */
};

static unsigned ready_of(uint32_t events)
{
    unsigned ready = 0;

    if (events & (EPOLLERR | EPOLLHUP))
        return IO_READABLE | IO_WRITABLE;
    if (events & EPOLLIN)
        ready |= IO_READABLE;
    if (events & EPOLLOUT)
        ready |= IO_WRITABLE;
    return ready;
}

void watch_forget(struct io_watch *w)
{
    struct watched *entry = w->_entry;

    if (!entry)
        return;
    w->_entry = NULL;
    epoll_ctl(w->op._loop->epoll_fd, EPOLL_CTL_DEL, entry->fd, NULL);
    list_remove(&entry->node);
    free(entry);
}

static void on_event(struct source *source, uint32_t events)
{
    struct watched *entry = CONTAINER_OF(source, struct watched, source);
    struct io_watch *w = entry->watch;

    w->ready = ready_of(events) & entry->events;
    watch_forget(w);
    op_ready(&w->op, ERR_NONE);
}

void io_watch(struct io_loop *loop, int fd, unsigned events, struct io_watch *w)
{
    struct watched *entry = xcalloc(1, sizeof(*entry));

    assert(events && !(events & ~(unsigned)(IO_READABLE | IO_WRITABLE)));
    op_begin(&w->op, loop, OP_WATCH);
    entry->source.on_event = on_event;
    entry->watch = w;
    entry->fd = fd;
    entry->events = events;
    list_push_back(&loop->watches, &entry->node);
    w->ready = 0;
    w->_entry = entry;
    loop_watch(loop, fd,
               (events & IO_READABLE ? EPOLLIN : 0u) | (events & IO_WRITABLE ? EPOLLOUT : 0u),
               &entry->source);
}

void watch_drop_all(struct io_loop *loop)
{
    LIST_EACH_SAFE (node, &loop->watches)
        free(LIST_ENTRY(node, struct watched, node));
}
