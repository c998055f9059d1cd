/* SPDX-License-Identifier: MIT */
/* world_worker.c - workers of a world: boot, canary, setup, tasks, cleanup, and their ends. */
#include "sched/verdict.h"
#include "sim/world_state.h"

static struct gpi_world_worker *worker_of(struct gpi_world *w, uint32_t slot)
{
    return &w->slot[slot].worker;
}

bool gpi_worker_lives(const struct gpi_world_worker *k)
{
    return k->phase != GPI_WORKER_NONE && k->phase != GPI_WORKER_DEAD;
}

/* ---- cells ---- */

struct gpi_world_cell *gpi_cell_of(struct gpi_world *w, uint32_t slot, uint32_t task)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (c->used && c->task == task)
            return c;
    }
    return NULL;
}

struct gpi_world_cell *gpi_cell_running(struct gpi_world *w, uint32_t slot)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (c->used && c->claimed && !c->ended)
            return c;
    }
    return NULL;
}

/* Returns the cell that the host sent first and the worker has not claimed. */
static struct gpi_world_cell *next_cell(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_cell *next = NULL;

    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (c->used && !c->claimed && !c->overwritten && (!next || c->number < next->number))
            next = c;
    }
    return next;
}

static uint64_t stopped_in(const struct gpi_world *w, uint32_t slot,
                           const struct gpi_world_cell *c)
{
    const struct gpi_world_worker *k = &w->slot[slot].worker;
    const uint64_t now = k->stopped ? w->now - k->stopped_at : 0;

    return k->stopped_ns - c->stopped_ns + now;
}

uint64_t gpi_cell_soft(const struct gpi_world *w, uint32_t slot, const struct gpi_world_cell *c)
{
    const uint64_t limit = w->truth.task[c->task].limit;

    return gpi_time_add(gpi_time_add(c->started_at, limit), stopped_in(w, slot, c));
}

/* ---- steps ---- */

static void step_at(struct gpi_world *w, uint32_t slot, uint64_t at)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    k->step++; /* cancels the planned step */
    k->step_at = at;
    if (k->stopped) {
        k->step_left = at == GPI_NEVER ? at : at > w->now ? at - w->now : 0;
        return;
    }
    if (at != GPI_NEVER)
        gpi_world_soon(w, GPI_FACT_STEP, slot, k->step, at > w->now ? at - w->now : 0);
}

static void step_in(struct gpi_world *w, uint32_t slot, uint64_t from, uint64_t to)
{
    step_at(w, slot, w->now + gpi_world_time(w, from, to));
}

static void enter(struct gpi_world *w, uint32_t slot, enum gpi_worker_phase phase)
{
    static const enum gpi_trouble hangs[] = { [GPI_WORKER_BOOTS] = GPI_TROUBLE_BOOT_HANGS,
                                              [GPI_WORKER_CANARY] = GPI_TROUBLE_CANARY_HANGS,
                                              [GPI_WORKER_SETUP] = GPI_TROUBLE_SETUP_HANGS,
                                              [GPI_WORKER_CLEANS] = GPI_TROUBLE_CLEANUP_HANGS };
    worker_of(w, slot)->phase = phase;
    if (gpi_world_happens(w, hangs[phase]))
        step_at(w, slot, GPI_NEVER);
    else
        step_in(w, slot, 50 * GPI_US, 300 * GPI_MS);
}

static void set_up(struct gpi_world *w, uint32_t slot)
{
    const bool canary = worker_of(w, slot)->start != GPI_START_PLAIN;

    enter(w, slot, canary ? GPI_WORKER_CANARY : GPI_WORKER_SETUP);
}

void gpi_worker_born(struct gpi_world *w, uint32_t slot, uint32_t incarnation, uint32_t start)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    *k = (struct gpi_world_worker){ .incarnation = incarnation,
                                    .start = start,
                                    .step_at = GPI_NEVER,
                                    .step = k->step + 1,
                                    .stop = k->stop + 1,
                                    .kill = k->kill + 1 };
    w->slot[slot].memory_at = GPI_NEVER;
    w->truth.slot[slot].stopped = false;
    if (w->set.class.executed)
        enter(w, slot, GPI_WORKER_BOOTS);
    else
        set_up(w, slot);
}

static bool first_device_is_sick(const struct gpi_world *w, uint32_t slot)
{
    const struct gpi_truth_slot *t = &w->truth.slot[slot];

    for (uint32_t i = 0; i < t->n_devices; i++)
        if (w->device[t->device[i]].sick)
            return true;
    return false;
}

