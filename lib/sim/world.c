/* SPDX-License-Identifier: MIT */
/* world.c - makes a world from a seed, runs it until its close is complete, and shrinks it. */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "sim/world_state.h"

#define TURNS_MAX 20000u /* without a step of time: more means that the core loops */
#define TIME_MAX (600 * GPI_S)

bool gpi_world_happens(struct gpi_world *w, enum gpi_trouble trouble)
{
    const bool drawn = gpi_random_chance(&w->random, w->chance[trouble]);

    if (!drawn || w->options->without >> trouble & 1)
        return false;
    w->happened |= 1ull << trouble;
    return true;
}

uint64_t gpi_world_time(struct gpi_world *w, uint64_t from, uint64_t to)
{
    return gpi_random_scale(&w->random, from, to);
}

const char *gpi_trouble_name(uint32_t trouble)
{
#define GPI_X_TROUBLE(name) #name,
    static const char *const names[] = { GPI_TROUBLE_MAP(GPI_X_TROUBLE) };
#undef GPI_X_TROUBLE

    return trouble < GPI_TROUBLES ? names[trouble] : "?";
}

/* ---- a seed becomes a world ---- */

static uint32_t least(uint32_t drawn, uint32_t most)
{
    return most && most < drawn ? most : drawn;
}

/* Some worlds are calm, and in some worlds everything breaks. */
static void draw_chances(struct gpi_world *w)
{
    const uint32_t often = (uint32_t)gpi_random_below(&w->random, 1000000);

    for (uint32_t i = 0; i < GPI_TROUBLE_DECLINES; i++)
        w->chance[i] = gpi_random_chance(&w->random, often)
                           ? (uint32_t)gpi_world_time(w, 2000, 250000)
                           : 0;
    w->chance[GPI_TROUBLE_SPAWNER_DIES] /= 10;
    w->chance[GPI_TROUBLE_SPAWNER_FREEZES] /= 2;
    w->chance[GPI_TROUBLE_SURVIVES] /= 2;
    w->chance[GPI_TROUBLE_REMOVES] /= 3;
    if (gpi_random_chance(&w->random, often / 2))
        w->chance[GPI_TROUBLE_DEVICE_SETS] = 400000;
}

static void draw_settings(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;
    struct gpi_pool_settings *p = &w->set.pool;
    struct gpi_class_settings *c = &w->set.class;

    p->slots = least((uint32_t)gpi_random_from(r, 1, GPI_TRUTH_SLOTS), w->options->slots);
    p->devices = least((uint32_t)gpi_random_from(r, 1, GPI_TRUTH_DEVICES), w->options->devices);
    p->devices = least(p->devices, p->slots);
    p->tasks = (uint32_t)gpi_random_from(r, 4, GPI_TRUTH_TASKS);
    p->classes = w->seed % 5 == 3 ? (uint32_t)gpi_random_from(r, 2, GPI_TRUTH_CLASSES) : 1;
    c->ahead = gpi_random_chance(r, 500000) ? 2 : (uint32_t)gpi_random_from(r, 0, 8);
    c->batch = gpi_random_chance(r, 800000) ? 1 : (uint32_t)gpi_random_from(r, 2, 4);
    c->batch_wait = gpi_random_chance(r, 800000) ? 0 : gpi_world_time(w, GPI_US, 20 * GPI_MS);
    p->setup_concurrency = (uint32_t)gpi_random_from(r, 1, p->slots);
    p->makes = gpi_random_chance(r, 500000) ? 32 : (uint32_t)gpi_random_from(r, 1, 3);
    c->max_tasks = gpi_world_happens(w, GPI_TROUBLE_SHORT_LIVES) ||
                           gpi_random_chance(r, w->chance[GPI_TROUBLE_SHORT_LIVES] * 2)
                       ? (uint32_t)gpi_random_from(r, 1, 8)
                       : 0;
    if (w->options->without >> GPI_TROUBLE_SHORT_LIVES & 1)
        c->max_tasks = 0;
    c->executed = gpi_random_chance(r, 500000);
    c->boot_limit = gpi_world_time(w, 300 * GPI_MS, 4 * GPI_S);
    c->setup_limit = gpi_world_time(w, 300 * GPI_MS, 6 * GPI_S);
    p->canary_limit = gpi_world_time(w, 300 * GPI_MS, 3 * GPI_S);
    c->grace = gpi_world_time(w, 10 * GPI_MS, GPI_S);
    c->lead = gpi_time_min(20 * GPI_MS, c->grace / 2);
    c->cleanup_limit = gpi_world_time(w, 100 * GPI_MS, 2 * GPI_S);
    p->memory_wait = gpi_world_time(w, 10 * GPI_MS, 2 * GPI_S);
    p->reply_limit = gpi_world_time(w, 500 * GPI_MS, 5 * GPI_S);
    c->restart.backoff = gpi_world_time(w, 5 * GPI_MS, 500 * GPI_MS);
    c->restart.cap = gpi_world_time(w, 500 * GPI_MS, 3 * GPI_S);
    c->restart.failures_in_a_row = (uint32_t)gpi_random_from(r, 2, 6);
    c->retry.backoff = gpi_random_chance(r, 500000) ? 0 : gpi_world_time(w, GPI_MS, GPI_S);
    c->retry.cap = gpi_world_time(w, GPI_S, 3 * GPI_S);
    if (w->seed % 5 == 4)
        gpi_pool_draw(w);
    if (w->seed % 10 == 9)
        gpi_work_draw(w);
}

