/* SPDX-License-Identifier: MIT */
#include "sim/replay.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "log/play.h"

#define SETS_MOST 1024u /* of places: the plan takes memory for all of them at once */

enum class_life { LIVES, ENDS, REMOVED };

struct run {
    struct gpi_replay *r;
    struct gpi_sched_settings set;
    struct gpi_play play; /* the first step creates its core */
    uint64_t now;
    uint32_t classes, devices, slots; /* added so far */
    uint8_t life[256];                /* of each class: enum class_life */
    uint8_t residence[256];           /* of each class: enum gpi_residence */
    const char *text;        /* the current line */
    size_t size;
    bool cut;                /* the last step may lack effects */
    bool over;               /* the replay has read the line "cut" */
    bool differs;
    uint32_t differs_at;
    /* The current group of steps. */
    uint32_t together; /* number of its steps so far */
    bool ruled;        /* the replay has read its ---- */
    struct gpi_log_line *got; /* their effects */
    size_t n, room, next;     /* `next`: index of the next effect to compare */
};

static bool bad(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool bad(struct run *run, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(run->r->error, GPI_LOG_ERROR_SIZE, format, list);
    va_end(list);
    return false;
}

/* ---- checks: steps that a caller of the core may take ---- */

static bool check_number(struct run *run, const char *what, uint32_t number, uint32_t end)
{
    return number < end || bad(run, "%s %u is not there: there are %u", what, number, end);
}

/* Accepts events about ended tasks, because the core drops them. */
static bool check_event(struct run *run, const struct gpi_sched_event *e)
{
    static const uint32_t fields[] = {
#define X(name, fields, how, bits, what) (fields),
        GPI_EVENT_MAP(X)
#undef X
    };

    if (e->kind == GPI_EV_WANT && run->set.pool.pooled)
        return bad(run, "the plan wants seats, expected no WANT");
    return (!(fields[e->kind] & GPI_F_SLOT) || check_number(run, "slot", e->slot, run->slots)) &&
           (!(fields[e->kind] & GPI_F_DEVICE) ||
            check_number(run, "device", e->device, run->devices)) &&
           (!(fields[e->kind] & GPI_F_TASK) ||
            check_number(run, "task", e->task, run->set.pool.tasks));
}

static bool check_slot(struct run *run, const struct gpi_log_line *l)
{
    if (run->set.pool.pooled != (l->slot.n == 0))
        return bad(run, run->set.pool.pooled ? "a seat has no device" : "expected devices=");
    if (l->slot.slot != run->slots)
        return bad(run, "the next slot is %u, not %u", run->slots, l->slot.slot);
    if (!run->set.pool.pooled && !check_number(run, "class", l->slot.class, run->classes))
        return false;
    if (run->slots == run->set.pool.slots)
        return bad(run, "expected at most %u slots (set slots=)", run->set.pool.slots);
    for (uint32_t i = 0; i < l->slot.n; i++) {
        if (!check_number(run, "device", l->slot.device[i], run->devices))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (l->slot.device[k] == l->slot.device[i])
                return bad(run, "device %u stands twice", l->slot.device[i]);
    }
    run->slots++;
    return true;
}

static bool check_need(struct run *run, const struct gpi_request *r)
{
    if (r->devices > GPI_LOG_DEVICES)
        return bad(run, "a need has %u devices, expected at most %u", r->devices, GPI_LOG_DEVICES);
    if (r->share > GPI_SHARE_ALL || (r->devices > 1 && r->share != GPI_SHARE_ALL))
        return bad(run, "a share is at most %u, and just that of several devices", GPI_SHARE_ALL);
    return r->places <= run->set.pool.plan.place_sets ||
           bad(run, "no set of places has the number %u", r->places);
}

static bool check_devices(struct run *run, const uint16_t *device, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!check_number(run, "device", device[i], run->devices))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (device[k] == device[i])
                return bad(run, "device %u stands twice", device[i]);
    }
    return true;
}