static void end_canary(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    const bool fails = gpi_world_happens(w, GPI_TROUBLE_CANARY_FAILS);

    k->failed = fails || first_device_is_sick(w, slot);
    k->passed = !k->failed;
    if (k->failed || k->start == GPI_START_ONLY)
        gpi_worker_die(w, slot);
    else
        enter(w, slot, GPI_WORKER_SETUP);
}

static void rest(struct gpi_world *w, uint32_t slot)
{
    worker_of(w, slot)->phase = GPI_WORKER_IDLE;
    worker_of(w, slot)->step_at = GPI_NEVER;
    gpi_worker_wake(w, slot);
}

static void end_setup(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    if (gpi_world_happens(w, GPI_TROUBLE_SETUP_FAILS)) {
        gpi_worker_die(w, slot);
        return;
    }
    k->ready = true;
    k->deaf = gpi_world_happens(w, GPI_TROUBLE_DEAF);
    gpi_word_send(w, GPI_CHANNEL_PAGE, slot, GPI_EV_SETUP_OK, k->passed ? GPI_EXITED_PASSED : 0u);
    rest(w, slot);
}

/* ---- tasks ---- */

static uint32_t plan(struct gpi_world *w, uint32_t slot)
{
    if (gpi_world_happens(w, GPI_TROUBLE_TASK_CRASHES))
        return GPI_PLAN_CRASH;
    if (w->truth.slot[slot].watched && gpi_world_happens(w, GPI_TROUBLE_FAULTS))
        return GPI_PLAN_FAULT;
    if (gpi_world_happens(w, GPI_TROUBLE_SPOILS))
        return GPI_PLAN_SPOIL;
    return gpi_world_happens(w, GPI_TROUBLE_TASK_FAILS) ? GPI_PLAN_BAD : GPI_PLAN_GOOD;
}

static uint64_t run_time(struct gpi_world *w, uint64_t limit)
{
    if (gpi_world_happens(w, GPI_TROUBLE_TASK_HANGS))
        return GPI_NEVER;
    if (limit != GPI_NEVER && gpi_world_happens(w, GPI_TROUBLE_TASK_LATE))
        return limit + gpi_world_time(w, GPI_US, 3 * w->set.class.grace + GPI_MS);
    return gpi_world_time(w, 10 * GPI_US, w->task_time);
}

static uint64_t reaction(struct gpi_world *w)
{
    return gpi_world_time(w, 5 * GPI_US, w->set.class.grace + GPI_MS);
}

static void end_cell(struct gpi_world *w, uint32_t slot, struct gpi_world_cell *c,
                     uint32_t outcome, uint32_t phase)
{
    c->ended = true;
    c->ended_at = w->now;
    c->outcome = outcome;
    c->phase = phase;
    w->truth.task[c->task].running = false;
    gpi_word_send_fact(w, GPI_CHANNEL_PAGE,
                       (struct gpi_fact){ .kind = GPI_FACT_NEWS,
                                          .slot = slot,
                                          .word.incarnation = worker_of(w, slot)->incarnation });
    rest(w, slot);
}

/* The running task writes where it must not. */
static void overwrite(struct gpi_world *w, uint32_t slot)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (!c->used || c->claimed || !gpi_world_happens(w, GPI_TROUBLE_OVERWRITES))
            continue;
        c->overwritten = worker_of(w, slot)->spoilt = true;
        w->truth.task[c->task].unclaimed = false;
    }
}

static void claim(struct gpi_world *w, uint32_t slot, struct gpi_world_cell *c)
{
    struct gpi_truth_task *t = &w->truth.task[c->task];
    uint64_t run;

    c->claimed = true;
    t->unclaimed = false;
    c->started_at = w->now;
    c->stopped_ns = worker_of(w, slot)->stopped_ns;
    if (t->starts == 0 && t->expires <= w->now) {
        end_cell(w, slot, c, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED);
        return;
    }
    t->starts++;
    t->running = true;
    t->soft_at = gpi_cell_soft(w, slot, c);
    run = run_time(w, t->limit);
    c->runs_until = gpi_time_add(w->now, run);
    c->plan = plan(w, slot);
    c->obeys = gpi_random_chance(&w->random, 600000);
    worker_of(w, slot)->phase = GPI_WORKER_RUNS;
    if (c->plan == GPI_PLAN_SPOIL)
        overwrite(w, slot);
    if (c->obeys && t->soft_at < c->runs_until) {
        c->runs_until = gpi_time_add(t->soft_at, reaction(w));
        c->plan = GPI_PLAN_GOOD;
    }
    step_at(w, slot, c->runs_until);
}

