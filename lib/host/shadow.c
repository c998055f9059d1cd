/* SPDX-License-Identifier: MIT */
#include "host/shadow.h"

#ifndef NDEBUG

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "host/device.h"
#include "host/slot.h"
#include "host/task.h"
#include "sched/core.h"

/* ---- create and destroy ---- */

/* If there is no memory, the dispatcher has no shadow. */
void gpi_shadow_make(gpud_dispatcher *d)
{
    const struct gpi_sched_settings set = {
        .slots = GPI_SLOTS_MAX,
        .devices = GPI_SLOTS_MAX * GPI_DEVICES,
        .tasks = d->n_tasks,
        .max_sent = GPI_CELLS,
        .setup_concurrency = d->set.setup_concurrency,
        .makes = UINT32_MAX,
        .max_tasks = d->set.max_tasks_per_worker,
        .executed = d->executed,
        .boot_limit = GPI_NEVER, .setup_limit = GPI_NEVER, .canary_limit = GPI_NEVER,
        .cleanup_limit = GPI_NEVER, .memory_wait = GPI_NEVER, .reply_limit = GPI_NEVER,
        .restart = d->set.restart,
        .retry = d->set.retry,
    };

    d->shadow = gpi_sched_create(&set);
}

void gpi_shadow_free(gpud_dispatcher *d)
{
    gpi_sched_destroy(d->shadow);
    d->shadow = NULL;
}

static struct gpi_sched_slot *twin(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return &d->shadow->slot[s->index];
}

/* ---- replies to the actions of the core: the host has acted already ---- */

static void feed(gpud_dispatcher *d, struct gpi_sched_event e);

static void answer(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    const struct gpi_slot *s = a->slot < d->n_slots ? &d->slot[a->slot] : NULL;

    switch (a->kind) {
    case GPI_ACT_MAKE:
    case GPI_ACT_KILL:
    case GPI_ACT_KILL_AT:
    case GPI_ACT_END:
        feed(d, (struct gpi_sched_event){ .kind = GPI_EV_BEGUN, .slot = a->slot });
        break;
    case GPI_ACT_START:
        if (s->started) /* no event reports every change of a device's canary_due */
            d->shadow->slot[a->slot].canary = (uint8_t)s->canary;
        feed(d, (struct gpi_sched_event){ .kind = s->started ? GPI_EV_BEGUN : GPI_EV_UNSENT,
                                          .slot = a->slot });
        break;
    default:
        break;
    }
}

static void take_actions(gpud_dispatcher *d)
{
    struct gpi_sched_action a;
    struct gpi_sched_end e;

    while (gpi_sched_next(d->shadow, &a))
        answer(d, &a);
    while (gpi_sched_ended(d->shadow, &e))
        ;
}

static void feed(gpud_dispatcher *d, struct gpi_sched_event e)
{
    if (!d->shadow)
        return;
    e.now = d->now > d->shadow->now ? d->now : d->shadow->now;
    gpi_sched_event(d->shadow, &e);
    take_actions(d);
}

/* ---- starts and events of the host ---- */

/* Before the end of a turn the host replaces no worker for max_tasks_per_worker. */
static void decide(gpud_dispatcher *d, bool turn)
{
    const uint32_t max_tasks = d->shadow->set.max_tasks;

    if (d->shadow->feeding != d->feeding)
        feed(d, (struct gpi_sched_event){ .kind = GPI_EV_SOURCE, .how = d->feeding });
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->shadow->slot[i].owed && !d->slot[i].vacating)
            feed(d, (struct gpi_sched_event){ .kind = GPI_EV_MEMORY, .slot = i });
    d->shadow->set.max_tasks = turn ? max_tasks : 0;
    gpi_sched_decide(d->shadow, d->now > d->shadow->now ? d->now : d->shadow->now);
    take_actions(d);
    d->shadow->set.max_tasks = max_tasks;
}

static enum gpi_may may_be_used(const struct gpi_known_device *k)
{
    if (!gpi_health_starts(&k->health))
        return gpi_health_hopes(&k->health) ? GPI_MAY_OUT : GPI_MAY_DEAD;
    return k->health.canary_due || k->health.state == GPUD_HEALTH_SUSPECT ? GPI_MAY_DOUBT
                                                                          : GPI_MAY_OK;
}

void gpi_shadow_bind(gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    if (!d->shadow)
        return;
    gpi_sched_device_add(d->shadow, device, k->gauge != GPI_NO_GAUGE, GPI_NEVER);
    d->shadow->device[device].may = (uint8_t)may_be_used(k);
}

void gpi_shadow_add(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (d->shadow && s->index >= d->shadow->n_slots)
        gpi_sched_slot_add(d->shadow, s->index, s->devices, s->n_devices);
}

/* If the host has begun a worker, the core must begin it before it gets a later event. */
static void catch_up(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->shadow && i < d->n_slots; i++)
        if (d->shadow->slot[i].life == GPI_LIFE_WAIT && d->slot[i].started) {
            decide(d, false);
            return;
        }
}

