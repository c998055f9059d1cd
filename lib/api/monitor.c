/* SPDX-License-Identifier: MIT */
/* monitor.c - gpud_monitor: a look at the devices of this machine, without a dispatcher. */
#include "host/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/process.h"
#include "api/script.h"
#include "base/versioned.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/refused.h"
#include "device/health.h"
#include "device/kin.h"
#include "device/list.h"
#include "device/row.h"
#include "gpudispatch/device.h"
#include "os/fds.h"
#include "os/message.h"
#include "os/process.h"
#include "wire/control.h"

#define AGAIN (10 * GPI_MS)
#define STALE (1 * GPI_S) /* who has not answered for so long does not answer */

/* No worker, so no canary: a device that a reading has put out of use comes back by good readings,
 * which wait as a dispatcher's canaries do. */
static const struct gpi_health_policy policy = { .passes = 0,
                                                 .looks_only = true,
                                                 .backoff = 10 * GPI_S,
                                                 .backoff_cap = 300 * GPI_S,
                                                 .stale = STALE };

struct gpud_monitor {
    _Atomic uint32_t *alive; /* zero in a forked child */
    struct gpi_process *own; /* a spawner of its own; NULL: that of gpud_init */
    bool entered;            /* which keeps a place for it */
    int connection;
    struct gpi_monitor m;
    uint64_t looked_at;      /* when the list of devices came */
    struct gpi_health health[GPI_GPUS_MAX];
};

static int check(const gpud_monitor *m)
{
    return m && atomic_load_explicit(m->alive, memory_order_relaxed)
               ? 0
               : gpi_check_refuse(m != NULL, "m", NULL);
}

/* ---- open ---- */

struct choice {
    enum gpi_provider_kind provider;
    uint32_t n;
    char *script;
};

static int choose(struct choice *c, const char *devices, struct gpud_error *e)
{
    const char *at = devices ? devices : "all";
    struct gpi_device_entry entry;
    int r = gpi_device_entry(&at, NULL, &entry, e);

    if (r)
        return r;
    if (at || entry.workers != 1 || (entry.kind != GPI_ENTRY_ALL && entry.kind != GPI_ENTRY_FAKE))
        return gpi_fail(e, GPUD_EDEVICE, 0, "devices",
                        GPI_ENTRY_FORMAT " is not possible for a monitor, expected all, or "
                                         "fake:N[,script=FILE], as the only entry",
                        GPI_ENTRY_ARGS(&entry));
    *c = (struct choice){ .provider = GPI_PROVIDER_NVML };
    if (entry.kind == GPI_ENTRY_ALL)
        return 0;
    *c = (struct choice){ .provider = GPI_PROVIDER_FAKE, .n = entry.n };
    return entry.script ? gpi_script_load(&c->script, entry.script, entry.script_length, entry.n, e)
                        : 0;
}

/* The process's spawner, or one of its own: without gpud_init, and where that has other rights than
 * we have now. */
static int find_spawner(gpud_monitor *m, int *ret_door, struct gpud_error *e)
{
    struct gpi_process *p = gpi_process();
    bool other = !p || gpi_process_changed(p);
    int r = other ? gpi_process_spawn(&m->own, e) : gpi_process_enter(p, e);

    if (r)
        return r;
    if (other)
        p = m->own;
    m->entered = !other;
    m->alive = p->alive;
    *ret_door = p->door;
    return 0;
}

static int start(gpud_monitor *m, const struct choice *c, struct gpud_error *e)
{
    int door, r = find_spawner(m, &door, e);

    if (r == 0)
        r = gpi_monitor_connect(&m->connection, door, e);
    if (r == 0)
        r = gpi_monitor_start(&m->m, m->connection, c->provider, c->n, c->script, gpi_now(), e);
    return r;
}

/* Says goodbye, since a forked child may hold copies of our sockets: their end would not be seen.
 */
static void say_goodbye(gpud_monitor *m)
{
    const struct gpi_control bye = { .kind = GPI_CTL_BYE };

    gpi_monitor_dismiss(&m->m);
    if (m->connection >= 0)
        (void)gpi_message_send(m->connection, &bye, sizeof bye, NULL, 0);
}

static void release(gpud_monitor *m, bool ours)
{
    if (ours)
        say_goodbye(m);
    gpi_monitor_fini(&m->m);
    gpi_fd_close(&m->connection);
    gpi_process_unspawn(m->own);
    if (ours && m->entered)
        gpi_process_leave(gpi_process());
    free(m);
}