static uint32_t outcome_of(struct gpi_world *w, uint32_t slot, const struct gpi_world_cell *c)
{
    const struct gpi_attempt a = { .started_at = c->started_at,
                                   .ended_at = w->now,
                                   .stopped = stopped_in(w, slot, c),
                                   .limit = w->truth.task[c->task].limit,
                                   .cancelled_at = c->cancelled_at,
                                   .failed = c->plan == GPI_PLAN_BAD };
    const uint32_t outcome = gpi_verdict(&a);

    return outcome == GPUD_OUTCOME_ERROR && c->soft ? (uint32_t)GPUD_OUTCOME_CANCELLED : outcome;
}

static void end_task(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_cell *c = gpi_cell_running(w, slot);

    if (!c) { /* the host has forgotten this worker */
        rest(w, slot);
        return;
    }
    worker_of(w, slot)->fault = c->plan == GPI_PLAN_FAULT;
    worker_of(w, slot)->spoilt |= c->plan == GPI_PLAN_SPOIL;
    if (c->plan >= GPI_PLAN_CRASH) {
        gpi_worker_die(w, slot);
        return;
    }
    c->invalid = gpi_world_happens(w, GPI_TROUBLE_INVALID);
    end_cell(w, slot, c, c->invalid ? (uint32_t)GPUD_OUTCOME_ERROR : outcome_of(w, slot, c),
             GPUD_PHASE_PROCESS);
}

void gpi_worker_alarm(struct gpi_world *w, uint32_t slot, uint32_t task)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    struct gpi_world_cell *c = gpi_cell_of(w, slot, task);
    uint64_t at = w->now + reaction(w);

    if (!c || !c->claimed || c->ended || !c->obeys || k->phase != GPI_WORKER_RUNS)
        return;
    if (c->plan == GPI_PLAN_GOOD && c->soft && gpi_random_chance(&w->random, 500000))
        c->plan = GPI_PLAN_BAD;
    if (at >= c->runs_until)
        return;
    c->runs_until = at;
    step_at(w, slot, at);
}

/* ---- between tasks ---- */

static void idle(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    struct gpi_world_cell *c = k->deaf ? NULL : next_cell(w, slot);

    if (c)
        claim(w, slot, c);
    else if (k->end)
        enter(w, slot, GPI_WORKER_CLEANS);
    else if (k->mortal && !next_cell(w, slot))
        gpi_worker_die(w, slot);
}

void gpi_worker_wake(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    if (k->phase != GPI_WORKER_IDLE)
        return;
    k->mortal = false;
    if (k->end || (!k->deaf && next_cell(w, slot)))
        step_in(w, slot, GPI_US, 50 * GPI_US);
    else if ((k->mortal = gpi_world_happens(w, GPI_TROUBLE_DIES_IDLE)))
        step_in(w, slot, GPI_US, GPI_S);
    else
        step_at(w, slot, GPI_NEVER);
}

static void step(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    switch (k->phase) {
    case GPI_WORKER_BOOTS:
        if (gpi_world_happens(w, GPI_TROUBLE_SETUP_FAILS)) {
            gpi_worker_die(w, slot);
            break;
        }
        k->answered = true;
        gpi_word_send(w, GPI_CHANNEL_SOCKET, slot, GPI_EV_ANSWERED, 0);
        set_up(w, slot);
        break;
    case GPI_WORKER_CANARY: end_canary(w, slot); break;
    case GPI_WORKER_SETUP: end_setup(w, slot); break;
    case GPI_WORKER_IDLE: idle(w, slot); break;
    case GPI_WORKER_RUNS: end_task(w, slot); break;
    case GPI_WORKER_CLEANS: gpi_worker_die(w, slot); break;
    default: break;
    }
}

/* Between a read of the host and its reaction, the worker may end a task or begin the next one. */
void gpi_worker_race(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    struct gpi_world_cell *c = gpi_cell_running(w, slot);

    if (k->stopped || k->deaf || !gpi_world_happens(w, GPI_TROUBLE_RACES))
        return;
    if (k->phase == GPI_WORKER_RUNS && c && c->plan <= GPI_PLAN_BAD)
        end_task(w, slot);
    if (k->phase == GPI_WORKER_IDLE && next_cell(w, slot))
        claim(w, slot, next_cell(w, slot));
}

/* ---- stops ---- */

void gpi_worker_stop(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);

    if (!gpi_worker_lives(k) || k->stopped || k->phase == GPI_WORKER_DYING)
        return;
    k->stopped = true;
    k->stopped_at = w->now;
    k->stop++;
    w->truth.slot[slot].stopped = true;
    step_at(w, slot, k->step_at);
    if (w->slot[slot].keeper.alive && !w->slot[slot].keeper.frozen)
        gpi_word_send(w, GPI_CHANNEL_SOCKET, slot, GPI_EV_STILL, 1);
    gpi_world_soon(w, GPI_FACT_OVERDUE, slot, k->stop, w->stop_limit);
    if (gpi_random_chance(&w->random, 700000))
        gpi_world_soon(w, GPI_FACT_CONTINUES, slot, k->stop, gpi_world_time(w, GPI_MS, 10 * GPI_S));
}