/* Copies the settings to the place where the oracles read them. */
static void tell_truth(struct gpi_world *w)
{
    const struct gpi_pool_settings *p = &w->set.pool;
    const struct gpi_class_settings *c = &w->set.class;

    w->truth = (struct gpi_truth){
        .slots = p->slots, .devices = p->devices, .tasks = p->tasks, .classes = p->classes,
        .pooled = p->pooled, .cpus = p->plan.cpus, .host_memory = p->plan.host_memory,
        .foreign_memory = p->plan.foreign_memory,
        .ahead = c->ahead, .batch = c->batch, .batch_wait = c->batch_wait,
        .setup_concurrency = p->setup_concurrency,
        .makes = p->makes, .max_tasks = c->max_tasks, .executed = c->executed,
        .boot_limit = c->boot_limit, .setup_limit = c->setup_limit,
        .canary_limit = p->canary_limit, .grace = c->grace,
        .cleanup_limit = c->cleanup_limit, .memory_wait = p->memory_wait,
        .reply_limit = p->reply_limit, .backoff = c->restart.backoff,
        .failures_in_a_row = c->restart.failures_in_a_row,
        .backoff_cap = c->restart.cap > c->restart.backoff ? c->restart.cap : c->restart.backoff,
        .retry_backoff = c->retry.backoff, .retry_cap = c->retry.cap, .now = w->now,
    };
}

static void draw_rest(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;

    w->stop_limit = gpi_random_chance(r, 300000) ? GPI_NEVER
                                                 : gpi_world_time(w, 2 * GPI_MS, 8 * GPI_S);
    w->set.pool.kill_limit = w->kill_limit = gpi_world_time(w, 100 * GPI_MS, 4 * GPI_S);
    w->latency = gpi_random_chance(r, 500000) ? 20 * GPI_US
                                              : gpi_world_time(w, 10 * GPI_US, 20 * GPI_MS);
    w->weather = gpi_world_time(w, 20 * GPI_MS, 500 * GPI_MS);
    w->task_time = gpi_world_time(w, GPI_MS, 500 * GPI_MS);
    w->memory_time = gpi_world_time(w, GPI_MS, 500 * GPI_MS);
    w->canary_passes = (uint32_t)gpi_random_from(r, 1, 3);
    w->tasks_left = least((uint32_t)gpi_world_time(w, 4, 200), w->options->tasks);
    w->spawner.alive = true;
    w->close_at = GPI_NEVER;
}

static void add_devices(struct gpi_world *w)
{
    const bool any = gpi_random_chance(&w->random, 850000);

    for (uint32_t d = 0; d < w->truth.devices; d++) {
        w->device[d].watched = any && gpi_random_chance(&w->random, 800000);
        gpi_play_device(&w->play, d, w->device[d].watched, w->kill_limit, NULL);
    }
}

