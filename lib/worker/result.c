/* SPDX-License-Identifier: MIT */
/*
 * result.c - the worker's side of the result arena: runs of granules, next fit.  A granule is free
 * when the worker's count of uses equals the host's count of returns: two words, one writer each,
 * no lock.
 *
 * With option result_wait a task waits for room as an idle worker waits for tasks.  The worker
 * stores worker_wants_room, tries once more, and sleeps at its pipe until the host rings.
 */
#include <signal.h>

#include "base/clock.h"
#include "os/headroom.h"
#include "wire/frame.h"
#include "worker/worker.h"

#define TELL_NS GPI_S /* the host logs a longer wait */
#define GRANT 64u /* granules, 4 MiB: a check of the memory that is left costs some system calls */

static bool granule_free(const struct gpi_granule *g)
{
    return atomic_load_explicit(&g->used, memory_order_relaxed) ==
           atomic_load_explicit(&g->freed, memory_order_acquire);
}

static void bump(struct gpi_granule *g, uint32_t by)
{
    uint32_t used = atomic_load_explicit(&g->used, memory_order_relaxed);

    atomic_store_explicit(&g->used, used + by, memory_order_relaxed);
}

#define PIN_BARRIER (uint32_t)(GPI_PIN_PIECE / GPI_GRANULE)

/* Returns the first run of `need` free granules in [from, to); `to` when there is none. */
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

/* Searches the granules that were used before, from the cursor on; then beyond them. */
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

/* Returns whether machine and cgroup have the memory for granules up to `to`.  Checks many at
 * once. */
static bool may_grow(gpud_worker *w, uint32_t to)
{
    if (to <= w->granules_granted ||
        to <= atomic_load_explicit(&w->plan.page->granules_used, memory_order_relaxed))
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
    uint32_t at = (uint32_t)(off / GPI_GRANULE),
             n = (uint32_t)((size + GPI_GRANULE - 1) / GPI_GRANULE);

    for (uint32_t i = at; i < at + n; i++)
        bump(&w->plan.page->granule[i], (uint32_t)-1);
    w->granule_cursor = at; /* used before, so it has memory */
}

/* ---- waiting ---- */

/* Returns whether this many bytes can ever be free while the task keeps its present result. */
static bool ever_fits(const gpud_task *t, uint64_t size)
{
    const struct gpi_page *p = t->worker->plan.page;
    uint64_t most = atomic_load_explicit(&p->share, memory_order_relaxed) / GPI_GRANULE;
    uint64_t need = (size + GPI_GRANULE - 1) / GPI_GRANULE;
    uint64_t own = t->result_off / GPI_GRANULE;
    uint64_t behind = own + (t->result_size + GPI_GRANULE - 1) / GPI_GRANULE;

    if (t->result_place != GPI_PLACE_ARENA)
        return need <= most;
    return need <= own || (behind < most && need <= most - behind);
}

static bool must_give_up(gpud_worker *w)
{
    return atomic_load(&w->plan.page->closing) || gpi_limit_cancelled(&w->limit) ||
           gpi_limit_expired(&w->limit);
}

/* Tries again each time the host rings.  SIGALRM is blocked except in the sleep itself, so that a
 * signal between the check and the sleep ends the sleep. */
static uint64_t try_until(gpud_worker *w, uint64_t size, uint64_t until, const sigset_t *asleep)
{
    struct gpi_page *p = w->plan.page;
    uint64_t tell_at = gpi_now() + TELL_NS, off;

    for (;;) {
        uint64_t now, wake_at;
        atomic_store(&p->worker_wants_room, 1);
        atomic_thread_fence(memory_order_seq_cst); /* the store before the loads; see page.h */
        off = gpi_worker_result_alloc(w, size);
        now = gpi_now();
        if (off != UINT64_MAX || now >= until || must_give_up(w))
            break;
        if (now >= tell_at) {
            tell_at = GPI_NEVER;
            atomic_store(&p->room_wanted, size);
            gpi_worker_tell(w, GPI_NEWS_ROOM);
        }
        wake_at = gpi_time_min(tell_at, gpi_limit_next_look(&w->limit, now));
        gpi_worker_doze(w, gpi_time_min(until, wake_at), asleep);
    }
    atomic_store(&p->worker_wants_room, 0); /* a doorbell rung meanwhile is in vain */
    return off;
}

uint64_t gpi_worker_result_await(gpud_task *t, uint64_t size)
{
    gpud_worker *w = t->worker;
    uint64_t until = gpi_time_add(gpi_now(), w->plan.page->result_wait), off;
    sigset_t alarm, before, asleep;

    if (w->members > 1 || !ever_fits(t, size))
        return UINT64_MAX; /* the host gets no result of the other members before the call ends */
    if (w->untold)
        gpi_worker_flush(w); /* the tasks that have ended may hold the room */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &alarm, &before);
    asleep = before;
    sigdelset(&asleep, SIGALRM);
    off = try_until(w, size, until, &asleep);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return off;
}
