/* SPDX-License-Identifier: MIT */
/* process.c - the state that gpud_init leaves behind, and the places that its spawner has. */
#include "api/process.h"

#include <string.h>

#include "base/failure.h"
#include "wire/control.h"

static struct gpi_process the_process; /* gpud_init and gpud_fini write it */

struct gpi_process *gpi_process_here(void)
{
    return &the_process;
}

struct gpi_process *gpi_process(void)
{
    return the_process.alive && atomic_load_explicit(the_process.alive, memory_order_relaxed)
               ? &the_process
               : NULL;
}

bool gpi_process_forked(void)
{
    return the_process.alive && !gpi_process();
}

bool gpi_process_changed(const struct gpi_process *p)
{
    struct gpi_credentials now;

    gpi_process_credentials(&now);
    return memcmp(&now, &p->credentials, sizeof now) != 0;
}

/* ---- places ---- */

int gpi_process_enter(struct gpi_process *p, struct gpud_error *e)
{
    if (atomic_fetch_add(&p->dispatchers, 1) < GPI_CONNECTIONS_MAX)
        return 0;
    gpi_process_leave(p);
    return gpi_fail(e, GPUD_EFULL, 0, "",
                    "this process has %d dispatchers and monitors, the maximum",
                    GPI_CONNECTIONS_MAX);
}

void gpi_process_leave(struct gpi_process *p)
{
    atomic_fetch_sub(&p->dispatchers, 1);
}

int gpi_process_seat(_Atomic uint32_t *slots, uint32_t n, struct gpud_error *e)
{
    uint32_t before = atomic_fetch_add(slots, n);

    if (before + n <= GPI_KEEPERS_MAX)
        return 0;
    gpi_process_unseat(slots, n);
    return gpi_fail(
        e, GPUD_EFULL, 0, "devices",
        "%u slots more than the %u there are, the maximum is %d for all dispatchers of a process",
        n, before, GPI_KEEPERS_MAX);
}

void gpi_process_unseat(_Atomic uint32_t *slots, uint32_t n)
{
    atomic_fetch_sub(slots, n);
}
