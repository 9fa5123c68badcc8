/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `strandline reassign start --wait`: in rounds, the controller is asked what is still moving, and
 * the brokers of that how many bytes they hold of it. A replica that is added is compared with the
 * largest of those that were there; records and bytes that arrive meanwhile move the goal.
 *
 * What is not listed any more has ended, but not always where it should: somebody may have
 * cancelled it. So at the end Metadata is asked, a few times, because a broker hears of a change a
 * little later than the controller makes it.
 *
 * A broker that does not say what it holds is no reason to end: it counts for nothing in that
 * round.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/reassign_int.h"

#define NS_PER_MS 1000000
#define ROUND_MS_MIN 50
#define ROUND_MS_MAX 1000
#define LINE_NS (INT64_C(5) * 1000 * NS_PER_MS) /* between lines, if it is no terminal */
#define SIZES_TIMEOUT_MS 3000
#define LATE_MAX 10

static int64_t now_ns(const struct reassign *s)
{
    return io_mono_ns(s->tool.io);
}

static bool is_waited_for(const struct move *m)
{
    return !m->err && !m->is_there;
}

/* ---- Progress. */

static void print_progress(struct reassign *s)
{
    bool is_terminal = isatty(STDERR_FILENO);
    int32_t all = 0;
    int32_t over = 0;
    int64_t held = 0;
    int64_t due = 0;

    if (!is_terminal && now_ns(s) < s->progress_ns)
        return;
    s->progress_ns = now_ns(s) + LINE_NS;
    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];

        all += is_waited_for(m);
        over += is_waited_for(m) && !reassign__ongoing(s, &m->at);
        held += MIN(m->held, m->size * m->adding);
        due += m->size * m->adding;
    }
    fprintf(stderr, "%s%d of %d partitions have moved", is_terminal ? "\r\033[K" : "", over, all);
    if (due > 0)
        fprintf(stderr, "; new replicas have %s of %s (%d%%)", bytes_text(&s->arena, held),
                bytes_text(&s->arena, due), (int)(100 * (double)held / (double)due));
    if (!is_terminal)
        fputc('\n', stderr);
    s->has_progress = is_terminal;
}

static void end_progress(struct reassign *s)
{
    if (s->has_progress)
        fprintf(stderr, "\r\033[K");
    s->has_progress = false;
}

/* ---- Rounds. */

static void next_round(struct client_alarm *alarm)
{
    struct reassign *s = CONTAINER_OF(alarm, struct reassign, alarm);

    admin_list_reassignments(s->tool.client, &s->list);
}

static void sleep_for(struct reassign *s, void (*ring)(struct client_alarm *alarm))
{
    int64_t ms = s->round < 5 ? ROUND_MS_MIN << s->round : ROUND_MS_MAX;

    s->round++;
    s->alarm.ring = ring;
    client_alarm_set(s->tool.client, &s->alarm, now_ns(s) + ms * NS_PER_MS);
}

static void add_size(struct reassign *s, struct str topic,
                     const struct describe_log_dirs_response_partition *p)
{
    struct admin_partition key = {topic, p->partition_index};
    struct move *m = bsearch(&key, s->moves, (size_t)s->move_count, sizeof(*m), partition_compare);
    const struct ongoing *now = m ? reassign__ongoing(s, &key) : NULL;

    if (!now || p->is_future_key)
        return;
    if (ids_have(now->adding.v, now->adding.n, s->asked[s->asked_at]))
        m->held += p->partition_size;
    else
        m->size = MAX(m->size, p->partition_size);
}

static void ask_next(struct reassign *s);

static void sizes_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, dirs);
    const struct describe_log_dirs_response *r = op->response;

    for (int32_t d = 0; !op->err && d < r->results.n; d++)
        for (int32_t t = 0; t < r->results.v[d].topics.n; t++) {
            const struct describe_log_dirs_response_topic *topic = &r->results.v[d].topics.v[t];

            for (int32_t i = 0; i < topic->partitions.n; i++)
                add_size(s, topic->name, &topic->partitions.v[i]);
        }
    s->asked_at++;
    ask_next(s);
}

