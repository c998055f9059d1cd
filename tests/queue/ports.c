/* SPDX-License-Identifier: MIT */
/* ports.c - ports for commands: their range, and that no two commands have one. */
#include "harness.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queue/agent/ports.h"

T_CASE(the_range_is_beside_that_of_the_kernel)
{
    static const struct {
        const char *kernel;
        uint32_t first, last;
    } ranges[] = {
        { NULL, 20000, 29999 },          { "", 20000, 29999 },
        { "x y", 20000, 29999 },         { "32768\t60999\n", 20000, 29999 },
        { "1024 19999", 20000, 29999 },  { "60000 1024", 20000, 29999 },
        { "1024 70000", 20000, 29999 },  { "16384 60999", 10000, 16383 },
        { "1024 60999", 61000, 65535 },  { "10500 65000", 20000, 29999 },
        { "1024 65535", 20000, 29999 },  { "29999 40000", 40001, 65535 },
        { "29999 60000", 10000, 29998 },
    };

    for (size_t i = 0; i < T_LENGTH(ranges); i++) {
        uint32_t first = 0, last = 0;
        gpq_ports_range(ranges[i].kernel, &first, &last);
        T_EQ(first, ranges[i].first);
        T_EQ(last, ranges[i].last);
    }
}

T_CASE(a_range_that_is_set)
{
    static const struct {
        const char *text;
        bool ok;
    } texts[] = {
        { "20000-20003", true },   { "1024-65535", true },    { "5000-5000", true },
        { "1023-2000", false },    { "2000-1999", false },    { "1024-65536", false },
        { "20000", false },        { "20000-", false },       { "-20000", false },
        { "20000-20003x", false }, { "020000-20003", false }, { "", false },
    };

    for (size_t i = 0; i < T_LENGTH(texts); i++) {
        struct gpq_ports p = { 0 };
        T_EQ(gpq_ports_set(&p, texts[i].text), texts[i].ok);
        T_EQ(p.first != 0, texts[i].ok);
    }
}

static int listen_at(int family, uint16_t port, uint16_t *ret_port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr *address =
        family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = family == AF_INET6 ? sizeof(six) : sizeof(four);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, address, size) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, address, &size) != 0) {
        (void)close(fd);
        return -1;
    }
    *ret_port = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
    return fd;
}

/* Three ports around one that a server has: it is not among those that are taken. */
static void beside_a_server(int family)
{
    struct gpq_ports *p = calloc(1, sizeof(*p));
    uint16_t served;
    int fd = listen_at(family, 0, &served);

    T_CHECK(p);
    if (fd < 0 || served < 2 || served > 65500) {
        T_CHECK(family == AF_INET6);
        free(p);
        return;
    }
    p->first = served;
    p->last = served + 30U;
    p->next = served;
    for (unsigned i = 0; i < 31; i++)
        T_CHECK(gpq_ports_take(p) != served);
    (void)close(fd);
    free(p);
}

T_CASE(a_port_with_a_server_is_not_taken)
{
    beside_a_server(AF_INET);
    beside_a_server(AF_INET6);
}

T_CASE(no_two_commands_have_a_port)
{
    struct gpq_ports *p = calloc(1, sizeof(*p));
    uint8_t seen[65536] = { 0 };
    uint16_t port, last = 0;
    unsigned n = 0;

    T_CHECK(p);
    port = gpq_ports_take(p);
    T_CMP(port, >=, p->first);
    T_CMP(port, <=, p->last);
    gpq_ports_release(p, port);
    p->last = p->first + 199;
    p->next = p->first + 198;
    gpq_ports_keep(p, (uint16_t)(p->first + 5));
    while ((port = gpq_ports_take(p)) != 0) {
        T_CHECK(!seen[port] && port != p->first + 5);
        seen[port] = 1;
        last = port;
        n++;
    }
    T_CMP(n, >, 100);
    T_CMP(n, <, 200);
    gpq_ports_release(p, 0);
    T_EQ(gpq_ports_take(p), 0);
    gpq_ports_release(p, last);
    T_EQ(gpq_ports_take(p), last);
    free(p);
}