int gpud_monitor_open(gpud_monitor **ret_m, const char *devices, struct gpud_error *reterr)
{
    struct choice c = { .script = NULL };
    gpud_monitor *m;
    int r;

    gpi_refused_forget();
    if (!ret_m)
        return gpi_fail_null(reterr, "ret_m");
    r = choose(&c, devices, reterr);
    if (r)
        return r;
    m = calloc(1, sizeof *m);
    if (m) {
        m->connection = m->m.fd = -1;
        r = start(m, &c, reterr);
    } else {
        r = gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for a monitor");
    }
    free(c.script);
    if (r && m)
        release(m, true);
    if (r)
        return r;
    *ret_m = m;
    return 0;
}

int gpud_monitor_close(gpud_monitor **m)
{
    if (!m || !*m)
        return 0;
    release(*m, check(*m) == 0);
    *m = NULL;
    return 0;
}

/* ---- what it tells ---- */

static void begin_health(gpud_monitor *m)
{
    m->looked_at = gpi_now();
    for (uint32_t i = 0; i < m->m.n; i++)
        gpi_health_init(&m->health[i], m->m.device[i].kind, m->looked_at);
}

static void take_incident(gpud_monitor *m, const struct gpi_incident *i)
{
    const struct gpi_device *at = i->device < m->m.n ? &m->m.device[i->device] : NULL;

    for (uint32_t k = 0; k < m->m.n; k++)
        if (gpi_incident_concerns(i, &policy.xids, at, &m->m.device[k]))
            (void)gpi_health_incident(&m->health[k], &policy, i, gpi_now());
}

/* Takes all that has come. */
static void absorb(gpud_monitor *m)
{
    struct gpi_incident incident;
    uint32_t device;

    for (;;) {
        switch (gpi_monitor_read(&m->m, &device, &incident)) {
        case GPI_MONITOR_DRIVER:
        case GPI_MONITOR_LISTENS:
            break;
        case GPI_MONITOR_ENUMERATED:
            begin_health(m);
            break;
        case GPI_MONITOR_SAMPLED:
            (void)gpi_health_sample(&m->health[device], &policy, &m->m.sample[device], gpi_now());
            break;
        case GPI_MONITOR_INCIDENT:
            take_incident(m, &incident);
            break;
        case GPI_MONITOR_NOTHING:
        case GPI_MONITOR_GONE:
            return;
        }
    }
}

/* ---- read ---- */

/* Asks for what is older than `fresh`; whether nothing is. */
static bool ask(gpud_monitor *m, uint64_t fresh)
{
    bool all = m->m.enumerated;

    for (uint32_t i = 0; i < m->m.n; i++)
        if (m->m.sample[i].at == 0 || m->m.sample[i].at < fresh) {
            (void)gpi_monitor_ask(&m->m, i, gpi_now());
            all = false;
        }
    if (m->m.enumerated && m->m.n == 0 && m->looked_at < fresh) {
        (void)gpi_monitor_look(&m->m, gpi_now()); /* a driver may have come */
        all = false;
    }
    return all;
}

/* Until there is news, or so long: what could not be asked for, for want of memory say, is asked
 * for again. */
static bool await(const gpud_monitor *m, uint64_t until)
{
    const bool asked = gpi_monitor_waits(&m->m) != 0;

    return gpi_monitor_poll(&m->m, asked ? until : gpi_time_min(until, gpi_now() + AGAIN)) ||
           (!asked && gpi_now() < until);
}

static void hear_silence(gpud_monitor *m)
{
    for (uint32_t i = 0; i < m->m.n; i++)
        if (m->m.asked_at[i])
            (void)gpi_health_silence(&m->health[i], &policy, m->m.asked_at[i], gpi_now());
}

static void fill(const gpud_monitor *m, struct gpud_device_info *rows, size_t n)
{
    uint32_t size = n ? rows[0].struct_size : 0;
    struct gpud_device_info row;

    for (uint32_t i = 0; i < m->m.n && i < n; i++) {
        gpi_row_fill(&row, &m->m.device[i], &m->m.sample[i], &m->health[i]);
        gpi_versioned_write((char *)rows + (size_t)i * size, size, &row, sizeof row);
    }
}

