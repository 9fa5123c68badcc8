/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the real implementation can show, because it needs the kernel, another process or real
 * threads: signals, idleness, running out of descriptors, locks against a foreign process, and
 * sockets that break in ways that a well-behaved peer does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/real/real_int.h"

#define MS INT64_C(1000000) /* nanoseconds */

struct fixture {
    struct io *io;
    struct io_loop *loop;
    int count;
};

static int begin(void **state)
{
    static struct fixture f;

    f = (struct fixture){.io = io_new(NULL)};
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    io_free(f->io);
    return 0;
}

static void run(struct fixture *f, void (*start)(void *ctx), void *ctx)
{
    f->loop = io_loop_new(f->io, "control", start, ctx);
    io_run(f->io);
}

/* ---- signals ----------------------------------------------------------------------------- */

struct signal_test {
    struct fixture *f;
    struct io_signal s;
    struct io_timer timer;
};

static void got_signal(struct io_op *op)
{
    struct signal_test *test = CONTAINER_OF(op, struct signal_test, s.op);

    assert_int_equal(op->err, ERR_NONE);
    if (test->f->count++ == 0) {
        assert_int_equal(test->s.signo, SIGTERM);
        io_signal_wait(test->f->loop, &test->s);
        kill(getpid(), SIGINT);
        return;
    }
    assert_int_equal(test->s.signo, SIGINT);
    io_stop(test->f->io);
}

static void send_term(struct io_op *op)
{
    (void)op;
    kill(getpid(), SIGTERM);
}

static void start_signals(void *ctx)
{
    struct signal_test *test = ctx;

    test->s.op.done = got_signal;
    test->timer.op.done = send_term;
    io_signal_wait(test->f->loop, &test->s);
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + MS);
}

static void sigterm_and_sigint_are_operations(void **state)
{
    struct signal_test test = {.f = *state};
    sigset_t mask;

    run(test.f, start_signals, &test);
    assert_int_equal(test.f->count, 2);
    io_free(test.f->io);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
    test.f->io = io_new(NULL);
}

/* ---- idleness ---------------------------------------------------------------------------- */

struct idle_test {
    struct fixture *f;
    struct io_timer timer;
    int64_t cpu_ns;
    long switches; /* how often the process gave up a processor of its own will */
};

static long voluntary_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void idle_over(struct io_op *op)
{
    struct idle_test *test = CONTAINER_OF(op, struct idle_test, timer.op);

    test->cpu_ns = io_cpu_ns(test->f->io) - test->cpu_ns;
    test->switches = voluntary_switches() - test->switches;
    io_stop(test->f->io);
}

static void idle_begins(struct io_op *op)
{
    struct idle_test *test = CONTAINER_OF(op, struct idle_test, timer.op);

    test->timer.op.done = idle_over;
    test->cpu_ns = io_cpu_ns(test->f->io);
    test->switches = voluntary_switches();
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + 300 * MS);
}

static void start_idle(void *ctx)
{
    struct idle_test *test = ctx;

    /* A moment first, in which the other loops start. */
    test->timer.op.done = idle_begins;
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + 50 * MS);
}

static void idle_loops_do_not_wake(void **state)
{
    struct idle_test test = {.f = *state};

    test.f->loop = io_loop_new(test.f->io, "control", start_idle, &test);
    io_loop_new(test.f->io, "one", NULL, NULL);
    io_loop_new(test.f->io, "two", NULL, NULL);
    io_run(test.f->io);
    /* A wake-up a millisecond would be 300; sanitizers have a thread of their own. */
    assert_true(test.switches < 100);
    assert_true(test.cpu_ns < 30 * MS);
}

/* ---- jobs -------------------------------------------------------------------------------- */

struct pair_of_jobs {
    struct fixture *f;
    struct io_job a;
    struct io_job b;
    pthread_barrier_t both;
};

static void meet_a(struct io_job *job)
{
    pthread_barrier_wait(&CONTAINER_OF(job, struct pair_of_jobs, a)->both);
}

static void meet_b(struct io_job *job)
{
    pthread_barrier_wait(&CONTAINER_OF(job, struct pair_of_jobs, b)->both);
}

