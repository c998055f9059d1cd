/* SPDX-License-Identifier: MIT */
/* runs.c - starts commands under runners, and learns how they end. */
#include "queue/agent/runs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "queue/agent/command.h"
#include "queue/agent/now.h"
#include "queue/agent/oom.h"
#include "queue/agent/said.h"
#include "queue/agent/turn.h"
#include "queue/files/out.h"
#include "queue/files/pidfd.h"
#include "queue/files/save.h"
#include "queue/files/stamp.h"
#include "queue/runner/find.h"
#include "queue/runner/process.h"
#include "queue/runner/start.h"
#include "queue/runner/sweep.h"

enum { SWEEP_MS = 2000, TEXT = 256 };

void gpq_run_text(const struct gpq_agent *a, const struct gpq_run_id *run, char ret[128])
{
    snprintf(ret, 128, "%s %s", run->nonce, a->boot);
}

bool gpq_run_text_read(const char *text, struct gpq_run_id *ret, char boot[GPQ_BOOT + 1])
{
    if (!text || strlen(text) != GPQ_NONCE + 1 + GPQ_BOOT || text[GPQ_NONCE] != ' ')
        return false;
    memcpy(ret->nonce, text, GPQ_NONCE);
    ret->nonce[GPQ_NONCE] = 0;
    memcpy(boot, text + GPQ_NONCE + 1, GPQ_BOOT + 1);
    return gpq_boot_valid(boot);
}

int gpq_runs_prepare(struct gpq_unit *u)
{
    u->run = (struct gpq_run_id){ .task = u->task };
    return gpq_run_nonce(u->run.nonce);
}

/* ---- Start ---- */

static int start_runner(struct gpq_agent *a, struct gpq_unit *u, const char *out,
                        struct gpq_command *c, struct gpq_error *e)
{
    char log[GPQ_PATH], name[GPQ_RUN_NAME];
    gpq_run_name(name, &u->run);
    snprintf(log, sizeof(log), "logs/%s", name);
    struct gpq_plan plan = { .id = u->run,
                             .log = log,
                             .key = c->key,
                             .log_limit = a->log_limit,
                             .port = u->port,
                             .descriptors = a->descriptors,
                             .argv = c->argv,
                             .environment = c->environment,
                             .out = out,
                             .variables = c->set,
                             .defaults = c->defaults,
                             .words = c->words,
                             .cwd = c->cwd };
    struct gpq_start start = {
        .runner = a->runner, .state = a->state, .boot = a->boot, .plan = &plan
    };
    int code = gpq_out_make(&gpq_system_files, a->state, u->task, u->attempt, e);
    return code == 0 ? gpq_run_start(&start, &u->child, e) : code;
}

void gpq_runs_adopt(struct gpq_agent *a, struct gpq_unit *u, int pidfd)
{
    u->runner.fd = pidfd;
    u->phase = GPQ_RUNS;
    if (pidfd < 0 || gpq_watch(a, &u->runner, EPOLLIN) < 0)
        a->look_again = true;
}

void gpq_runs_cancel(struct gpq_agent *a, struct gpq_unit *u)
{
    if (u->cancelled)
        return;
    u->cancelled = true;
    if (!u->alone)
        (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_HARD);
    else if (u->runner.fd >= 0)
        (void)gpq_process_signal(u->runner.fd, SIGUSR1);
}

/* The session of the command is not known yet: the runner's descendants are all of it. */
static void report_start(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpud_proc proc = GPUD_PROC_INIT;
    proc.pid = (uint32_t)u->child;
    if (gpud_dispatcher_started(a->dispatcher, u->id, u->grant, &proc, NULL) == 0)
        return;
    u->lost = true; /* the grant is over: its devices may be another task's */
    kill(u->child, SIGUSR1);
}

int gpq_runs_start(struct gpq_agent *a, struct gpq_unit *u, struct gpq_error *e)
{
    struct gpq_command c;
    char out[GPQ_PATH];
    u->run.attempt = u->attempt;
    if (gpq_out_work_path(out, a->state, u->task, u->attempt) < 0)
        return gpq_fail(e, GPQ_EINVAL, "the path of the outputs is too long");
    int code = gpq_command_read(a, u, out, &c, e);
    if (code == 0)
        code = start_runner(a, u, out, &c, e);
    u->shell = c.shell;
    gpq_command_free(&c);
    if (code < 0)
        return code;
    u->since = gpq_wall();
    gpq_runs_adopt(a, u, gpq_pidfd_open(u->child));
    gpq_now_runs(a, u);
    report_start(a, u);
    return 0;
}

/* ---- End ---- */

/* The signal that has ended the last program of a shell's line; 0 = none.  A shell that waits for
 * it exits with 128 + N.  Signals of a person, such as SIGINT and SIGTERM, are no crash. */
static int signal_of_shell(uint64_t status)
{
    static const int crashes[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS,
                                   SIGFPE, SIGKILL, SIGSEGV, SIGSYS };
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        if (status == 128 + (uint64_t)crashes[i])
            return crashes[i];
    return 0;
}

