/* SPDX-License-Identifier: MIT */
/* world_keeper.c - the spawner of a world, and the keepers that it makes. */
#include "sim/world_state.h"

static struct gpi_world_keeper *keeper_of(struct gpi_world *w, uint32_t slot)
{
    return &w->slot[slot].keeper;
}

/* ---- the spawner ---- */

/* Returns true if the spawner acts now.  A frozen spawner acts when it continues. */
static bool spawner_acts(struct gpi_world *w, const struct gpi_fact *f)
{
    if (w->spawner.alive && w->spawner.frozen && w->spawner.n_waits < GPI_WORLD_WAITS)
        w->spawner.wait[w->spawner.n_waits++] = *f;
    return w->spawner.alive && !w->spawner.frozen;
}

static void made(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_keeper *k = keeper_of(w, f->slot);

    if (gpi_world_happens(w, GPI_TROUBLE_SPAWNER_REFUSES)) {
        gpi_word_send(w, GPI_CHANNEL_SOCKET, f->slot, GPI_EV_KEEPER_NO, 0);
        return;
    }
    *k = (struct gpi_world_keeper){ .alive = true, .life = k->life + 1 };
    gpi_word_send(w, GPI_CHANNEL_SOCKET, f->slot, GPI_EV_KEEPER_UP, 0);
    if (!gpi_world_happens(w, GPI_TROUBLE_KEEPER_UNFIT))
        return;
    k->unfit = true;
    gpi_world_soon(w, GPI_FACT_KEEPER_ENDS, f->slot, k->life,
                   gpi_world_time(w, 10 * GPI_US, 5 * GPI_MS));
}

static enum gpi_gone how_it_went(struct gpi_world *w, uint32_t slot)
{
    const struct gpi_world_keeper *k = keeper_of(w, slot);

    if (k->unfit && !k->served)
        return GPI_GONE_UNFIT;
    return w->slot[slot].host.dropped && k->start_unread ? GPI_GONE_VAIN : GPI_GONE_PLAIN;
}

/* The spawner reaps the processes of the dead keeper, and reports. */
static void swept(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_slot *s = &w->slot[f->slot];

    if (f->token != s->keeper.life || s->worker.unkillable)
        return;
    s->worker.phase = GPI_WORKER_NONE;
    gpi_word_send_fact(w, GPI_CHANNEL_SOCKET,
                       (struct gpi_fact){ .kind = GPI_FACT_GONE,
                                          .slot = f->slot,
                                          .token = f->token,
                                          .word.how = how_it_went(w, f->slot) });
}

void gpi_spawner_freeze(struct gpi_world *w)
{
    if (!w->spawner.alive || w->spawner.frozen)
        return;
    w->spawner.frozen = true;
    if (gpi_random_chance(&w->random, 500000))
        gpi_world_soon(w, GPI_FACT_SPAWNER_THAWS, 0, 0, gpi_world_time(w, GPI_MS, 20 * GPI_S));
}

static void spawner_thaws(struct gpi_world *w)
{
    w->spawner.frozen = false;
    for (uint32_t i = 0; i < w->spawner.n_waits; i++)
        gpi_keeper_fact(w, &w->spawner.wait[i]);
    w->spawner.n_waits = 0;
}

void gpi_spawner_end(struct gpi_world *w)
{
    if (!w->spawner.alive)
        return;
    w->spawner.alive = false;
    gpi_word_send_fact(w, GPI_CHANNEL_SOCKET, (struct gpi_fact){ .kind = GPI_FACT_SPAWNER_ENDS });
}

/* ---- a keeper's end ---- */