static void a_met(struct io_job *job)
{
    struct pair_of_jobs *test = CONTAINER_OF(job, struct pair_of_jobs, a);

    if (++test->f->count == 2)
        io_stop(test->f->io);
}

static void b_met(struct io_job *job)
{
    struct pair_of_jobs *test = CONTAINER_OF(job, struct pair_of_jobs, b);

    if (++test->f->count == 2)
        io_stop(test->f->io);
}

static void start_meeting(void *ctx)
{
    struct pair_of_jobs *test = ctx;

    test->a.run = meet_a;
    test->a.done = a_met;
    test->b.run = meet_b;
    test->b.done = b_met;
    io_job_submit(test->f->loop, &test->a);
    io_job_submit(test->f->loop, &test->b);
}

static void two_jobs_run_at_once(void **state)
{
    struct pair_of_jobs test = {.f = *state};

    pthread_barrier_init(&test.both, NULL, 2);
    run(test.f, start_meeting, &test);
    pthread_barrier_destroy(&test.both);
}

static void stop_in_job(struct io_job *job)
{
    struct pair_of_jobs *test = CONTAINER_OF(job, struct pair_of_jobs, a);

    int64_t until = io_mono_ns(test->f->io) + 20 * MS;

    io_stop(test->f->io);
    /* Long enough for the loop to end before us. */
    while (io_mono_ns(test->f->io) < until)
        continue;
    test->f->count = 7;
}

/* Whether the loop still gets to it is open. */
static void maybe_done(struct io_job *job)
{
    (void)job;
}

static void start_stopping_job(void *ctx)
{
    struct pair_of_jobs *test = ctx;

    test->a.run = stop_in_job;
    test->a.done = maybe_done;
    io_job_submit(test->f->loop, &test->a);
}

static void io_run_returns_behind_a_running_job(void **state)
{
    struct pair_of_jobs test = {.f = *state};

    run(test.f, start_stopping_job, &test);
    assert_int_equal(test.f->count, 7);
}

/* ---- a foreign client -------------------------------------------------------------------- */

/* A blocking socket beside the loop, which does what a peer may do. */
struct foreign_test {
    struct fixture *f;
    struct io_listener *listener;
    struct io_accept a;
    struct io_recv r;
    struct io_timer timer;
    uint8_t got[16];
    int fd;
    struct rlimit limit;
};

static int connect_to(uint16_t port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static void open_listener(struct foreign_test *test, const char *host)
{
    assert_int_equal(io_listen(test->f->io, host, 0, 16, &test->listener), ERR_NONE);
    test->fd = connect_to(io_listener_port(test->listener));
}

static void start_accept(void *ctx)
{
    struct foreign_test *test = ctx;

    io_accept(test->f->loop, test->listener, &test->a);
}

static void recv_now(struct foreign_test *test)
{
    test->r.p = test->got;
    test->r.n = sizeof(test->got);
    io_recv(test->a.conn, &test->r);
}

static void recv_later(struct io_op *op)
{
    recv_now(CONTAINER_OF(op, struct foreign_test, timer.op));
}

/* The loop hears of bytes and end before anybody asks for them: there will be no further edge. */
static void accepted_finished_peer(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, a.op);

    test->timer.op.done = recv_later;
    io_timer_set(test->f->loop, &test->timer, io_loop_mono_ns(test->f->loop) + 5 * MS);
}

static void finished_peer_read(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, r.op);

    if (test->f->count++ == 0) {
        assert_int_equal(op->err, ERR_NONE);
        assert_int_equal(test->r.n, 3);
        recv_now(test);
        return;
    }
    assert_int_equal(op->err, ERR_EOF);
    io_stop(test->f->io);
}

static void an_end_that_came_with_the_bytes_is_seen(void **state)
{
    struct foreign_test test = {.f = *state};

    open_listener(&test, "127.0.0.1");
    test.a.op.done = accepted_finished_peer;
    test.r.op.done = finished_peer_read;
    assert_int_equal(send(test.fd, "end", 3, 0), 3);
    close(test.fd);
    run(test.f, start_accept, &test);
    assert_int_equal(test.f->count, 2);
}

