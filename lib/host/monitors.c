/* SPDX-License-Identifier: MIT */
/*
 * monitors.c - the monitors that read the devices of a dispatcher: from their start to their end.
 * The host restarts a dead monitor, after a wait that doubles.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"

#define AGAIN_NS (500 * GPI_MS) /* before the restart of a dead monitor, doubling */
#define AGAIN_MAX_NS (60 * GPI_S)

struct gpi_gauge *gpi_gauge_new(enum gpi_provider_kind provider, uint32_t n)
{
    struct gpi_gauge *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->m.fd = -1;
    g->provider = provider;
    g->n = n;
    g->again_at = GPI_NEVER;
    g->takes_over = GPI_NO_GAUGE;
    g->zero = g->began_at = gpi_now();
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        g->fired[i] = GPI_NEVER;
    return g;
}

int gpi_gauge_open(struct gpi_gauge **ret_g, int connection, enum gpi_provider_kind provider,
                   uint32_t n, char *script, struct gpud_error *e)
{
    struct gpi_gauge *g = gpi_gauge_new(provider, n);
    int r;

    if (!g)
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a monitor");
    r = provider == GPI_PROVIDER_FAKE ? gpi_script_parse(&g->parsed, script, n, e) : 0;
    if (r == 0)
        r = gpi_monitor_start(&g->m, connection, provider, n, script, g->zero, e);
    if (r) {
        gpi_gauge_free(g);
        return r;
    }
    g->script = script;
    *ret_g = g;
    return 0;
}

void gpi_gauge_free(struct gpi_gauge *g)
{
    if (!g)
        return;
    gpi_monitor_fini(&g->m);
    gpi_script_free(g->parsed);
    free(g->script);
    free(g);
}

int gpi_gauge_adopt(gpud_dispatcher *d, struct gpi_gauge *g, uint32_t *ret_gauge)
{
    uint32_t i = 0;

    while (i < d->dev.n_gauges && d->dev.gauge[i])
        i++;
    if (i == GPI_GAUGES)
        return GPUD_EFULL;
    if (!g->m.gone && gpi_drive_watch(d, g->m.fd, GPI_FD_MONITOR, i))
        return GPUD_ESYSTEM;
    d->dev.gauge[i] = g;
    d->dev.n_gauges += i == d->dev.n_gauges;
    *ret_gauge = i;
    return 0;
}

/* A forked child leaves the process alone: it is the host's. */
void gpi_gauge_hang_up(gpud_dispatcher *d, struct gpi_gauge *g)
{
    if (*d->alive)
        gpi_monitor_dismiss(&g->m);
    gpi_drive_close(d, &g->m.fd);
}

static void let_go(gpud_dispatcher *d, uint32_t i)
{
    gpi_gauge_hang_up(d, d->dev.gauge[i]);
    gpi_gauge_free(d->dev.gauge[i]);
    d->dev.gauge[i] = NULL;
}

static bool has_devices(const gpud_dispatcher *d, uint32_t gauge)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].gauge == gauge && d->dev.row[i].here)
            return true;
    return false;
}

static bool is_used(const gpud_dispatcher *d, uint32_t gauge)
{
    const uint32_t before = d->dev.gauge[gauge]->takes_over;

    return has_devices(d, gauge) ||
           (before != GPI_NO_GAUGE && d->dev.gauge[before] && has_devices(d, before));
}

void gpi_gauges_release(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i] && !is_used(d, i))
            let_go(d, i);
}

void gpi_gauges_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        if (d->dev.gauge[i])
            let_go(d, i);
    d->dev.n_gauges = 0;
}

/* The monitor has exited: the health of its devices is unknown until the next one reports it. */
void gpi_gauge_lost(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_gauge *g = d->dev.gauge[i];
    uint64_t wait = gpi_time_doubled(AGAIN_NS, g->deaths++, AGAIN_MAX_NS);

    gpi_gauge_hang_up(d, g);
    g->again_at = d->spawner.gone ? GPI_NEVER : d->now + wait;
    g->takes_over = GPI_NO_GAUGE; /* this heir ends; the old monitor tries again */
    d->stats.count.monitor_deaths++;
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT, "the monitor process has died; tasks go on, %s",
            d->spawner.gone ? "devices are not read any more, since the spawner is gone too"
                            : "the host starts another monitor");
    for (uint32_t k = 0; k < d->dev.n; k++)
        if (d->dev.row[k].gauge == i && d->dev.row[k].here)
            gpi_judge_silence(d, k, 0);
}

void gpi_gauge_again(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_gauge *g = d->dev.gauge[i];

    g->again_at = GPI_NEVER;
    g->began_at = d->now;
    gpi_monitor_fini(&g->m);
    if (d->spawner.gone)
        return;
    if (gpi_monitor_start(&g->m, d->spawner.fd, g->provider, g->n, g->script, g->zero, NULL) ||
        gpi_drive_watch(d, g->m.fd, GPI_FD_MONITOR, i))
        gpi_gauge_lost(d, i);
}
