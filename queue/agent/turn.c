/* SPDX-License-Identifier: MIT */
/* turn.c - gathers, commits, and acts. */
#include "queue/agent/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queue/agent/ahead.h"
#include "queue/agent/dispatch.h"
#include "queue/agent/marks.h"
#include "queue/agent/runs.h"
#include "queue/files/out.h"
#include "queue/files/publish.h"
#include "queue/files/reserve.h"

enum note_kind { GRANTED, OUTCOME, UNSTARTED };
struct note {
    enum note_kind kind;
    uint64_t id; /* of the unit */
    uint32_t outcome;
    bool done;  /* the transaction has it */
    bool final; /* the task is DONE */
    char text[256];
};

struct gpq_notes {
    struct note *note;
    size_t n, room;
};

static struct note *add(struct gpq_agent *a, enum note_kind kind, const struct gpq_unit *u)
{
    if (!a->notes)
        a->notes = calloc(1, sizeof(*a->notes));
    struct gpq_notes *all = a->notes;
    if (all && all->n == all->room) {
        size_t room = all->room != 0 ? all->room * 2 : 64;
        struct note *larger = realloc(all->note, room * sizeof(*larger));
        if (!larger)
            return NULL;
        all->note = larger;
        all->room = room;
    }
    if (!all)
        return NULL;
    struct note *n = &all->note[all->n++];
    *n = (struct note){ .kind = kind, .id = u->id };
    return n;
}

void gpq_turn_free(struct gpq_agent *a)
{
    if (a->notes)
        free(a->notes->note);
    free(a->notes);
    a->notes = NULL;
}

void gpq_turn_granted(struct gpq_agent *a, struct gpq_unit *u)
{
    if (add(a, GRANTED, u))
        return;
    u->phase = GPQ_INSIDE;
    (void)gpud_dispatcher_decline(a->dispatcher, u->id, u->grant, 0, NULL);
}

void gpq_turn_outcome(struct gpq_agent *a, struct gpq_unit *u, uint32_t outcome, const char *text)
{
    struct note *n = add(a, OUTCOME, u);
    if (!n) { /* the record of the run stays: the next agent books it */
        gpq_log("no memory for the end of %u.%u", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task));
        a->over = true;
        a->status = 75;
        return;
    }
    n->outcome = outcome;
    bool own =
        u->text[0] != 0 && outcome != GPUD_OUTCOME_TIMEOUT && outcome != GPUD_OUTCOME_CANCELLED;
    snprintf(n->text, sizeof(n->text), "%.255s", own ? u->text : text);
}

void gpq_turn_unstarted(struct gpq_agent *a, struct gpq_unit *u, const char *text)
{
    struct note *n = add(a, UNSTARTED, u);
    if (n)
        snprintf(n->text, sizeof(n->text), "%.255s", text);
}

/* ---- The transaction ---- */