static void accepted_to_be_reset(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, a.op);
    struct linger now = {.l_onoff = 1};

    recv_now(test);
    setsockopt(test->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(test->fd);
}

static void reset_read(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, r.op);

    assert_int_equal(op->err, ERR_RESET);
    test->f->count++;
    io_stop(test->f->io);
}

static void a_reset_is_told_from_an_end(void **state)
{
    struct foreign_test test = {.f = *state};

    open_listener(&test, "127.0.0.1");
    test.a.op.done = accepted_to_be_reset;
    test.r.op.done = reset_read;
    run(test.f, start_accept, &test);
    assert_int_equal(test.f->count, 1);
}

static void accepted_without_descriptors(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, a.op);

    setrlimit(RLIMIT_NOFILE, &test->limit);
    if (test->f->count++ == 0) {
        assert_int_equal(op->err, ERR_LIMIT);
        assert_null(test->a.conn);
        io_accept(test->f->loop, test->listener, &test->a);
        return;
    }
    assert_int_equal(op->err, ERR_NONE);
    io_stop(test->f->io);
}

static void start_without_descriptors(void *ctx)
{
    struct foreign_test *test = ctx;
    struct rlimit none = test->limit;

    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    start_accept(test);
}

static void without_descriptors_an_accept_can_be_repeated(void **state)
{
    struct foreign_test test = {.f = *state};

    open_listener(&test, "127.0.0.1");
    getrlimit(RLIMIT_NOFILE, &test.limit);
    test.a.op.done = accepted_without_descriptors;
    run(test.f, start_without_descriptors, &test);
    assert_int_equal(test.f->count, 2);
    close(test.fd);
}

static void accepted_on_both_families(struct io_op *op)
{
    struct foreign_test *test = CONTAINER_OF(op, struct foreign_test, a.op);
    char host[IO_ADDR_TEXT_MAX];
    uint16_t port;

    assert_int_equal(op->err, ERR_NONE);
    io_conn_local_host(test->a.conn, host, &port);
    assert_string_equal(host, "127.0.0.1");
    assert_memory_equal(io_conn_peer(test->a.conn), "127.0.0.1:", 10);
    io_stop(test->f->io);
}

static void an_ipv4_peer_of_an_ipv6_listener_has_an_ipv4_name(void **state)
{
    struct foreign_test test = {.f = *state};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    if (fd < 0)
        skip();
    close(fd);
    open_listener(&test, "::");
    test.a.op.done = accepted_on_both_families;
    run(test.f, start_accept, &test);
    close(test.fd);
}

/* ---- addresses and descriptors ------------------------------------------------------------ */

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

struct addrs_test {
    struct fixture *f;
    struct io_listener *listener;
    struct io_accept a;
    struct io_connect c;
    struct io_timer timer;
    struct addrs to;
};

static void connected_to_the_second(struct io_op *op)
{
    struct addrs_test *test = CONTAINER_OF(op, struct addrs_test, c.op);

    assert_int_equal(op->err, ERR_NONE);
    test->f->count++;
    io_stop(test->f->io);
}

static void start_connect_to_two(void *ctx)
{
    struct addrs_test *test = ctx;

    test->c.op.done = connected_to_the_second;
    connect_addrs(test->f->loop, &test->to, &test->c);
}

static void a_connect_goes_on_to_the_next_address(void **state)
{
    struct addrs_test test = {.f = *state};
    struct io_listener *gone;
    struct addrs second;
    enum err err;

    assert_int_equal(io_listen(test.f->io, "127.0.0.1", 0, 1, &gone), ERR_NONE);
    assert_int_equal(io_listen(test.f->io, "127.0.0.1", 0, 1, &test.listener), ERR_NONE);
    io_listener_close(gone);
    err = addrs_parse(&test.to, "127.0.0.1", io_listener_port(gone));
    assert_int_equal(err, ERR_NONE);
    err = addrs_parse(&second, "127.0.0.1", io_listener_port(test.listener));
    assert_int_equal(err, ERR_NONE);
    test.to.v[test.to.n++] = second.v[0];
    run(test.f, start_connect_to_two, &test);
    assert_int_equal(test.f->count, 1);
}

