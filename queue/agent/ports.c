/* SPDX-License-Identifier: MIT */
/* ports.c - finds ports by binding them. */
#include "queue/agent/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queue/files/numbers.h"

enum { FIRST = 20000, LAST = 29999, LEAST = 10000, PRIVILEGED = 1024, MOST = 65535, FEWEST = 1000 };

/* ---- The range ---- */

void gpq_ports_range(const char *kernel, uint32_t *ret_first, uint32_t *ret_last)
{
    unsigned low, high;
    *ret_first = FIRST;
    *ret_last = LAST;
    if (!kernel || sscanf(kernel, "%5u %5u", &low, &high) != 2 || low > high || high > MOST ||
        low > LAST || high < FIRST)
        return;
    unsigned below = low > LEAST ? low - LEAST : 0, above = MOST - high;
    if (below < FEWEST && above < FEWEST)
        return;
    *ret_first = below >= above ? LEAST : high + 1;
    *ret_last = below >= above ? low - 1 : MOST;
}

bool gpq_ports_set(struct gpq_ports *p, const char *text)
{
    uint32_t range[2];
    if (!gpq_numbers_read(text, "-", range, 2, NULL) || range[0] < PRIVILEGED ||
        range[0] > range[1] || range[1] > MOST)
        return false;
    p->first = p->next = range[0];
    p->last = range[1];
    return true;
}

/* The search begins anywhere: agents of several users have the same range. */
static void find_range(struct gpq_ports *p)
{
    char text[64];
    uint32_t draw = 0;
    int fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    gpq_ports_range(n > 0 ? text : NULL, &p->first, &p->last);
    if (getrandom(&draw, sizeof(draw), GRND_NONBLOCK) != (ssize_t)sizeof(draw))
        draw = (uint32_t)getpid();
    p->next = p->first + draw % (p->last - p->first + 1);
}

/* ---- Ports ---- */

static bool is_used(const struct gpq_ports *p, uint32_t port)
{
    return p->used[port / 8] >> port % 8 & 1;
}

static int bind_all(int fd, int family, uint32_t port)
{
    if (family == AF_INET6) {
        const struct sockaddr_in6 any = { .sin6_family = AF_INET6,
                                          .sin6_port = htons((uint16_t)port),
                                          .sin6_addr = IN6ADDR_ANY_INIT };
        return bind(fd, (const struct sockaddr *)&any, sizeof(any));
    }
    const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    return bind(fd, (const struct sockaddr *)&any, sizeof(any));
}

/* Without SO_REUSEADDR: a port with connections of an earlier server that fade away is not free. */
static bool can_bind(int family, uint32_t port)
{
    const int only = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) /* the machine has no such addresses, or no descriptor is left */
        return family == AF_INET6;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    bool ret = bind_all(fd, family, port) == 0;
    if (!ret && family == AF_INET6)
        ret = errno != EADDRINUSE; /* IPv6 is switched off */
    (void)close(fd);
    return ret;
}

uint16_t gpq_ports_take(struct gpq_ports *p)
{
    if (p->first == 0)
        find_range(p);
    for (uint32_t i = p->first; i <= p->last; i++) {
        uint32_t port = p->next;
        p->next = port == p->last ? p->first : port + 1;
        if (is_used(p, port) || !can_bind(AF_INET, port) || !can_bind(AF_INET6, port))
            continue;
        gpq_ports_keep(p, (uint16_t)port);
        return (uint16_t)port;
    }
    return 0;
}

void gpq_ports_keep(struct gpq_ports *p, uint16_t port)
{
    p->used[port / 8] |= (uint8_t)(1U << port % 8);
}

void gpq_ports_release(struct gpq_ports *p, uint16_t port)
{
    if (port != 0)
        p->used[port / 8] &= (uint8_t) ~(1U << port % 8);
}