/* The host requests a keeper at once, the core when it decides. */
static void ask(gpud_dispatcher *d, struct gpi_sched_slot *x)
{
    if (x->keeper != GPI_KEEPER_NONE)
        return;
    x->keeper = GPI_KEEPER_ASKED;
    d->shadow->makes++;
}

void gpi_shadow_slot(gpud_dispatcher *d, struct gpi_slot *s, uint32_t event, uint32_t how)
{
    if (!d->shadow)
        return;
    catch_up(d);
    if (event == GPI_EV_KEEPER_UP)
        ask(d, twin(d, s));
    else if (event == GPI_EV_UNSENT)
        decide(d, true); /* that END is the end of the host's turn */
    feed(d, (struct gpi_sched_event){ .kind = event,
                                      .slot = s->index,
                                      .incarnation = twin(d, s)->incarnation,
                                      .how = how });
}

void gpi_shadow_device(gpud_dispatcher *d, uint32_t device, uint32_t event, uint32_t use)
{
    catch_up(d);
    feed(d, (struct gpi_sched_event){ .kind = event,
                                      .device = device,
                                      .how = may_be_used(&d->dev.row[device]),
                                      .what = use });
}

void gpi_shadow_event(gpud_dispatcher *d, uint32_t event)
{
    feed(d, (struct gpi_sched_event){ .kind = event });
}

static uint32_t exit_facts(const struct gpi_slot *s)
{
    const uint32_t done = atomic_load(&s->ch.page->canary_done);
    uint32_t facts = 0;

    if (s->kill == GPI_KILL_HARD) /* else the host called the kill off */
        facts |= GPI_EXITED_BY_US;
    if (s->kill == GPI_KILL_PROTOCOL)
        facts |= GPI_EXITED_SPOILT;
    if (s->watched && atomic_load(&s->ch.page->fault))
        facts |= GPI_EXITED_FAULT;
    if (s->canary == GPI_CANARY_NO || (!s->answered && done == GPI_CANARY_NOT_YET) ||
        atomic_load(&s->ch.page->miscounted))
        return facts;
    return facts | (done == GPI_CANARY_PASSED ? GPI_EXITED_PASSED : GPI_EXITED_FAILED);
}

/* Tasks that the worker cannot have begun go back to the queue. */
static void give_back(gpud_dispatcher *d, const struct gpi_slot *s, uint64_t begun)
{
    for (uint32_t cell = 0; cell < GPI_CELLS; cell++)
        if ((s->inflight & ~begun) >> cell & 1)
            gpi_tasks_force(d->shadow, s->cell_task[cell], GPI_RECORD_QUEUED, 0, 0);
}

/* The facts by which the core decides whether a charged task gets another attempt. */
static void know_charged(gpud_dispatcher *d, const struct gpi_slot *s, uint64_t begun)
{
    struct gpi_sched_slot *x = twin(d, s);

    x->told = s->told;
    x->cancelled = s->cancelled;
    x->doomed = s->late;
    for (uint32_t cell = 0; cell < GPI_CELLS; cell++) {
        const struct gpi_task *t = &d->task[s->cell_task[cell]];
        struct gpi_sched_record *r = &d->shadow->task[s->cell_task[cell]];
        if (!(begun >> cell & 1))
            continue;
        r->attempts = t->attempts;
        r->max_attempts = t->max_attempts;
        r->causes = t->causes;
        r->spoilt = t->spoilt;
    }
}

void gpi_shadow_died(gpud_dispatcher *d, struct gpi_slot *s, uint64_t begun, uint32_t kind)
{
    if (!d->shadow)
        return;
    catch_up(d);
    give_back(d, s, begun);
    know_charged(d, s, begun);
    twin(d, s)->restart = s->restart;
    d->shadow->successes = d->count.success;
    gpi_shadow_slot(d, s, kind == GPUD_EXIT_NONE ? GPI_EV_SURVIVED : GPI_EV_EXITED,
                    kind == GPUD_EXIT_NONE ? 0 : exit_facts(s));
    if (kind == GPUD_EXIT_LOST)
        feed(d, (struct gpi_sched_event){ .kind = GPI_EV_KEEPER_GONE, .slot = s->index });
}

void gpi_shadow_gone(gpud_dispatcher *d, struct gpi_slot *s, uint32_t how)
{
    if (!d->shadow)
        return;
    twin(d, s)->restart = s->restart;
    twin(d, s)->keepers_in_vain = s->keepers_in_vain;
    gpi_shadow_slot(d, s, GPI_EV_KEEPER_GONE, how);
}

/* The core keeps no times: the host reports which wait has expired. */
static void no_times(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->shadow->n_slots; i++) {
        struct gpi_sched_slot *x = &d->shadow->slot[i];
        x->deadline = x->check_at = x->keeper_by = GPI_NEVER;
        gpi_ring_arm(d->shadow, x);
        gpi_ring_arm_seat(d->shadow, x);
    }
}

