/* SPDX-License-Identifier: MIT */
#include "host/monitor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failure.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

/* ---- the start ---- */

/* Returns the code for a failed request to the spawner. */
static int untold(struct gpud_error *e, int err)
{
    if (err == EPIPE || err == ECONNRESET || err == ENOTCONN)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "", "%s", gpud_error_text(GPUD_ESPAWNER));
    return gpi_fail(e, err == ENOMEM ? GPUD_ENOMEM : GPUD_ESYSTEM, err, "",
                    "sending a request to the spawner failed");
}

int gpi_monitor_connect(int *ret_connection, int door, struct gpud_error *e)
{
    const struct gpi_control c = { .kind = GPI_CTL_CONNECT };
    int pair[2], err = 0;

    if (gpi_message_pair(pair))
        return gpi_fail(e, GPUD_ESYSTEM, errno, "", "connecting to the spawner failed");
    if (gpi_message_send(door, &c, sizeof c, &pair[1], 1))
        err = errno;
    close(pair[1]);
    if (err) {
        close(pair[0]);
        return untold(e, err);
    }
    *ret_connection = pair[0];
    return 0;
}

/* Allocates records for all possible devices: unused ones take no memory. */
static int init_records(struct gpi_monitor *m)
{
    m->device = calloc(GPI_GPUS_MAX, sizeof *m->device);
    m->sample = calloc(GPI_GPUS_MAX, sizeof *m->sample);
    m->asked_at = calloc(GPI_GPUS_MAX, sizeof *m->asked_at);
    return m->device && m->sample && m->asked_at ? 0 : -1;
}

static int send_open(struct gpi_monitor *m, enum gpi_provider_kind provider, uint32_t n,
                     const char *script, uint64_t zero)
{
    const size_t head = gpi_reading_size(GPI_RDG_OPEN), length = script ? strlen(script) : 0;
    struct gpi_reading_message *r = malloc(sizeof *r + length);
    int err;

    if (!r)
        return ENOMEM;
    memset(r, 0, sizeof *r);
    r->kind = GPI_RDG_OPEN;
    r->provider = provider;
    r->n = n;
    r->zero = zero;
    if (length)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the message has a length */
        memcpy((char *)r + head, script, length);
    err = gpi_message_send(m->fd, r, head + length, NULL, 0) ? errno : 0;
    free(r);
    return err == EPIPE ? 0 : err; /* the fork of the monitor failed: GONE follows */
}

/* Returns an errno; *ret_spawner is true if the spawner's connection caused it. */
static int start(struct gpi_monitor *m, int connection, bool *ret_spawner)
{
    const struct gpi_control c = { .kind = GPI_CTL_MONITOR };
    int pair[2], err = 0;

    if (init_records(m))
        return ENOMEM;
    if (gpi_message_pair(pair))
        return errno;
    m->fd = pair[0];
    if (gpi_message_send(connection, &c, sizeof c, &pair[1], 1))
        err = errno;
    close(pair[1]);
    *ret_spawner = err != 0;
    return err;
}

int gpi_monitor_start(struct gpi_monitor *ret, int connection, enum gpi_provider_kind provider,
                      uint32_t n, const char *script, uint64_t zero, struct gpud_error *e)
{
    bool spawner = false;
    int err;

    *ret = (struct gpi_monitor){ .fd = -1 };
    err = start(ret, connection, &spawner);
    if (err == 0)
        err = send_open(ret, provider, n, script, zero);
    ret->opened_at = gpi_now();
    if (err == 0)
        return 0;
    gpi_monitor_fini(ret);
    return spawner ? untold(e, err)
                   : gpi_fail(e, err == ENOMEM ? GPUD_ENOMEM : GPUD_ESYSTEM, err, "",
                              "starting a monitor failed");
}

void gpi_monitor_dismiss(struct gpi_monitor *m)
{
    if (m->fd >= 0)
        gpi_message_hang_up(m->fd);
    m->gone = true;
}

void gpi_monitor_fini(struct gpi_monitor *m)
{
    gpi_fd_close(&m->fd);
    free(m->device);
    free(m->sample);
    free(m->asked_at);
    *m = (struct gpi_monitor){ .fd = -1 };
}

/* ---- news ---- */

/* A monitor's times are not trusted: never later than now, and never 0. */
static uint64_t time_of(uint64_t at)
{
    uint64_t now = gpi_now();

    return at && at < now ? at : now;
}

/* The monitor reports the devices in order, and then their number. */
static bool take_device(struct gpi_monitor *m, const struct gpi_reading_message *r)
{
    if (!m->opened_at || m->n || r->device != m->coming)
        return false;
    m->device[m->coming++] = r->u.identity;
    return true;
}

static bool take_enumerated(struct gpi_monitor *m, const struct gpi_reading_message *r)
{
    if (!m->opened_at || !m->driver_known || r->n != m->coming)
        return false;
    m->n = m->coming;
    m->coming = 0;
    m->opened_at = 0;
    m->enumerated = true;
    return true;
}