/* A device joins a set once. */
static bool check_places(struct run *run, const struct gpi_fact *f)
{
    if (f->set == 0 || f->set > run->set.pool.plan.place_sets)
        return bad(run, "no set of places has the number %u", f->set);
    if (!check_devices(run, f->list, f->n_devices))
        return false;
    if (f->n_devices == 0) {
        bool used[SETS_MOST + 1] = { false };
        gpi_sched_mark_places(run->play.core, used);
        return !used[f->set] || bad(run, "set %u is in use", f->set);
    }
    for (uint32_t i = 0; i < f->n_devices; i++)
        if (gpi_sched_is_place(run->play.core, f->set, f->list[i]))
            return bad(run, "device %u is in set %u already", f->list[i], f->set);
    return true;
}

static bool check_adoption(struct run *run, const struct gpi_fact *f)
{
    const struct gpi_request *has = &f->request[0];

    if (!check_number(run, "task", f->task, run->set.pool.tasks) ||
        !check_devices(run, f->list, f->n_devices))
        return false;
    if (f->n_requests != 1 || has->devices != f->n_devices || has->devices > GPI_LOG_DEVICES)
        return bad(run, "expected d= and need= with as many devices");
    if (has->share > GPI_SHARE_ALL || (has->memory != GPI_MEMORY_ALL && has->memory >> 56) ||
        has->host_memory >> 56 || has->cpus >> 15)
        return bad(run, "it has too much");
    if (f->grant == 0 || f->attempts > UINT8_MAX || (f->at != GPI_NEVER && f->at > f->now))
        return bad(run, "expected grant=, attempts= and at= of a task that runs");
    return (gpi_sched_has_run(run->play.core) && gpi_sched_can_adopt(run->play.core, f->task)) ||
           bad(run, "task %u is none of an external class, or no run is free", f->task);
}

/* A class ends once, and is removed with no task and no worker. */
static bool check_class_set(struct run *run, const struct gpi_fact *f)
{
    uint8_t *const life = &run->life[f->class];

    if (*life != (f->what == GPI_CLASS_REMOVE ? ENDS : LIVES))
        return bad(run, "class %u: expected end, then remove, and nothing else", f->class);
    if (f->what == GPI_CLASS_REMOVE && !gpi_sched_is_unused(run->play.core, f->class))
        return bad(run, "class %u has a task or a worker", f->class);
    *life = f->what == GPI_CLASS_END ? ENDS : f->what == GPI_CLASS_REMOVE ? REMOVED : LIVES;
    return true;
}

static bool check_fact(struct run *run, const struct gpi_fact *f)
{
    bool good = f->kind == GPI_FACT_DEVICE || f->n_requests;

    if (!run->set.pool.pooled)
        return bad(run, "expected fact plan first of all");
    if (f->kind == GPI_FACT_CLASS_SET)
        return check_number(run, "class", f->class, run->classes) && check_class_set(run, f);
    if (f->kind == GPI_FACT_PLACES)
        return check_places(run, f);
    if (f->kind == GPI_FACT_ADOPT)
        return check_adoption(run, f);
    if (f->kind == GPI_FACT_OBSERVED_OF)
        return check_number(run, "device", f->device, run->devices) &&
               check_number(run, "task", f->task, run->set.pool.tasks);
    if (f->kind == GPI_FACT_FOREIGN || f->kind == GPI_FACT_OBSERVED)
        return check_number(run, "device", f->device, run->devices) &&
               (f->kind == GPI_FACT_FOREIGN ||
                check_number(run, "slot", f->worker, run->slots));
    if (!good)
        return bad(run, "expected need=");
    for (uint32_t i = 0; i < f->n_requests && good; i++)
        good = check_need(run, &f->request[i]);
    return good;
}

