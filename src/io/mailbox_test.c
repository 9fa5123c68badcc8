/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between threads, with real threads pushing as fast as they can. */
#include "io/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

#define SENDERS 3
#define MESSAGES 20000

struct sender {
    struct mailbox *box;
    pthread_t thread;
    struct numbered {
        struct io_msg msg;
        int sender;
        int number;
    } * v;
};

static void *send_all(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < MESSAGES; i++)
        mailbox_put(s->box, &s->v[i].msg);
    return NULL;
}

static void start_senders(struct mailbox *box, struct sender *senders)
{
    for (int i = 0; i < SENDERS; i++) {
        senders[i].box = box;
        senders[i].v = xcalloc(MESSAGES, sizeof(*senders[i].v));
        for (int n = 0; n < MESSAGES; n++) {
            senders[i].v[n].sender = i;
            senders[i].v[n].number = n;
        }
        pthread_create(&senders[i].thread, NULL, send_all, &senders[i]);
    }
}

static void many_senders_lose_nothing_and_keep_their_order(void **state)
{
    struct mailbox box = {0};
    struct sender senders[SENDERS];
    int next[SENDERS] = {0};
    int left = SENDERS * MESSAGES;

    (void)state;
    start_senders(&box, senders);
    while (left > 0) {
        struct io_msg *chain = mailbox_take(&box);
        struct io_msg *msg;

        while ((msg = io_msg_take(&chain))) {
            struct numbered *m = CONTAINER_OF(msg, struct numbered, msg);

            assert_int_equal(m->number, next[m->sender]++);
            left--;
        }
    }
    assert_true(mailbox_is_empty(&box));
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        free(senders[i].v);
    }
}

static void putting_tells_whether_the_mailbox_was_empty(void **state)
{
    struct mailbox box = {0};
    struct io_msg a = {0};
    struct io_msg b = {0};
    struct io_msg *chain;

    (void)state;
    assert_null(mailbox_take(&box));
    assert_true(mailbox_put(&box, &a));
    assert_false(mailbox_put(&box, &b));
    assert_false(mailbox_is_empty(&box));
    chain = mailbox_take(&box);
    assert_ptr_equal(io_msg_take(&chain), &a);
    assert_ptr_equal(io_msg_take(&chain), &b);
    assert_null(io_msg_take(&chain));
    assert_true(mailbox_put(&box, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_senders_lose_nothing_and_keep_their_order),
        cmocka_unit_test(putting_tells_whether_the_mailbox_was_empty),
    };

    return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
