/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: from text, from names, to text. An IPv4 peer of a socket that serves both families
 * arrives as ::ffff:1.2.3.4; people and access lists know it as 1.2.3.4, so that is its text.
 */
#include <arpa/inet.h>
#include <netdb.h>

#include "base/assert.h"
#include "io/real/real_int.h"

static void append_all(struct addrs *out, const struct addrinfo *list)
{
    for (; list && out->n < ADDRS_MAX; list = list->ai_next) {
        struct addr *a = &out->v[out->n++];

        assert(list->ai_addrlen <= sizeof(a->sa));
        a->size = list->ai_addrlen;
        memcpy(&a->sa, list->ai_addr, list->ai_addrlen);
    }
}

static enum err look_up(struct addrs *out, const char *host, uint16_t port, int flags)
{
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags = flags | AI_NUMERICSERV,
    };
    struct addrinfo *list;
    char service[8];

    out->n = 0;
    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return ERR_NOT_FOUND;
    append_all(out, list);
    freeaddrinfo(list);
    return ERR_NONE;
}

enum err addrs_parse(struct addrs *out, const char *host, uint16_t port)
{
    return look_up(out, host, port, AI_NUMERICHOST);
}

enum err addrs_resolve(struct addrs *out, const char *host, uint16_t port)
{
    return look_up(out, host, port, 0);
}

void addr_host(const struct sockaddr_storage *sa, char host[static IO_ADDR_TEXT_MAX])
{
    const struct sockaddr_in *v4 = (const void *)sa;
    const struct sockaddr_in6 *v6 = (const void *)sa;
    const char *text;

    if (sa->ss_family == AF_INET)
        text = inet_ntop(AF_INET, &v4->sin_addr, host, IO_ADDR_TEXT_MAX);
    else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        text = inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, IO_ADDR_TEXT_MAX);
    else
        text = inet_ntop(AF_INET6, &v6->sin6_addr, host, IO_ADDR_TEXT_MAX);
    assert(text);
}

uint16_t addr_port(const struct sockaddr_storage *sa)
{
    /* The port lies at the same place in both families. */
    return ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
}

void addr_text(const struct sockaddr_storage *sa, char text[static IO_ADDR_TEXT_MAX])
{
    char host[IO_ADDR_TEXT_MAX];
    int n;

    addr_host(sa, host);
    n = snprintf(text, IO_ADDR_TEXT_MAX, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
                 addr_port(sa));
    assert(n > 0 && n < IO_ADDR_TEXT_MAX);
}
