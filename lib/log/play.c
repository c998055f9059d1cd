/* SPDX-License-Identifier: MIT */
#include "log/play.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "log/line.h"
#include "log/log.h"

/* ---- effects not fetched yet ---- */

/* Makes room for one more record.  Returns false if memory is exhausted. */
static bool reserve(struct gpi_play_queue *q, size_t size)
{
    const size_t room = q->room ? q->room * 2 : 64;
    unsigned char *more;

    if (q->first + q->n < q->room)
        return true;
    if (q->first > q->room / 2) {
        memmove(q->at, q->at + q->first * size, q->n * size);
        q->first = 0;
        return true;
    }
    more = realloc(q->at, room * size);
    if (!more)
        return false;
    q->at = more;
    q->room = room;
    return true;
}

static void push(struct gpi_play_queue *q, const void *record, size_t size)
{
    memcpy(q->at + (q->first + q->n) * size, record, size);
    q->n++;
}

static bool pop(struct gpi_play_queue *q, void *ret, size_t size)
{
    if (!q->n)
        return false;
    memcpy(ret, q->at + q->first * size, size);
    q->first++;
    if (!--q->n)
        q->first = 0;
    return true;
}

/* ---- the log ---- */

#define RULE "----\n"

/* `before` is "", "\n" or RULE. */
static void write_line(const struct gpi_play *p, const char *before, const struct gpi_log_line *l)
{
    char text[sizeof RULE + GPI_LOG_LINE_SIZE];
    size_t size = strlen(before);

    memcpy(text, before, size);
    size += strlen(gpi_log_write(text + size, l));
    text[size++] = '\n';
    p->write(p->to, text, size);
}

/* The settings, classes, devices and slots at the beginning form one group without blank lines. */
static void write_step(struct gpi_play *p, const struct gpi_log_line *l)
{
    p->ruled = false;
    if (!p->write)
        return;
    p->begun |= l->stamped;
    write_line(p, p->begun ? "\n" : "", l);
}

static void write_effect(struct gpi_play *p, const struct gpi_log_line *l)
{
    if (!p->write)
        return;
    write_line(p, p->ruled ? "" : RULE, l);
    p->begun = p->ruled = true;
}

static void write_settings(struct gpi_play *p, const struct gpi_sched_settings *set)
{
    struct gpi_log_line l;
    uint32_t at = 0;

    while (p->write && gpi_log_setting(&l, &p->set, set, &at))
        write_step(p, &l);
    p->set = *set;
}

/* ---- facts for readers ---- */

static void add_harmless(struct gpi_line *t, char c)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char byte = (unsigned char)c;
    const char hex[] = { '\\', 'x', digits[byte >> 4], digits[byte & 15] };

    if (byte < 0x20 || byte == 0x7f || byte == '\\')
        gpi_line_add_bytes(t, hex, sizeof hex);
    else
        gpi_line_add_bytes(t, &c, 1);
}

void gpi_play_note(struct gpi_play *p, const char *noun, uint64_t number, const char *word,
                   const char *text)
{
    char room[GPI_LOG_LINE_SIZE];
    struct gpi_line t = { room, 0, sizeof room - 1 };

    if (!p->write || !*text)
        return;
    gpi_line_add(&t, "# ");
    gpi_line_add(&t, noun);
    gpi_line_add(&t, " ");
    gpi_line_add_number(&t, number);
    gpi_line_add(&t, " ");
    gpi_line_add(&t, word);
    gpi_line_add(&t, " ");
    while (*text)
        add_harmless(&t, *text++);
    room[t.size++] = '\n';
    p->write(p->to, room, t.size);
}

/* ---- the core ---- */

static void take_end(struct gpi_play *p, struct gpi_log_line *l)
{
    l->kind = GPI_LOG_ENDED;
    push(&p->ends, &l->ended, sizeof l->ended);
    write_effect(p, l);
}

/* The core does not list the result of an `end` step: its caller has it already. */
static void add_result(struct gpi_play *p, const struct gpi_sched_attempt *a)
{
    struct gpi_log_line l = { .kind = GPI_LOG_ENDED,
                              .ended = { .task = a->task,
                                         .again = p->result,
                                         .outcome = a->outcome,
                                         .phase = a->phase,
                                         .attempts = gpi_sched_attempts(p->core, a->task) } };

    if (!p->lists)
        write_effect(p, &l);
    else if (reserve(&p->ends, sizeof l.ended))
        take_end(p, &l);
}

