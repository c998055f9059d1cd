/* SPDX-License-Identifier: MIT */
#include "wire/control.h"

#include "base/ways.h"
#include "gpudispatch/types.h"
#include "wire/hello.h"
#include "wire/page.h"

/* MADE and STARTED carry a pid, or the errno of their failure. */
static bool made_or_not(const struct gpi_control *c)
{
    return c->sys_errno ? c->sys_errno > 0 : c->pid > 0;
}

static bool exit_ok(const struct gpi_control *c)
{
    return (c->exit_kind == GPUD_EXIT_CODE || c->exit_kind == GPUD_EXIT_SIGNAL) &&
           c->answer < GPI_ANSWERS && c->step < GPI_STEPS && c->sys_errno >= 0;
}

bool gpi_control_of_keeper(const struct gpi_control *c, size_t size)
{
    if (size != sizeof *c)
        return false;
    switch (c->kind) {
    case GPI_CTL_STARTED:
        return made_or_not(c);
    case GPI_CTL_EXITED:
        return exit_ok(c);
    case GPI_CTL_UNFIT:
        return c->sys_errno > 0;
    case GPI_CTL_DENIED:
        return c->ways && c->ways <= GPI_WAYS && c->sys_errno > 0;
    case GPI_CTL_ANSWERED:
    case GPI_CTL_SWEEPING:
    case GPI_CTL_SPARED:
    case GPI_CTL_STOPPED:
    case GPI_CTL_CONTINUED:
    case GPI_CTL_OVERDUE:
        return true;
    default:
        return false;
    }
}

bool gpi_control_of_spawner(const struct gpi_control *c, size_t size, uint32_t slots)
{
    if (size != sizeof *c || c->slot >= slots)
        return false;
    if (c->kind == GPI_CTL_UNFIT)
        return c->sys_errno > 0;
    return c->kind == GPI_CTL_MADE ? made_or_not(c) : c->kind == GPI_CTL_GONE && c->pid > 0;
}

/* Fds can be lost on the way: then the worker would be one of another class. */
static bool start_ok(const struct gpi_control *c, size_t fds)
{
    return c->force ? fds >= GPI_CLASS_FDS && fds <= GPI_CLASS_FDS_MAX : fds == 0;
}

bool gpi_control_for_keeper(const struct gpi_control *c, size_t size, size_t fds)
{
    if (size != sizeof *c)
        return false;
    if (c->kind == GPI_CTL_START)
        return start_ok(c, fds);
    return fds == 0 && (c->kind == GPI_CTL_ALARM || c->kind == GPI_CTL_AWAIT ||
                        c->kind == GPI_CTL_END || (c->kind == GPI_CTL_KILL && c->cell < GPI_CELLS));
}

bool gpi_control_for_spawner(const struct gpi_control *c, size_t size, size_t fds)
{
    if (size != sizeof *c)
        return false;
    switch (c->kind) {
    case GPI_CTL_MAKE:
        return fds == GPI_MAKE_FDS;
    case GPI_CTL_MONITOR:
        return fds == 1;
    case GPI_CTL_DROP:
        return c->pid > 0;
    default:
        return c->kind == GPI_CTL_BYE;
    }
}
