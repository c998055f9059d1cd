/* SPDX-License-Identifier: MIT */
/*
 * sched.c - any events in any order as inputs of the core, including those that no caller feeds.
 * The build has no assertions: the core counts an impossible event and ignores it.  Each submitted
 * task must end exactly once, and the ring of actions must not overflow.
 */
#include "fuzz.h"

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "sched/sched.h"

#define SLOTS 3u
#define DEVICES 3u
#define TASKS 8u
#define ACTIONS_MAX (16u * (SLOTS + 1) + DEVICES) /* of one step, at most: the size of the ring */

struct state {
    struct gpi_sched *core;
    uint64_t now;
    int busy[TASKS];
    unsigned submitted, ended, fed;
};

/* Before the actions, as each caller does. */
static void take_ends(struct state *s)
{
    struct gpi_sched_end e;

    while (gpi_sched_ended(s->core, &e)) {
        FUZZ_CHECK(e.task < TASKS && s->busy[e.task]);
        FUZZ_CHECK(e.outcome < GPUD_OUTCOME_COUNT && e.phase < GPUD_PHASE_COUNT);
        if (e.again)
            continue;
        s->busy[e.task] = 0;
        s->ended++;
    }
}

static void take_all(struct state *s)
{
    struct gpi_sched_action a;
    struct gpi_sched_end e;
    unsigned n = 0;

    take_ends(s);
    while (gpi_sched_next(s->core, &a)) {
        FUZZ_CHECK(a.kind < GPI_ACTIONS && n++ < ACTIONS_MAX);
        FUZZ_CHECK(a.slot < SLOTS || a.slot == GPI_NOWHERE);
        FUZZ_CHECK(a.task < TASKS);
    }
    FUZZ_CHECK(!gpi_sched_ended(s->core, &e));
}

static void make(struct state *s, const uint8_t *from)
{
    const struct gpi_sched_settings set = {
        .pool = {
            .slots = SLOTS, .devices = DEVICES, .tasks = TASKS, .classes = 1,
            .setup_concurrency = 1 + from[1] % 4u,
            .makes = 1 + from[2] % 4u,
            .canary_limit = GPI_S, .memory_wait = GPI_S, .reply_limit = GPI_S,
        },
        .class = {
            .ahead = from[0] % 65u,
            .least_ahead = 1 + from[6] / 2 % 4u,
            .batch_wait = from[6] / 8 * 100 * GPI_US,
            .max_tasks = from[3] % 4u,
            .executed = from[4] & 1,
            .boot_limit = GPI_S, .setup_limit = 2 * GPI_S, .grace = GPI_S,
            .cleanup_limit = GPI_S, .lead = GPI_MS,
            .restart = { .backoff = GPI_S, .cap = 4 * GPI_S,
                         .failures_in_a_row = 1 + from[5] % 4u },
            .retry = { .backoff = from[6] & 1 ? GPI_S : 0, .cap = 4 * GPI_S },
        },
    };
    static const uint16_t devices[SLOTS][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };

    s->core = gpi_sched_create(&set);
    FUZZ_CHECK(s->core);
    for (uint32_t i = 0; i < DEVICES; i++)
        gpi_sched_device_add(s->core, i, from[7] >> i & 1, GPI_S, NULL);
    for (uint32_t i = 0; i < SLOTS; i++)
        gpi_sched_slot_add(s->core, i, 0, devices[i], 1 + (from[7] >> 4 & 1));
}

static void submit(struct state *s, uint32_t task, const uint8_t *b)
{
    const struct gpi_sched_task what = {
        .priority = b[2] % 3,
        .max_attempts = 1 + b[3] % 3u,
        .causes = b[4] % 16u,
        .limit = b[5] & 1 ? GPI_S : GPI_NEVER,
        .expires = b[6] & 1 ? gpi_time_add(s->now, b[6] * GPI_MS) : GPI_NEVER,
    };

    if (s->busy[task])
        return;
    s->busy[task] = 1;
    s->submitted++;
    gpi_sched_submit(s->core, task, &what);
}

static void end(struct state *s, const uint8_t *b)
{
    const struct gpi_sched_attempt a = {
        .task = b[1] % TASKS, .outcome = b[2] % 4u, .phase = b[3] % GPUD_PHASE_COUNT,
        .final = b[4] & 1, .run = b[5] * 100 * GPI_US, .share = b[6] * 10 * GPI_US,
    };

    s->fed++;
    if (gpi_sched_end(s->core, s->now, &a))
        return;
    FUZZ_CHECK(s->busy[a.task]);
    s->busy[a.task] = 0;
    s->ended++;
}

static void decide(struct state *s)
{
    struct gpi_sched_order o;

    gpi_sched_decide(s->core, s->now);
    take_all(s);
    while (gpi_sched_send(s->core, s->now, &o, 1))
        FUZZ_CHECK(o.slot < SLOTS && o.task < TASKS && o.cell < 64);
}

/* Feeds one event.  Half of the events concern the current worker. */
static void feed(struct state *s, const uint8_t *b)
{
    const uint32_t slot = b[2] % SLOTS;
    const struct gpi_sched_event e = {
        .kind = b[1] % GPI_EVENTS,
        .now = s->now,
        .slot = slot,
        .incarnation = b[3] & 1 ? b[3] : gpi_sched_incarnation(s->core, slot),
        .task = b[4] % TASKS,
        .device = b[4] % DEVICES,
        .cell = b[5] % 65u,
        .how = b[5] % 32u,
        .what = b[6] % 3u,
        .at = b[7] == 255 ? GPI_NEVER : s->now + b[7] * 10 * GPI_MS,
    };

    gpi_sched_event(s->core, &e);
    s->fed++;
}

static void step(struct state *s, const uint8_t *b)
{
    s->now += (b[0] >> 4) * (uint64_t)(b[7] & 1 ? GPI_MS : 200 * GPI_MS);
    switch (b[0] & 15) {
    case 0:
        submit(s, b[1] % TASKS, b);
        break;
    case 1:
        decide(s);
        break;
    case 2:
        end(s, b);
        break;
    default:
        feed(s, b);
        break;
    }
    take_all(s);
    FUZZ_CHECK(s->submitted - s->ended == gpi_sched_unended(s->core));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state s = { .now = GPI_S };
    uint8_t b[8];

    fuzz_take(b, sizeof b, &data, &size);
    make(&s, b);
    for (uint32_t i = 0; i < SLOTS; i++)
        gpi_sched_event(s.core, &(struct gpi_sched_event){
                                    .kind = GPI_EV_WANT, .now = s.now, .slot = i });
    take_all(&s);
    while (size) {
        fuzz_take(b, sizeof b, &data, &size);
        step(&s, b);
    }
    (void)gpi_sched_due(s.core);
    FUZZ_CHECK(s.fed || !gpi_sched_dropped(s.core));
    gpi_sched_destroy(s.core);
    return 0;
}