static void accepted_to_be_closed(struct io_op *op)
{
    struct addrs_test *test = CONTAINER_OF(op, struct addrs_test, a.op);
    int on = 0;
    socklen_t size = sizeof(on);

    getsockopt(test->a.conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, &size);
    assert_true(on);
    io_conn_close(test->a.conn);
    io_listener_close(test->listener);
    io_timer_set(test->f->loop, &test->timer, 0);
}

static void connected_to_be_closed(struct io_op *op)
{
    io_conn_close(CONTAINER_OF(op, struct addrs_test, c.op)->c.conn);
}

/* Both ends have been called back: only what the loop itself needs is open. */
static void all_closed(struct io_op *op)
{
    struct addrs_test *test = CONTAINER_OF(op, struct addrs_test, timer.op);

    if (io_op_is_pending(&test->c.op)) {
        io_timer_set(test->f->loop, &test->timer, 0);
        return;
    }
    assert_int_equal(count_descriptors(), test->f->count);
    io_stop(test->f->io);
}

static void start_to_close(void *ctx)
{
    struct addrs_test *test = ctx;
    struct io_listener *unused;

    test->f->count = count_descriptors();
    assert_int_equal(io_listen(test->f->io, "127.0.0.1", 0, 1, &unused), ERR_NONE);
    io_listener_close(unused);
    assert_int_equal(io_listen(test->f->io, "127.0.0.1", 0, 1, &test->listener), ERR_NONE);
    test->a.op.done = accepted_to_be_closed;
    test->c.op.done = connected_to_be_closed;
    test->timer.op.done = all_closed;
    io_accept(test->f->loop, test->listener, &test->a);
    io_connect(test->f->loop, "127.0.0.1", io_listener_port(test->listener), &test->c);
}

static void closing_gives_descriptors_back(void **state)
{
    struct addrs_test test = {.f = *state};

    run(test.f, start_to_close, &test);
}

/* ---- retired memory ----------------------------------------------------------------------- */

/* The reader stays in one turn until the writer has retired what it reads and taken more turns. */
struct retire_test {
    struct fixture *f;
    struct io_loop *reader;
    struct io_msg read;
    struct io_msg retire;
    struct io_retired retired;
    struct io_timer timer;
    atomic_int turns; /* of the writer since it retired */
    atomic_bool is_read;
    atomic_bool freed;
};

static void free_retired(struct io_retired *r)
{
    struct retire_test *test = CONTAINER_OF(r, struct retire_test, retired);

    assert_true(atomic_load(&test->is_read));
    atomic_store(&test->freed, true);
    io_stop(test->f->io);
}

static void writer_turn(struct io_op *op)
{
    struct retire_test *test = CONTAINER_OF(op, struct retire_test, timer.op);

    /* Then it sleeps, and nobody but io itself wakes it. */
    if (atomic_fetch_add(&test->turns, 1) < 20)
        io_timer_set(test->f->loop, &test->timer, 0);
}

static void retire_it(struct io_msg *msg)
{
    struct retire_test *test = CONTAINER_OF(msg, struct retire_test, retire);

    test->retired.free_fn = free_retired;
    test->timer.op.done = writer_turn;
    io_retire(test->f->loop, &test->retired);
    io_timer_set(test->f->loop, &test->timer, 0);
}

static void read_it(struct io_msg *msg)
{
    struct retire_test *test = CONTAINER_OF(msg, struct retire_test, read);

    io_post(test->f->loop, &test->retire);
    while (atomic_load(&test->turns) < 20)
        continue;
    assert_false(atomic_load(&test->freed));
    atomic_store(&test->is_read, true);
}

static void start_reader(void *ctx)
{
    struct retire_test *test = ctx;

    io_post(test->reader, &test->read);
}