static void judge_status(uint64_t status, bool shell, struct gpq_end *ret, char text[TEXT])
{
    int signal = shell ? signal_of_shell(status) : 0;
    ret->status = signal != 0 ? -signal : (int32_t)status;
    ret->outcome = status == 0   ? GPQ_OUTCOME_SUCCESS
                   : signal != 0 ? GPQ_OUTCOME_CRASHED
                                 : GPQ_OUTCOME_ERROR;
    if (signal != 0)
        snprintf(text, TEXT, "killed by signal %d (%s), by the shell's status %llu", signal,
                 gpq_signal_text((uint32_t)signal), (unsigned long long)status);
    else if (status != 0)
        snprintf(text, TEXT, "exited with status %llu", (unsigned long long)status);
}

static void judge_exit(const struct gpq_record *r, bool shell, struct gpq_end *ret, char text[TEXT])
{
    const struct gpq_run_end *end = &r->end;
    text[0] = 0;
    if (end->how == GPQ_RUN_EXITED) {
        judge_status(end->status, shell, ret, text);
    } else if (end->how == GPQ_RUN_KILLED) {
        ret->status = -(int32_t)end->status;
        ret->outcome = GPQ_OUTCOME_CRASHED;
        snprintf(text, TEXT, "killed by signal %llu (%s)", (unsigned long long)end->status,
                 gpq_signal_text((uint32_t)end->status));
    } else {
        ret->status = 127;
        ret->outcome = GPQ_OUTCOME_ERROR;
        snprintf(text, TEXT, "not executed: %s: %s", gpq_run_step_text(end->step),
                 strerror((int)end->status));
    }
    if (ret->outcome == GPQ_OUTCOME_SUCCESS && end->outputs == GPQ_OUTPUTS_FAILED) {
        ret->outcome = GPQ_OUTCOME_ERROR;
        snprintf(text, TEXT, "its outputs could not be written to disk");
    }
}

/* A command that was asked to end has not failed.  [Q4] */
static void judge_stop(const struct gpq_record *r, struct gpq_end *ret, char text[TEXT])
{
    size_t used = strlen(text);
    if (!r->has_stop || r->end.how == GPQ_RUN_FAILED ||
        (r->end.how == GPQ_RUN_EXITED && r->end.status == 0))
        return;
    ret->outcome = GPQ_OUTCOME_LOST;
    snprintf(text + used, TEXT - used, ", after SIGTERM from process %u", (unsigned)r->stop_by);
}

void gpq_runs_judge(const struct gpq_record *record, uint64_t limit, bool shell,
                    struct gpq_end *ret, char text[TEXT])
{
    judge_exit(record, shell, ret, text);
    judge_stop(record, ret, text);
    ret->started = record->wall;
    ret->ended = record->end.wall != 0 ? record->end.wall : gpq_wall();
    if (record->has_start && limit != GPUD_NEVER &&
        record->end.monotonic > record->monotonic + limit) {
        ret->outcome = GPQ_OUTCOME_TIMEOUT;
        snprintf(text, TEXT, "exceeded its time limit of %.3f s", (double)limit / 1e9);
    }
    ret->text = text;
}

/* The runner was killed: its command is killed, too, before its devices are free.  [Q4] */
static bool swept(struct gpq_unit *u, const struct gpq_record *record)
{
    struct gpq_swept s = { 0 };
    if (gpq_sweep(&u->run, record, u->stuck ? 0 : SWEEP_MS, &s) == 0)
        return true;
    if (!u->stuck)
        gpq_log("%u.%u: %u processes of a killed runner do not end; its devices stay taken",
                GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), s.left);
    u->stuck = true;
    return false;
}

/* False: the dispatcher knows no such grant. */
static bool report_end(struct gpq_agent *a, struct gpq_unit *u, const struct gpq_end *end,
                       const struct gpq_record *record)
{
    struct gpud_end e = GPUD_END_INIT;
    e.outcome = end->outcome == GPQ_OUTCOME_LOST ? GPUD_OUTCOME_CRASHED : end->outcome;
    e.code = end->outcome == GPQ_OUTCOME_ERROR ? (end->status > 0 ? end->status : 1) : 0;
    e.exit_kind = end->status < 0 ? GPUD_EXIT_SIGNAL : GPUD_EXIT_CODE;
    e.exit_status = end->status < 0 ? -end->status : end->status;
    e.ended_at = record->has_end ? record->end.monotonic : 0;
    e.text = u->text;
    int code = gpud_dispatcher_ended(a->dispatcher, u->id, u->grant, &e, NULL);
    if (code == GPUD_EINVAL) { /* before its start by the dispatcher's clock: now */
        e.ended_at = 0;
        code = gpud_dispatcher_ended(a->dispatcher, u->id, u->grant, &e, NULL);
    }
    return code == 0;
}