/* If memory is exhausted, the other effects stay in the core until a later step takes them. */
static void gather(struct gpi_play *p, const struct gpi_sched_attempt *ended)
{
    struct gpi_log_line l = { .kind = GPI_LOG_ACTION };

    while (reserve(&p->actions, sizeof l.action) && gpi_sched_next(p->core, &l.action)) {
        push(&p->actions, &l.action, sizeof l.action);
        write_effect(p, &l);
    }
    if (ended)
        add_result(p, ended);
    while (reserve(&p->ends, sizeof l.ended) && gpi_sched_ended(p->core, &l.ended))
        take_end(p, &l);
}

/* ---- memory, in a build with the probe ---- */

#ifdef GPI_SCHED_PROBE
const uint64_t *gpi_play_allocations;
uint64_t gpi_play_allocations_of_steps;

static void step_begins(void)
{
    gpi_play_allocations_of_steps -= gpi_play_allocations ? *gpi_play_allocations : 0;
}

static void step_ends(void)
{
    gpi_play_allocations_of_steps += gpi_play_allocations ? *gpi_play_allocations : 0;
}
#else
#define step_begins() ((void)0)
#define step_ends() ((void)0)
#endif

/* ---- steps ---- */

static bool send_one(struct gpi_play *p, uint64_t now, struct gpi_log_line *ret_sent)
{
    *ret_sent = (struct gpi_log_line){ .kind = GPI_LOG_SENT };
    if (!gpi_sched_send(p->core, now, &ret_sent->sent, 1))
        return false;
    write_effect(p, ret_sent);
    return true;
}

static void adopt(struct gpi_play *p, const struct gpi_fact *f)
{
    const struct gpi_sched_adoption a = { .has = f->request[0],
                                          .device = f->list,
                                          .grant = f->grant,
                                          .attempts = f->attempts,
                                          .started_at = f->at,
                                          .given_up = f->given_up };

    gpi_sched_adopt(p->core, f->now, f->task, &a);
}

static void take_fact(struct gpi_play *p, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_CLASS:
        p->class = gpi_fact_class(f);
        break;
    case GPI_FACT_DEVICE:
        p->has = f->has;
        break;
    case GPI_FACT_PLACES:
        if (f->n_devices == 0)
            gpi_sched_places_empty(p->core, f->set);
        for (uint32_t i = 0; i < f->n_devices; i++)
            gpi_sched_places_add(p->core, f->set, f->list[i]);
        break;
    case GPI_FACT_FOREIGN:
        gpi_sched_foreign(p->core, f->now, f->device, f->bytes, f->load);
        break;
    case GPI_FACT_OBSERVED:
        gpi_sched_observed(p->core, f->now, f->worker, f->device, f->bytes);
        break;
    case GPI_FACT_OBSERVED_OF:
        gpi_sched_observed_of(p->core, f->now, f->task, f->device, f->bytes);
        break;
    case GPI_FACT_ADOPT:
        adopt(p, f);
        break;
    case GPI_FACT_CLASS_SET:
        gpi_sched_class_set(p->core, f->now, f->class, (enum gpi_plan_class_what)f->what);
        break;
    default:
        break;
    }
}

static bool submit(struct gpi_play *p, const struct gpi_log_line *l)
{
    struct gpi_sched_task what = l->submit.what;

    what.request = l->submit.request;
    return gpi_sched_submit(p->core, l->submit.task, &what);
}

static bool feed(struct gpi_play *p, const struct gpi_log_line *l, struct gpi_log_line *ret_sent)
{
    if (gpi_log_has_time(l) && l->kind != GPI_LOG_SUBMIT)
        p->now = l->now;
    switch (l->kind) {
    case GPI_LOG_FACT:
        take_fact(p, &l->fact);
        break;
    case GPI_LOG_CLASS:
        p->result =
            gpi_sched_class_add(p->core, l->class.class, &p->set.class, &p->class) == 0;
        break;
    case GPI_LOG_DEVICE:
        gpi_sched_device_add(p->core, l->device.device, l->device.watched, l->device.kill_limit,
                             &p->has);
        break;
    case GPI_LOG_SLOT:
        gpi_sched_slot_add(p->core, l->slot.slot, l->slot.class, l->slot.device, l->slot.n);
        break;
    case GPI_LOG_EVENT:
        gpi_sched_event(p->core, &l->event);
        break;
    case GPI_LOG_SUBMIT:
        p->result = submit(p, l);
        break;
    case GPI_LOG_SEND:
        return send_one(p, l->now, ret_sent);
    case GPI_LOG_END:
        p->result = gpi_sched_end(p->core, l->now, &l->end);
        break;
    default:
        assert(l->kind == GPI_LOG_DECIDE && !p->actions.n);
        gpi_sched_decide(p->core, l->now);
    }
    return true;
}