static void what_a_running_turn_may_see_is_not_freed(void **state)
{
    struct retire_test test = {.f = *state, .read = {.fn = read_it}, .retire = {.fn = retire_it}};

    test.f->loop = io_loop_new(test.f->io, "control", start_reader, &test);
    test.reader = io_loop_new(test.f->io, "reader", NULL, NULL);
    io_run(test.f->io);
    assert_true(test.freed);
}

/* ---- files that fail ---------------------------------------------------------------------- */

static void errors_of_the_device_are_returned(void **state)
{
    struct fixture *f = *state;
    struct iovec iov = {.iov_base = (void *)"x", .iov_len = 1};
    struct io_file *file;

    /* The null device cannot be synced, the full one not written. */
    assert_int_equal(io_file_open(f->io, "/dev/null", IO_OPEN_WRITE, &file), ERR_NONE);
    assert_int_equal(io_file_sync(file), ERR_IO);
    io_file_unref(file);
    assert_int_equal(io_file_open(f->io, "/dev/full", IO_OPEN_WRITE, &file), ERR_NONE);
    assert_int_equal(io_file_write(file, &iov, 1, 0), ERR_NO_SPACE);
    io_file_unref(file);
}

struct cached_test {
    struct fixture *f;
    struct io_file *file;
    int fd; /* the same file */
};

/* Bytes just written are in the page cache, so only a file system that cannot say may refuse. */
static void start_cached(void *ctx)
{
    struct cached_test *test = ctx;
    char got[8];
    struct iovec iov = {.iov_base = got, .iov_len = sizeof(got)};
    bool can_say = preadv2(test->fd, &iov, 1, 0, RWF_NOWAIT) >= 0;
    size_t n;
    enum err err = io_read_cached(test->file, got, sizeof(got), 1, &n);

    assert_int_equal(err, can_say ? ERR_NONE : ERR_AGAIN);
    assert_int_equal(n, can_say ? 5 : 0);
    io_stop(test->f->io);
}

static void fresh_bytes_are_read_on_the_loop(void **state)
{
    struct cached_test test = {.f = *state};
    char path[] = "/tmp/io-cached-XXXXXX";

    test.fd = mkstemp(path);
    assert_int_equal(write(test.fd, "abcdef", 6), 6);
    assert_int_equal(io_file_open(test.f->io, path, IO_OPEN_READ, &test.file), ERR_NONE);
    run(test.f, start_cached, &test);
    io_file_unref(test.file);
    close(test.fd);
    unlink(path);
}

/* ---- timers at the edges ------------------------------------------------------------------ */

struct edge_timers {
    struct fixture *f;
    struct io_timer first;
    struct io_timer last;
};

static void first_fired(struct io_op *op)
{
    struct edge_timers *test = CONTAINER_OF(op, struct edge_timers, first.op);

    assert_int_equal(op->err, ERR_NONE);
    assert_true(io_op_is_pending(&test->last.op));
    io_stop(test->f->io);
}

static void last_fired(struct io_op *op)
{
    (void)op;
    fail();
}

static void start_edge_timers(void *ctx)
{
    struct edge_timers *test = ctx;

    test->first.op.done = first_fired;
    test->last.op.done = last_fired;
    io_timer_set(test->f->loop, &test->last, INT64_MAX);
    io_timer_set(test->f->loop, &test->first, INT64_MIN);
}

static void any_deadline_is_allowed(void **state)
{
    struct edge_timers test = {.f = *state};

    run(test.f, start_edge_timers, &test);
}

/* ---- locks ------------------------------------------------------------------------------- */

/* In another process, as a JVM does it. */
static bool foreign_process_can_lock(const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        int fd = open(path, O_RDWR | O_CREAT, 0644);

        _exit(fcntl(fd, F_SETLK, &whole) != 0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void a_posix_lock_of_another_process_and_ours_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/io-lock-XXXXXX";
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct io_lock *lock;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETLK, &whole), 0);
    assert_int_equal(io_lock_take(f->io, path, &lock), ERR_LOCKED);
    close(fd);
    assert_int_equal(io_lock_take(f->io, path, &lock), ERR_NONE);
    assert_false(foreign_process_can_lock(path));
    io_lock_release(lock);
    assert_true(foreign_process_can_lock(path));
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- usage ------------------------------------------------------------------------------- */

