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

enum gpi_look gpi_cell_look(const struct gpi_cell *c, uint64_t number, uint64_t sent_at,
                            uint64_t now, uint64_t result_arena, struct gpi_ending *ret)
{
    uint64_t word = atomic_load_explicit(&c->end, memory_order_acquire);
    uint16_t flags;

    if (word >> 8 != number)
        return GPI_LOOK_NOT_YET;
    if ((word & 255) < GPI_END_OK || (word & 255) > GPI_END_EXPIRED)
        return GPI_LOOK_BAD;
    *ret = (struct gpi_ending){
        .end = (enum gpi_end)(word & 255),
        .started_at = atomic_load_explicit(&c->started_at, memory_order_relaxed),
        .ended_at = *(const volatile uint64_t *)&c->ended_at,
        .stopped = *(const volatile uint64_t *)&c->stopped,
        .result_off = *(const volatile uint64_t *)&c->result_off,
        .result_size = *(const volatile uint64_t *)&c->result_size,
        .result_place = (enum gpi_place) * (const volatile uint16_t *)&c->result_place,
        .code = *(const volatile int32_t *)&c->code,
    };
    flags = *(const volatile uint16_t *)&c->flags;
    ret->has_text = (flags & GPI_CELL_TEXT) != 0;
    ret->expired = (flags & GPI_CELL_EXPIRED) != 0;
    ret->first = (flags & GPI_CELL_FIRST) != 0;
    ret->batch = flags >> GPI_CELL_BATCH;
    if (ret->batch == 0 || ret->batch > GPI_CELLS)
        ret->batch = 1;
    if (!ending_ok(ret, sent_at, now, result_arena))
        return GPI_LOOK_BAD;
    if (ret->stopped > ret->ended_at - ret->started_at)
        /* the keeper accounted for an earlier stop late */
        ret->stopped = ret->ended_at - ret->started_at;
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