/* The keeper's worker dies with it, unless the worker is stuck in the kernel. */
void gpi_keeper_end(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_keeper *k = keeper_of(w, slot);
    struct gpi_world_worker *r = &w->slot[slot].worker;
    uint64_t sweep = gpi_world_time(w, 50 * GPI_US, 10 * GPI_MS);

    if (!k->alive)
        return;
    k->alive = false;
    if (gpi_worker_lives(r) && gpi_world_happens(w, GPI_TROUBLE_SURVIVES))
        r->unkillable = true;
    if (gpi_worker_lives(r) && !r->unkillable)
        gpi_worker_die(w, slot);
    if (gpi_world_happens(w, GPI_TROUBLE_SWEEPS))
        sweep = gpi_world_time(w, 10 * GPI_MS, 3 * w->kill_limit);
    gpi_word_send_fact(w, GPI_CHANNEL_SOCKET,
                       (struct gpi_fact){ .kind = GPI_FACT_HANGUP,
                                          .slot = slot,
                                          .token = k->life,
                                          .word.how = how_it_went(w, slot) });
    gpi_world_soon(w, GPI_FACT_SWEPT, slot, k->life, sweep);
}

/* ---- orders ---- */

static void start(struct gpi_world *w, uint32_t slot, const struct gpi_world_order *o)
{
    struct gpi_world_keeper *k = keeper_of(w, slot);

    k->start_unread = false;
    w->slot[slot].worker.incarnation = o->incarnation;
    if (gpi_world_happens(w, GPI_TROUBLE_FORK_FAILS)) {
        gpi_word_send(w, GPI_CHANNEL_SOCKET, slot, GPI_EV_START_NO, 0);
        return;
    }
    k->served = true;
    gpi_worker_born(w, slot, o->incarnation, o->how);
}

static void kill_later(struct gpi_world *w, uint32_t slot, const struct gpi_world_order *o)
{
    struct gpi_world_worker *r = &w->slot[slot].worker;
    const struct gpi_world_cell *c = gpi_cell_of(w, slot, o->task);

    r->kill_task = o->task;
    r->kill_number = c ? c->number : 0;
    gpi_world_soon(w, GPI_FACT_KILL_AT, slot, ++r->kill, o->at > w->now ? o->at - w->now : 0);
}

static void obey(struct gpi_world *w, uint32_t slot, const struct gpi_world_order *o)
{
    const struct gpi_world_worker *r = &w->slot[slot].worker;

    if (o->kind == GPI_ACT_DISMISS)
        gpi_world_soon(w, GPI_FACT_KEEPER_ENDS, slot, keeper_of(w, slot)->life,
                       gpi_world_time(w, 10 * GPI_US, GPI_MS));
    else if (o->kind == GPI_ACT_START)
        start(w, slot, o);
    else if (o->incarnation != r->incarnation || !gpi_worker_lives(r))
        return; /* the worker has ended: the report is on its way */
    else if (o->kind == GPI_ACT_KILL)
        gpi_worker_kill(w, slot, true);
    else
        kill_later(w, slot, o);
}

void gpi_keeper_order(struct gpi_world *w, uint32_t slot, struct gpi_world_order order)
{
    struct gpi_world_keeper *k = keeper_of(w, slot);

    if (!k->alive)
        return;
    k->start_unread |= order.kind == GPI_ACT_START;
    if (!k->frozen)
        obey(w, slot, &order);
    else if (k->n_orders < GPI_WORLD_ORDERS)
        k->order[k->n_orders++] = order;
}

/* The keeper spares the worker if the task has ended in time, or if the worker is stopped and the
 * host does not know that. */
static void kill_at(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_slot *s = &w->slot[f->slot];
    const struct gpi_world_cell *c = gpi_cell_of(w, f->slot, s->worker.kill_task);

    if (f->token != s->worker.kill || !gpi_worker_lives(&s->worker) || !s->keeper.alive ||
        s->worker.phase == GPI_WORKER_DYING)
        return;
    if (s->keeper.frozen) {
        gpi_world_soon(w, GPI_FACT_KILL_AT, f->slot, f->token, 50 * GPI_MS);
        return;
    }
    if (!c || c->number != s->worker.kill_number || c->ended ||
        (s->worker.stopped && !s->host.still))
        gpi_word_send(w, GPI_CHANNEL_SOCKET, f->slot, GPI_EV_SPARED, 0);
    else
        gpi_worker_kill(w, f->slot, true);
}

