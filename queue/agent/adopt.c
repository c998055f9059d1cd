/* SPDX-License-Identifier: MIT */
/* adopt.c - books, adopts, returns, or calls lost each attempt that was running. */
#include "queue/agent/adopt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queue/agent/ahead.h"
#include "queue/agent/attached.h"
#include "queue/agent/belongs.h"
#include "queue/agent/dispatch.h"
#include "queue/agent/lookup.h"
#include "queue/agent/marks.h"
#include "queue/agent/oom.h"
#include "queue/agent/runs.h"
#include "queue/agent/said.h"
#include "queue/agent/workers.h"
#include "queue/files/fault.h"
#include "queue/files/names.h"
#include "queue/files/out.h"
#include "queue/files/publish.h"
#include "queue/files/results.h"
#include "queue/grow.h"
#include "queue/runner/find.h"
#include "queue/runner/sweep.h"

enum { SWEEP_MS = 2000, RETRIES = 2000 };

/* One running attempt, copied from the store's row. */
struct claim {
    struct gpq_claimed claimed;
    char *devices;
    bool known;     /* the store has the identity of its run */
    bool is_worker; /* it had no run, but a worker, which ended with its agent */
    struct gpq_found found;
};

struct claims {
    struct claim *claim;
    size_t n, room;
    uint32_t adopted, ended, returned, lost, crashed;
};

static int keep(const struct gpq_attempt *attempt, void *user)
{
    struct claims *all = user;
    struct claim *larger = gpq_grown(all->claim, all->n, &all->room, sizeof(*larger));
    if (!larger)
        return GPQ_ENOMEM;
    all->claim = larger;
    struct claim *c = &all->claim[all->n++];
    *c = (struct claim){ .claimed.id = { .task = attempt->task, .attempt = attempt->number } };
    c->known = gpq_run_text_read(attempt->run, &c->claimed.id, c->claimed.boot);
    c->is_worker = attempt->run && !strcmp(attempt->run, GPQ_WORKER_RUN);
    c->devices = attempt->devices ? strdup(attempt->devices) : NULL;
    return 0;
}

static void free_claims(struct claims *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->claim[i].devices);
    free(all->claim);
}

/* ---- One attempt ---- */

static int give_back(struct gpq_agent *a, const struct claim *c, uint32_t why, const char *text,
                     struct gpq_error *e)
{
    const struct gpq_back back = {
        .task = c->claimed.id.task, .attempt = c->claimed.id.attempt, .why = why, .text = text
    };
    int code = a->store->engine->give_back(a->store, gpq_wall(), &back, e);
    return code < 0 ? code : 0;
}

static int complete(struct gpq_agent *a, const struct claim *c, struct gpq_end *end,
                    struct gpq_error *e)
{
    end->task = c->claimed.id.task;
    end->attempt = c->claimed.id.attempt;
    int code = gpq_oom_complete(a, end, e);
    return code < 0 ? code : 0;
}

/* Something of the attempt lives: a runner, or processes of a killed one (pidfd -1).  The
 * dispatcher books its devices, if it has them; else it ends without the dispatcher. */
static int adopt_one(struct gpq_agent *a, const struct claim *c, const struct gpq_task *t,
                     int pidfd, struct gpq_error *e)
{
    const struct gpq_record *r = &c->found.record;
    struct gpud_proc proc = GPUD_PROC_INIT;
    struct gpq_unit *u = NULL;
    proc.pid = pidfd >= 0 ? (uint32_t)r->runner.pid : 0;
    proc.started_at = r->has_start ? r->monotonic : 0;
    if (gpq_dispatch_adopt(a, t, gpq_limit_of(a, t->spec), c->devices, &proc, &u, e) < 0) {
        gpq_log("%u.%u runs outside of the dispatcher's books: %s", GPQ_BATCH_OF(t->id),
                GPQ_NUMBER_OF(t->id), e->text);
        u = gpq_dispatch_alone(a, t);
    }
    if (!u) {
        if (pidfd >= 0)
            close(pidfd);
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a task");
    }
    u->attempt = c->claimed.id.attempt;
    u->run = c->claimed.id;
    u->since = r->has_start ? r->wall : 0;
    u->limit = gpq_limit_of(a, t->spec);
    u->shell = gpq_shell_of(a, t->spec);
    u->port = (uint16_t)r->port;
    gpq_ports_keep(&a->ports, u->port);
    u->devices = c->devices ? strdup(c->devices) : NULL;
    gpq_runs_adopt(a, u, pidfd);
    if (t->cancel)
        gpq_runs_cancel(a, u);
    return 0;
}

