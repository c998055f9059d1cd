/* SPDX-License-Identifier: MIT */
#include "wire/page.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

size_t gpi_page_size(uint64_t result_size)
{
    return sizeof(struct gpi_page) +
           (size_t)(result_size / GPI_GRANULE) * sizeof(struct gpi_granule);
}

bool gpi_page_must_ring(_Atomic uint32_t *sleeps)
{
    atomic_thread_fence(memory_order_seq_cst); /* caller's store before this load; see page.h */
    return atomic_load_explicit(sleeps, memory_order_relaxed) && atomic_exchange(sleeps, 0);
}

bool gpi_cell_take(struct gpi_cell *c, uint64_t number, enum gpi_claim to)
{
    uint64_t sent = gpi_claim_word(number, GPI_SENT);

    return atomic_compare_exchange_strong_explicit(&c->claim, &sent, gpi_claim_word(number, to),
                                                   memory_order_acq_rel, memory_order_acquire);
}

static bool arena_range_ok(uint64_t off, uint64_t size, uint64_t arena)
{
    return off % GPI_GRANULE == 0 && off <= arena && size <= arena - off && size > 0;
}

static bool ending_ok(const struct gpi_ending *e, uint64_t sent_at, uint64_t now, uint64_t arena)
{
    if (e->started_at < sent_at || e->ended_at < e->started_at)
        return false;
    if (e->ended_at > now && e->ended_at > gpi_now()) /* `now` may be older than the end */
        return false;
    switch (e->result_place) {
    case GPI_PLACE_NONE:
        return e->result_size == 0;
    case GPI_PLACE_CELL:
        return e->result_size <= GPI_INLINE_SIZE;
    case GPI_PLACE_ARENA:
        return arena_range_ok(e->result_off, e->result_size, arena);
    }
    return false;
}

enum gpi_look gpi_ending_check(struct gpi_ending *e, uint64_t sent_at, uint64_t now,
                               uint64_t result_arena)
{
    if (e->batch > GPI_CELLS)
        e->batch = 1;
    if (!ending_ok(e, sent_at, now, result_arena))
        return GPI_LOOK_BAD;
    if (e->stopped > e->ended_at - e->started_at)
        /* the keeper accounted for an earlier stop late */
        e->stopped = e->ended_at - e->started_at;
    return GPI_LOOK_ENDED;
}

bool gpi_cell_stalled(const struct gpi_cell_extra *x, uint64_t stall_limit, struct gpi_ending *e)
{
    e->stalled_at = *(const volatile uint64_t *)&x->stalled_at;
    return e->stalled_at == 0 || (e->stalled_at >= e->started_at && e->stalled_at <= e->ended_at &&
                                  e->stalled_at - e->started_at >= stall_limit);
}

void gpi_page_setup_failed(struct gpi_page *p, int code, const char *text)
{
    p->setup_code = code;
    snprintf(p->setup_text, sizeof p->setup_text, "%s", text);
    atomic_store_explicit(&p->setup_done, 2, memory_order_release);
}

void gpi_page_text(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    to[size - 1] = '\0';
}

bool gpi_cell_progress(const struct gpi_cell_extra *x, double *ret_fraction, char *text)
{
    uint32_t seq = atomic_load_explicit(&x->progress_seq, memory_order_acquire);
    uint64_t bits = atomic_load_explicit(&x->progress, memory_order_relaxed);
    double fraction;

    gpi_page_text(text, x->progress_text, GPI_PROGRESS_TEXT_SIZE);
    atomic_thread_fence(memory_order_acquire);
    if (seq & 1 || atomic_load_explicit(&x->progress_seq, memory_order_relaxed) != seq)
        return false;
    memcpy(&fraction, &bits, sizeof fraction);
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return false;
    *ret_fraction = fraction;
    return true;
}