/* ---- frozen, and not ---- */

void gpi_keeper_freeze(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_keeper *k = keeper_of(w, slot);

    if (!k->alive || k->frozen)
        return;
    k->frozen = true;
    if (gpi_random_chance(&w->random, 500000))
        gpi_world_soon(w, GPI_FACT_KEEPER_THAWS, slot, k->life,
                       gpi_world_time(w, GPI_MS, 4 * w->kill_limit));
}

static void thaw(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_keeper *k = keeper_of(w, f->slot);

    if (f->token != k->life || !k->alive)
        return;
    k->frozen = false;
    gpi_keeper_reap(w, f->slot);
    for (uint32_t i = 0; i < k->n_orders; i++)
        obey(w, f->slot, &k->order[i]);
    k->n_orders = 0;
}

/* ---- a worker's end ---- */

static uint32_t exit_words(const struct gpi_world_worker *r)
{
    return (r->passed ? GPI_EXITED_PASSED : 0u) | (r->failed ? GPI_EXITED_FAILED : 0u) |
           (r->by_us ? GPI_EXITED_BY_US : 0u) | (r->fault ? GPI_EXITED_FAULT : 0u) |
           (r->spoilt ? GPI_EXITED_SPOILT : 0u);
}

static void report_exit(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *r = &w->slot[slot].worker;

    r->phase = GPI_WORKER_NONE;
    gpi_word_send_fact(w, GPI_CHANNEL_SOCKET,
                       (struct gpi_fact){ .kind = GPI_FACT_EXIT,
                                          .slot = slot,
                                          .word = { .kind = GPI_EV_EXITED,
                                                    .incarnation = r->incarnation,
                                                    .how = exit_words(r) } });
}

void gpi_keeper_reap(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_slot *s = &w->slot[slot];

    if (!s->keeper.alive || s->keeper.frozen || s->worker.phase != GPI_WORKER_DEAD ||
        s->worker.sweeping)
        return;
    if (!gpi_world_happens(w, GPI_TROUBLE_SWEEPS)) {
        report_exit(w, slot);
        return;
    }
    s->worker.sweeping = true;
    gpi_word_send(w, GPI_CHANNEL_SOCKET, slot, GPI_EV_SWEEPING, 0);
    if (gpi_random_chance(&w->random, 800000)) /* else the worker's own processes survive */
        gpi_world_soon(w, GPI_FACT_CLEARED, slot, s->worker.incarnation,
                       gpi_world_time(w, GPI_MS, 2 * w->kill_limit));
}

static void cleared(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_slot *s = &w->slot[f->slot];

    if (f->token != s->worker.incarnation || s->worker.phase != GPI_WORKER_DEAD ||
        !s->keeper.alive)
        return;
    if (s->keeper.frozen)
        gpi_world_soon(w, GPI_FACT_CLEARED, f->slot, f->token, 50 * GPI_MS);
    else
        report_exit(w, f->slot);
}

void gpi_keeper_fact(struct gpi_world *w, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_MADE:
        if (spawner_acts(w, f))
            made(w, f);
        break;
    case GPI_FACT_SWEPT:
        if (spawner_acts(w, f))
            swept(w, f);
        break;
    case GPI_FACT_DROPPED:
        if (f->token == keeper_of(w, f->slot)->life && spawner_acts(w, f))
            gpi_keeper_end(w, f->slot);
        break;
    case GPI_FACT_SPAWNER_THAWS: spawner_thaws(w); break;
    case GPI_FACT_KEEPER_ENDS:
        if (f->token == keeper_of(w, f->slot)->life)
            gpi_keeper_end(w, f->slot);
        break;
    case GPI_FACT_KEEPER_THAWS: thaw(w, f); break;
    case GPI_FACT_KILL_AT: kill_at(w, f); break;
    case GPI_FACT_CLEARED: cleared(w, f); break;
    default: break;
    }
}
