/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ZooKeeper is: zookeeper.connect, and the addresses behind its names.
 *
 * Names are looked up here, in a job, and ZooKeeper's C client only ever gets numeric addresses. It
 * would look names up itself, before each attempt to connect, and when that fails it goes on with
 * values that nobody has set. It also takes the last colon of a server for the one before the port,
 * so an IPv6 address goes to it without brackets.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "keeper/tree_int.h"
#include "keeper/zookeeper_int.h"

#define PORT_DEFAULT "2181"

/* ---- The connect string. */

static struct str trimmed(const char *p, size_t n)
{
    while (n > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        n--;
    }
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    return (struct str){.p = p, .n = (int32_t)n};
}

/* Host (without brackets) and port of one server; the port is null where there is none. */
static bool server_parse(struct str server, struct str *host, struct str *port)
{
    const char *end = server.p + server.n;
    const char *close = server.n > 0 && server.p[0] == '[' ? memchr(server.p, ']', (size_t)server.n)
                                                           : NULL;
    const char *from = close ? close + 1 : server.p;
    const char *colon = memchr(from, ':', (size_t)(end - from));
    int64_t number = 0;

    *host = close ? (struct str){.p = server.p + 1, .n = (int32_t)(close - server.p - 1)}
                  : (struct str){.p = server.p, .n = (int32_t)((colon ? colon : end) - server.p)};
    *port = colon ? (struct str){.p = colon + 1, .n = (int32_t)(end - colon - 1)} : str_null();
    if (host->n == 0 || (close && from != end && from != colon))
        return false;
    return str_is_null(*port) || (!str_to_i64(*port, &number) && number > 0 && number < 65536);
}

/* Appends "host:port" to a list with commas. */
static void append(char **list, struct str host, struct str port)
{
    bool is_v6 = memchr(host.p, ':', (size_t)host.n) != NULL;
    char *longer = xasprintf("%s%s%s%.*s%s:%.*s", *list ? *list : "", *list ? "," : "",
                             is_v6 ? "[" : "", STR_ARG(host), is_v6 ? "]" : "", STR_ARG(port));

    free(*list);
    *list = longer;
}

static enum err servers_parse(const char *text, size_t n, char **out)
{
    for (const char *end = text + n; text < end;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        struct str server = trimmed(text, (size_t)(stop - text)), host, port;

        if (!server_parse(server, &host, &port))
            return ERR_INVALID_ARG;
        append(out, host, str_is_null(port) ? str_of(PORT_DEFAULT) : port);
        text = comma ? comma + 1 : end;
    }
    return *out ? ERR_NONE : ERR_INVALID_ARG;
}

enum err zookeeper__place_parse(const char *text, struct zookeeper_place *out, char **message)
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    bool has_chroot = slash && slash[1];

    *out = (struct zookeeper_place){0};
    *message = NULL;
    if (servers_parse(text, n, &out->servers))
        *message = xasprintf("'%s' does not name ZooKeeper's servers; write host:port,host:port, "
                             "perhaps with a /path behind them",
                             text);
    else if (has_chroot && !tree_path_is_valid(slash))
        *message = xasprintf("'%s': '%s' is not a path in ZooKeeper", text, slash);
    if (*message) {
        free(out->servers);
        out->servers = NULL;
        return ERR_INVALID_ARG;
    }
    out->chroot = xstrdup(has_chroot ? slash : "");
    return ERR_NONE;
}

void zookeeper__place_free(struct zookeeper_place *place)
{
    free(place->servers);
    free(place->chroot);
    *place = (struct zookeeper_place){0};
}

/* ---- Addresses. */

/* Appends the addresses of one server. */
static void resolve_one(char **list, struct str host, struct str port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char *name = str_dup(host);

    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        found = NULL;
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        char text[NI_MAXHOST];

        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
            continue;
        char *longer =
            xasprintf("%s%s%s:%.*s", *list ? *list : "", *list ? "," : "", text, STR_ARG(port));

        free(*list);
        *list = longer;
    }
    if (found)
        freeaddrinfo(found);
    free(name);
}

char *zookeeper__resolve(const char *servers)
{
    char *list = NULL;

    while (*servers) {
        size_t n = strcspn(servers, ",");
        struct str host, port;
        bool is_server = server_parse(trimmed(servers, n), &host, &port);

        assert(is_server);
        resolve_one(&list, host, port);
        servers += n + (servers[n] == ',');
    }
    return list;
}