int gpud_monitor_read(gpud_monitor *m, struct gpud_device_info *rows, size_t n, uint64_t max_age,
                      uint64_t wait)
{
    const uint64_t start = gpi_now(), until = gpi_time_add(start, wait),
                   fresh = max_age < start ? start - max_age : 0;
    int r = check(m);

    if (r)
        return r;
    if (n && !rows)
        return GPUD_EINVAL;
    if (n && !gpi_versioned_sized(rows[0].struct_size, offsetof(struct gpud_device_info, index)))
        return GPUD_ESTRUCT;
    do
        absorb(m);
    while (!m->m.gone && !ask(m, fresh) && await(m, until));
    absorb(m); /* what came while we were stopped, say: before anybody's silence is told */
    if (m->m.gone)
        return GPUD_ESPAWNER;
    hear_silence(m);
    fill(m, rows, n);
    return (int)m->m.n;
}

/* ---- who uses a device ---- */

static uint32_t row_named(const gpud_monitor *m, const char *device)
{
    uint32_t i = 0;

    while (i < m->m.n && strcmp(m->m.device[i].name, device) != 0 &&
           strcmp(m->m.device[i].uuid, device) != 0)
        i++;
    return i;
}

static struct gpud_process_info process_of(const struct gpi_user *u)
{
    struct gpud_process_info r = { .pid = u->pid, .memory = u->memory };
    char name[GPI_PROCESS_NAME];

    gpi_process_name(u->pid, name);
    r.worker = gpi_process_is_worker(name);
    return r;
}

int gpud_monitor_processes(gpud_monitor *m, const char *device, struct gpud_process_info *rows,
                           size_t n)
{
    const struct gpi_sample *s;
    uint32_t size, listed, row;
    int r = check(m);

    if (r)
        return r;
    if (!device || (n && !rows))
        return GPUD_EINVAL;
    size = n ? rows[0].struct_size : 0;
    if (n && !gpi_versioned_sized(size, offsetof(struct gpud_process_info, worker)))
        return GPUD_ESTRUCT;
    row = row_named(m, device);
    if (row == m->m.n)
        return GPUD_ENOTFOUND;
    s = &m->m.sample[row];
    listed = !s->at || !s->users_known ? 0 : s->n_users;
    listed = listed < GPI_PROCESSES_MAX ? listed : GPI_PROCESSES_MAX;
    for (uint32_t i = 0; i < listed && i < n; i++) {
        const struct gpud_process_info p = process_of(&s->user[i]);
        gpi_versioned_write((char *)rows + (size_t)i * size, size, &p, sizeof p);
    }
    return (int)listed;
}

/* ---- the driver ---- */

static void hung(struct gpud_driver_info *info, const gpud_monitor *m, uint64_t now)
{
    uint64_t since = gpi_monitor_waits(&m->m);

    info->state = GPUD_DRIVER_HUNG;
    snprintf(info->text, sizeof info->text,
             "the driver has not replied for %.1f s; workers are not delayed, but the state of the "
             "GPUs is unknown",
             (double)(now - since) / 1e9);
}

static void fill_driver(struct gpud_driver_info *info, const gpud_monitor *m)
{
    const struct gpi_driver *d = &m->m.driver;
    uint64_t now = gpi_now(), since = gpi_monitor_waits(&m->m);

    if (m->m.driver_known) {
        info->state = d->state;
        info->cuda_version = d->cuda_version;
        info->gpus = d->gpus;
        info->unreadable = d->unreadable;
        info->lost = d->lost;
        memcpy(info->text, d->text, sizeof info->text);
        memcpy(info->driver_version, d->driver_version, sizeof info->driver_version);
        memcpy(info->nvml_version, d->nvml_version, sizeof info->nvml_version);
    }
    if (m->m.gone && d->state == GPUD_DRIVER_FAILED && *d->text)
        return; /* it has said why it ended */
    if (m->m.gone) {
        info->state = GPUD_DRIVER_FAILED;
        snprintf(info->text, sizeof info->text,
                 "the monitor process has died: open another monitor");
    } else if (!m->m.enumerated || (since && now - since >= STALE)) {
        hung(info, m, now);
    }
}

int gpud_monitor_driver(gpud_monitor *m, struct gpud_driver_info *ret_info, uint64_t wait)
{
    const uint64_t until = gpi_time_add(gpi_now(), wait);
    struct gpud_driver_info info = { .state = 0 };
    int r = check(m);

    if (r)
        return r;
    if (!ret_info)
        return GPUD_EINVAL;
    if (!gpi_versioned_sized(ret_info->struct_size,
                             offsetof(struct gpud_driver_info, driver_version)))
        return GPUD_ESTRUCT;
    do
        absorb(m);
    while (!m->m.gone && !m->m.enumerated && gpi_monitor_poll(&m->m, until));
    absorb(m);
    fill_driver(&info, m);
    gpi_versioned_write(ret_info, ret_info->struct_size, &info, sizeof info);
    return 0;
}
