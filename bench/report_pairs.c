/* SPDX-License-Identifier: MIT */
/* report_pairs.c - what pairs and looks at the machine come to. */
#include "report.h"

static void add_states(struct b_figure *f, const struct b_states *states)
{
    if (states->n == 0)
        return;
    f->line = b_states_line(states);
    f->loop = b_states_loop(states);
    f->changed = b_machine_changed(&f->line, &f->loop);
    f->shared = b_machine_shared(states);
}

void b_report_pairs(unsigned key, const struct b_pairs *pairs, enum b_what what, double scale)
{
    struct b_figure f = { .key = key,
                          .raw = b_pairs_raw(pairs, what) * scale,
                          .ours = b_pairs_ours(pairs, what) * scale,
                          .ratio = b_pairs_ratio(pairs, what) };

    f.value = f.ratio.middle;
    add_states(&f, &pairs->states);
    b_report_figure(&f);
}

void b_report_seen(unsigned key, double value, double raw, const struct b_states *states)
{
    struct b_figure f = { .key = key, .value = value, .raw = raw, .ours = value };

    add_states(&f, states);
    b_report_figure(&f);
}

static void widen(struct b_spread *s, double value)
{
    s->low = s->high > 0 && s->low < value ? s->low : value;
    s->high = s->high > value ? s->high : value;
}

void b_print_states(FILE *out, const struct b_figure *figures, const char *wanted)
{
    struct b_spread line = { 0, 0, 0 }, loop = { 0, 0, 0 };
    unsigned i, shared = 0;

    for (i = 0; i < B_KEY_COUNT; i++) {
        if (!wanted[i] || !(figures[i].line.high > 0))
            continue;
        shared += figures[i].shared != 0;
        widen(&line, figures[i].line.middle);
        widen(&loop, figures[i].loop.middle);
    }
    if (line.high > 0)
        (void)fprintf(out,
                      "\nA cache line to the second CPU and back: %.0f to %.0f ns; the fixed loop: "
                      "%.2f to %.2f us%s\n",
                      line.low, line.high, loop.low, loop.high,
                      b_machine_changed(&line, &loop) ? ": the machine changed within this run"
                                                      : "");
    if (shared > 0)
        (void)fprintf(out,
                      "Other programs ran during %u of these figures: do not keep them.\n",
                      shared);
}
