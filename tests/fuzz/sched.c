/* SPDX-License-Identifier: MIT */
/*
 * sched.c - any events in any order as inputs of the core, including those that no caller feeds.
 * The build has no assertions: the core counts an impossible event and ignores it.  Each submitted
 * task must end exactly once, and the ring of actions must not overflow.  Some cores are pooled,
 * have classes of external work, and get no event of a slot.
 */
#include "fuzz.h"

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "sched/sched.h"

#define SLOTS 3u
#define DEVICES 3u
#define TASKS 8u
#define CLASSES 2u /* pooled */
#define GIB (1ull << 30)
#define PROMISES 64u
/* Of one step, at most: the size of the ring. */
#define ACTIONS_MAX (16u * (SLOTS + 1) + DEVICES)
#define ACTIONS_POOLED (ACTIONS_MAX + PROMISES + SLOTS * (DEVICES + 4))

struct state {
    struct gpi_sched *core;
    uint64_t now;
    int pooled;
    int busy[TASKS];
    unsigned submitted, ended, fed;
};

/* Before the actions, as each caller does. */
static void take_ends(struct state *s)
{
    struct gpi_sched_end e;

    while (gpi_sched_ended(s->core, &e)) {
        FUZZ_CHECK(e.task < TASKS && s->busy[e.task]);
        FUZZ_CHECK(!e.held || gpi_sched_is_held(s->core, e.task));
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
        FUZZ_CHECK(a.kind < GPI_ACTIONS && n++ < (s->pooled ? ACTIONS_POOLED : ACTIONS_MAX));
        FUZZ_CHECK(a.slot < SLOTS || a.slot == GPI_NOWHERE);
        FUZZ_CHECK(a.task < TASKS);
    }
    FUZZ_CHECK(!gpi_sched_ended(s->core, &e));
}

static void make_pool(struct state *s, const struct gpi_class_settings *set)
{
    const struct gpi_plan_class k = {
        .grace = GPI_S,
        .need = { { .devices = 1, .share = GPI_SHARE_ALL, .memory = GIB } },
        .n_needs = 1,
        .max_workers = SLOTS,
        .max_wait = GPI_S,
        .keep_alive = GPI_NEVER,
    };

    for (uint32_t i = 0; i < DEVICES; i++)
        gpi_sched_device_add(s->core, i, true, GPI_S,
                             &(struct gpi_plan_has){ .memory = 10 * GIB });
    for (uint32_t i = 0; i < CLASSES; i++)
        FUZZ_CHECK(gpi_sched_class_add(s->core, i, set, &k) == 0);
    for (uint32_t i = 0; i < SLOTS; i++)
        gpi_sched_slot_add(s->core, i, 0, NULL, 0);
}

