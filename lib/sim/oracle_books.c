/* SPDX-License-Identifier: MIT */
/* oracle_books.c - questions to the books of the oracles. */
#include "base/clock.h"
#include "sim/oracle.h"

bool gpi_life_has_worker(uint32_t life)
{
    return life >= GPI_LIFE_BOOT && life <= GPI_LIFE_LOST;
}

bool gpi_book_has(const struct gpi_oracle *o, uint32_t slot, uint32_t device)
{
    const struct gpi_truth_slot *t = &o->truth->slot[slot];

    for (uint32_t i = 0; i < t->n_devices; i++)
        if (t->device[i] == device)
            return true;
    return false;
}

bool gpi_book_drains(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && (o->device[d].draining || o->device[d].removing))
            return true;
    return false;
}

bool gpi_book_on_paused(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].paused)
            return true;
    return false;
}

bool gpi_book_paused(const struct gpi_oracle *o, uint32_t slot)
{
    return gpi_book_on_paused(o, slot) || o->class[o->truth->slot[slot].class].paused;
}

bool gpi_book_barred(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may >= GPI_MAY_OUT)
            return true;
    return gpi_book_drains(o, slot) || gpi_book_on_paused(o, slot);
}

bool gpi_book_doubted(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may != GPI_MAY_OK)
            return true;
    return gpi_book_drains(o, slot);
}

static bool is_dead(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may == GPI_MAY_DEAD)
            return true;
    return false;
}

bool gpi_book_useless(const struct gpi_oracle *o, uint32_t slot)
{
    switch (o->slot[slot].life) {
    case GPI_LIFE_OFF:
    case GPI_LIFE_FAILED:
    case GPI_LIFE_STUCK:
    case GPI_LIFE_REMOVED:
        return true;
    case GPI_LIFE_PARKED:
        return is_dead(o, slot);
    default:
        return false;
    }
}

bool gpi_book_is_canary(const struct gpi_book_slot *s)
{
    return s->only || (s->worker && s->start == GPI_START_ONLY);
}

bool gpi_book_tries(const struct gpi_oracle *o, uint32_t device)
{
    for (uint32_t i = 0; i < o->truth->slots; i++)
        if (gpi_book_has(o, i, device) && gpi_book_is_canary(&o->slot[i]))
            return true;
    return false;
}

bool gpi_book_can_try(const struct gpi_oracle *o, uint32_t slot)
{
    bool due = false;

    for (uint32_t d = 0; d < o->truth->devices; d++) {
        if (!gpi_book_has(o, slot, d))
            continue;
        if (o->device[d].may == GPI_MAY_DEAD || (o->device[d].may == GPI_MAY_OUT &&
                                                !o->device[d].due))
            return false;
        if (gpi_book_tries(o, d))
            return false;
        due |= o->device[d].due;
    }
    return due && !gpi_book_drains(o, slot);
}

bool gpi_book_cancels(const struct gpi_oracle *o)
{
    return o->closed && o->close >= GPI_CLOSE_RUNNING;
}

bool gpi_book_takes(const struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    return s->worker && s->ready && !s->lost && s->kill == GPI_BOOK_SPARE && !s->sweeping &&
           !s->still && !s->ending && s->life == GPI_LIFE_UP && !gpi_book_paused(o, slot);
}

bool gpi_book_has_life(const struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    return !o->truth->max_tasks || gpi_book_renews(o, slot) ||
           s->served + s->sent < o->truth->max_tasks;
}

/* ---- how many tasks a worker may have ---- */

bool gpi_book_wary(const struct gpi_oracle *o)
{
    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state != GPI_BOOK_FREE && o->task[i].wary)
            return true;
    return false;
}

