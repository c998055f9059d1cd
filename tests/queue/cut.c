/* SPDX-License-Identifier: MIT */
/*
 * cut.c - the power is cut at random moments below the store: what was acknowledged is there.
 *
 * A life is a store that works on a simulated disk, loses its power in the middle of a random
 * change of the disk, is opened again, and works on, several times.  After each cut a copy of the
 * disk is judged (life.h).  The controls leave something out that a store needs, and must show
 * harm: else the disk would find nothing.
 *
 * T_CUTS: how many cuts the case without controls makes.  T_SEED: only the life of this seed.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "life.h"

enum {
    CUTS_OF_A_LIFE = 5,
    TRANSACTIONS = 30, /* at most, before a cut of an idle disk */
    CHANGES = 900,     /* of the disk, at most, before a cut */
    WINDOW = 600,      /* changes before the cut from which on each commit is dumped */
};

struct tally {
    uint64_t cuts, idle, in_flight, arrived, harm[HARMS];
    uint64_t done[WORK_OPERATIONS], refused[WORK_OPERATIONS];
};

/* Returns false, and fails the case if the power was not cut. */
static bool works(const struct life *l, int rc, const struct gpq_error *e, uint64_t seed)
{
    if (rc < 0 && !disk_dead(l->disk))
        T_FAIL("seed %llu: the store failed with %d (%s), and the disk works",
               (unsigned long long)seed, rc, e->text);
    return rc >= 0;
}

static void live_until_cut(struct life *l, struct tally *t, uint64_t seed)
{
    const uint64_t cut_at =
        disk_changes(l->disk) + 1 + draw_below(&l->seed, draw_chance(&l->seed, 25) ? 60 : CHANGES);
    unsigned left = 1 + draw_below(&l->seed, TRANSACTIONS);
    struct gpq_error e = { 0 };
    bool alive;

    disk_cut_in(l->disk, cut_at, draw_chance(&l->seed, 30) ? DISK_SYNC : DISK_ANY);
    alive = works(l, life_open(l, &e), &e, seed);
    for (; alive && left > 0; left--) {
        l->work.show = disk_changes(l->disk) + WINDOW > cut_at;
        alive = works(l, life_transact(l, &e), &e, seed);
    }
    if (alive) {
        life_show(l);
        if (draw_chance(&l->seed, 50))
            life_close(l);
    }
    t->idle += alive;
    t->in_flight += l->in_flight;
}

static void live(const struct control *c, uint64_t seed, bool harmless, struct tally *t)
{
    struct life *l = life_make(c, seed);
    enum harm harm = NO_HARM;

    diskvfs_pad(seed % 4 == 0);
    for (unsigned n = 1; n <= CUTS_OF_A_LIFE && harm == NO_HARM; n++) {
        struct disk *copy;
        live_until_cut(l, t, seed);
        life_cut(l);
        copy = disk_cut(l->disk, 1);
        harm = life_judge(l, copy);
        disk_free(copy);
        t->cuts++;
        t->harm[harm]++;
        t->arrived += l->arrived;
        if (harm != NO_HARM && harmless)
            T_FAIL("seed %llu, cut %u: %s: %s", (unsigned long long)seed, n, harm_names[harm],
                   l->why);
    }
    for (unsigned i = 0; i < WORK_OPERATIONS; i++) {
        t->done[i] += l->work.done[i];
        t->refused[i] += l->work.refused[i];
    }
    life_free(l);
}

static struct tally live_often(const struct control *c, uint64_t cuts, bool harmless)
{
    const char *only = getenv("T_SEED"); /* one life, to find out why it failed */
    uint64_t seed = only ? strtoull(only, NULL, 10) : 1;
    struct tally t = { 0 };

    for (; t.cuts < (only ? 1 : cuts); seed++)
        live(c, seed, harmless, &t);
    diskvfs_remove();
    (void)printf("%llu cuts, %llu while idle, %llu in a commit, of which %llu arrived;",
                 (unsigned long long)t.cuts, (unsigned long long)t.idle,
                 (unsigned long long)t.in_flight, (unsigned long long)t.arrived);
    for (unsigned i = 1; i < HARMS; i++)
        (void)printf(" %s %llu", harm_names[i], (unsigned long long)t.harm[i]);
    (void)printf("\n");
    return t;
}

static uint64_t harms(const struct tally *t)
{
    return t->cuts - t->harm[NO_HARM];
}

/* Q1 Q2: with all syncs. */
T_LONG_CASE(what_was_acknowledged_is_there, 3000)
{
    const char *cuts = getenv("T_CUTS");
    struct tally t = live_often(&(struct control){ .start_early = false },
                                cuts ? strtoull(cuts, NULL, 10) : t_rounds(1000, 400), true);

    T_EQ(harms(&t), 0);
    T_CMP(t.in_flight * 10, >, t.cuts);
    T_CMP(t.arrived, >, 0);
    T_CMP(t.in_flight, >, t.arrived);
    for (unsigned i = 0; work_name(i); i++) {
        (void)printf("%s: %llu, refused %llu\n", work_name(i), (unsigned long long)t.done[i],
                     (unsigned long long)t.refused[i]);
        T_CMP(t.done[i], >, t.refused[i]);
    }
}

/* Each of these must do harm in a substantial share of the cuts. */
static struct tally live_with(const struct control *c)
{
    struct tally t = live_often(c, 80, false);

    T_CMP(harms(&t) * 20, >, t.cuts);
    return t;
}

/* Q1: a commit needs its sync. */
T_LONG_CASE(without_the_syncs_of_commits_something_is_lost, 120)
{
    struct tally t = live_with(&(struct control){ .syncs = DISKVFS_NORMAL });

    T_CMP(t.harm[LOST], >, 0);
}

T_LONG_CASE(without_syncs_something_is_lost_or_damaged, 120)
{
    struct tally t = live_with(&(struct control){ .syncs = DISKVFS_OFF });

    T_CMP(t.harm[LOST] + t.harm[UNREADABLE], >, 0);
}

/* Q2: an attempt may start only after the commit of its claim. */
T_LONG_CASE(starts_before_the_commit_go_unrecorded, 120)
{
    struct tally t = live_with(&(struct control){ .start_early = true });

    T_EQ(harms(&t), t.harm[UNRECORDED]);
}

T_LONG_CASE(without_syncs_of_result_files_they_are_torn, 120)
{
    struct tally t = live_with(&(struct control){ .no_file_sync = true });

    T_EQ(harms(&t), t.harm[NO_RESULT]);
}

T_LONG_CASE(without_syncs_of_their_directory_results_are_gone, 120)
{
    struct tally t = live_with(&(struct control){ .no_directory_sync = true });

    T_EQ(harms(&t), t.harm[NO_RESULT]);
}
