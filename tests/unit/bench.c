/* SPDX-License-Identifier: MIT */
/*
 * bench.c - how the benchmark comes to a figure: pairs of rounds, what the machine was like, the
 * bare ring.
 */
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

#include "eviction.h"
#include "machine.h"
#include "pairs.h"
#include "place.h"
#include "raw_ring.h"
#include "report.h"

/* A side whose rounds are written down beforehand. */
struct script {
    const double *values;
    size_t next;
    char *calls; /* the name of each side that was called, in order */
    char name;
};

static int next_round(void *user, struct b_round *ret)
{
    struct script *s = user;
    size_t at = 0;

    while (s->calls[at])
        at++;
    s->calls[at] = s->name;
    *ret = (struct b_round){ .value = s->values[s->next], .cpu = 1e3 / s->values[s->next] };
    s->next++;
    return ret->value < 0 ? -1 : 0;
}

/* Takes n pairs of two scripts.  Returns the code of the last. */
static int take(struct b_pairs *p, const double *raw, const double *ours, size_t n, char *calls)
{
    struct script r = { .values = raw, .calls = calls, .name = 'r' },
                  o = { .values = ours, .calls = calls, .name = 'o' };
    struct b_side theirs = { next_round, &r }, mine = { next_round, &o };
    int rc = 0;

    *p = (struct b_pairs){ .n = 0 };
    while (rc == 0 && n-- > 0)
        rc = b_pairs_take(p, &theirs, &mine);
    return rc;
}

/* Reads the figure that `pairs` are reported as. */
static struct b_figure reported(const struct b_pairs *pairs, enum b_what what, double scale)
{
    struct b_figure f;
    int ends[2];

    T_EQ(pipe(ends), 0);
    b_report_open(ends[1]);
    b_report_pairs(B_KEY_pipelined_vs_raw_w64, pairs, what, scale);
    T_EQ(read(ends[0], &f, sizeof(f)), sizeof(f));
    T_EQ(close(ends[0]) | close(ends[1]), 0);
    return f;
}

#define PERCENT(x) ((x) * 100 + 0.5)

/* Two rounds in a fast state of the machine, three in a slow one: a ratio of medians would be
 * 0.9. */
T_CASE(figure_is_the_median_of_ratios)
{
    static const double raw[] = { 2e6, 2e6, 2e6, 10e6, 10e6 },
                        ours[] = { 1.8e6, 1.8e6, 1e6, 5e6, 5e6 };
    char calls[16] = "";
    struct b_figure f;
    struct b_pairs p;

    T_EQ(take(&p, raw, ours, 5, calls), 0);
    f = reported(&p, B_VALUE, 1e-6);
    T_EQ(f.key, B_KEY_pipelined_vs_raw_w64);
    T_EQ(PERCENT(f.value), 50);
    T_EQ(PERCENT(f.raw), 200); /* what stands beside it are medians, in the key's unit */
    T_EQ(PERCENT(f.ours), 180);
    f = reported(&p, B_CPU, 1);
    T_EQ(PERCENT(f.value), 200);
}

T_CASE(quartiles)
{
    static const double raw[] = { 10, 10, 10, 10, 10, 10, 10, 10 },
                        ours[] = { 8, 3, 1, 5, 2, 7, 4, 6 };
    char calls[20] = "";
    struct b_figure f;
    struct b_pairs p;

    T_EQ(take(&p, raw, ours, 8, calls), 0);
    f = reported(&p, B_VALUE, 1);
    T_EQ(PERCENT(f.ratio.low), 20);
    T_EQ(PERCENT(f.value), 40);
    T_EQ(PERCENT(f.ratio.high), 60);
}

T_CASE(every_other_pair_begins_with_ours)
{
    static const double values[] = { 1, 1, 1, 1 };
    char calls[12] = "";
    struct b_pairs p;

    T_EQ(take(&p, values, values, 4, calls), 0);
    T_TEXT(calls, "roorroor");
}

T_CASE(failed_round_is_no_pair)
{
    static const double raw[] = { 1, 1, 1 }, ours[] = { 1, -1, 1 };
    char calls[12] = "";
    struct b_pairs p;

    T_EQ(take(&p, raw, ours, 3, calls), -1);
    T_EQ(p.n, 1);
}