bool gpi_play_line(struct gpi_play *p, const struct gpi_log_line *l, struct gpi_log_line *ret_sent)
{
    bool sent;

    write_step(p, l);
    if (l->kind != GPI_LOG_CLASS)
        step_begins();
    sent = feed(p, l, ret_sent);
    if (l->kind != GPI_LOG_CLASS)
        step_ends();
    gather(p, l->kind == GPI_LOG_END ? &l->end : NULL);
    return sent;
}

/* ---- calls as lines ---- */

static struct gpi_log_line at_time(enum gpi_log_kind kind, uint64_t now)
{
    return (struct gpi_log_line){ .kind = kind, .stamped = true, .now = now };
}

static void feed_fact(struct gpi_play *p, const struct gpi_fact *f)
{
    struct gpi_log_line l = { .kind = GPI_LOG_FACT, .now = f->now };

    l.fact = *f;
    l.stamped = gpi_log_has_time(&l);
    (void)gpi_play_line(p, &l, NULL);
}

int gpi_play_class(struct gpi_play *p, uint32_t class, const struct gpi_class_settings *set,
                   const struct gpi_plan_class *plan)
{
    const struct gpi_log_line l = { .kind = GPI_LOG_CLASS, .class = { class } };
    struct gpi_sched_settings all = p->set;
    struct gpi_fact f;

    all.class = *set;
    write_settings(p, &all);
    if (plan) {
        f = gpi_fact_of_class(l.class.class, plan);
        feed_fact(p, &f);
    }
    (void)gpi_play_line(p, &l, NULL);
    return p->result ? 0 : -1;
}

void gpi_play_device(struct gpi_play *p, uint32_t device, bool watched, uint64_t kill_limit,
                     const struct gpi_plan_has *has)
{
    const struct gpi_log_line l = { .kind = GPI_LOG_DEVICE,
                                    .device = { device, watched, kill_limit } };
    struct gpi_fact f = { .kind = GPI_FACT_DEVICE, .device = device };

    if (has) {
        f.has = *has;
        feed_fact(p, &f);
    }
    (void)gpi_play_line(p, &l, NULL);
}

void gpi_play_places(struct gpi_play *p, uint32_t set, uint32_t device)
{
    const struct gpi_fact f = { .kind = GPI_FACT_PLACES,
                                .set = set,
                                .list = { (uint16_t)device },
                                .n_devices = 1 };

    feed_fact(p, &f);
}

void gpi_play_no_places(struct gpi_play *p, uint32_t set)
{
    const struct gpi_fact f = { .kind = GPI_FACT_PLACES, .set = set };

    feed_fact(p, &f);
}

void gpi_play_slot(struct gpi_play *p, uint32_t slot, uint32_t class, const uint16_t *device,
                   uint32_t n)
{
    struct gpi_log_line l = { .kind = GPI_LOG_SLOT,
                              .slot = { .slot = slot, .class = class, .n = n } };

    assert(n <= GPI_LOG_DEVICES);
    if (n)
        memcpy(l.slot.device, device, n * sizeof *device);
    (void)gpi_play_line(p, &l, NULL);
}

void gpi_play_foreign(struct gpi_play *p, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load)
{
    const struct gpi_fact f = {
        .kind = GPI_FACT_FOREIGN, .now = now, .device = device, .bytes = bytes, .load = load
    };

    feed_fact(p, &f);
}

void gpi_play_observed(struct gpi_play *p, uint64_t now, uint32_t slot, uint32_t device,
                       uint64_t bytes)
{
    const struct gpi_fact f = {
        .kind = GPI_FACT_OBSERVED, .now = now, .worker = slot, .device = device, .bytes = bytes
    };

    feed_fact(p, &f);
}

void gpi_play_observed_of(struct gpi_play *p, uint64_t now, uint32_t task, uint32_t device,
                          uint64_t bytes)
{
    const struct gpi_fact f = {
        .kind = GPI_FACT_OBSERVED_OF, .now = now, .task = task, .device = device, .bytes = bytes
    };

    feed_fact(p, &f);
}

