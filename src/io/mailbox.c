/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Senders push on a stack, the receiver takes the whole stack at once and turns it round. Because
 * nobody takes a single element, the stack has no ABA problem, and a sender never waits: its loop
 * repeats only when another sender was faster.
 *
 * The operations are sequentially consistent on purpose. A sender puts and then looks whether the
 * receiver sleeps; the receiver says that it sleeps and then looks whether the mailbox is empty.
 * One of them must see the other, which weaker orders do not give.
 */
#include "io/mailbox.h"

bool mailbox_put(struct mailbox *box, struct io_msg *msg)
{
    struct io_msg *newest = atomic_load(&box->newest);

    do {
        msg->_next = newest;
    } while (!atomic_compare_exchange_weak(&box->newest, &newest, msg));
    return newest == NULL;
}

struct io_msg *mailbox_take(struct mailbox *box)
{
    struct io_msg *stack = atomic_exchange(&box->newest, NULL);
    struct io_msg *chain = NULL;

    while (stack) {
        struct io_msg *older = stack->_next;

        stack->_next = chain;
        chain = stack;
        stack = older;
    }
    return chain;
}

bool mailbox_is_empty(const struct mailbox *box)
{
    return atomic_load(&box->newest) == NULL;
}
