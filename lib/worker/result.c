/* SPDX-License-Identifier: MIT */
/*
 * result.c - the worker's side of the result arena: runs of granules, next fit.  A granule is
 * free when the worker's count of uses equals the host's count of returns: two words, one
 * writer each, no lock.  Never waits.
 */
#include "os/headroom.h"
#include "worker/worker.h"

#define GRANT 64u /* granules, 4 MiB: looking at the memory that is left costs some system calls */

static bool granule_free(const struct gpi_granule *g)
{
    return atomic_load_explicit(&g->used, memory_order_relaxed) == atomic_load_explicit(&g->freed, memory_order_acquire);
}

static void bump(struct gpi_granule *g, uint32_t by)
{
    uint32_t used = atomic_load_explicit(&g->used, memory_order_relaxed);

    atomic_store_explicit(&g->used, used + by, memory_order_relaxed);
}

#define PIN_BARRIER (uint32_t)(GPI_PIN_PIECE / GPI_GRANULE)

/* The first run of `need` free granules in [from, to); `to` when there is none. */
static uint32_t find_run(const gpud_worker *w, uint32_t from, uint32_t to, uint32_t need)
{
    const struct gpi_page *p = w->plan.page;
    const uint32_t barrier = w->pinned && need <= PIN_BARRIER ? PIN_BARRIER : UINT32_MAX;
    uint32_t run = 0;

    for (uint32_t i = from; i < to; i++) {
        if (i % barrier == 0)
            run = 0;
        run = granule_free(&p->granule[i]) ? run + 1 : 0;
        if (run == need)
            return i + 1 - need;
    }
    return to;
}

/* Among the granules that were used before, from the cursor on; else beyond them. */
static uint32_t find_place(gpud_worker *w, uint32_t n, uint32_t need)
{
    const struct gpi_page *p = w->plan.page;
    uint32_t warm = atomic_load_explicit(&p->granules_used, memory_order_relaxed), at;

    warm = warm < n ? warm : n;
    if (w->granule_cursor >= warm)
        w->granule_cursor = 0;
    at = find_run(w, w->granule_cursor, warm, need);
    if (at == warm)
        at = find_run(w, 0, warm, need);
    return at == warm ? find_run(w, 0, n, need) : at;
}

/* Whether machine and cgroup have the memory for granules up to `to`.  Asked for many at a time. */
static bool may_grow(gpud_worker *w, uint32_t to)
{
    if (to <= w->granules_granted || to <= atomic_load_explicit(&w->plan.page->granules_used, memory_order_relaxed))
        return true;
    if (gpi_headroom_for((uint64_t)(to - w->granules_granted + GRANT) * GPI_GRANULE))
        to += GRANT;
    else if (!gpi_headroom_for((uint64_t)(to - w->granules_granted) * GPI_GRANULE))
        return false;
    w->granules_granted = to;
    return true;
}

uint64_t gpi_worker_result_alloc(gpud_worker *w, uint64_t size)
{
    struct gpi_page *p = w->plan.page;
    uint64_t share = atomic_load_explicit(&p->share, memory_order_relaxed);
    uint32_t n = (uint32_t)(share / GPI_GRANULE), need, at;

    if (size > share)
        return UINT64_MAX;
    need = (uint32_t)((size + GPI_GRANULE - 1) / GPI_GRANULE);
    at = find_place(w, n, need);
    if (at == n || !may_grow(w, at + need))
        return UINT64_MAX;
    for (uint32_t i = at; i < at + need; i++)
        bump(&p->granule[i], 1);
    w->granule_cursor = at + need;
    if (at + need > atomic_load_explicit(&p->granules_used, memory_order_relaxed))
        atomic_store_explicit(&p->granules_used, at + need, memory_order_relaxed);
    return (uint64_t)at * GPI_GRANULE;
}

void gpi_worker_result_undo(gpud_worker *w, uint64_t off, uint64_t size)
{
    uint32_t at = (uint32_t)(off / GPI_GRANULE), n = (uint32_t)((size + GPI_GRANULE - 1) / GPI_GRANULE);

    for (uint32_t i = at; i < at + n; i++)
        bump(&w->plan.page->granule[i], (uint32_t)-1);
    w->granule_cursor = at; /* warm */
}