/* A slot has one device, or several watched devices.  Each device has a slot. */
static void add_slot(struct gpi_world *w, uint32_t slot)
{
    struct gpi_truth_slot *t = &w->truth.slot[slot];
    const uint32_t first = slot < w->truth.devices
                               ? slot
                               : (uint32_t)gpi_random_below(&w->random, w->truth.devices);

    t->device[t->n_devices++] = (uint16_t)first;
    t->class = slot % w->truth.classes;
    t->watched = w->device[first].watched;
    t->kill_limit = w->kill_limit;
    for (uint16_t d = 0; d < w->truth.devices; d++)
        if (d != first && t->watched && w->device[d].watched &&
            gpi_world_happens(w, GPI_TROUBLE_DEVICE_SETS))
            t->device[t->n_devices++] = d;
    gpi_play_slot(&w->play, slot, t->class, t->device, t->n_devices);
}

static void write_log(void *file, const char *lines, size_t size)
{
    (void)fwrite(lines, 1, size, file);
}

static bool begin(struct gpi_world *w)
{
    draw_chances(w);
    draw_settings(w);
    w->now = GPI_S;
    draw_rest(w);
    tell_truth(w);
    gpi_oracle_init(&w->oracle, &w->truth);
    if (!gpi_play_init(&w->play, &w->set, w->options->log ? write_log : NULL, w->options->log))
        return false;
    w->play.lists = true;
    if (w->options->begin)
        w->options->begin(w->play.core, w->options->user);
    if (w->truth.pooled)
        return gpi_pool_begin(w);
    for (uint32_t i = 1; i < w->truth.classes; i++)
        if (gpi_play_class(&w->play, i, &w->set.class, NULL))
            return false;
    add_devices(w);
    for (uint32_t i = 0; i < w->truth.slots; i++)
        add_slot(w, i);
    return true;
}

static void populate(struct gpi_world *w)
{
    uint64_t length = gpi_world_time(w, 50 * GPI_MS, 15 * GPI_S);

    for (uint32_t i = 0; !w->truth.pooled && i < w->truth.slots; i++)
        gpi_host_feed_slot(w, GPI_EV_WANT, i, 0);
    if (w->options->length)
        length = gpi_time_min(length, w->options->length);
    gpi_user_begin(w, length);
}

/* ---- turns ---- */

static void dispatch(struct gpi_world *w, const struct gpi_fact *f)
{
    if (f->kind == GPI_FACT_WORK_ENDS || f->kind == GPI_FACT_GRANTED ||
        f->kind == GPI_FACT_PROGRESS || f->kind == GPI_FACT_ENDED)
        gpi_work_fact(w, f);
    else if (f->kind == GPI_FACT_WEATHER)
        gpi_user_weather(w);
    else if (f->kind == GPI_FACT_HEALS)
        gpi_device_fact(w, f);
    else if (f->kind == GPI_FACT_STEP || f->kind == GPI_FACT_CONTINUES ||
             f->kind == GPI_FACT_OVERDUE || f->kind == GPI_FACT_DIES)
        gpi_worker_fact(w, f);
    else if (f->kind < GPI_FACT_HEARD)
        gpi_keeper_fact(w, f);
    else if (f->kind <= GPI_FACT_MEMORY)
        gpi_device_hear(w, f);
    else if (f->kind <= GPI_FACT_SOURCE_ENDS)
        gpi_user_hear(w, f);
    else
        gpi_word_hear(w, f);
}

static void miss(struct gpi_world *w, const struct gpi_fact *f)
{
    if (w->n_missed == w->missed_room) {
        w->missed_room = w->missed_room ? 2 * w->missed_room : 64;
        w->missed = realloc(w->missed, sizeof *w->missed * w->missed_room);
        if (!w->missed)
            abort();
    }
    w->missed[w->n_missed++] = *f;
}

static bool is_over(const struct gpi_world *w)
{
    return w->oracle.objected && !w->options->go_on;
}

