/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_SIM_NET_INT_H
#define SL_IO_SIM_NET_INT_H

#include "io/sim/sim_int.h"

/* What dial.c (making connections) and stream.c (using them) share. */

/* One direction of a connection: bytes leave ends[from] and arrive at the other end. */
struct sim_pipe {
    struct sim_tcp *tcp;
    unsigned from;
    struct sim_task task; /* the first segment in flight arrives */
    struct list flight;   /* segments, in order */
    struct list arrived;  /* segments that nobody has received yet */
    size_t used;          /* bytes in both */
};

struct sim_end {
    struct sim_host *host;
    struct io_conn *conn; /* NULL: closed */
    bool has_eof;         /* the peer closed, and everything before that has arrived */
    bool is_reset;
};

/* A connection, freed when both ends are closed and nothing is in flight. */
struct sim_tcp {
    struct sim_world *world;
    struct list node;
    struct sim_end ends[2];
    struct sim_pipe pipes[2]; /* pipes[i] leaves ends[i] */
};

/* The handle of one end. */
struct io_conn {
    struct io *io;
    struct list node;     /* io->conns */
    struct io_loop *loop; /* NULL: not accepted yet */
    struct sim_tcp *tcp;  /* NULL: not connected yet, or closed */
    unsigned side;
    int refs; /* the owner's and one for each operation */
    struct io_recv *recv;
    struct io_send *send;
    uint16_t local_port;
    char local_host[IO_ADDR_TEXT_MAX];
    char local[IO_ADDR_TEXT_MAX];
    char peer[IO_ADDR_TEXT_MAX];
    struct list waiting; /* listener's backlog */
    /* While it is being made: */
    struct sim_task dial;
    struct io_connect *connect;
    struct sim_host *target;
    uint16_t target_port;
    bool is_loopback;
    int64_t deadline_ns;
};

struct io_conn *sim__conn_new(struct io *io, struct io_loop *loop);
void sim__conn_free(struct io_conn *conn);
/* Makes the two ends; the handles must not be connected. */
struct sim_tcp *sim__tcp_new(struct io_conn *client, struct io_conn *server);
/* The end is closed: what was sent arrives, then an end; or a reset, if asked or data is unread. */
void sim__end_close(struct sim_tcp *tcp, unsigned side, bool with_reset);
/* At the end of a process; how a dying one says goodbye. */
void sim__conns_drop(struct io *io, enum sim_crash how);
bool sim__net_is_cut(const struct sim_host *from, const struct sim_host *to);
int64_t sim__net_delay(const struct sim_host *from, const struct sim_host *to);

#endif
