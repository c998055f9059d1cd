/* SPDX-License-Identifier: MIT */
/*
 * external.c - the calls about external work, and its outcomes.                 [C1] [C4] [C7] [S4]
 *
 * A call names a grant by its number.  The core judges the end that the caller reports.
 */
#include "host/external.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/act.h"
#include "host/core.h"
#include "host/device.h"
#include "host/drive.h"

#define OUTPUT_MOST 8192u /* bytes: the last ones count, as of a worker */

/* ---- the task of a call ---- */

/* The states in which a call finds a grant. */
enum { GRANTED = 1, STARTED = 2, HELD = 4 };

static int state_of(const gpud_dispatcher *d, uint32_t task)
{
    if (gpi_sched_is_held(d->core, task))
        return HELD;
    return gpi_sched_is_started(d->core, task) ? STARTED : GRANTED;
}

/* Returns the task whose grant has this number and is in one of these states, or NULL. */
static struct gpi_task *find(gpud_dispatcher *d, uint64_t id, uint32_t attempt, int states,
                             struct gpud_error *e)
{
    struct gpi_task *t = d->outside.of ? gpi_task_find(d, id) : NULL;
    const uint32_t i = t ? gpi_task_index(d, t) : 0;

    if (t && attempt && d->outside.of[i].number == attempt && state_of(d, i) & states)
        return t;
    (void)gpi_fail(e, GPUD_ENOTFOUND, 0, "attempt",
                   "task %llu has no grant with number %u that waits for this call: it is over, or "
                   "the call came before",
                   (unsigned long long)id, attempt);
    return NULL;
}

int gpi_external_check_time(const char *field, uint64_t at, uint64_t from, uint64_t now,
                      struct gpud_error *e)
{
    if (at >= from && at <= now)
        return 0;
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s is %llu, expected 0, or from %llu to %llu (now)",
                    field, (unsigned long long)at, (unsigned long long)from,
                    (unsigned long long)now);
}

static void hear(gpud_dispatcher *d, const struct gpi_task *t, uint32_t kind, uint32_t how,
                 uint64_t at)
{
    gpi_hear(d, (struct gpi_sched_event){
                    .kind = kind, .task = gpi_task_index(d, t), .how = how, .at = at });
    gpi_drive_wake(d);
}

/* ---- started ---- */

static int start(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_proc *proc,
                 struct gpud_error *e)
{
    struct gpi_grant *g = &d->outside.of[gpi_task_index(d, t)];
    const uint64_t at = proc->started_at ? proc->started_at : d->now;
    const int r = gpi_external_check_time("started_at", at, g->since, d->now, e);

    if (r)
        return r;
    g->since = t->started_at = at;
    g->pid = proc->pid;
    g->session = proc->session;
    if (!d->stats.first_start || at < d->stats.first_start)
        d->stats.first_start = at;
    hear(d, t, GPI_EV_STARTED, 0, at);
    gpi_devices_rouse(d);
    return 0;
}