static void usage_says_what_the_process_takes(void **state)
{
    struct io *io = io_new(NULL);
    struct io_usage before;
    struct io_usage after;
    int threads = 1;
    int fd;

    (void)state;
#ifdef __SANITIZE_THREAD__
    threads++; /* the sanitizer's own */
#endif
    io_usage_read(io, &before);
    fd = dup(STDERR_FILENO);
    io_usage_read(io, &after);
    assert_int_equal(after.open_files, before.open_files + 1);
    assert_true(after.open_files_max >= after.open_files);
    assert_true(before.resident_bytes >= 4096);
    assert_true(before.resident_bytes < before.virtual_bytes);
    assert_true(after.cpu_ns >= before.cpu_ns);
    assert_true(before.cpu_ns > 0);
    assert_int_equal(before.threads, threads);
    assert_in_range(before.start_ms, io_wall_ms(io) - 60000, io_wall_ms(io));
    assert_in_range(after.start_ms, before.start_ms - 100, before.start_ms + 100);
    close(fd);
    io_free(io);
}

/* ---- the supervisor ------------------------------------------------------------------------ */

/* A socket bound to the path, and the size of its address. */
static int listen_for_words(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    size_t n = strlen(path);

    memcpy(at.sun_path, path, n);
    if (*path == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
        0);
    return fd;
}

static void a_word_reaches_the_supervisor(void **state)
{
    struct io *io = io_new(NULL);
    char path[2][64];
    char got[64];

    (void)state;
    snprintf(path[0], sizeof(path[0]), "/tmp/io-notify-%d", getpid());
    snprintf(path[1], sizeof(path[1]), "@io-notify-%d", getpid());
    assert_int_equal(io_notify(io, path[0], STR_LIT("x")), ERR_NOT_FOUND);
    assert_int_equal(io_notify(io, "", STR_LIT("x")), ERR_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        int fd = listen_for_words(path[i]);

        assert_int_equal(io_notify(io, path[i], STR_LIT("READY=1")), ERR_NONE);
        assert_int_equal(recv(fd, got, sizeof(got), 0), 7);
        assert_memory_equal(got, "READY=1", 7);
        close(fd);
    }
    assert_int_equal(io_notify(io, path[0], STR_LIT("x")), ERR_REFUSED);
    unlink(path[0]);
    io_free(io);
}

static void a_supervisor_that_does_not_listen_is_not_waited_for(void **state)
{
    struct io *io = io_new(NULL);
    enum err err = ERR_NONE;
    char path[64];
    int fd;

    (void)state;
    snprintf(path, sizeof(path), "@io-deaf-%d", getpid());
    fd = listen_for_words(path);
    for (int i = 0; i < 100000 && !err; i++)
        err = io_notify(io, path, STR_LIT("STATUS=x"));
    assert_int_equal(err, ERR_AGAIN);
    close(fd);
    io_free(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sigterm_and_sigint_are_operations),
        TEST(idle_loops_do_not_wake),
        TEST(two_jobs_run_at_once),
        TEST(io_run_returns_behind_a_running_job),
        TEST(an_end_that_came_with_the_bytes_is_seen),
        TEST(a_reset_is_told_from_an_end),
        TEST(without_descriptors_an_accept_can_be_repeated),
        TEST(an_ipv4_peer_of_an_ipv6_listener_has_an_ipv4_name),
        TEST(a_connect_goes_on_to_the_next_address),
        TEST(closing_gives_descriptors_back),
        TEST(what_a_running_turn_may_see_is_not_freed),
        TEST(errors_of_the_device_are_returned),
        TEST(fresh_bytes_are_read_on_the_loop),
        TEST(any_deadline_is_allowed),
        TEST(a_posix_lock_of_another_process_and_ours_exclude_each_other),
        cmocka_unit_test(usage_says_what_the_process_takes),
        cmocka_unit_test(a_word_reaches_the_supervisor),
        cmocka_unit_test(a_supervisor_that_does_not_listen_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("io/real", tests, NULL, NULL);
}