static int changed(const double *line, const double *loop, size_t n)
{
    struct b_states s = { .n = 0 };
    struct b_spread way, speed;

    for (; s.n < n; s.n++) {
        s.line_ns[s.n] = line[s.n];
        s.loop_us[s.n] = loop[s.n];
    }
    way = b_states_line(&s);
    speed = b_states_loop(&s);
    return b_machine_changed(&way, &speed);
}

T_CASE(change_of_the_machine_is_told)
{
    static const double same[] = { 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 };
    /* one look alone says nothing */
    static const double near[] = { 90, 95, 100, 92, 91, 93, 95, 97, 90, 92, 91, 430 };
    static const double far[] = { 90, 95, 100, 92, 91, 93, 95, 97, 90, 420, 400, 430 };
    static const double slow[] = { 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5 };

    T_EQ(changed(near, same, 12), 0);
    T_EQ(changed(far, same, 12), 1);
    T_EQ(changed(near, slow, 12), 1);
}

T_CASE(other_programs_are_told)
{
    struct b_states s = { .n = 40, .shared = 4 };

    T_EQ(b_machine_shared(&s), 0);
    s.shared = 5;
    T_EQ(b_machine_shared(&s), 1);
}

/* Where there are two CPUs, the way between them is timed; without the other process nothing is. */
T_CASE(machine_is_looked_at)
{
    uint64_t until = t_now() + T_PATIENCE;
    struct b_states s = { .n = 0 };

    b_machine_look(&s);
    T_EQ(s.n, 0);
    b_place_init();
    if (b_cpu_count() < 2)
        t_skip("needs two CPUs");
    T_EQ(b_pin(0, b_cpu_number(0)), 0);
    T_EQ(b_machine_open(b_cpu_number(1)), 0);
    while (s.n < 2 && t_now() < until)
        b_machine_look(&s);
    T_EQ(s.n, 2);
    T_CHECK(s.line_ns[1] > 0 && s.loop_us[1] > 0);
    b_machine_close();
    b_machine_look(&s);
    T_EQ(s.n, 2);
}

T_CASE(ring_goes_round)
{
    struct b_ring_pool pool;
    struct b_round round;
    int i;

    b_place_init();
    T_EQ(b_ring_pool_open(&pool, 2, b_cpu_number(0)), 0);
    for (i = 0; i < 3; i++) {
        round.value = 0;
        T_EQ(b_ring_round(&pool, &round), 0);
        T_CHECK(round.value > 0);
    }
    b_ring_pool_close(&pool);
}

/* A step without a time has that of the step before.  The second START needs a keeper first. */
T_CASE(evictions_are_read)
{
    static const char log[] =
        "# decision log\n@1ms submit t=1\n@1ms decide\n----\nSTART s=0 i=1 how=plain\n\n"
        "@2ms begun s=0\n@3ms setup_ok s=0 i=1\n"
        "@10ms submit t=2 class=1\n----\nEND s=0\n\n@11ms begun s=0\n@13ms exited s=0 i=1\n"
        "@14500us decide\nmemory s=0\n@15ms begun s=0\n@16ms setup_ok s=0 i=2\n"
        "@20s submit t=1\n@20000000001ns begun s=0\n@21s memory s=0\n@22s begun s=1\n"
        "@23s keeper_up s=1\n@24s begun s=1\n@25s setup_ok s=1 i=1\n# end\n";
    struct b_eviction e[3];
    FILE *out = fopen("log", "we");

    T_CHECK(out && fputs(log, out) >= 0);
    T_EQ(fclose(out), 0);
    T_EQ(b_evictions_read("log", e, 3), 2);
    T_EQ(e[0].submit, 10 * B_MS);
    T_EQ(e[0].order, 11 * B_MS);
    T_EQ(e[0].gone, 14500000);
    T_EQ(e[0].start, 15 * B_MS);
    T_EQ(e[1].submit, 20 * B_S);
    T_EQ(e[1].order, 20 * B_S + 1);
    T_EQ(e[1].gone, 21 * B_S);
    T_EQ(e[1].start, 24 * B_S);
    T_EQ(b_evictions_read("log", e, 1), 1);
}