void gpi_play_adopt(struct gpi_play *p, uint64_t now, uint32_t task,
                    const struct gpi_sched_adoption *a)
{
    struct gpi_fact f = { .kind = GPI_FACT_ADOPT,
                          .now = now,
                          .task = task,
                          .at = a->started_at,
                          .grant = a->grant,
                          .attempts = a->attempts,
                          .given_up = a->given_up,
                          .n_requests = 1,
                          .request = { a->has },
                          .n_devices = a->has.devices };

    f.job.limit = GPI_NEVER; /* the task has it */
    memcpy(f.list, a->device, a->has.devices * sizeof *a->device);
    feed_fact(p, &f);
}

void gpi_play_class_set(struct gpi_play *p, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what)
{
    const struct gpi_fact f = {
        .kind = GPI_FACT_CLASS_SET, .now = now, .class = class, .what = what
    };

    feed_fact(p, &f);
}

void gpi_play_event(struct gpi_play *p, const struct gpi_sched_event *e)
{
    struct gpi_log_line l = at_time(GPI_LOG_EVENT, e->now);

    l.event = *e;
    (void)gpi_play_line(p, &l, NULL);
}

void gpi_play_decide(struct gpi_play *p, uint64_t now)
{
    const struct gpi_log_line l = at_time(GPI_LOG_DECIDE, now);

    (void)gpi_play_line(p, &l, NULL);
}

bool gpi_play_submit(struct gpi_play *p, uint32_t task, const struct gpi_sched_task *what)
{
    struct gpi_log_line l = at_time(GPI_LOG_SUBMIT, p->now);

    l.submit.task = task;
    l.submit.what = *what;
    l.submit.what.request = NULL;
    if (what->n_requests)
        memcpy(l.submit.request, what->request, sizeof *what->request * what->n_requests);
    (void)gpi_play_line(p, &l, NULL);
    return p->result;
}

bool gpi_play_send(struct gpi_play *p, uint64_t now, struct gpi_sched_order *ret)
{
    const struct gpi_log_line l = at_time(GPI_LOG_SEND, now);
    struct gpi_log_line s;

    if (!gpi_play_line(p, &l, &s))
        return false;
    *ret = s.sent;
    return true;
}

bool gpi_play_end(struct gpi_play *p, uint64_t now, const struct gpi_sched_attempt *a)
{
    struct gpi_log_line l = at_time(GPI_LOG_END, now);

    l.end = *a;
    (void)gpi_play_line(p, &l, NULL);
    return p->result;
}

/* Its replay goes through gpi_sched_end, which must have the same effects. */
void gpi_play_success(struct gpi_play *p, uint64_t now, uint32_t task, uint64_t run)
{
    struct gpi_log_line l = at_time(GPI_LOG_END, now);

    l.end = (struct gpi_sched_attempt){ .task = task,
                                        .outcome = GPUD_OUTCOME_SUCCESS,
                                        .phase = GPUD_PHASE_PROCESS,
                                        .run = run,
                                        .share = run };
    p->now = now;
    write_step(p, &l);
    step_begins();
    gpi_sched_success(p->core, now, task, run);
    step_ends();
    p->result = false;
    gather(p, &l.end);
}

/* ---- effects ---- */

bool gpi_play_next(struct gpi_play *p, struct gpi_sched_action *ret)
{
    return pop(&p->actions, ret, sizeof *ret);
}

bool gpi_play_ended(struct gpi_play *p, struct gpi_sched_end *ret)
{
    return pop(&p->ends, ret, sizeof *ret);
}

/* ---- life ---- */

bool gpi_play_init(struct gpi_play *p, const struct gpi_sched_settings *set,
                   gpi_play_write_fn *write, void *to)
{
    struct gpi_fact f = { .kind = GPI_FACT_PLAN };

    *p = (struct gpi_play){ .core = gpi_sched_create(set), .write = write, .to = to };
    if (!p->core)
        return false;
    gpi_log_defaults(&p->set);
    write_settings(p, set);
    if (set->pool.pooled) {
        f.plan = set->pool.plan;
        feed_fact(p, &f);
    }
    return true;
}

void gpi_play_fini(struct gpi_play *p)
{
    if (p->core)
        gpi_sched_destroy(p->core);
    free(p->actions.at);
    free(p->ends.at);
    *p = (struct gpi_play){ 0 };
}
