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

bool gpi_book_barred(const struct gpi_oracle *o, uint32_t slot)
{
    for (uint32_t d = 0; d < o->truth->devices; d++)
        if (gpi_book_has(o, slot, d) && o->device[d].may >= GPI_MAY_OUT)
            return true;
    return gpi_book_drains(o, slot);
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

static bool tries(const struct gpi_book_slot *s)
{
    return s->only || (s->worker && s->start == GPI_START_ONLY);
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
        for (uint32_t i = 0; i < o->truth->slots; i++)
            if (gpi_book_has(o, i, d) && tries(&o->slot[i]))
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
           !s->still && !s->ending && s->life == GPI_LIFE_UP;
}

bool gpi_book_has_life(const struct gpi_oracle *o, uint32_t slot)
{
    const struct gpi_book_slot *s = &o->slot[slot];

    return !o->truth->max_tasks || o->renewing || s->served + s->sent < o->truth->max_tasks;
}

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

uint32_t gpi_book_tasks(const struct gpi_oracle *o, uint32_t state)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->truth->tasks; i++)
        n += o->task[i].state == state;
    return n;
}
