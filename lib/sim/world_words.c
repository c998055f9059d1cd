/* SPDX-License-Identifier: MIT */
/* world_words.c - messages on their way to the host, which checks them before it feeds the core. */
#include "sim/world_state.h"

void gpi_word_send_fact(struct gpi_world *w, enum gpi_channel channel, struct gpi_fact f)
{
    uint64_t *last = &w->slot[f.slot].heard[channel];
    uint64_t at = w->now + gpi_random_below(&w->random, w->latency + 1);

    if (at < *last)
        at = *last;
    *last = at;
    f.at = at;
    gpi_agenda_add(w, f);
    if (f.kind != GPI_FACT_WORD && f.kind != GPI_FACT_EXIT)
        return;
    if (f.word.kind < GPI_EV_START_NO || !gpi_world_happens(w, GPI_TROUBLE_LATE_WORDS))
        return;
    f.at = at + gpi_world_time(w, GPI_MS, 2 * GPI_S);
    f.task = GPI_NOWHERE; /* a late duplicate: the host feeds it unchanged */
    gpi_agenda_add(w, f);
}

void gpi_word_send(struct gpi_world *w, enum gpi_channel channel, uint32_t slot, uint32_t kind,
                   uint32_t how)
{
    gpi_word_send_fact(w, channel,
                       (struct gpi_fact){ .kind = GPI_FACT_WORD,
                                          .slot = slot,
                                          .token = w->slot[slot].keeper.life,
                                          .word = { .kind = kind,
                                                    .how = how,
                                                    .incarnation =
                                                        w->slot[slot].worker.incarnation } });
}

static void feed_word(struct gpi_world *w, const struct gpi_fact *f)
{
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = f->word.kind,
                                               .slot = f->slot,
                                               .incarnation = f->word.incarnation,
                                               .how = f->word.how });
}

static bool is_current(struct gpi_world *w, const struct gpi_fact *f)
{
    const struct gpi_world_host *h = &w->slot[f->slot].host;

    return h->worker && h->incarnation == f->word.incarnation;
}

/* ---- keepers ---- */

static void hear_spawner(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_host *h = &w->slot[f->slot].host;

    if (!h->asked || w->spawner.gone)
        return;
    h->asked = false;
    h->keeper = f->word.kind == GPI_EV_KEEPER_UP;
    gpi_host_feed_slot(w, f->word.kind, f->slot, 0);
}

static void keeper_gone(struct gpi_world *w, uint32_t slot, enum gpi_gone how)
{
    struct gpi_world_slot *s = &w->slot[slot];

    if (s->host.worker)
        gpi_host_drain(w, slot);
    s->host.keeper = s->host.lost = s->host.dropped = false;
    s->keeper.life++; /* the host discards every later fact of it */
    gpi_host_feed_slot(w, GPI_EV_KEEPER_GONE, slot, how);
    gpi_host_forget(w, slot);
}

/* The keeper's socket ends.  If the slot has a worker, the host waits until the spawner reports the
 * end of the worker, too. */
static void hear_hangup(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_host *h = &w->slot[f->slot].host;

    if (f->token != w->slot[f->slot].keeper.life || !h->keeper)
        return;
    if (!h->worker) {
        keeper_gone(w, f->slot, (enum gpi_gone)f->word.how);
        return;
    }
    if (!h->lost) {
        h->lost = true;
        gpi_host_feed_slot(w, GPI_EV_KEEPER_LOST, f->slot, 0);
    }
}

static void hear_gone(struct gpi_world *w, const struct gpi_fact *f)
{
    if (f->token == w->slot[f->slot].keeper.life && w->slot[f->slot].host.keeper &&
        !w->spawner.gone)
        keeper_gone(w, f->slot, (enum gpi_gone)f->word.how);
}

/* A message of the keeper is due: it has an order to start a worker, or its worker has ended. */
static void look_at_keeper(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_slot *s = &w->slot[f->slot];

    if (!s->host.worker || s->host.incarnation != f->token || s->host.lost)
        return;
    if (s->keeper.alive && s->keeper.frozen && (s->host.ended || s->keeper.start_unread))
        gpi_host_lose_keeper(w, f->slot);
    else if (s->host.ended || s->keeper.start_unread)
        gpi_world_soon(w, GPI_FACT_LOOK, f->slot, f->token, GPI_S);
}