static bool check_class(struct run *run, uint32_t class)
{
    if (run->set.pool.pooled && !run->play.class.n_needs)
        return bad(run, "expected fact class before class");
    if (class < run->classes && run->life[class] == REMOVED) {
        run->life[class] = LIVES;
        run->residence[class] = (uint8_t)run->play.class.residence;
        return true;
    }
    if (class != run->classes)
        return bad(run, "the next class is %u, not %u", run->classes, class);
    if (class == run->set.pool.classes)
        return bad(run, "expected at most %u classes (set classes=)", run->set.pool.classes);
    run->residence[class] = (uint8_t)run->play.class.residence;
    run->classes++;
    return true;
}

static bool check_device(struct run *run, uint32_t device)
{
    if (device > run->devices)
        return bad(run, "the next device is %u, not %u", run->devices, device);
    if (run->set.pool.pooled && device < run->devices)
        return bad(run, "device %u is there already", device);
    if (device == run->set.pool.devices)
        return bad(run, "expected at most %u devices (set devices=)", run->set.pool.devices);
    run->devices += device == run->devices;
    return true;
}

static bool check_requests(struct run *run, const struct gpi_log_line *l)
{
    struct gpi_sched_task what = l->submit.what;
    bool good = true;

    what.request = l->submit.request;
    if (!run->set.pool.pooled)
        return what.n_requests == 0 || bad(run, "the core is not pooled, expected no need=");
    if (what.n_requests == 0 && run->residence[what.class] == GPI_EXTERNAL)
        return bad(run, "class %u is external, expected need=", what.class);
    if (what.n_requests && run->residence[what.class] == GPI_RESIDENT)
        return bad(run, "the devices of class %u are fixed, expected no need=", what.class);
    for (uint32_t i = 0; i < what.n_requests && good; i++)
        good = check_need(run, &what.request[i]);
    return good && (gpi_sched_has_room(run->play.core, &what) ||
                    bad(run, "there are too many different requests"));
}

static bool check_submit(struct run *run, const struct gpi_log_line *l)
{
    const uint32_t task = l->submit.task, class = l->submit.what.class;

    if (!check_number(run, "task", task, run->set.pool.tasks) ||
        !check_number(run, "class", class, run->classes))
        return false;
    if (gpi_sched_is_accepted(run->play.core, task))
        return bad(run, "task %u is submitted already, and has not ended", task);
    if (run->life[class] != LIVES)
        return bad(run, "class %u has ended", class);
    return check_requests(run, l);
}

static bool check_end(struct run *run, const struct gpi_log_line *l)
{
    const uint32_t task = l->end.task;

    return check_number(run, "task", task, run->set.pool.tasks) &&
           (gpi_sched_is_accepted(run->play.core, task) ||
            bad(run, "task %u is not submitted, or has ended", task)) &&
           (l->end.outcome == GPUD_OUTCOME_SUCCESS || l->end.outcome == GPUD_OUTCOME_ERROR ||
            l->end.outcome == GPUD_OUTCOME_TIMEOUT || l->end.outcome == GPUD_OUTCOME_CANCELLED ||
            bad(run, "an attempt ends by itself with SUCCESS, ERROR, TIMEOUT or CANCELLED"));
}

static bool check_step(struct run *run, const struct gpi_log_line *l)
{
    switch (l->kind) {
    case GPI_LOG_FACT:
        return check_fact(run, &l->fact);
    case GPI_LOG_CLASS:
        return check_class(run, l->class.class);
    case GPI_LOG_DEVICE:
        return check_device(run, l->device.device);
    case GPI_LOG_SLOT:
        return check_slot(run, l);
    case GPI_LOG_EVENT:
        return check_event(run, &l->event);
    case GPI_LOG_SUBMIT:
        return check_submit(run, l);
    case GPI_LOG_END:
        return check_end(run, l);
    default:
        return true;
    }
}

/* ---- steps ---- */

static bool keep(struct run *run, const struct gpi_log_line *effect)
{
    if (run->n == run->room) {
        const size_t room = run->room ? run->room * 2 : 64;
        struct gpi_log_line *more = realloc(run->got, room * sizeof *more);
        if (!more)
            return bad(run, "no memory");
        run->got = more;
        run->room = room;
    }
    run->got[run->n++] = *effect;
    return true;
}