/* The end of a unit of which the dispatcher will give no outcome. */
static void conclude(struct gpq_agent *a, struct gpq_unit *u, const struct gpq_end *end, bool never)
{
    u->concluded = true;
    if (u->decided)
        gpq_turn_ended(a, u, u->verdict, u->text);
    else if (never)
        gpq_turn_returned(a, u, GPQ_RETURN_UNSTARTED, u->text);
    else if (end->outcome != GPQ_OUTCOME_SUCCESS && u->cancelled)
        gpq_turn_ended(a, u, GPQ_OUTCOME_CANCELLED, "cancelled");
    else if (end->outcome != GPQ_OUTCOME_SUCCESS && u->evicted)
        gpq_turn_returned(a, u, GPQ_RETURN_DEVICE,
                          u->faulty ? "its device is out of use" : GPQ_DRAINED);
    else if (end->outcome == GPQ_OUTCOME_LOST)
        gpq_turn_returned(a, u, GPQ_RETURN_LOST, u->text);
    else if (end->outcome != GPQ_OUTCOME_SUCCESS && !u->alone)
        gpq_turn_returned(a, u, GPQ_RETURN_STOPPED, "its grant was over before it started");
    else
        gpq_turn_ended(a, u, end->outcome, u->text);
}

/* Fills *end and the text of the unit, unless the dispatcher has decided.  False: look again. */
static bool read_end(struct gpq_agent *a, struct gpq_unit *u, struct gpq_found *found,
                     struct gpq_end *end)
{
    struct gpq_claimed claimed = { .id = u->run };
    char text[TEXT] = "its runner was killed";
    snprintf(claimed.boot, sizeof(claimed.boot), "%s", a->boot);
    int code = gpq_run_look(a->state, &claimed, a->boot, found);
    if (code < 0 || found->state == GPQ_FOUND_RUNNING)
        return false;
    free(u->said);
    u->said = NULL;
    if (found->state == GPQ_FOUND_ENDED) {
        gpq_runs_judge(&found->record, u->alone ? u->limit : GPUD_NEVER, u->shell, end, text);
        gpq_oom_judge(a, &u->run, &found->record, end, text, sizeof(text), &u->said);
    } else {
        if (!swept(u, &found->record))
            return false;
        end->outcome = found->record.has_stop ? GPQ_OUTCOME_LOST : GPQ_OUTCOME_CRASHED;
        end->status = -SIGKILL;
        end->ended = gpq_wall();
        u->said = gpq_said_by(a, &u->run);
    }
    if (!u->decided)
        snprintf(u->text, sizeof(u->text), "%s", text);
    return true;
}

bool gpq_runs_ended(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpq_found found;
    struct gpq_end end = { 0 };
    if (!read_end(a, u, &found, &end))
        return false;
    u->status = end.status;
    u->started = end.started;
    u->ended = end.ended;
    u->oom = end.oom;
    u->stopped = end.outcome == GPQ_OUTCOME_LOST;
    if (u->stopped)
        a->starts_wait = true; /* the agent's own SIGTERM may be on its way */
    if (end.outcome == GPQ_OUTCOME_SUCCESS)
        u->stamp = gpq_runs_stamp(a, &u->run);
    u->outputs = found.record.has_end && found.record.end.outputs == GPQ_OUTPUTS_SYNCED;
    gpq_unwatch(a, &u->runner);
    if (u->runner.fd >= 0)
        close(u->runner.fd);
    u->runner.fd = -1;
    u->phase = GPQ_ENDED;
    bool known = !u->alone && !u->lost && report_end(a, u, &end, &found.record);
    bool never = found.state != GPQ_FOUND_LOST && found.fault == 0 && !found.record.has_start;
    if (never) /* the machine's or the runner's fault */
        gpq_starts_wait(
            a, "gpudispatch-runner ended before it started a command: it may be of another "
               "version than the agent; gpudispatch agent stop and start mend that");
    else
        a->wait_text[0] = '\0';
    if (!known || u->decided || u->evicted || never)
        conclude(a, u, &end, never);
    return true;
}

void gpq_runs_failed(struct gpq_agent *a, struct gpq_unit *u, const char *text)
{
    const struct gpq_record none = { 0 };
    struct gpq_end end = { .outcome = GPQ_OUTCOME_ERROR, .status = 126 };
    snprintf(u->text, sizeof(u->text), "not started: %.200s", text);
    u->status = end.status;
    u->ended = gpq_wall();
    u->phase = GPQ_ENDED;
    if (report_end(a, u, &end, &none))
        return;
    u->concluded = true;
    gpq_turn_ended(a, u, GPQ_OUTCOME_ERROR, u->text);
}

char *gpq_runs_stamp(struct gpq_agent *a, const struct gpq_run_id *run)
{
    char path[GPQ_PATH];
    void *data;
    size_t size;
    if (gpq_run_beside(path, a->state, run, GPQ_RUN_STAMP) < 0 ||
        gpq_read_whole(&gpq_system_files, path, GPQ_STAMP_MOST, &data, &size) < 0)
        return strdup(GPQ_STAMP_NONE);
    return data;
}

void gpq_runs_forget(struct gpq_agent *a, const struct gpq_run_id *run)
{
    static const char *const suffixes[] = { "", GPQ_RUN_STAMP, GPQ_RUN_LINE };
    char path[GPQ_PATH];
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (gpq_run_beside(path, a->state, run, suffixes[i]) == 0)
            (void)unlink(path);
}