/* ---- workers ---- */

/* lib/host feeds SWEEPING first.  The core accepts both orders. */
static void hear_exit(struct gpi_world *w, const struct gpi_fact *f)
{
    if (!is_current(w, f)) {
        feed_word(w, f);
        return;
    }
    if (w->oracle.slot[f->slot].life <= GPI_LIFE_END && gpi_random_chance(&w->random, 500000))
        gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_SWEEPING,
                                                   .slot = f->slot,
                                                   .incarnation = f->word.incarnation });
    gpi_host_drain(w, f->slot);
    feed_word(w, f);
    gpi_host_forget(w, f->slot);
}

/* The host has read from the kernel that the worker has ended, before the keeper's report. */
static void hear_end(struct gpi_world *w, const struct gpi_fact *f)
{
    if (!is_current(w, f))
        return;
    w->slot[f->slot].host.ended = true;
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_STILL,
                                               .slot = f->slot,
                                               .incarnation = f->word.incarnation,
                                               .how = 1 });
    gpi_world_soon(w, GPI_FACT_LOOK, f->slot, f->word.incarnation, 0);
}

static void hear_still(struct gpi_world *w, const struct gpi_fact *f)
{
    if (is_current(w, f))
        w->slot[f->slot].host.still = f->word.how;
    feed_word(w, f);
    if (is_current(w, f) && f->word.how && gpi_world_happens(w, GPI_TROUBLE_RECALLS))
        gpi_host_take_back(w, f->slot);
}

static void hear_word(struct gpi_world *w, const struct gpi_fact *f)
{
    const bool current = is_current(w, f);

    switch (f->word.kind) {
    case GPI_EV_KEEPER_UP:
    case GPI_EV_KEEPER_NO:
        hear_spawner(w, f);
        return;
    case GPI_EV_STILL:
        if (f->task == 1)
            hear_end(w, f);
        else if (f->task == 0)
            hear_still(w, f);
        return;
    case GPI_EV_BROKE:
        if (!current)
            return; /* BROKE has no incarnation, so the host checks */
        break;
    case GPI_EV_SPARED:
    case GPI_EV_SWEEPING:
    case GPI_EV_OVERDUE:
    case GPI_EV_START_NO:
        if (f->task == GPI_NOWHERE && current)
            return; /* a keeper sends each of these once */
        break;
    default:
        break;
    }
    feed_word(w, f);
    if (current && f->word.kind == GPI_EV_START_NO)
        gpi_host_forget(w, f->slot);
}

static void lose_patience(struct gpi_world *w, const struct gpi_fact *f)
{
    const struct gpi_world_slot *s = &w->slot[f->slot];

    if (!s->host.worker || s->host.incarnation != f->token || s->host.still || s->host.ended ||
        gpi_cell_running(w, f->slot) || w->oracle.slot[f->slot].sent == 0)
        return;
    gpi_host_drain(w, f->slot);
    gpi_host_feed_slot(w, GPI_EV_BROKE, f->slot, 0);
}

void gpi_word_hear(struct gpi_world *w, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_LOOK: look_at_keeper(w, f); break;
    case GPI_FACT_PATIENCE: lose_patience(w, f); break;
    case GPI_FACT_WORD: hear_word(w, f); break;
    case GPI_FACT_NEWS:
        if (is_current(w, f))
            gpi_host_collect(w, f->slot);
        break;
    case GPI_FACT_EXIT:
        if (f->task != GPI_NOWHERE || !is_current(w, f))
            hear_exit(w, f);
        break;
    case GPI_FACT_HANGUP: hear_hangup(w, f); break;
    case GPI_FACT_GONE: hear_gone(w, f); break;
    case GPI_FACT_SPAWNER_ENDS: gpi_host_lose_spawner(w); break;
    default: break;
    }
}