void gpi_shadow_over(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!d->shadow || twin(d, s)->life != gpi_slot_life(d, s))
        return; /* at the end of a worker the core may be ahead */
    no_times(d);
    twin(d, s)->deadline = d->shadow->now;
    gpi_ring_arm(d->shadow, twin(d, s));
    gpi_shadow_event(d, GPI_EV_TIME);
}

/* The host has read the cells: a task of the slot is late, or is cancelled and goes on. */
void gpi_shadow_late(gpud_dispatcher *d, struct gpi_slot *s, uint32_t why)
{
    struct gpi_sched_slot *x;

    if (!d->shadow)
        return;
    x = twin(d, s);
    for (uint32_t cell = 0; cell < GPI_CELLS; cell++)
        x->soft[cell] = why == GPI_WHY_LIMIT ? 0 : GPI_NEVER;
    x->cancelled = why == GPI_WHY_LIMIT ? 0 : x->cells;
    for (uint32_t cell = 0; cell < GPI_CELLS; cell++)
        x->cancel_at[cell] = 0;
    x->judging = true;
    x->running = x->held_for = x->cells;
    gpi_shadow_slot(d, s, GPI_EV_HELD, 0);
}

void gpi_shadow_close(gpud_dispatcher *d)
{
    catch_up(d);
    feed(d, (struct gpi_sched_event){ .kind = GPI_EV_CLOSE, .how = d->finish, .at = GPI_NEVER });
}

void gpi_shadow_close_limit(gpud_dispatcher *d)
{
    if (!d->shadow)
        return;
    catch_up(d);
    no_times(d);
    feed(d, (struct gpi_sched_event){
                .kind = GPI_EV_CLOSE, .how = d->finish, .at = d->shadow->now });
    gpi_shadow_event(d, GPI_EV_TIME);
}

/* ---- tasks ---- */

void gpi_shadow_task(gpud_dispatcher *d, const struct gpi_task *t)
{
    static const uint8_t states[] = {
        [GPI_TASK_QUEUED] = GPI_RECORD_QUEUED,
        [GPI_TASK_SENT] = GPI_RECORD_SENT,
        [GPI_TASK_DEFERRED] = GPI_RECORD_LATER,
        [GPI_TASK_ENDED] = GPI_RECORD_FREE,
    };

    if (!d->shadow)
        return;
    if (t->has_slot)
        twin(d, &d->slot[t->slot])->served = d->slot[t->slot].served;
    gpi_tasks_force(d->shadow, gpi_task_index(d, t), states[t->state], t->slot, t->cell);
    if (d->shadow->touched) /* the last task of a slot: the core acts on that at once */
        feed(d, (struct gpi_sched_event){ .kind = GPI_EV_SOURCE, .how = d->shadow->feeding });
}

/* ---- comparison ---- */

/* The host makes this change at the end of its turn, the core with the event. */
static bool is_to_come(const gpud_dispatcher *d, enum gpi_life host, enum gpi_life core)
{
    if (core == GPI_LIFE_END)
        return host >= GPI_LIFE_BOOT && host <= GPI_LIFE_END;
    return d->shadow->winding && (core == GPI_LIFE_KILL || core == GPI_LIFE_STOPPED);
}

/*
 * The differences in which the core is right, and the host changes with the switch.  Each
 * difference has a script, and a test that meets it:
 *
 *   a device fails, or the close limit expires, during a kill for a task's limit: the host may
 *   still spare the worker (fence_while_doomed; device_faults, dying)
 *   the spawner is gone, and with it the proof of a worker's end: the host assumes this end
 *   (spawner_dies; dying)
 *   a close ends all queued tasks: until the last one has ended, the host still starts workers
 *   (close_starts_nothing; suite fault, scenario close)
 */
static bool is_mended(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_life host,
                      enum gpi_life core)
{
    if (core == GPI_LIFE_KILL && twin(d, s)->why == GPI_WHY_LIMIT)
        return gpi_slot_has_worker(&(struct gpi_sched_slot){ .life = (uint8_t)host });
    if (gpi_close_starts_nothing(d->shadow) && d->closing)
        return core == GPI_LIFE_WAIT || core == GPI_LIFE_STOPPED;
    return core == GPI_LIFE_STUCK && d->spawner_gone;
}

static bool agrees(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    static const char *const names[] = {
#define X(name) #name,
        GPI_LIFE_MAP(X) "contradictory"
#undef X
    };
    const enum gpi_life host = gpi_slot_life(d, s), core = gpi_sched_life(d->shadow, s->index);

    if (host == core || is_to_come(d, host, core) || is_mended(d, s, host, core))
        return true;
    (void)fprintf(stderr, "slot %u: the host has %s, the core %s\n", s->index, names[host],
                  names[core]);
    return false;
}

bool gpi_shadow_agrees(gpud_dispatcher *d, const struct gpi_slot *s, bool turn)
{
    bool all = true;

    if (!d->shadow)
        return true;
    decide(d, turn);
    if (s)
        return agrees(d, s);
    for (uint32_t i = 0; i < d->n_slots; i++)
        all &= agrees(d, &d->slot[i]);
    return all;
}

#endif
