/* SPDX-License-Identifier: MIT */
/* turn.c - gathers, commits, and acts. */
#include "queue/agent/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queue/agent/ahead.h"
#include "queue/agent/dispatch.h"
#include "queue/agent/forget.h"
#include "queue/agent/marks.h"
#include "queue/agent/notify.h"
#include "queue/agent/now.h"
#include "queue/agent/oom.h"
#include "queue/agent/recent.h"
#include "queue/agent/retention.h"
#include "queue/agent/runs.h"
#include "queue/agent/spans.h"
#include "queue/agent/workers.h"
#include "queue/files/out.h"
#include "queue/files/publish.h"
#include "queue/files/reserve.h"
#include "queue/grow.h"

enum note_kind { GRANTED, ENDED, RETURNED };
struct gpq_note {
    enum note_kind kind;
    uint64_t id;      /* of the unit */
    uint32_t grant;   /* GRANTED: the grant that it is about */
    uint32_t outcome; /* ENDED */
    uint32_t why;     /* RETURNED: enum gpq_return */
    bool done;        /* GRANTED: the claim is in the transaction */
    char text[256];
};

/* ---- Notes ---- */

static struct gpq_note *add(struct gpq_agent *a, enum note_kind kind, const struct gpq_unit *u)
{
    struct gpq_notes *all = &a->notes;
    struct gpq_note *larger = gpq_grown(all->note, all->n, &all->room, sizeof(*larger));
    if (!larger) {
        gpq_log("no memory for what happened to %u.%u: the agent ends", GPQ_BATCH_OF(u->task),
                GPQ_NUMBER_OF(u->task));
        a->over = true;
        a->status = 75;
        return NULL;
    }
    all->note = larger;
    struct gpq_note *n = &all->note[all->n++];
    *n = (struct gpq_note){ .kind = kind, .id = u->id, .grant = u->grant };
    return n;
}

void gpq_turn_free(struct gpq_agent *a)
{
    free(a->notes.note);
    a->notes = (struct gpq_notes){ 0 };
}

void gpq_turn_granted(struct gpq_agent *a, struct gpq_unit *u)
{
    (void)add(a, GRANTED, u);
}

void gpq_turn_ended(struct gpq_agent *a, struct gpq_unit *u, uint32_t outcome, const char *text)
{
    struct gpq_note *n = add(a, ENDED, u);
    if (!n)
        return;
    bool own =
        u->text[0] != 0 && outcome != GPUD_OUTCOME_TIMEOUT && outcome != GPUD_OUTCOME_CANCELLED;
    n->outcome = outcome;
    snprintf(n->text, sizeof(n->text), "%.255s", own ? u->text : text);
}

void gpq_turn_returned(struct gpq_agent *a, struct gpq_unit *u, uint32_t why, const char *text)
{
    struct gpq_note *n = add(a, RETURNED, u);
    if (!n)
        return;
    n->why = why;
    snprintf(n->text, sizeof(n->text), "%.255s", text);
}

/* ---- The transaction ---- */

/* A request of this transaction has changed the task: the grant is for what it was. */
static bool has_changed(const struct gpq_agent *a, uint64_t task)
{
    for (size_t i = 0; i < a->store->n_changes; i++)
        if (a->store->changes[i].task == task)
            return true;
    return false;
}

static int store_claim(struct gpq_agent *a, struct gpq_note *n, struct gpq_unit *u, bool requests,
                       uint64_t now, struct gpq_error *e)
{
    char run[128] = GPQ_WORKER_RUN;
    if (u->phase != GPQ_GRANTED || n->grant != u->grant || a->stop.now || a->starts_wait ||
        (u->class ? u->class->paused || u->class->pausing : a->paused || !u->devices) ||
        (requests && has_changed(a, u->task)) || (!u->class && gpq_runs_prepare(u) < 0))
        return 0;
    if (!u->class)
        gpq_run_text(a, &u->run, run);
    int64_t attempt = a->store->engine->claim(a->store, now, u->task, u->devices, run, e);
    if (attempt == GPQ_ESTALE || attempt == GPQ_ENOTFOUND)
        return 0;
    if (attempt < 0)
        return (int)attempt;
    u->attempt = (uint32_t)attempt;
    n->done = true;
    return 0;
}

static int store_end(struct gpq_agent *a, const struct gpq_note *n, struct gpq_unit *u,
                     uint64_t now, struct gpq_error *e)
{
    char name[GPQ_RESULT_NAME];
    struct gpq_end end = { .task = u->task,
                           .attempt = u->attempt,
                           .outcome = n->outcome,
                           .oom = u->oom,
                           .status = u->status,
                           .text = n->text,
                           .said = u->said,
                           .devices = u->class ? u->devices : NULL,
                           .started = u->started,
                           .stamp = { u->stamp, u->stamp ? strlen(u->stamp) : 0 },
                           .ended = u->ended != 0 ? u->ended : now };
    if (u->phase <
        GPQ_STARTING) /* NO_WORKER: it is submitted again, and refused if nothing has it */
        return 0;
    int code = gpq_workers_result(a, u, &end, name, e);
    if (code < 0)
        return code;
    code = gpq_oom_complete(a, &end, e);
    return code == GPQ_ESTALE || code == GPQ_ENOTFOUND || code > 0 ? 0 : code;
}