static void make(struct state *s, const uint8_t *from)
{
    const struct gpi_sched_settings set = {
        .pool = {
            .slots = SLOTS, .devices = DEVICES, .tasks = TASKS, .classes = s->pooled ? CLASSES : 1,
            .setup_concurrency = 1 + from[1] % 4u,
            .makes = 1 + from[2] % 4u,
            .canary_limit = GPI_S, .memory_wait = GPI_S, .reply_limit = GPI_S,
            .pooled = s->pooled, .kill_limit = GPI_S,
            .plan = { .cpus = 4, .host_memory = 64 * GIB, .mode = from[7] & 1 },
        },
        .class = {
            .ahead = from[0] % 65u,
            .batch = 1 + from[6] / 2 % 4u,
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
    if (s->pooled) {
        make_pool(s, &set.class);
        return;
    }
    for (uint32_t i = 0; i < DEVICES; i++)
        gpi_sched_device_add(s->core, i, from[7] >> i & 1, GPI_S, NULL);
    for (uint32_t i = 0; i < SLOTS; i++)
        gpi_sched_slot_add(s->core, i, 0, devices[i], 1 + (from[7] >> 4 & 1));
    for (uint32_t i = 0; i < SLOTS; i++)
        gpi_sched_event(s->core, &(struct gpi_sched_event){
                                     .kind = GPI_EV_WANT, .now = s->now, .slot = i });
}

/* It may have more of its devices than these have. */
static void adopt(struct state *s, uint32_t task, const uint8_t *b)
{
    const uint16_t device[2] = { b[3] % DEVICES, (uint16_t)((b[3] + 1u) % DEVICES) };
    const struct gpi_sched_adoption a = {
        .has = { .devices = b[4] % 3u,
                 .share = GPI_SHARE_ALL / (1 + b[4] % 3u),
                 .memory = b[4] % 3u ? b[6] * GIB / 8 : 0,
                 .cpus = b[5] >> 6 },
        .device = device,
        .grant = 1 + b[6] % 4u,
        .attempts = b[6] % 3u,
        .started_at = s->now - b[7] * GPI_MS,
        .given_up = b[5] & 4,
    };

    if (!gpi_sched_has_run(s->core) || !gpi_sched_can_adopt(s->core, task))
        return;
    take_all(s);
    if (a.given_up) {
        s->busy[task] = 0;
        s->ended++;
    }
    gpi_sched_adopt(s->core, s->now, task, &a);
    s->fed++;
}

static void submit(struct state *s, uint32_t task, const uint8_t *b)
{
    const struct gpi_request request = { .devices = 1 + (b[4] >> 7),
                                         .share = b[4] & 64 ? GPI_SHARE_ALL : GPI_SHARE_ALL / 3,
                                         .memory = b[6] % 8u * GIB,
                                         .cpus = b[5] >> 4 & 3 };
    const struct gpi_sched_task what = {
        .priority = b[2] % 3,
        .max_attempts = 1 + b[3] % 3u,
        .causes = b[4] % 16u,
        .limit = b[5] & 1 ? GPI_S : GPI_NEVER,
        .expires = b[6] & 1 ? gpi_time_add(s->now, b[6] * GPI_MS) : GPI_NEVER,
        .stall = b[6] & 2 ? 100 * GPI_MS : 0,
        .class = s->pooled ? b[5] >> 3 & 1 : 0,
        .n_requests = s->pooled ? 1 : 0,
        .request = &request,
    };

    if (gpi_sched_is_accepted(s->core, task))
        return;
    s->busy[task] = 1;
    s->submitted++;
    gpi_sched_submit(s->core, task, &what);
    if (s->pooled && b[5] & 2)
        adopt(s, task, b);
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

/* External work that is left is no task any more. */
static void close_it(struct state *s, struct gpi_sched_event *e)
{
    e->how %= GPI_CLOSE_LEAVE + 1;
    for (uint32_t i = 0; e->how == GPI_CLOSE_LEAVE && i < TASKS; i++) {
        if (!gpi_sched_is_started(s->core, i))
            continue;
        s->busy[i] = 0;
        s->ended++;
    }
}

/* Of a pooled core: an event of external work instead of one of a slot. */
static uint32_t kind_of(const struct state *s, uint8_t b)
{
#define FIELDS(name, fields, how, bits, what) [GPI_EV_##name] = (fields),
    static const uint32_t of[] = { GPI_EVENT_MAP(FIELDS) };
#undef FIELDS
    const uint32_t kind = b % GPI_EVENTS;

    return s->pooled && of[kind] & GPI_F_SLOT ? GPI_EV_STARTED + kind % 4 : kind;
}

/* Feeds one event.  Half of the events concern the current worker. */
static void feed(struct state *s, const uint8_t *b)
{
    const uint32_t slot = b[2] % SLOTS;
    struct gpi_sched_event e = {
        .kind = kind_of(s, b[1]),
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

    if (e.kind == GPI_EV_ENDED)
        e.how %= GPI_ENDED_CRASHED + 1;
    if (e.kind == GPI_EV_STARTED || e.kind == GPI_EV_ENDED)
        e.at = s->now - b[7] * 10 * GPI_US;
    if (e.kind == GPI_EV_CLOSE)
        close_it(s, &e);
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
    s.pooled = b[7] >> 7;
    make(&s, b);
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
