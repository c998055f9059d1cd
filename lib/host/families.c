/* SPDX-License-Identifier: MIT */
/*
 * families.c - which external task a process belongs to: the host has named a process or a session,
 * and all their descendants belong to it, too.
 */
#include <stdlib.h>
#include <unistd.h>

#include "host/external.h"
#include "os/process.h"

#define GENERATIONS 64u /* a process with more ancestors belongs to none */

static bool any_known(const gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->outside.n; i++)
        if (gpi_family_known(&d->outside.of[d->outside.task[i]]))
            return true;
    return false;
}

static uint32_t task_of(const gpud_dispatcher *d, uint32_t pid, uint32_t session)
{
    for (uint32_t i = 0; i < d->outside.n; i++) {
        const struct gpi_grant *g = &d->outside.of[d->outside.task[i]];
        if ((g->pid && g->pid == pid) || (g->session && g->session == session))
            return d->outside.task[i];
    }
    return GPI_NONE;
}

/* Reads the parent and the session of a process: the second and fourth word behind its name.
 * Returns false if it is gone. */
static bool look_up(uint32_t pid, uint32_t *ret_parent, uint32_t *ret_session)
{
    char text[512], *at;
    const char *stat = gpi_process_stat((pid_t)pid, text, sizeof text);

    if (!stat || !*stat)
        return false;
    *ret_parent = (uint32_t)strtoul(stat + 1, &at, 10);
    (void)strtoul(at, &at, 10); /* its group */
    *ret_session = (uint32_t)strtoul(at, &at, 10);
    return true;
}

/* /proc may have the numbers of another namespace: then only the process itself is known. */
static uint32_t without_ancestors(const gpud_dispatcher *d, uint32_t pid)
{
    const pid_t session = getsid((pid_t)pid);

    return task_of(d, pid, session > 0 ? (uint32_t)session : 0);
}

uint32_t gpi_family_of(const gpud_dispatcher *d, uint32_t pid)
{
    uint32_t parent, session, task;

    if (!any_known(d))
        return GPI_NONE;
    if (gpi_process_number() != getpid())
        return without_ancestors(d, pid);
    for (uint32_t i = 0; i < GENERATIONS && pid; i++) {
        if (!look_up(pid, &parent, &session))
            return task_of(d, pid, 0);
        task = task_of(d, pid, session);
        if (task != GPI_NONE)
            return task;
        pid = parent;
    }
    return GPI_NONE;
}