static int store_return(struct gpq_agent *a, const struct gpq_note *n, const struct gpq_unit *u,
                        uint64_t now, struct gpq_error *e)
{
    const struct gpq_back back = { .task = u->task,
                                   .attempt = u->attempt,
                                   .why = n->why,
                                   .text = n->text,
                                   .devices = u->class ? u->devices : NULL,
                                   .started = u->started };
    int code = a->store->engine->give_back(a->store, now, &back, e);
    return code == GPQ_ESTALE || code == GPQ_ENOTFOUND || code > 0 ? 0 : code;
}

static int store_note(struct gpq_agent *a, struct gpq_note *n, bool requests, uint64_t now,
                      struct gpq_error *e)
{
    struct gpq_unit *u = gpq_work_by_id(a, n->id);
    if (!u)
        return 0;
    if (n->kind == GRANTED)
        return store_claim(a, n, u, requests, now, e);
    return n->kind == ENDED ? store_end(a, n, u, now, e) : store_return(a, n, u, now, e);
}

static int store_notes(struct gpq_agent *a, bool grants, bool requests, uint64_t now,
                       struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < a->notes.n; i++)
        if ((a->notes.note[i].kind == GRANTED) == grants)
            code = store_note(a, &a->notes.note[i], requests, now, e);
    return code;
}

/* One transaction: ends and returns; then, if `all`, requests and claims, in this order: a request
 * that pauses or changes a task is before its claim.  Marks of notifications are taken away first:
 * those that this transaction sets are of later ends. */
static int transact(struct gpq_agent *a, bool all, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    uint64_t now = a->turned = gpq_wall(), next = 0;
    bool requests = all && gpq_server_waits(a);
    for (size_t i = 0; i < a->notes.n; i++)
        a->notes.note[i].done = false; /* of a transaction that failed */
    int code = o->begin(a->store, e);
    if (code < 0)
        return code;
    if (all)
        code = gpq_notify_store(a, e);
    if (code == 0)
        code = store_notes(a, false, requests, now, e);
    if (code == 0 && requests) {
        gpq_server_apply(a, now);
        gpq_marks_read_pause(a);
    }
    if (code == 0) {
        int64_t due = o->due(a->store, now, &next, e);
        code = due < 0 ? (int)due : 0;
    }
    if (code == 0 && all)
        code = store_notes(a, true, requests, now, e);
    if (code == 0 && all)
        code = gpq_retention_store(a, now, e);
    if (code == 0 && all)
        code = gpq_forget_store(a, now, e);
    if (code == 0 && all)
        code = gpq_spans_store(a, now, e);
    if (code < 0) {
        o->rollback(a->store);
        return code;
    }
    code = o->commit(a->store, e);
    if (code == 0)
        a->next_due = next;
    if (code == 0 && all) {
        gpq_notify_stored(a);
        gpq_retention_stored(a);
        gpq_spans_stored(a);
    }
    return code;
}

/* ---- What follows from the commit ---- */