/* False: some processes of a killed runner's command do not end. */
static bool sweep(const struct claim *c, unsigned *ret_killed)
{
    struct gpq_swept s = { 0 };
    int code = gpq_sweep(&c->claimed.id, &c->found.record, SWEEP_MS, &s);
    *ret_killed = s.killed;
    return code == 0;
}

/* Looks until the state is one that lasts: meanwhile a runner may write its first line, or exit. */
static int look(struct gpq_agent *a, struct claim *c, int *ret_pidfd, struct gpq_error *e)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    int code = -EAGAIN;
    *ret_pidfd = -1;
    for (int i = 0; i < RETRIES && (code == -EAGAIN || code == -ESRCH); i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        code = gpq_run_look(a->state, &c->claimed, a->boot, &c->found);
        if (code == 0 && c->found.state == GPQ_FOUND_RUNNING)
            code = gpq_run_adopt(a->state, &c->found, ret_pidfd);
    }
    if (code < 0)
        return gpq_fail(e, GPQ_EIO, "record of %u.%u: %s", GPQ_BATCH_OF(c->claimed.id.task),
                        GPQ_NUMBER_OF(c->claimed.id.task), strerror(-code));
    return 0;
}

/* The agent of before may have been killed after it had acknowledged a drain at once, which ends
 * commands and charges no task.  1: the task has returned; 0: it is another end.  [Q1] */
static int return_evicted(struct gpq_agent *a, struct claims *all, const struct claim *c,
                          const struct gpq_task *t, uint64_t ended, struct gpq_error *e)
{
    int evicted = t->cancel ? 0 : gpq_marks_evicted(a, c->devices, ended, e);
    if (evicted <= 0)
        return evicted;
    all->returned++;
    int code = give_back(a, c, GPQ_RETURN_DEVICE, "its device is drained", e);
    return code < 0 ? code : 1;
}

static int book_end(struct gpq_agent *a, struct claims *all, const struct claim *c,
                    const struct gpq_task *t, struct gpq_error *e)
{
    struct gpq_end end = { 0 };
    char text[256] = "";
    gpq_runs_judge(&c->found.record, gpq_limit_of(a, t->spec), gpq_shell_of(a, t->spec), &end,
                   text);
    if (t->cancel && end.outcome != GPQ_OUTCOME_SUCCESS)
        end.outcome = GPQ_OUTCOME_CANCELLED;
    int code = end.outcome != GPQ_OUTCOME_SUCCESS ? return_evicted(a, all, c, t, end.ended, e) : 0;
    if (code != 0)
        return code < 0 ? code : 0;
    if (end.outcome == GPQ_OUTCOME_LOST) {
        all->lost++;
        return give_back(a, c, GPQ_RETURN_LOST, text, e);
    }
    all->ended++;
    char *said;
    gpq_oom_judge(a, &c->claimed.id, &c->found.record, &end, text, sizeof(text), &said);
    end.said = said;
    char *stamp = gpq_runs_stamp(a, &c->claimed.id);
    end.stamp = (struct gpq_bytes){ stamp, stamp ? strlen(stamp) : 0 };
    code = complete(a, c, &end, e);
    free(stamp);
    free(said);
    return code;
}

/* The runner was killed while no agent ran.  If it was killed alone, its command goes on until the
 * sweep, and has crashed.  If nothing is left of it, a logout may have killed both, and its end is
 * unknown: LOST.  [Q4] */
static int book_killed(struct gpq_agent *a, struct claims *all, const struct claim *c,
                       const struct gpq_task *t, struct gpq_error *e)
{
    unsigned killed;
    bool ended = sweep(c, &killed);
    int code = ended ? return_evicted(a, all, c, t, gpq_wall(), e) : 0;
    if (code != 0)
        return code < 0 ? code : 0;
    if (ended && killed == 0) {
        all->lost++;
        return give_back(a, c, GPQ_RETURN_LOST, "its runner and it ended while no agent ran", e);
    }
    all->crashed++;
    if (!ended)
        return adopt_one(a, c, t, -1, e);
    struct gpq_end end = { .outcome = GPQ_OUTCOME_CRASHED,
                           .status = -9,
                           .started = c->found.record.wall,
                           .ended = gpq_wall(),
                           .text = "its runner was killed" };
    char *said = gpq_said_by(a, &c->claimed.id);
    end.said = said;
    code = complete(a, c, &end, e);
    free(said);
    return code;
}