/* The clock of the worker's task runs again. */
static void end_stop(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    struct gpi_world_cell *c = gpi_cell_running(w, slot);
    const uint64_t lasted = w->now - k->stopped_at;

    k->stopped = false;
    k->stopped_ns += lasted;
    w->truth.slot[slot].stopped = false;
    if (c) {
        c->runs_until = gpi_time_add(c->runs_until, lasted);
        w->truth.task[c->task].soft_at = gpi_cell_soft(w, slot, c);
    }
}

static void go_on(struct gpi_world *w, uint32_t slot)
{
    end_stop(w, slot);
    step_at(w, slot, gpi_time_add(w->now, worker_of(w, slot)->step_left));
    if (w->slot[slot].keeper.alive && !w->slot[slot].keeper.frozen)
        gpi_word_send(w, GPI_CHANNEL_SOCKET, slot, GPI_EV_STILL, 0);
}

static void overdue(struct gpi_world *w, const struct gpi_fact *f)
{
    const struct gpi_world_keeper *k = &w->slot[f->slot].keeper;

    if (k->alive && k->frozen)
        gpi_world_soon(w, GPI_FACT_OVERDUE, f->slot, f->token, 100 * GPI_MS);
    if (!k->alive || k->frozen)
        return;
    gpi_word_send(w, GPI_CHANNEL_SOCKET, f->slot, GPI_EV_OVERDUE, 0);
    gpi_worker_kill(w, f->slot, false);
}

/* ---- ends ---- */

void gpi_worker_kill(struct gpi_world *w, uint32_t slot, bool by_us)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    uint64_t wait = gpi_world_time(w, 20 * GPI_US, 3 * GPI_MS);

    if (!gpi_worker_lives(k))
        return;
    k->by_us |= by_us;
    if (k->phase == GPI_WORKER_DYING)
        return;
    k->phase = GPI_WORKER_DYING;
    step_at(w, slot, GPI_NEVER);
    if (gpi_world_happens(w, GPI_TROUBLE_SLOW_DEATH))
        wait = gpi_world_time(w, GPI_MS, w->kill_limit);
    k->unkillable = gpi_world_happens(w, GPI_TROUBLE_SURVIVES);
    if (k->unkillable)
        wait = gpi_random_chance(&w->random, 500000) ? GPI_NEVER
                                                     : w->kill_limit * 2 + 3 * GPI_S;
    gpi_world_soon(w, GPI_FACT_DIES, slot, k->incarnation, wait);
}

void gpi_worker_die(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_worker *k = worker_of(w, slot);
    const bool told = w->slot[slot].keeper.frozen || gpi_random_chance(&w->random, 300000);

    if (k->stopped)
        end_stop(w, slot);
    k->phase = GPI_WORKER_DEAD;
    k->unkillable = false;
    k->stop++;
    k->kill++;
    step_at(w, slot, GPI_NEVER);
    w->slot[slot].memory_at = w->now + gpi_world_time(w, GPI_US, w->memory_time);
    if (gpi_world_happens(w, GPI_TROUBLE_MEMORY_LATE))
        w->slot[slot].memory_at = gpi_random_chance(&w->random, 300000)
                                      ? GPI_NEVER
                                      : w->now + gpi_world_time(w, GPI_MS, 20 * GPI_S);
    if (told) /* the host also polls the worker process */
        gpi_word_send_fact(w, GPI_CHANNEL_PAGE,
                           (struct gpi_fact){ .kind = GPI_FACT_WORD,
                                              .slot = slot,
                                              .task = 1,
                                              .word = { .kind = GPI_EV_STILL,
                                                        .incarnation = k->incarnation } });
    gpi_keeper_reap(w, slot);
}

void gpi_worker_fact(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_worker *k = worker_of(w, f->slot);

    switch (f->kind) {
    case GPI_FACT_STEP:
        if (f->token == k->step && gpi_worker_lives(k) && !k->stopped)
            step(w, f->slot);
        break;
    case GPI_FACT_CONTINUES:
        if (f->token == k->stop && k->stopped)
            go_on(w, f->slot);
        break;
    case GPI_FACT_OVERDUE:
        if (f->token == k->stop && k->stopped)
            overdue(w, f);
        break;
    case GPI_FACT_DIES:
        if (f->token == k->incarnation && k->phase == GPI_WORKER_DYING)
            gpi_worker_die(w, f->slot);
        break;
    default: break;
    }
}
