/* SPDX-License-Identifier: MIT */
/* page.c - what a worker may have written into its page: end records, progress, texts. */
#include "fuzz.h"

#include "base/clock.h"
#include "wire/page.h"

struct asked {
    uint64_t number, sent_at, now, arena;
};

static void look(const struct gpi_cell *c, const struct asked *a)
{
    struct gpi_ending e;
    enum gpi_look what = gpi_cell_look(c, a->number, a->sent_at, a->now, a->arena, &e);

    FUZZ_CHECK((what == GPI_LOOK_NOT_YET) == (atomic_load(&c->end) >> 8 != a->number));
    if (what != GPI_LOOK_ENDED)
        return;
    FUZZ_CHECK(e.end == GPI_END_OK || e.end == GPI_END_FAILED || e.end == GPI_END_EXPIRED);
    FUZZ_CHECK(e.started_at >= a->sent_at && e.ended_at >= e.started_at);
    FUZZ_CHECK(e.ended_at <= a->now || e.ended_at <= gpi_now());
    FUZZ_CHECK(e.stopped <= e.ended_at - e.started_at);
    FUZZ_CHECK(e.batch >= 1 && e.batch <= GPI_CELLS);
    switch (e.result_place) {
    case GPI_PLACE_NONE:
        FUZZ_CHECK(e.result_size == 0);
        break;
    case GPI_PLACE_CELL:
        FUZZ_CHECK(e.result_size <= GPI_INLINE_SIZE);
        break;
    case GPI_PLACE_ARENA:
        FUZZ_CHECK(e.result_off % GPI_GRANULE == 0 && e.result_off < a->arena &&
                   e.result_size > 0 && e.result_size <= a->arena - e.result_off);
        break;
    default:
        FUZZ_CHECK(0);
    }
}

/* When a stall limit had passed: not before it could, not after the end. */
static void look_stalled(const struct gpi_cell_extra *x, uint64_t stall_limit, uint64_t started,
                         uint64_t lasted)
{
    struct gpi_ending e = { .started_at = started, .ended_at = gpi_time_add(started, lasted) };

    if (!gpi_cell_stalled(x, stall_limit, &e) || e.stalled_at == 0)
        return;
    FUZZ_CHECK(e.stalled_at >= e.started_at && e.stalled_at <= e.ended_at &&
               e.stalled_at - e.started_at >= stall_limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpi_cell_extra x;
    char text[GPI_FAIL_TEXT_SIZE];
    unsigned char bytes[sizeof(struct gpi_cell)];
    struct asked a;
    struct gpi_cell c;
    double fraction = -1;

    fuzz_take(&a, sizeof(a), &data, &size);
    fuzz_take(bytes, sizeof(bytes), &data, &size);
    memcpy(&c, bytes, sizeof(c));
    look(&c, &a);
    a.number = atomic_load(&c.end) >> 8; /* and as if it were the one that is awaited */
    look(&c, &a);
    fuzz_take(&x, offsetof(struct gpi_cell_extra, pad), &data, &size);
    if (gpi_cell_progress(&x, &fraction, text))
        FUZZ_CHECK(fraction >= 0 && fraction <= 1);
    else
        FUZZ_CHECK(fraction == -1);
    FUZZ_CHECK(strnlen(text, GPI_PROGRESS_TEXT_SIZE) < GPI_PROGRESS_TEXT_SIZE);
    look_stalled(&x, x.stall_limit, a.sent_at, a.now);
    x.stalled_at = a.sent_at + a.number % 64;
    look_stalled(&x, a.arena % 64, a.sent_at, a.now % 64);
    gpi_page_text(text, x.fail_text, sizeof(text));
    FUZZ_CHECK(strnlen(text, sizeof(text)) < sizeof(text));
    return 0;
}