int gpi_external_started(gpud_dispatcher *d, uint64_t id, uint32_t attempt,
                         const struct gpud_proc *proc, struct gpud_error *e)
{
    struct gpi_task *t;
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    t = find(d, id, attempt, GRANTED, e);
    r = t ? start(d, t, proc, e) : GPUD_ENOTFOUND;
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- declined, progress ---- */

int gpi_external_decline(gpud_dispatcher *d, uint64_t id, uint32_t attempt, uint64_t not_before,
                         struct gpud_error *e)
{
    struct gpi_task *t;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    t = find(d, id, attempt, GRANTED, e);
    if (t) {
        gpi_grant_silence(d, gpi_task_index(d, t));
        gpi_grant_over(d, gpi_task_index(d, t));
        hear(d, t, GPI_EV_DECLINED, 0, not_before);
    }
    pthread_mutex_unlock(&d->lock);
    return t ? 0 : GPUD_ENOTFOUND;
}

static void tell_progress(gpud_dispatcher *d, const struct gpi_task *t, double fraction,
                          const char *text)
{
    const struct gpi_grant *g = &d->outside.of[gpi_task_index(d, t)];
    struct gpi_note *n = gpi_note_new(d, GPUD_EVENT_PROGRESS, true);

    if (!n)
        return;
    gpi_note_name_task(d, t, n);
    n->class = t->class;
    gpi_set_take(&n->on, g->device, g->n_devices);
    n->progress = fraction;
    if (text)
        memcpy(n->text, text, strnlen(text, sizeof n->text - 1));
    gpi_note_push(d, n);
}

int gpi_external_progress(gpud_dispatcher *d, uint64_t id, uint32_t attempt, double fraction,
                          const char *text, struct gpud_error *e)
{
    struct gpi_task *t;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    t = find(d, id, attempt, STARTED, e);
    if (t) {
        tell_progress(d, t, fraction, text);
        hear(d, t, GPI_EV_PROGRESS, 0, 0);
    }
    pthread_mutex_unlock(&d->lock);
    return t ? 0 : GPUD_ENOTFOUND;
}

/* ---- ended ---- */

static struct gpi_detail *copy_detail(const struct gpud_end *end)
{
    const uint32_t size = end->output_size < OUTPUT_MOST ? (uint32_t)end->output_size : OUTPUT_MOST;
    struct gpi_detail *det = calloc(1, sizeof *det + size);

    if (!det)
        return NULL;
    det->exit_kind = end->exit_kind;
    det->exit_status = end->exit_status;
    det->output_size = size;
    if (size)
        memcpy(det->output, end->output + end->output_size - size, size);
    if (end->text)
        memcpy(det->text, end->text, strnlen(end->text, GPI_FAIL_TEXT_SIZE - 1));
    return det;
}

/* Copies all that the outcome needs, without the lock.  Returns 0 or ENOMEM. */
static int prepare(struct gpi_ending_outside *ret, const struct gpud_end *end)
{
    *ret = (struct gpi_ending_outside){
        .how = end->outcome == GPUD_OUTCOME_SUCCESS ? GPI_ENDED_SUCCESS
               : end->outcome == GPUD_OUTCOME_ERROR ? GPI_ENDED_ERROR : GPI_ENDED_CRASHED,
        .code = end->code,
        .detail = copy_detail(end),
        .result = end->result_size ? malloc(end->result_size) : NULL,
        .result_size = end->result_size,
    };
    if (ret->result)
        memcpy(ret->result, end->result, end->result_size);
    return ret->detail && (ret->result || !end->result_size) ? 0 : GPUD_ENOMEM;
}

/* It had its outcome already.  The record may have been waiting for this. */
static void end_held(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_ending_outside *x)
{
    const struct gpi_grant *g = &d->outside.of[x->task];

    hear(d, t, GPI_EV_ENDED, x->how, x->ended_at);
    gpi_grant_over(d, x->task);
    for (uint32_t i = 0; i < g->n_devices; i++)
        gpi_device_released(d, g->device[i]);
    t->held = 0;
    if (t->state != GPI_TASK_HELD)
        return; /* its outcome is not delivered yet */
    gpi_task_free(d, x->task);
    gpi_room_made(d);
}

static int end_one(gpud_dispatcher *d, struct gpi_task *t, uint64_t at,
                   struct gpi_ending_outside *x, struct gpud_error *e)
{
    int r;

    x->task = gpi_task_index(d, t);
    x->ended_at = at ? at : d->now;
    r = gpi_external_check_time("ended_at", x->ended_at, d->outside.of[x->task].since, d->now, e);
    if (r)
        return r;
    if (gpi_sched_is_held(d->core, x->task)) {
        end_held(d, t, x);
        return 0;
    }
    d->outside.ending = x;
    hear(d, t, GPI_EV_ENDED, x->how, x->ended_at);
    d->outside.ending = NULL;
    return 0;
}

int gpi_external_ended(gpud_dispatcher *d, uint64_t id, uint32_t attempt,
                       const struct gpud_end *end, struct gpud_error *e)
{
    struct gpi_ending_outside x;
    int r = prepare(&x, end);

    if (r)
        (void)gpi_fail(e, r, 0, "", "no memory for the texts or the result");
    if (r == 0) {
        struct gpi_task *t;
        pthread_mutex_lock(&d->lock);
        d->now = gpi_now();
        t = find(d, id, attempt, GRANTED | STARTED | HELD, e);
        r = t ? end_one(d, t, end->ended_at, &x, e) : GPUD_ENOTFOUND;
        pthread_mutex_unlock(&d->lock);
    }
    free(x.detail); /* unless the outcome has taken them */
    free(x.result);
    return r;
}

/* ---- outcomes ---- */

static int32_t code_of(const gpud_dispatcher *d, const struct gpi_sched_end *e,
                       const struct gpi_ending_outside *x)
{
    switch (e->outcome) {
    case GPUD_OUTCOME_SUCCESS:
        return 0;
    case GPUD_OUTCOME_TIMEOUT:
        return GPUD_ETIMEOUT;
    case GPUD_OUTCOME_CANCELLED:
        return e->why == GPI_WHY_CLOSE && d->close.passed ? GPUD_ETIMEOUT : GPUD_ECANCELLED;
    case GPUD_OUTCOME_NO_WORKER:
        return GPUD_ENOWORKER;
    default:
        break;
    }
    if (e->why == GPI_WHY_DEVICE)
        return GPUD_EDEVICE;
    return x && x->code ? x->code : (int32_t)GPUD_ECRASHED;
}

static void learn(gpud_dispatcher *d, const struct gpi_task *t)
{
    const uint64_t run = t->ended_at > t->started_at ? t->ended_at - t->started_at : 0;

    d->outside.work_time += run;
    if (!d->stats.first_start || t->started_at < d->stats.first_start)
        d->stats.first_start = t->started_at;
    if (t->attempts == 1 && t->started_at > t->queued_at)
        gpi_hist_add(&d->stats.queue_wait, t->started_at - t->queued_at);
    gpi_hist_add(&d->stats.run, run);
}

static void keep_result(struct gpi_task *t, struct gpi_ending_outside *x)
{
    if (!x || !x->result)
        return;
    t->result_place = GPI_RESULT_HEAP;
    t->result_off = (uintptr_t)x->result;
    t->size = x->result_size;
    x->result = NULL;
}

/* It has not started, or waits for its next attempt. */
static void end_unstarted(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_sched_end *e)
{
    static const char never[] = "granted 3 times, never started within setup_limit";
    const bool vain = e->why == GPI_WHY_START;
    struct gpi_detail *det = vain ? gpi_task_detail(t, 0) : NULL;
    const int32_t code = e->outcome == GPUD_OUTCOME_TIMEOUT ? (int32_t)GPUD_ETIMEOUT
                                                            : code_of(d, e, NULL);

    if (det)
        memcpy(det->text, never, sizeof never);
    gpi_grant_over(d, e->task);
    gpi_task_end(d, t, e->outcome, e->phase, code);
}

void gpi_external_over(gpud_dispatcher *d, const struct gpi_sched_end *e)
{
    struct gpi_ending_outside *x = d->outside.ending;
    struct gpi_task *t = &d->task[e->task];
    const struct gpi_grant *g = &d->outside.of[e->task];

    gpi_grant_silence(d, e->task);
    if (e->phase == GPUD_PHASE_QUEUED) {
        end_unstarted(d, t, e);
        return;
    }
    if (x && x->task != e->task)
        x = NULL;
    t->attempts = (uint8_t)e->attempts;
    t->started_at = g->since;
    t->ended_at = x ? x->ended_at : d->now;
    gpi_set_take(&d->ran_on[e->task], g->device, g->n_devices);
    learn(d, t);
    gpi_ending_words(d, t, e, x);
    if (x)
        x->detail = NULL;
    t->held = e->held;
    if (!e->held)
        gpi_grant_over(d, e->task);
    if (e->again) {
        gpi_attempt_retry(d, t);
        return;
    }
    keep_result(t, x);
    for (uint32_t i = 0; i < g->n_devices; i++)
        d->dev.row[g->device[i]].done++;
    gpi_task_end(d, t, e->outcome, e->phase, code_of(d, e, x));
}

/* ---- left at the close ---- */

static void leave(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_task *t = &d->task[i];

    gpi_grant_forget(d, i);
    gpi_grant_over(d, i);
    if (t->held) {
        t->held = 0;
        if (t->state == GPI_TASK_HELD)
            gpi_task_free(d, i);
        return;
    }
    d->outside.left++;
    d->class[t->class].accepted--;
    d->stats.cost_left -= t->cost;
    d->intake.live--;
    d->intake.awaited -= t->awaited;
    if (t->awaited)
        gpi_wait_ended(d, t);
    gpi_task_free(d, i);
}

void gpi_external_leave(gpud_dispatcher *d)
{
    for (uint32_t k = d->outside.n; k > 0; k--) {
        const uint32_t i = d->outside.task[k - 1];
        if (!gpi_sched_is_accepted(d->core, i))
            leave(d, i);
    }
    gpi_room_made(d);
    gpi_drive_tell(d);
}

/* ---- adopted ---- */

/* Held work has its outcome already: it is no task, and counts nowhere. */
static void disown(gpud_dispatcher *d, struct gpi_task *t)
{
    d->stats.count.accepted--;
    d->stats.cost_left -= t->cost;
    d->intake.live--;
    d->intake.awaited -= t->awaited;
    gpi_task_class(d, t)->accepted--;
    t->awaited = 0;
    t->held = 1;
    t->state = GPI_TASK_HELD;
}

void gpi_external_enter(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_sched_task *what,
                        const struct gpi_adopted *a)
{
    const uint32_t i = gpi_task_index(d, t);

    if (gpi_core_submit(d, i, what)) {
        t->attempts = (uint8_t)a->core.attempts;
        gpi_grant_take_over(d, i, a);
        gpi_core_adopt(d, d->now, i, &a->core);
        if (a->core.given_up)
            disown(d, t);
    }
    d->act(d);
    gpi_drive_wake(d);
}