/* While the host is stopped, everything outside of it continues. */
static void be_stopped(struct gpi_world *w)
{
    struct gpi_fact f;

    while (gpi_agenda_take(w, w->stopped_until, &f)) {
        w->now = f.at > w->now ? f.at : w->now;
        w->truth.now = w->now;
        if (f.kind >= GPI_FACT_HEARD)
            miss(w, &f);
        else
            dispatch(w, &f);
    }
    if (w->now < w->stopped_until)
        w->now = w->stopped_until;
    w->truth.now = w->now;
    for (uint32_t i = 0; i < w->n_missed && !is_over(w); i++)
        dispatch(w, &w->missed[i]);
    w->n_missed = 0;
}

/* The host receives every waiting message before it feeds TIME.  Otherwise a host that was stopped
 * would quarantine a healthy worker. */
static void hear(struct gpi_world *w)
{
    struct gpi_fact f;

    do {
        if (w->stopped_until > w->now)
            be_stopped(w);
        while (w->stopped_until <= w->now && !is_over(w) && gpi_agenda_take(w, w->now, &f))
            dispatch(w, &f);
    } while (w->stopped_until > w->now);
    if (gpi_sched_due(w->play.core) <= w->now && !is_over(w))
        gpi_host_feed_slot(w, GPI_EV_TIME, 0, 0);
}

static void decide(struct gpi_world *w)
{
    do
        gpi_host_decide(w);
    while (gpi_sched_undecided(w->play.core) && ++w->turns < TURNS_MAX && !is_over(w));
    if (!is_over(w) && gpi_sched_idles(w->play.core))
        (void)gpi_oracle_object(&w->oracle, GPI_ORACLE_AFTER, "S7: a task could start");
}

/* The host wakes up to read the cells of a worker with tasks that wait behind the first: the longer
 * the worker is silent, the less often. */
static uint64_t next_peek(const struct gpi_world *w)
{
    uint64_t at = GPI_NEVER;

    for (uint32_t i = 0; i < w->truth.slots; i++) {
        const struct gpi_book_slot *s = &w->oracle.slot[i];
        const uint64_t quiet = w->now > s->heard ? w->now - s->heard : 0;
        if (s->sent >= 2)
            at = gpi_time_min(at, w->now + (quiet > GPI_MS ? quiet : GPI_MS));
    }
    return at;
}

static void sleep_until(struct gpi_world *w, uint64_t due)
{
    const uint64_t next = gpi_time_min(gpi_time_min(due, gpi_agenda_next(w)), next_peek(w));

    if (next > w->now)
        w->turns = 0;
    w->now = next > w->now ? next : w->now;
    if (gpi_world_happens(w, GPI_TROUBLE_HOST_LAGS))
        w->now += gpi_world_time(w, 10 * GPI_US, 60 * GPI_MS);
    w->truth.now = w->now;
}

/* Publishes the objections now, because the core may abort in the next turn. */
static void tell_objections(const struct gpi_world *w)
{
    if (w->options->objected)
        *w->options->objected |= w->oracle.objected;
}

static void live(struct gpi_world *w)
{
    while (!is_over(w)) {
        hear(w);
        tell_objections(w);
        if (is_over(w))
            return;
        decide(w);
        if (is_over(w))
            return;
        gpi_pool_explain(w);
        gpi_work_check(w);
        gpi_oracle_turned(&w->oracle);
        tell_objections(w);
        if (gpi_sched_finished(w->play.core)) {
            gpi_oracle_finished(&w->oracle);
            return;
        }
        if (++w->turns >= TURNS_MAX || w->now > TIME_MAX) {
            gpi_oracle_object(&w->oracle, GPI_ORACLE_LIMITS,
                              w->turns >= TURNS_MAX ? "time stands still"
                                                    : "a world without an end");
            return;
        }
        sleep_until(w, gpi_sched_due(w->play.core));
    }
}

/* ---- from outside ---- */

static const char *kind_name(uint32_t objected)
{
    return objected & GPI_ORACLE_SAFETY   ? "safety"
           : objected & GPI_ORACLE_LIMITS ? "limits"
                                          : "post-conditions";
}