static void start(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpq_error e = { 0 };
    if (u->class) {
        gpq_workers_start(a, u);
        return;
    }
    u->phase = GPQ_STARTING;
    gpq_ahead_left(a, u->shape);
    if (gpq_runs_start(a, u, &e) == 0)
        return;
    gpq_log("%u.%u not started: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), e.text);
    if (e.code == GPQ_EINVAL || e.code == GPQ_EDAMAGED) { /* the task's own fault, and it stays */
        gpq_runs_failed(a, u, e.text);
        return;
    }
    gpq_starts_wait(a, e.text); /* the machine's fault */
    gpq_turn_returned(a, u, GPQ_RETURN_UNSTARTED, e.text);
}

/* Outputs are published after the commit of SUCCESS, and else removed.  [Q5] */
static void finish_outputs(struct gpq_agent *a, const struct gpq_note *n, const struct gpq_unit *u)
{
    struct gpq_error e = { 0 };
    int code;
    if (n->kind == ENDED && n->outcome == GPUD_OUTCOME_SUCCESS && u->outputs)
        code = gpq_out_publish(&gpq_system_files, a->state, u->task, u->attempt, &e);
    else
        code = gpq_out_drop(&gpq_system_files, a->state, u->task, u->attempt, &e);
    if (code < 0)
        gpq_log("outputs of %u.%u: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), e.text);
    gpq_runs_forget(a, &u->run);
}

/* Before a client learns of an end, its outputs are in their place. */
static void finish_all(struct gpq_agent *a)
{
    for (size_t i = 0; i < a->notes.n; i++) {
        const struct gpq_note *n = &a->notes.note[i];
        struct gpq_unit *u = gpq_work_by_id(a, n->id);
        if (!u || n->kind == GRANTED)
            continue;
        if (u->phase >= GPQ_STARTING && !u->class)
            finish_outputs(a, n, u);
        gpq_dispatch_leave(a, u); /* the dispatcher knows no such task if it gave the outcome */
    }
}

static void follow_grant(struct gpq_agent *a, const struct gpq_note *n)
{
    struct gpq_unit *u = gpq_work_by_id(a, n->id);
    if (!u || n->kind != GRANTED || n->grant != u->grant)
        return;
    if (n->done)
        start(a, u);
    else
        gpq_dispatch_decline(a, u);
}

static void follow_change(struct gpq_agent *a, const struct gpq_change *c)
{
    struct gpq_unit *u = c->cancel ? gpq_work_of(a, c->task) : NULL;
    if (c->to == 0)
        gpq_forget_task(a, c);
    else
        gpq_ahead_change(a, c);
    if (u)
        gpq_runs_cancel(a, u);
}

/* Notes that are added meanwhile belong to the next turn. */
static void act(struct gpq_agent *a)
{
    size_t n = a->notes.n;
    for (size_t i = 0; i < n; i++) {
        const struct gpq_note note = a->notes.note[i]; /* the array may move */
        follow_grant(a, &note);
    }
    for (size_t i = 0; i < a->store->n_changes; i++)
        follow_change(a, &a->store->changes[i]);
    if (n != 0) {
        a->notes.n -= n;
        memmove(a->notes.note, a->notes.note + n, a->notes.n * sizeof(*a->notes.note));
    }
    if (a->stop.now || a->paused)
        gpq_dispatch_hold(a);
}

/* ---- Failures ---- */

/* The disk is full, or no memory or descriptor is left: nothing starts.  On a full disk the ends of
 * tasks take the place of the reserve.  [Q9] */
static int without_space(struct gpq_agent *a, const struct gpq_error *first, struct gpq_error *e)
{
    gpq_starts_wait(a, first->code == GPQ_EFULL ? "the disk is full" : first->text);
    int code = transact(a, false, e);
    if (code == GPQ_EFULL && gpq_reserve_give_up(&gpq_system_files, a->state) > 0) {
        gpq_log("no space: the reserve is given up, and nothing starts");
        code = transact(a, false, e);
    }
    return code;
}

/* Ends wait for space, and grants do not wait with them. */
static void wait_for_space(struct gpq_agent *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->notes.n; i++) {
        struct gpq_note *n = &a->notes.note[i];
        if (n->kind == GRANTED)
            follow_grant(a, n);
        else
            a->notes.note[kept++] = *n;
    }
    a->notes.n = kept;
}

/* Whether the state directory is still the one that this agent has locked. */
static bool owns_directory(const struct gpq_agent *a)
{
    struct stat locked, there;
    char path[GPQ_PATH];
    return gpq_path(path, "%s/lock", a->state) == 0 && fstat(a->lock, &locked) == 0 &&
           stat(path, &there) == 0 && locked.st_dev == there.st_dev &&
           locked.st_ino == there.st_ino;
}

/* Nobody knows what the disk holds: the program starts anew, once, and judges all runs.  In a
 * directory that was removed or replaced there is nothing to judge.  [Q9] */
static void give_up(struct gpq_agent *a, const struct gpq_error *e)
{
    gpq_log("%s: the agent ends; commands go on", e->text);
    a->again = owns_directory(a);
    a->over = true;
    a->status = 75;
}

/*
 * The cases, by the first transaction:
 *   it succeeds                    all follows
 *   no space, no memory            requests fail, grants are declined, ends are stored or wait
 *   the storage fails              requests fail, and the agent ends
 */
bool gpq_turn(struct gpq_agent *a)
{
    struct gpq_error first = { 0 }, e = { 0 };
    gpq_dispatch_hear(a);
    bool requests = gpq_server_waits(a), due = a->next_due != 0 && a->next_due <= gpq_wall();
    bool notified = gpq_notify_waits(a) && !a->starts_wait;
    bool waits = requests || due || notified || a->notes.n != 0;
    if (!waits && (!gpq_retention_goes_on(a) || a->starts_wait)) {
        gpq_ahead_fill(a);
        gpq_forget_some(a);
        return a->notes.n != 0; /* claims for workers */
    }
    const struct gpq_stop stop = a->stop; /* a request to stop counts with its commit */
    int failed = transact(a, true, &first), code = failed;
    if (failed < 0)
        a->stop = stop;
    if (failed == GPQ_EFULL || failed == GPQ_ENOMEM)
        code = without_space(a, &first, &e);
    else
        e = first;
    bool broken = code < 0 && code != GPQ_EFULL && code != GPQ_ENOMEM;
    if (code == 0) {
        gpq_now_turned(a);
        gpq_recent_turned(a);
        finish_all(a);
    }
    gpq_server_settle(a, failed, &first);
    if (broken) {
        give_up(a, &e);
        return false;
    }
    if (code == 0) {
        act(a);
        gpq_notify_look(a);
    } else {
        wait_for_space(a);
    }
    if (requests)
        gpq_marks_apply(a);
    gpq_ahead_fill(a);
    gpq_forget_some(a);
    return code == 0 && waits;
}