static int store_claim(struct gpq_agent *a, struct note *n, struct gpq_unit *u, uint64_t now,
                       struct gpq_error *e)
{
    char run[128];
    if (u->phase != GPQ_GRANTED || a->stopping || a->paused || a->starts_wait ||
        gpq_runs_prepare(u) < 0)
        return 0;
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

static int store_end(struct gpq_agent *a, struct note *n, const struct gpq_unit *u, uint64_t now,
                     struct gpq_error *e)
{
    struct gpq_end end = { .task = u->task,
                           .attempt = u->attempt,
                           .outcome = n->outcome,
                           .status = u->status,
                           .text = n->text,
                           .started = u->started,
                           .ended = u->ended != 0 ? u->ended : now };
    int64_t code = 0;
    if (u->phase < GPQ_STARTING) { /* it never ran, and never will: no device can take it */
        end.final = true;
        code = a->store->engine->claim(a->store, now, u->task, NULL, NULL, e);
        end.attempt = (uint32_t)code;
    }
    if (code >= 0)
        code = a->store->engine->complete(a->store, &end, e);
    n->final = code > 0;
    n->done = code >= 0;
    return code == GPQ_ESTALE || code == GPQ_ENOTFOUND ? 0 : (int)(code < 0 ? code : 0);
}

static int store_return(struct gpq_agent *a, struct note *n, const struct gpq_unit *u, uint64_t now,
                        struct gpq_error *e)
{
    int code = a->store->engine->give_back(a->store, now, u->task, u->attempt, GPQ_RETURN_UNSTARTED,
                                           n->text, e);
    n->done = code >= 0;
    return code == GPQ_ESTALE || code == GPQ_ENOTFOUND ? 0 : code < 0 ? code : 0;
}

static int store_note(struct gpq_agent *a, struct note *n, uint64_t now, struct gpq_error *e)
{
    struct gpq_unit *u = gpq_work_by_id(a, n->id);
    n->done = false;
    if (!u)
        return 0;
    switch (n->kind) {
    case GRANTED:
        return store_claim(a, n, u, now, e);
    case OUTCOME:
        if (u->evicted && n->outcome != GPUD_OUTCOME_SUCCESS)
            return store_return(a, n, u, now, e);
        return store_end(a, n, u, now, e);
    default:
        return store_return(a, n, u, now, e);
    }
}

/* One transaction of the notes of some kinds, and of the requests if `requests`. */
static int transact(struct gpq_agent *a, bool claims, bool requests, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    uint64_t now = gpq_wall(), next = 0;
    int code = o->begin(a->store, e);
    if (code < 0)
        return code;
    for (size_t i = 0; code == 0 && a->notes && i < a->notes->n; i++)
        if (a->notes->note[i].kind != GRANTED)
            code = store_note(a, &a->notes->note[i], now, e);
    if (code == 0 && requests)
        gpq_server_apply(a, now);
    if (code == 0) {
        int64_t due = o->due(a->store, now, &next, e);
        code = due < 0 ? (int)due : 0;
    }
    for (size_t i = 0; code == 0 && claims && a->notes && i < a->notes->n; i++)
        if (a->notes->note[i].kind == GRANTED)
            code = store_note(a, &a->notes->note[i], now, e);
    if (code < 0) {
        o->rollback(a->store);
        return code;
    }
    code = o->commit(a->store, e);
    if (code == 0)
        a->next_due = next;
    return code;
}

/* ---- What follows from the commit ---- */

static void decline(struct gpq_agent *a, struct gpq_unit *u)
{
    if (u->phase != GPQ_GRANTED)
        return;
    u->phase = GPQ_INSIDE;
    uint64_t later = a->starts_wait || a->paused ? GPUD_S(1) : 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t at = (uint64_t)t.tv_sec * GPUD_S(1) + (uint64_t)t.tv_nsec + later;
    (void)gpud_dispatcher_decline(a->dispatcher, u->id, u->grant, later != 0 ? at : 0, NULL);
}

static void start(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpq_error e = { 0 };
    u->phase = GPQ_STARTING;
    gpq_ahead_left(a, u->shape);
    if (gpq_runs_start(a, u, &e) == 0)
        return;
    gpq_log("%u.%u not started: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), e.text);
    if (e.code != GPQ_EFULL && e.code != GPQ_ENOMEM) {
        gpq_runs_failed(a, u, e.text);
        return;
    }
    a->starts_wait = true; /* space, memory or descriptors: nothing starts for a second */
    gpq_turn_unstarted(a, u, e.text);
}

/* Outputs are published after the commit of SUCCESS, and else removed.  [Q5] */
static void finish(struct gpq_agent *a, const struct note *n, struct gpq_unit *u)
{
    struct gpq_error e = { 0 };
    int code = 0;
    if (u->phase >= GPQ_STARTING) {
        if (n->outcome == GPUD_OUTCOME_SUCCESS && u->outputs)
            code = gpq_out_publish(&gpq_system_files, a->state, u->task, u->attempt, &e);
        else
            code = gpq_out_drop(&gpq_system_files, a->state, u->task, u->attempt, &e);
        gpq_runs_forget(a, &u->run);
    } else {
        gpq_ahead_left(a, u->shape);
    }
    if (code < 0)
        gpq_log("outputs of %u.%u: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), e.text);
    gpq_work_remove(a, u);
}

static void give_back(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpq_error e;
    (void)gpq_out_drop(&gpq_system_files, a->state, u->task, u->attempt, &e);
    gpq_runs_forget(a, &u->run);
    gpq_dispatch_withdraw(a, u);
}

/* Before a client learns of an end, its outputs are in their place. */
static void finish_all(struct gpq_agent *a)
{
    for (size_t i = 0; a->notes && i < a->notes->n; i++) {
        const struct note *n = &a->notes->note[i];
        struct gpq_unit *u = gpq_work_by_id(a, n->id);
        if (u && n->kind == OUTCOME)
            finish(a, n, u);
    }
}

static void follow(struct gpq_agent *a, const struct note *n, bool claims)
{
    struct gpq_unit *u = gpq_work_by_id(a, n->id);
    if (!u)
        return;
    if (n->kind == GRANTED && n->done && claims)
        start(a, u);
    else if (n->kind == GRANTED)
        decline(a, u);
    else if (n->kind == UNSTARTED)
        give_back(a, u);
}

/* Results that no row names go when the agent starts (adopt.c). */
static void forget_files(struct gpq_agent *a, const struct gpq_change *c)
{
    struct gpq_error e;
    char path[GPQ_PATH];
    if (gpq_out_forget(&gpq_system_files, a->state, c->task, &e) < 0)
        gpq_log("outputs of %u.%u: %s", GPQ_BATCH_OF(c->task), GPQ_NUMBER_OF(c->task), e.text);
    for (uint32_t i = 1; i <= c->attempt; i++)
        if (gpq_path(path, "%s/logs/%u.%u.%u", a->state, GPQ_BATCH_OF(c->task),
                     GPQ_NUMBER_OF(c->task), i) == 0)
            (void)unlink(path);
}

static void follow_change(struct gpq_agent *a, const struct gpq_change *c)
{
    if (c->to == 0) {
        forget_files(a, c);
        return;
    }
    struct gpq_unit *u = c->cancel ? gpq_work_of(a, c->task) : NULL;
    if (u && !u->cancelled) {
        u->cancelled = true;
        (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_HARD);
    }
    gpq_ahead_change(a, c);
}

/* Notes that are added meanwhile belong to the next turn. */
static void act(struct gpq_agent *a, bool claims)
{
    size_t n = a->notes ? a->notes->n : 0;
    for (size_t i = 0; i < n; i++) {
        const struct note note = a->notes->note[i]; /* the array may move */
        follow(a, &note, claims);
    }
    for (size_t i = 0; i < a->store->n_changes; i++)
        follow_change(a, &a->store->changes[i]);
    if (n != 0) {
        a->notes->n -= n;
        memmove(a->notes->note, a->notes->note + n, a->notes->n * sizeof(*a->notes->note));
    }
}

/* ---- Failures ---- */

/* The disk is full: ends of tasks take the place of the reserve, and nothing starts.  [Q9] */
static int without_space(struct gpq_agent *a, struct gpq_error *e)
{
    a->starts_wait = true;
    int code = transact(a, false, false, e);
    if (code == GPQ_EFULL && gpq_reserve_give_up(&gpq_system_files, a->state) > 0) {
        gpq_log("no space: the reserve is given up, and nothing starts");
        code = transact(a, false, false, e);
    }
    return code;
}

/* Nobody knows what the disk holds: the store is opened again, once.  [Q9] */
static int open_again(struct gpq_agent *a, struct gpq_error *e)
{
    struct gpq_store *store = NULL;
    gpq_log("%s: opening the store again", e->text);
    a->store->engine->close(a->store);
    a->store = NULL;
    int code = gpq_sqlite_open(&(struct gpq_options){ .directory = a->state, .now = gpq_wall() },
                               &store, e);
    a->store = store;
    return code == 0 ? transact(a, false, false, e) : code;
}

static void give_up(struct gpq_agent *a, const struct gpq_error *e)
{
    gpq_log("%s: the agent ends; commands go on", e->text);
    a->over = true;
    a->status = 75;
}

bool gpq_turn(struct gpq_agent *a)
{
    struct gpq_error e = { 0 }, first;
    gpq_dispatch_hear(a);
    bool requests = gpq_server_waits(a), due = a->next_due != 0 && a->next_due <= gpq_wall();
    if (!requests && !due && (!a->notes || a->notes->n == 0))
        return false;
    bool claims = true;
    int code = transact(a, true, requests, &e);
    first = e;
    int failed = code;
    if (code < 0) {
        claims = false;
        code = code == GPQ_EIO || code == GPQ_EDAMAGED ? open_again(a, &e) : without_space(a, &e);
    }
    if (code < 0 && code != GPQ_EFULL) {
        gpq_server_settle(a, failed, &first);
        give_up(a, &e);
        return false;
    }
    if (requests && failed == 0)
        gpq_marks_apply(a);
    if (code == 0)
        finish_all(a);
    gpq_server_settle(a, failed, &first);
    if (code == 0)
        act(a, claims);
    gpq_ahead_fill(a);
    return code == 0;
}