/* The next broker that has something to do with what still moves, or the next round. */
static void ask_next(struct reassign *s)
{
    struct admin_partition *v = xcalloc((size_t)s->ongoing_count + 1, sizeof(*v));
    int32_t n = 0;

    for (; s->asked_at < s->asked_count && n == 0; s->asked_at += n == 0)
        for (int32_t i = 0; i < s->ongoing_count; i++)
            if (ids_have(s->ongoing[i].replicas.v, s->ongoing[i].replicas.n, s->asked[s->asked_at]))
                v[n++] = s->ongoing[i].at;
    s->dirs.done = sizes_described;
    if (n > 0)
        admin_describe_log_dirs(s->tool.client, &s->dirs, s->asked[s->asked_at], v, n);
    free(v);
    if (n > 0)
        return;
    print_progress(s);
    sleep_for(s, next_round);
}

/* ---- The end. */

static void ask_topics(struct client_alarm *alarm)
{
    struct reassign *s = CONTAINER_OF(alarm, struct reassign, alarm);

    admin_describe_topics(s->tool.client, &s->topics, s->names, s->name_count);
}

static bool has_arrived(const struct reassign *s, const struct move *m)
{
    const struct metadata_response_partition *p =
        topics_find_partition(s->topics.response, m->at.topic, m->at.partition);

    return p && reassign__same_ids((struct ids){p->replica_nodes.v, p->replica_nodes.n}, m->to);
}

static void finish(struct reassign *s)
{
    int32_t arrived = 0;
    int32_t failed = 0;

    for (int32_t i = 0; i < s->move_count; i++) {
        const struct move *m = &s->moves[i];

        if (is_waited_for(m) && has_arrived(s, m)) {
            arrived++;
        } else if (!m->is_there) {
            failed++;
            if (!m->err)
                fprintf(stderr,
                        "strandline reassign: %.*s-%d is not where it should be: its move was "
                        "cancelled or changed meanwhile; 'strandline topics describe' shows it\n",
                        STR_ARG(m->at.topic), m->at.partition);
        }
    }
    if (!s->tool.is_json)
        printf("%d of %d partitions have moved\n", arrived, arrived + failed);
    reassign__end(s, failed ? EXIT_FAILURE : EXIT_SUCCESS, s->ongoing_count);
}

static void topics_described(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, topics);
    bool is_over = s->late++ >= LATE_MAX;

    if (!tool_check(&s->tool, op, "look at topic"))
        return;
    topics_sort(op);
    for (int32_t i = 0; i < s->move_count && !is_over; i++)
        if (is_waited_for(&s->moves[i]) && !has_arrived(s, &s->moves[i])) {
            sleep_for(s, ask_topics);
            return;
        }
    finish(s);
}

static void listed(struct admin_op *op)
{
    struct reassign *s = CONTAINER_OF(op, struct reassign, list);
    bool is_over = true;

    if (op->err) {
        end_progress(s);
        tool_fail_err(&s->tool, op->err, str_null(),
                      "cannot ask how far the moves are, which go on ('strandline reassign list')");
        return;
    }
    reassign__take_list(s);
    for (int32_t i = 0; i < s->move_count; i++) {
        struct move *m = &s->moves[i];
        const struct ongoing *now = is_waited_for(m) ? reassign__ongoing(s, &m->at) : NULL;

        is_over = is_over && !now;
        if (!now) {
            m->held = m->size * m->adding;
            continue;
        }
        m->adding = now->adding.n;
        m->size = m->held = 0;
    }
    s->asked_at = 0;
    if (!is_over) {
        ask_next(s);
        return;
    }
    end_progress(s);
    s->round = 0;
    s->topics.done = topics_described;
    ask_topics(&s->alarm);
}

void reassign__wait(struct reassign *s)
{
    const struct describe_cluster_response *r = s->cluster.response;

    s->asked = xcalloc((size_t)MAX(r->brokers.n, 0) + 1, sizeof(*s->asked));
    for (int32_t i = 0; i < r->brokers.n; i++)
        s->asked[s->asked_count++] = r->brokers.v[i].broker_id;
    s->dirs.timeout_ms = MIN(s->tool.timeout_ms, SIZES_TIMEOUT_MS);
    s->progress_ns = now_ns(s) + LINE_NS;
    s->list.done = listed;
    next_round(&s->alarm);
}