static bool take_sampled(struct gpi_monitor *m, const struct gpi_reading_message *r)
{
    if (!m->asked_at[r->device])
        return false;
    m->asked_at[r->device] = 0;
    m->sample[r->device] = r->u.sample;
    m->sample[r->device].at = time_of(r->u.sample.at);
    return true;
}

/* Returns false if the message is invalid. */
static bool take(struct gpi_monitor *m, const struct gpi_reading_message *r)
{
    switch (r->kind) {
    case GPI_RDG_DRIVER:
        m->driver = r->u.driver;
        m->driver_known = true;
        return true;
    case GPI_RDG_DEVICE:
        return take_device(m, r);
    case GPI_RDG_ENUMERATED:
        return take_enumerated(m, r);
    case GPI_RDG_SAMPLED:
        return take_sampled(m, r);
    default:
        return true;
    }
}

static enum gpi_monitor_news news_of(const struct gpi_reading_message *r, uint32_t *ret_device,
                                     struct gpi_incident *ret_incident)
{
    switch (r->kind) {
    case GPI_RDG_DRIVER:
        return GPI_MONITOR_DRIVER;
    case GPI_RDG_ENUMERATED:
        return GPI_MONITOR_ENUMERATED;
    case GPI_RDG_SAMPLED:
        *ret_device = r->device;
        return GPI_MONITOR_SAMPLED;
    case GPI_RDG_LISTENS:
        return GPI_MONITOR_LISTENS;
    default:
        *ret_incident = r->u.incident;
        ret_incident->at = time_of(r->u.incident.at);
        *ret_device = r->u.incident.device;
        return GPI_MONITOR_INCIDENT;
    }
}

/* If memory is short, the next call reads the message. */
static bool for_now(int err)
{
    return err == EAGAIN || err == ENOBUFS || err == ENOMEM;
}

enum gpi_monitor_news gpi_monitor_read(struct gpi_monitor *m, uint32_t *ret_device,
                                       struct gpi_incident *ret_incident)
{
    struct gpi_reading_message r;

    while (m->fd >= 0 && !m->gone) {
        int size = gpi_message_receive(m->fd, &r, sizeof r, NULL, 0, NULL);
        if (size < 0 && for_now(errno))
            return GPI_MONITOR_NOTHING;
        if (size <= 0 || !gpi_reading_of_monitor(&r, (size_t)size, m->n) || !take(m, &r))
            m->gone = true;
        else if (r.kind != GPI_RDG_DEVICE)
            return news_of(&r, ret_device, ret_incident);
    }
    return GPI_MONITOR_GONE;
}

/* ---- requests ---- */

static bool request(struct gpi_monitor *m, uint32_t kind, uint32_t device)
{
    const struct gpi_reading_message r = { .kind = kind, .device = device };

    return gpi_message_send(m->fd, &r, gpi_reading_size(kind), NULL, 0) == 0;
}

bool gpi_monitor_ask(struct gpi_monitor *m, uint32_t i, uint64_t now)
{
    if (m->fd < 0 || m->gone || i >= m->n || m->asked_at[i] || !request(m, GPI_RDG_SAMPLE, i))
        return false;
    m->asked_at[i] = now;
    return true;
}

bool gpi_monitor_look(struct gpi_monitor *m, uint64_t now)
{
    if (m->fd < 0 || m->gone || m->opened_at || m->n || !request(m, GPI_RDG_ENUMERATE, 0))
        return false;
    m->opened_at = now;
    return true;
}

uint64_t gpi_monitor_waits(const struct gpi_monitor *m)
{
    uint64_t since = m->opened_at;

    for (uint32_t i = 0; i < m->n; i++)
        if (m->asked_at[i] && (!since || m->asked_at[i] < since))
            since = m->asked_at[i];
    return since;
}

/* ---- waiting ---- */

bool gpi_monitor_poll(const struct gpi_monitor *m, uint64_t until)
{
    struct pollfd p = { .fd = m->fd, .events = POLLIN };
    uint64_t now;

    while ((now = gpi_now()) < until) {
        uint64_t ms = (until - now) / GPI_MS + 1;
        int n = poll(&p, 1, until == GPI_NEVER ? -1 : ms < 1000000 ? (int)ms : 1000000);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false; /* also if a message waits: memory may be short for it */
}

bool gpi_monitor_await(struct gpi_monitor *m, uint64_t until)
{
    struct gpi_incident incident;
    uint32_t device;
    bool over = false;

    while (!m->enumerated && !m->gone && m->fd >= 0) {
        enum gpi_monitor_news news = gpi_monitor_read(m, &device, &incident);
        if (news != GPI_MONITOR_NOTHING)
            continue;
        if (over)
            break;
        over = !gpi_monitor_poll(m, until); /* once more: the host may have been stopped */
    }
    return m->enumerated;
}