static bool feed(struct run *run, const struct gpi_log_line *l)
{
    struct gpi_log_line effect;

    if (gpi_play_line(&run->play, l, &effect) && l->kind == GPI_LOG_SEND && !keep(run, &effect))
        return false;
    effect = (struct gpi_log_line){ .kind = GPI_LOG_ACTION };
    while (gpi_play_next(&run->play, &effect.action))
        if (!keep(run, &effect))
            return false;
    effect = (struct gpi_log_line){ .kind = GPI_LOG_ENDED };
    while (gpi_play_ended(&run->play, &effect.ended))
        if (!keep(run, &effect))
            return false;
    return true;
}

static bool make_core(struct run *run)
{
    if (run->set.class.lead > run->set.class.grace)
        return bad(run, "lead exceeds grace: expected at most that");
    if (run->play.core)
        return true;
    if (run->set.pool.pooled && run->set.pool.slots < 2)
        return bad(run, "expected at least 2 slots: one is spare");
    if (!gpi_play_init(&run->play, &run->set, NULL, NULL))
        return bad(run, "no memory");
    run->play.lists = true;
    run->classes = !run->set.pool.pooled;
    if (run->r->begin)
        run->r->begin(run->play.core, run->r->user);
    return true;
}

static bool take_step(struct run *run, struct gpi_log_line *l)
{
    if (run->ruled)
        return bad(run, "a step among effects: expected a blank line before it");
    if (l->stamped && l->now < run->now)
        return bad(run, "its time is before that of the step before");
    if (!l->stamped)
        l->now = run->now;
    if (l->kind == GPI_LOG_EVENT)
        l->event.now = l->now;
    if (l->kind == GPI_LOG_FACT)
        l->fact.now = l->now;
    l->stamped = gpi_log_has_time(l);
    run->now = l->now;
    run->together++;
    run->r->steps++;
    return make_core(run) && check_step(run, l) && feed(run, l);
}

/* ---- effects ---- */

static void write_text(struct run *run, const char *text, size_t size)
{
    if (run->r->rewritten) {
        (void)fwrite(text, 1, size, run->r->rewritten);
        (void)fputc('\n', run->r->rewritten);
    }
}

static void write_effect(struct run *run, const struct gpi_log_line *l)
{
    char text[GPI_LOG_LINE_SIZE];

    (void)gpi_log_write(text, l);
    write_text(run, text, strlen(text));
}

static const char *text_of(char to[GPI_LOG_LINE_SIZE], const struct gpi_log_line *l)
{
    return l ? gpi_log_write(to, l) : strcpy(to, "nothing");
}

/* Compares two effects, either of which may be missing.  Returns false at the first difference,
 * which ends a replay that does not rewrite. */
static bool compare(struct run *run, const struct gpi_log_line *wanted,
                    const struct gpi_log_line *got)
{
    char a[GPI_LOG_LINE_SIZE], b[GPI_LOG_LINE_SIZE];

    if (got)
        write_effect(run, got);
    if (run->differs || !strcmp(text_of(a, wanted), text_of(b, got)))
        return true;
    run->differs = true;
    run->differs_at = run->r->line;
    memcpy(run->r->wanted, a, sizeof a);
    memcpy(run->r->got, b, sizeof b);
    return run->r->rewritten;
}

static bool take_rule(struct run *run)
{
    if (!run->together || run->ruled)
        return bad(run, "expected ---- once, behind a step");
    run->ruled = true;
    if (run->n)
        write_text(run, "----", 4);
    return true;
}

static bool take_effect(struct run *run, const struct gpi_log_line *wanted)
{
    if (!run->ruled)
        return bad(run, "an effect without a step: expected ---- before it");
    return compare(run, wanted, run->next < run->n ? &run->got[run->next++] : NULL);
}

/* Ends the current group of steps, with all its effects. */
static bool take_end(struct run *run, bool last)
{
    bool go_on = true;

    if (!run->ruled && run->n)
        write_text(run, "----", 4);
    while (go_on && run->next < run->n && !(last && run->cut && !run->r->rewritten))
        go_on = compare(run, NULL, &run->got[run->next++]);
    run->together = 0;
    run->ruled = false;
    run->n = run->next = 0;
    return go_on;
}