static int settle(struct gpq_agent *a, struct claims *all, struct claim *c, struct gpq_error *e)
{
    struct gpq_task task;
    unsigned killed;
    int pidfd = -1;
    int code = gpq_task_look(a->store, c->claimed.id.task, &task, e);
    if (code <= 0)
        return code;
    if (c->is_worker) {
        all->returned++;
        return give_back(a, c, GPQ_RETURN_STOPPED, "its worker ended with its agent", e);
    }
    if (!c->known) {
        all->lost++;
        return give_back(a, c, GPQ_RETURN_LOST, "the store has no run of it", e);
    }
    code = look(a, c, &pidfd, e);
    if (code < 0)
        return code;
    switch (c->found.state) {
    case GPQ_FOUND_RUNNING:
        all->adopted++;
        return adopt_one(a, c, &task, pidfd, e);
    case GPQ_FOUND_ENDED:
        if (c->found.record.has_start)
            return book_end(a, all, c, &task, e);
        /* fall through */
    case GPQ_FOUND_NEVER_STARTED:
        all->returned++;
        return give_back(a, c, GPQ_RETURN_UNSTARTED, "its command never ran", e);
    case GPQ_FOUND_CRASHED:
        return book_killed(a, all, c, &task, e);
    default:
        all->lost++;
        if (strcmp(c->claimed.boot, a->boot) == 0 && !sweep(c, &killed))
            return adopt_one(a, c, &task, -1, e);
        return give_back(a, c, GPQ_RETURN_LOST,
                         c->found.record.has_stop ? "its runner was killed, after SIGTERM"
                                                  : "the machine stopped while it ran",
                         e);
    }
}

/* ---- Folders ---- */

/* A record, or a file beside it such as "12.44.3.stamp". */
static bool is_of(const char *name, const char *record)
{
    size_t n = strlen(record);
    return strncmp(name, record, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

/* Removes records of runs that no running attempt names. */
static void sweep_records(struct gpq_agent *a, const struct claims *all)
{
    char folder[GPQ_PATH], path[GPQ_PATH];
    struct gpq_names names = { 0 };
    if (gpq_path(folder, "%s/run", a->state) < 0 ||
        gpq_names_read(&gpq_system_files, folder, &names) < 0)
        return;
    GPQ_EACH_NAME (&names, name) {
        bool used = false;
        for (size_t i = 0; i < all->n && !used; i++) {
            char own[GPQ_RUN_NAME];
            gpq_run_name(own, &all->claim[i].claimed.id);
            used = gpq_work_of(a, all->claim[i].claimed.id.task) && is_of(name, own);
        }
        if (!used && gpq_path(path, "%s/%s", folder, name) == 0)
            (void)unlink(path);
    }
    gpq_names_free(&names);
}

/* Files that a command has left, and that cannot be removed, keep no agent from its start. */
static int judge_rest(int code, const struct gpq_error *e)
{
    if (code < 0 && !gpq_fault_of_all(code)) {
        gpq_log("%s", e->text);
        return 0;
    }
    return code;
}

static int clean_up(struct gpq_agent *a, const struct claims *all, struct gpq_error *e)
{
    sweep_records(a, all);
    int code = gpq_out_recover(&gpq_system_files, a->state, gpq_fate_of, a->store, e);
    code = judge_rest(code, e);
    if (code < 0)
        return code;
    code = gpq_results_sweep(&gpq_system_files, a->state, gpq_result_used, a->store, e);
    return judge_rest(code, e);
}

int gpq_adopt(struct gpq_agent *a, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    struct claims all = { 0 };
    int code = o->running(a->store, keep, &all, e);
    if (code == 0)
        code = o->begin(a->store, e);
    if (code == 0)
        code = gpq_attached_end_all(a->store, gpq_wall(), e);
    for (size_t i = 0; code == 0 && i < all.n; i++)
        code = settle(a, &all, &all.claim[i], e);
    if (code == 0)
        code = o->due(a->store, gpq_wall(), &a->next_due, e) < 0 ? e->code : 0;
    if (code == 0)
        code = o->commit(a->store, e);
    else
        o->rollback(a->store);
    a->adopted = all.adopted;
    if (code == 0)
        code = clean_up(a, &all, e);
    if (code == 0 && all.n != 0)
        gpq_log("%zu tasks were running: %u go on, %u have ended, %u returned, %u crashed, "
                "%u lost",
                all.n, all.adopted, all.ended, all.returned, all.crashed, all.lost);
    free_claims(&all);
    return code;
}
