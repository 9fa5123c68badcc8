/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd on the control loop. The library keeps its sockets in an epoll set of its own and
 * shows us that one descriptor: when it is ready, or a time has come that the library has named,
 * we let it run once and ask again. It starts no thread and never waits.
 *
 * It is loaded when a port is opened and not before. Linked, it would bring eleven shared
 * libraries into every start (it can speak TLS, which is not used here): 1.2 ms and 0.4 MiB, where
 * a broker without it starts in 4 ms and has 0.8 MiB of memory of its own.
 *
 * What peers can make us hold: so many connections of so much memory, silent for so long; and a
 * page of metrics, which may be large, only a few times at once.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "broker/broker.h"
#include "http/http_int.h"

#define LIBRARY "libmicrohttpd.so.12"
#define CONNECTIONS_MAX 256
#define CONNECTION_BYTES_MAX ((size_t)8 * 1024)
#define SILENCE_S 10
#define BIG_PAGES_MAX 16

/* The functions of the library that we call, each under its own name without MHD_. */
#define FUNCTIONS(X)                                                                               \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(run)                                                                                         \
    X(get_timeout)                                                                                 \
    X(get_daemon_info)                                                                             \
    X(create_response_from_buffer)                                                                 \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)

struct library {
    void *handle;
#define X(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(X)
#undef X
};

struct http {
    struct http_args args;
    struct library mhd;
    struct MHD_Daemon *daemon;
    int epoll_fd;
    char *url;
    struct io_loop *loop;
    struct io_msg start;
    struct io_watch watch;
    struct io_timer timer;
    int big_pages; /* under way */
    /* What the library remembers of a request points to one of these. */
    char is_known;
    char is_big;
};

/* ---- the library ---------------------------------------------------------------------------- */

static enum err load(struct library *l, char **message)
{
    bool is_whole = true;

    l->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) {
        *message = xasprintf("http.address needs %s (Debian package libmicrohttpd12), which cannot "
                             "be loaded: %s",
                             LIBRARY, dlerror());
        return ERR_NOT_FOUND;
    }
#define X(name)                                                                                    \
    *(void **)&l->name = dlsym(l->handle, "MHD_" #name);                                           \
    is_whole = is_whole && l->name;
    FUNCTIONS(X)
#undef X
    assert(is_whole);
    return ERR_NONE;
}

/* ---- answering ------------------------------------------------------------------------------ */

static void make_page(struct http *h, enum page_kind kind, struct page *page)
{
    int32_t partitions_max = kind == PAGE_METRICS ? h->args.partitions_max : -1;
    struct figures figures;
    struct page_source source = {
        .figures = &figures,
        .version = h->args.version,
        .now_ms = io_loop_wall_ms(h->loop),
    };
    struct arena arena;

    if (kind != PAGE_HEALTH && kind != PAGE_READY && kind != PAGE_METRICS) {
        page_make(kind, NULL, page);
        return;
    }
    arena_init(&arena, 0);
    broker_figures_read(h->args.broker, partitions_max, &arena, &figures);
    io_usage_read(h->args.io, &source.usage);
    page_make(kind, &source, page);
    arena_fini(&arena);
}

/* Takes the page's body. */
static enum MHD_Result send_page(struct http *h, struct MHD_Connection *conn, struct page *page)
{
    struct MHD_Response *response =
        h->mhd.create_response_from_buffer(page->body.n, page->body.p, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (!response) {
        buf_fini(&page->body);
        return MHD_NO;
    }
    h->mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    if (page->status == 405)
        h->mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    result = h->mhd.queue_response(conn, (unsigned)page->status, response);
    h->mhd.destroy_response(response);
    return result;
}

static enum MHD_Result refuse_more(struct http *h, struct MHD_Connection *conn)
{
    static const char text[] = "too many are reading metrics\n";
    struct page page = {.status = 503, .type = "text/plain"};

    buf_append(&page.body, text, strlen(text));
    return send_page(h, conn, &page);
}

/* Called twice for each request: when its headers are there, and when all of it is. */
static enum MHD_Result requested(void *cls, struct MHD_Connection *conn, const char *path,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_n, void **state)
{
    struct http *h = cls;
    enum page_kind kind = page_find(method, path);
    struct page page;

    (void)version;
    (void)data;
    if (!*state) {
        *state = &h->is_known;
        /* What a refused request carries is not waited for. */
        if (kind != PAGE_NOT_ALLOWED)
            return MHD_YES;
    }
    *data_n = 0;
    if (kind == PAGE_METRICS && h->big_pages >= BIG_PAGES_MAX)
        return refuse_more(h, conn);
    if (kind == PAGE_METRICS) {
        h->big_pages++;
        *state = &h->is_big;
    }
    make_page(h, kind, &page);
    return send_page(h, conn, &page);
}

static void completed(void *cls, struct MHD_Connection *conn, void **state,
                      enum MHD_RequestTerminationCode how)
{
    struct http *h = cls;