static void report(const struct gpi_world *w, struct gpi_world_report *ret)
{
    const struct gpi_oracle *o = &w->oracle;
    size_t n;

    *ret = (struct gpi_world_report){ .events = w->events,
                                      .time = w->now,
                                      .happened = w->happened,
                                      .objected = w->oracle.objected };
    if (!w->oracle.objected)
        return;
    memcpy(ret->rule, w->oracle.rule, sizeof ret->rule);
    n = (size_t)snprintf(ret->text, sizeof ret->text, "seed %llu, @%.6fs, %s: %s",
                         (unsigned long long)w->seed, (double)o->fault_at / 1e9,
                         kind_name(o->first), o->rule);
    if (o->fault_slot != GPI_NOWHERE && n < sizeof ret->text)
        n += (size_t)snprintf(ret->text + n, sizeof ret->text - n, ", slot %u", o->fault_slot);
    if (o->fault_task != GPI_NOWHERE && n < sizeof ret->text)
        (void)snprintf(ret->text + n, sizeof ret->text - n, ", task %u", o->fault_task);
}

int gpi_world_run(uint64_t seed, const struct gpi_world_options *options,
                  struct gpi_world_report *ret)
{
    struct gpi_world *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->seed = seed;
    w->random.state = seed;
    w->random.state = gpi_random_next(&w->random); /* else seed n + 1 is seed n, one number later */
    w->options = options;
    if (!begin(w))
        abort();
    populate(w);
    live(w);
    report(w, ret);
    if (options->end)
        options->end(w->play.core, options->user);
    gpi_play_fini(&w->play);
    gpi_agenda_fini(w);
    free(w);
    return ret->objected != 0;
}

/* ---- shrinking ---- */

struct shrinking {
    uint64_t seed;
    const char *rule;
    struct gpi_world_options *least;
    uint32_t worlds;
};

/* Keeps the smaller options if their world still breaks the same rule. */
static bool keep(struct shrinking *s, const struct gpi_world_options *o)
{
    struct gpi_world_report r;

    s->worlds++;
    if (!gpi_world_run(s->seed, o, &r) || strcmp(r.rule, s->rule) != 0)
        return false;
    *s->least = *o;
    return true;
}

static bool drop_trouble(struct shrinking *s)
{
    bool dropped = false;

    for (uint32_t i = 0; i < GPI_TROUBLES; i++) {
        struct gpi_world_options o = *s->least;
        o.without |= 1ull << i;
        if (o.without != s->least->without)
            dropped |= keep(s, &o);
    }
    return dropped;
}

/* Finds the smallest value of one option whose world still breaks the rule. */
static bool drop_some(struct shrinking *s, uint32_t *(*field)(struct gpi_world_options *o))
{
    static const uint32_t tries[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64 };

    for (uint32_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct gpi_world_options o = *s->least;
        if (*field(&o) && *field(&o) <= tries[i])
            return false;
        *field(&o) = tries[i];
        if (keep(s, &o))
            return true;
    }
    return false;
}

static uint32_t *slots(struct gpi_world_options *o)
{
    return &o->slots;
}

static uint32_t *devices(struct gpi_world_options *o)
{
    return &o->devices;
}

static uint32_t *tasks(struct gpi_world_options *o)
{
    return &o->tasks;
}

static bool shorten(struct shrinking *s)
{
    for (uint64_t length = GPI_MS; length < 16 * GPI_S; length *= 2) {
        struct gpi_world_options o = *s->least;
        if (o.length && o.length <= length)
            return false;
        o.length = length;
        if (keep(s, &o))
            return true;
    }
    return false;
}

uint32_t gpi_world_shrink(uint64_t seed, struct gpi_world_options *options,
                          const struct gpi_world_report *fault)
{
    struct shrinking s = { .seed = seed, .rule = fault->rule, .least = options };
    bool less = true;

    for (uint32_t round = 0; less && round < 4; round++) {
        less = drop_trouble(&s);
        less |= drop_some(&s, slots);
        less |= drop_some(&s, devices);
        less |= drop_some(&s, tasks);
        less |= shorten(&s);
    }
    return s.worlds;
}