static uint32_t bounded(const struct gpi_oracle *o, uint32_t slot, uint32_t depth)
{
    const uint32_t most = gpi_book_wary(o) ? 1 : depth;

    return most < o->slot[slot].room ? most : o->slot[slot].room;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint32_t gpi_book_most(const struct gpi_oracle *o, uint32_t slot)
{
    return bounded(o, slot, larger(o->truth->ahead ? o->truth->ahead : 64, o->truth->batch));
}

uint32_t gpi_book_least(const struct gpi_oracle *o, uint32_t slot)
{
    const uint32_t usual = o->truth->pooled ? 1 : 2 * o->truth->batch;

    return bounded(o, slot, larger(o->truth->ahead ? o->truth->ahead : usual, o->truth->batch));
}

/* ---- stuck in a long task ---- */

#define QUIET_NS GPI_MS
#define CHECK_NS (60 * GPI_MS) /* for the host, which may check late, and its steps */

/* Returns the time in silence after which the core finds a worker stuck. */
static uint64_t patience(const struct gpi_oracle *o, uint32_t slot)
{
    const uint64_t runs = 4 * o->class[o->truth->slot[slot].class].mean_run;

    return runs > QUIET_NS ? runs : QUIET_NS;
}

static uint64_t silence(const struct gpi_oracle *o, uint32_t slot)
{
    const uint64_t since = o->slot[slot].heard + o->truth->batch_wait;

    return o->slot[slot].sent && o->truth->now > since ? o->truth->now - since : 0;
}

bool gpi_book_stuck(const struct gpi_oracle *o, uint32_t slot)
{
    return silence(o, slot) > 2 * patience(o, slot) + CHECK_NS;
}

bool gpi_book_lively(const struct gpi_oracle *o, uint32_t slot)
{
    return silence(o, slot) < QUIET_NS / 2;
}

bool gpi_book_unclaimed(const struct gpi_oracle *o, uint32_t slot)
{
    uint64_t last = 0;
    bool unclaimed = false;

    for (uint32_t i = 0; i < o->truth->tasks; i++) {
        const struct gpi_book_task *t = &o->task[i];
        if (t->state != GPI_BOOK_SENT || t->slot != slot || t->number < last)
            continue;
        last = t->number;
        unclaimed = o->truth->task[i].unclaimed;
    }
    return unclaimed;
}

/* ---- limits, and numbers of workers ---- */

uint64_t gpi_book_setup_limit(const struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];
    const struct gpi_truth *t = o->truth;
    const bool boots = t->executed && !s->answered;
    const uint64_t limit = boots ? gpi_time_min(t->boot_limit, t->setup_limit) : t->setup_limit;

    return s->start == GPI_START_ONLY ? gpi_time_min(limit, t->canary_limit) : limit;
}

/* Counts a worker that dies in its setup until its end. */
uint32_t gpi_book_setups(const struct gpi_oracle *o)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->truth->slots; i++)
        n += o->slot[i].worker && !o->slot[i].ready;
    return n;
}

uint32_t gpi_book_makes(const struct gpi_oracle *o)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->truth->slots; i++)
        n += o->slot[i].keeper == GPI_BOOK_ASKED;
    return n;
}

bool gpi_book_queues(const struct gpi_oracle *o, uint32_t class)
{
    for (uint32_t i = 0; i < o->truth->tasks; i++)
        if (o->task[i].state == GPI_BOOK_QUEUED && o->truth->task[i].class == class)
            return true;
    return false;
}

bool gpi_book_renews(const struct gpi_oracle *o, uint32_t slot)
{
    return o->class[o->truth->slot[slot].class].renewing != 0;
}

/* Beside foreign processes. */
static bool has_room(const struct gpi_oracle *o, const struct gpi_request *need, uint32_t device)
{
    const uint64_t usable = o->truth->usable[device], foreign = o->truth->foreign[device];

    if (need->memory == GPI_MEMORY_ALL)
        return foreign == 0;
    return foreign < usable / 2 && need->memory <= usable / 2 - foreign;
}

static bool could_hold(const struct gpi_oracle *o, const struct gpi_request *need)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < o->truth->devices; d++)
        n += o->device[d].may < GPI_MAY_OUT && !o->device[d].draining && !o->device[d].removing &&
             !o->device[d].paused && has_room(o, need, d);
    return n >= need->devices;
}

bool gpi_book_is_external(const struct gpi_oracle *o, uint32_t class)
{
    return o->truth->pooled && o->truth->class[class].residence == GPI_EXTERNAL;
}

bool gpi_book_waits(const struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_book_task *t = &o->task[task];

    return t->state == GPI_BOOK_QUEUED ||
           (t->state == GPI_BOOK_LATER && t->until <= o->truth->now);
}

bool gpi_book_leased(const struct gpi_oracle *o, uint32_t device)
{
    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        const struct gpi_book_lease *l = &o->lease[i];
        const bool is_over = o->is_time && l->give_up_at <= o->fed_at; /* given up just now */
        if ((l->state != GPI_BOOK_UNSTARTED && l->state != GPI_BOOK_STARTED) || is_over)
            continue;
        for (uint32_t k = 0; k < l->n_devices; k++)
            if (l->device[k] == device)
                return true;
    }
    return false;
}

bool gpi_book_could_fit(const struct gpi_oracle *o, uint32_t task)
{
    const struct gpi_truth_task *t = &o->truth->task[task];
    bool could = t->n_requests == 0 && could_hold(o, &o->truth->class[t->class].need[0]);

    for (uint32_t i = 0; i < t->n_requests; i++)
        could |= could_hold(o, &t->request[i]);
    return could;
}