    (void)conn;
    (void)how;
    if (*state == &h->is_big)
        h->big_pages--;
    *state = NULL;
}

/* ---- on the loop ----------------------------------------------------------------------------- */

/* The library runs again when its descriptor is ready or its time has come. */
static void await(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (!io_op_is_pending(&h->watch.op))
        io_watch(h->loop, h->epoll_fd, IO_READABLE, &h->watch);
    if (h->mhd.get_timeout(h->daemon, &ms) == MHD_YES)
        io_timer_set(h->loop, &h->timer, io_loop_mono_ns(h->loop) + (int64_t)ms * 1000000);
    else
        io_cancel(&h->timer.op);
}

static void run(struct http *h)
{
    h->mhd.run(h->daemon);
    await(h);
}

static void is_readable(struct io_op *op)
{
    if (!op->err)
        run(CONTAINER_OF(op, struct http, watch.op));
}

static void time_has_come(struct io_op *op)
{
    if (!op->err)
        run(CONTAINER_OF(op, struct http, timer.op));
}

static void started(struct io_msg *msg)
{
    await(CONTAINER_OF(msg, struct http, start));
}

/* ---- life -------------------------------------------------------------------------------------
 */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* False when the host is no numeric address. */
static bool parse_address(const struct http_args *args, union address *out)
{
    char host[INET6_ADDRSTRLEN + 1];

    *out = (union address){.v4 = {.sin_family = AF_INET, .sin_port = htons(args->port)}};
    if (str_eq_c(args->host, "localhost")) {
        out->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return true;
    }
    snprintf(host, sizeof(host), "%.*s", STR_ARG(args->host));
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1)
        return true;
    *out = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(args->port)}};
    /* Empty is "::", which with MHD_USE_DUAL_STACK is every address of both families. */
    return !*host || inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1;
}

static void listen_on(struct http *h, const union address *address)
{
    unsigned family = address->any.sa_family == AF_INET6 ? MHD_USE_DUAL_STACK : 0;
    const union MHD_DaemonInfo *info;

    h->daemon = h->mhd.start_daemon(
        MHD_USE_EPOLL | family, 0, NULL, NULL, requested, h, MHD_OPTION_SOCK_ADDR, &address->any,
        MHD_OPTION_NOTIFY_COMPLETED, completed, h, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S, MHD_OPTION_END);
    if (!h->daemon)
        return;
    info = h->mhd.get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info);
    h->epoll_fd = info->epoll_fd;
    info = h->mhd.get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    assert(info);
    h->args.port = info->port;
}

static enum err explain(const struct http *h, int number, char **message)
{
    enum err err = number == EADDRINUSE ? ERR_ADDR_IN_USE : ERR_IO;

    *message = xasprintf(
        "http.address: cannot listen on %.*s:%u: %s", STR_ARG(h->args.host), h->args.port,
        err == ERR_ADDR_IN_USE ? "the port is in use; stop the other program or choose another port"
                               : strerror(number));
    return err;
}

/* What to type into a browser: all addresses are shown as the one that every machine has. */
static char *url_of(const struct http_args *args)
{
    struct str host = args->host.n > 0 ? args->host : STR_LIT("127.0.0.1");

    if (memchr(host.p, ':', (size_t)host.n))
        return xasprintf("http://[%.*s]:%u", STR_ARG(host), args->port);
    return xasprintf("http://%.*s:%u", STR_ARG(host), args->port);
}

static enum err start(struct http *h, char **message)
{
    union address address;
    enum err err;

    if (!parse_address(&h->args, &address)) {
        *message = xasprintf("http.address: %.*s is no address; give a numeric one, localhost, or "
                             "none for all",
                             STR_ARG(h->args.host));
        return ERR_NOT_FOUND;
    }
    err = load(&h->mhd, message);
    if (err)
        return err;
    errno = 0;
    listen_on(h, &address);
    return h->daemon ? ERR_NONE : explain(h, errno, message);
}

enum err http_open(const struct http_args *args, struct http **out, char **message)
{
    struct http *h = xcalloc(1, sizeof(*h));
    enum err err;

    *out = NULL;
    *message = NULL;
    h->args = *args;
    err = start(h, message);
    if (err) {
        http_close(h);
        return err;
    }
    h->url = url_of(&h->args);
    h->args.host = str_null(); /* It is the caller's. */
    h->loop = broker_control_loop(args->broker);
    h->watch.op.done = is_readable;
    h->timer.op.done = time_has_come;
    h->start.fn = started;
    io_post(h->loop, &h->start);
    *out = h;
    return ERR_NONE;
}

const char *http_url(const struct http *h)
{
    return h->url;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    if (h->daemon)
        h->mhd.stop_daemon(h->daemon);
    if (h->mhd.handle)
        dlclose(h->mhd.handle);
    free(h->url);
    free(h);
}
