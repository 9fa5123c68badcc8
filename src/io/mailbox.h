/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_MAILBOX_H
#define SL_IO_MAILBOX_H

#include "io/io.h"

/*
 * A queue with many senders and one receiver, without a lock. Messages of one sender leave in the
 * order in which they were put. A zeroed mailbox is empty.
 */
struct mailbox {
    _Atomic(struct io_msg *) newest;
};

/* Any thread. True when the mailbox was empty: the receiver may be asleep. */
bool mailbox_put(struct mailbox *box, struct io_msg *msg);
/* Everything that is there, oldest first, linked through _next; NULL when empty. The receiver. */
struct io_msg *mailbox_take(struct mailbox *box);
bool mailbox_is_empty(const struct mailbox *box);

#endif