/* ---- lines ---- */

/* Of the settings of the plan, only those count that a core does not choose itself. */
static bool take_plan(struct run *run, const struct gpi_log_line *l)
{
    if (run->play.core)
        return bad(run, "expected fact plan before classes, devices, slots and steps");
    if (l->fact.plan.place_sets > SETS_MOST)
        return bad(run, "there are %u sets of places, expected at most %u", l->fact.plan.place_sets,
                   SETS_MOST);
    run->set.pool.pooled = true;
    run->set.pool.plan = l->fact.plan;
    return true;
}

static bool take_set(struct run *run, const struct gpi_log_line *l)
{
    if (run->play.core && !gpi_log_sets_class(l))
        return bad(run, "expected settings before classes, devices, slots and steps");
    gpi_log_set(&run->set, l);
    gpi_log_set(&run->play.set, l);
    return true;
}

static bool take_line(struct run *run)
{
    struct gpi_log_line l;

    if (run->over)
        return bad(run, "expected nothing behind \"cut\"");
    if (!gpi_log_read(&l, run->text, run->size, run->r->error))
        return false;
    if (l.kind == GPI_LOG_BLANK && !take_end(run, false))
        return false;
    if (l.kind < GPI_LOG_ACTION && l.kind != GPI_LOG_RULE)
        write_text(run, run->text, run->size);
    switch (l.kind) {
    case GPI_LOG_BLANK:
    case GPI_LOG_COMMENT:
        return true;
    case GPI_LOG_RULE:
        return take_rule(run);
    case GPI_LOG_SET:
        return take_set(run, &l);
    case GPI_LOG_CUT:
        return run->over = run->cut = run->r->was_cut = true;
    case GPI_LOG_FACT:
        return l.fact.kind == GPI_FACT_PLAN ? take_plan(run, &l) : take_step(run, &l);
    default:
        return l.kind < GPI_LOG_ACTION ? take_step(run, &l) : take_effect(run, &l);
    }
}

/* Returns false if the replay stopped at a difference, or at an error that it has recorded. */
static bool take_all(struct run *run, const char *text, size_t size)
{
    const char *end;

    for (; size; text = end + 1) {
        end = memchr(text, '\n', size);
        run->r->torn = !end && run->cut;
        if (run->r->torn)
            break;
        run->r->line++;
        run->text = text;
        run->size = end ? (size_t)(end - text) : size;
        if (!take_line(run))
            return false;
        if (!end)
            break;
        size -= run->size + 1;
    }
    return take_end(run, true);
}

enum gpi_replay_result gpi_replay(struct gpi_replay *r, const char *text, size_t size)
{
    struct run run = { .r = r, .cut = r->cut };

    r->line = r->steps = 0;
    r->was_cut = r->torn = false;
    *r->wanted = *r->got = *r->error = 0;
    gpi_log_defaults(&run.set);
    (void)take_all(&run, text, size);
    if (r->end && run.play.core)
        r->end(run.play.core, r->user);
    gpi_play_fini(&run.play);
    free(run.got);
    if (*r->error)
        return GPI_REPLAY_BAD;
    if (!run.differs)
        return GPI_REPLAY_EQUAL;
    r->line = run.differs_at;
    return GPI_REPLAY_DIFFERS;
}

char *gpi_replay_file(const char *path, size_t *ret_size)
{
    FILE *in = fopen(path, "re");
    char *text = NULL, part[4096];
    FILE *all = open_memstream(&text, ret_size);
    size_t n;
    bool failed = !in || !all;

    while (!failed && (n = fread(part, 1, sizeof part, in)) > 0)
        failed = fwrite(part, 1, n, all) != n;
    failed |= in && ferror(in);
    failed |= all && fclose(all);
    if (failed) {
        free(text);
        text = NULL;
    }
    if (in)
        (void)fclose(in);
    return text;
}
