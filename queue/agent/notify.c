/* SPDX-License-Identifier: MIT */
/* notify.c - runs a command of the user when a batch has ended. */
#include "queue/agent/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/agent/fields.h"
#include "queue/agent/lookup.h"
#include "queue/agent/points.h"
#include "queue/files/numbers.h"

#define LIMIT (UINT64_C(60) * 1000000000)
#define PAUSE (UINT64_C(10) * 1000000000) /* before a start that failed is tried again */
enum { AT_ONCE = 4, VARIABLES = 7, VALUE = 1024 };

enum job_state { FREE, RUNS, WAITS, OVER };

struct job {
    enum job_state state;
    uint32_t batch;
    uint64_t since; /* of the mark: a batch may end a second time */
    pid_t pid;
    bool killed;
    uint64_t until;      /* CLOCK_MONOTONIC */
    uint64_t until_wall; /* the same, as the timer has it */
};

struct gpq_notify {
    struct job job[AT_ONCE];
    bool more; /* marks are there that no job has */
    bool look; /* ... and a job is free */
};

static void set_until(struct job *j, uint64_t ns)
{
    j->until = gpq_monotonic() + ns;
    j->until_wall = gpq_wall() + ns;
}

/* ---- What the command learns ---- */

/* The batch, copied from its row, and its variables. */
struct facts {
    const struct gpq_agent *a;
    bool ended;
    uint32_t bad, failed_outcomes; /* a mask */
    char *command, *cwd;           /* cwd: NULL = the state directory */
    char name[VALUE], batch[64], total[64], ok[64], bad_text[64], failure[VALUE], state[GPQ_PATH];
    uint64_t task; /* the first one that failed; 0 = none */
    uint32_t attempt;
    char text[VALUE / 2];
};

static void read_command(const struct gpq_batch *b, struct facts *f)
{
    json_t *options =
        b->options.size != 0 ? json_loadb(b->options.data, b->options.size, 0, NULL) : NULL;
    const char *own = json_string_value(json_object_get(options, "notify"));
    const char *cwd = json_string_value(json_object_get(options, "notify_cwd"));
    f->cwd = own && cwd ? strdup(cwd) : NULL;
    if (!own)
        own = f->a->notify_command ? f->a->notify_command : "";
    f->command = strdup(own);
    json_decref(options);
}

static int read_batch(const struct gpq_batch *b, void *user)
{
    struct facts *f = user;
    f->ended = b->ended != 0;
    read_command(b, f);
    f->bad = b->total - b->outcome[GPQ_OUTCOME_SUCCESS];
    for (uint32_t i = 1; i < GPQ_OUTCOMES; i++)
        if (i != GPQ_OUTCOME_SUCCESS && b->outcome[i] != 0)
            f->failed_outcomes |= UINT32_C(1) << i;
    snprintf(f->batch, sizeof(f->batch), "GPUDISPATCH_BATCH=%u", b->id);
    snprintf(f->name, sizeof(f->name), "GPUDISPATCH_NAME=%s", b->name ? b->name : "");
    snprintf(f->total, sizeof(f->total), "GPUDISPATCH_TOTAL=%u", b->total);
    snprintf(f->ok, sizeof(f->ok), "GPUDISPATCH_OK=%u", b->outcome[GPQ_OUTCOME_SUCCESS]);
    snprintf(f->bad_text, sizeof(f->bad_text), "GPUDISPATCH_BAD=%u", f->bad);
    return 0;
}

static int first_task(const struct gpq_task *t, void *user)
{
    struct facts *f = user;
    f->task = t->id;
    f->attempt = t->attempt;
    snprintf(f->text, sizeof(f->text), "%s", gpq_outcome_text(t->outcome));
    return 1;
}

static int last_text(const struct gpq_attempt *attempt, void *user)
{
    struct facts *f = user;
    if (attempt->number == f->attempt && attempt->text && *attempt->text)
        snprintf(f->text, sizeof(f->text), "%s", attempt->text);
    return 0;
}

/* A task that failed itself is more to the point than one that was cancelled or skipped for it. */
static int read_failure(struct gpq_agent *a, uint32_t batch, struct facts *f, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    const uint32_t follows = 1u << GPQ_OUTCOME_CANCELLED | 1u << GPQ_OUTCOME_SKIPPED;
    uint32_t outcomes = f->failed_outcomes & ~follows;
    if (outcomes == 0)
        outcomes = f->failed_outcomes;
    if (outcomes == 0)
        return 0;
    const struct gpq_select which = { .batch = batch, .outcomes = outcomes };
    int code = o->tasks(a->store, &which, 0, false, first_task, f, e);
    if (code >= 0 && f->task != 0 && f->attempt != 0)
        code = o->attempts(a->store, f->task, last_text, f, e);
    if (f->task != 0)
        snprintf(f->failure, sizeof(f->failure), "GPUDISPATCH_FIRST_FAILURE=%u.%u %s",
                 GPQ_BATCH_OF(f->task), GPQ_NUMBER_OF(f->task), f->text);
    return code;
}

static int read_facts(struct gpq_agent *a, uint32_t batch, struct facts *f, struct gpq_error *e)
{
    *f = (struct facts){ .a = a };
    int code = gpq_batch_read(a->store, batch, read_batch, f, e);
    if (code == 0 && !f->command)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    if (code >= 0 && f->ended && *f->command)
        code = read_failure(a, batch, f, e);
    if (code >= 0)
        code = gpq_path(f->state, "GPUDISPATCH_STATE=%s", a->state);
    return code < 0 ? code : 0;
}

/* ---- Start ---- */

/* Of the agent's service manager, and of a start that it repeats; and those that are set anew. */
static bool is_passed_on(const char *variable)
{
    static const char *const not_passed[] = {
        "NOTIFY_SOCKET=",    "GPUDISPATCH_AGENT_AGAIN=",   "GPUDISPATCH_BATCH=",
        "GPUDISPATCH_NAME=", "GPUDISPATCH_TOTAL=",         "GPUDISPATCH_OK=",
        "GPUDISPATCH_BAD=",  "GPUDISPATCH_FIRST_FAILURE=", "GPUDISPATCH_STATE="
    };
    for (size_t i = 0; i < sizeof(not_passed) / sizeof(not_passed[0]); i++)
        if (strncmp(variable, not_passed[i], strlen(not_passed[i])) == 0)
            return false;
    return true;
}

/* The caller frees the list, and not the texts. */
static char **make_environment(struct facts *f)
{
    char *const own[] = { f->batch, f->name, f->total, f->ok, f->bad_text, f->state, f->failure };
    size_t n = 0, to = 0;
    while (environ[n])
        n++;
    char **list = calloc(n + VARIABLES + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++)
        if (is_passed_on(environ[i]))
            list[to++] = environ[i];
    for (size_t i = 0; list && i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i][0])
            list[to++] = own[i];
    return list;
}

/* Without space for a log the command runs all the same. */
static int open_log(const struct gpq_agent *a, uint32_t batch)
{
    char path[GPQ_PATH];
    int fd = -1;
    if (gpq_path(path, "%s/logs/notify-%u", a->state, batch) == 0)
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/* A shell enters the directory of the submit, since a directory may not reply; without it, or if it
 * is not there, the command runs in the state directory. */
static int spawn(const struct gpq_agent *a, int log, const struct facts *f, char **environment,
                 pid_t *ret_pid)
{
    char shell[] = "sh", option[] = "-c",
         enter[] = "cd -- \"$1\" 2>/dev/null; exec /bin/sh -c \"$2\"";
    char *argv[] = { shell, option, f->cwd ? enter : f->command, shell, f->cwd, f->command, NULL };
    if (!f->cwd)
        argv[3] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int ret = posix_spawn_file_actions_init(&actions);
    if (ret != 0)
        return ret;
    ret = posix_spawnattr_init(&attributes);
    if (ret != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return ret;
    }
    sigemptyset(&none);
    sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSID);
    ret = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (ret == 0)
        ret = posix_spawn_file_actions_adddup2(&actions, log, 1);
    if (ret == 0)
        ret = posix_spawn_file_actions_adddup2(&actions, log, 2);
    if (ret == 0)
        ret = posix_spawn_file_actions_addchdir_np(&actions, a->state);
    if (ret == 0)
        ret = posix_spawn(ret_pid, "/bin/sh", &actions, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return ret;
}

static void start_command(struct gpq_agent *a, struct job *j, struct facts *f)
{
    char **environment = make_environment(f);
    int log = environment ? open_log(a, j->batch) : -1;
    int fault = environment && log >= 0 ? spawn(a, log, f, environment, &j->pid) : ENOMEM;
    if (log >= 0)
        close(log);
    free(environment);
    j->state = fault == 0 ? RUNS : WAITS;
    j->killed = false;
    set_until(j, fault == 0 ? gpq_notify_limit(LIMIT) : PAUSE);
    if (fault != 0)
        gpq_log("the notification of batch %u is not started: %s; tried again in 10 s", j->batch,
                strerror(fault));
}

/* A batch without a command, one that goes on again, and one that is forgotten notify nobody. */
static void start(struct gpq_agent *a, struct job *j)
{
    struct facts f;
    struct gpq_error e = { 0 };
    int code = read_facts(a, j->batch, &f, &e);
    if (code == 0 && f.ended && *f.command) {
        start_command(a, j, &f);
    } else if (code == 0 || code == GPQ_ENOTFOUND) {
        j->state = OVER;
    } else {
        gpq_log("the notification of batch %u: %s", j->batch, e.text);
        j->state = WAITS;
        set_until(j, PAUSE);
    }
    free(f.command);
    free(f.cwd);
}

/* ---- Marks ---- */

static struct job *job_of(struct gpq_notify *n, uint32_t batch)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (n->job[i].state != FREE && n->job[i].batch == batch)
            return &n->job[i];
    return NULL;
}

static struct job *free_job(struct gpq_notify *n)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (n->job[i].state == FREE)
            return &n->job[i];
    return NULL;
}

/* Jobs are taken here, and started when the reader has returned. */
static int see_mark(const struct gpq_mark *m, void *user)
{
    struct gpq_notify *n = user;
    uint32_t batch;
    if (strcmp(m->kind, "notify") != 0 || !gpq_numbers_read(m->subject, "", &batch, 1, NULL))
        return 0;
    struct job *j = job_of(n, batch);
    if (j) {
        n->more = n->more || j->since != m->since;
        return 0;
    }
    j = free_job(n);
    if (!j) {
        n->more = true;
        return 1;
    }
    *j = (struct job){ .state = WAITS, .batch = batch, .since = m->since };
    return 0;
}

void gpq_notify_look(struct gpq_agent *a)
{
    struct gpq_error e = { 0 };
    if (a->notify && !a->notify->look && !a->store->notes)
        return;
    if (!a->notify)
        a->notify = calloc(1, sizeof(*a->notify));
    struct gpq_notify *n = a->notify;
    if (!n) {
        gpq_log("no memory for notifications: they wait for the end of another batch");
        return;
    }
    n->more = n->look = false;
    if (a->store->engine->marks(a->store, see_mark, n, &e) < 0) {
        gpq_log("notifications: %s", e.text);
        return;
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (n->job[i].state == WAITS && n->job[i].until == 0)
            start(a, &n->job[i]);
}

void gpq_notify_reaped(struct gpq_agent *a, pid_t pid, int status)
{
    for (int i = 0; a->notify && i < AT_ONCE; i++) {
        struct job *j = &a->notify->job[i];
        if (j->state != RUNS || j->pid != pid)
            continue;
        j->state = OVER;
        if (j->killed)
            gpq_log("the notification of batch %u exceeded its limit of 60 s, and was killed",
                    j->batch);
        else if (WIFSIGNALED(status))
            gpq_log("the notification of batch %u was killed by signal %d", j->batch,
                    WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
            gpq_log("the notification of batch %u exited with status %d: see logs/notify-%u",
                    j->batch, WEXITSTATUS(status), j->batch);
    }
}

bool gpq_notify_waits(const struct gpq_agent *a)
{
    for (int i = 0; a->notify && i < AT_ONCE; i++)
        if (a->notify->job[i].state == OVER)
            return true;
    return false;
}

/* Unless the mark is that of another end than the job was for. */
static int unmark(struct gpq_agent *a, const struct job *j, struct gpq_error *e)
{
    uint64_t since;
    char subject[16];
    snprintf(subject, sizeof(subject), "%u", j->batch);
    int code = gpq_mark_look(a->store, "notify", subject, &since, e);
    if (code <= 0 || since != j->since)
        return code < 0 ? code : 0;
    return a->store->engine->unmark(a->store, "notify", subject, e);
}

int gpq_notify_store(struct gpq_agent *a, struct gpq_error *e)
{
    int code = 0;
    for (int i = 0; code == 0 && a->notify && i < AT_ONCE; i++)
        if (a->notify->job[i].state == OVER)
            code = unmark(a, &a->notify->job[i], e);
    return code;
}

void gpq_notify_stored(struct gpq_agent *a)
{
    for (int i = 0; a->notify && i < AT_ONCE; i++)
        if (a->notify->job[i].state == OVER) {
            a->notify->job[i] = (struct job){ 0 };
            a->notify->look = a->notify->more;
        }
}

/* ---- Time ---- */

uint64_t gpq_notify_next(const struct gpq_agent *a)
{
    uint64_t next = 0;
    for (int i = 0; a->notify && i < AT_ONCE; i++) {
        const struct job *j = &a->notify->job[i];
        if ((j->state == WAITS || (j->state == RUNS && !j->killed)) &&
            (next == 0 || j->until_wall < next))
            next = j->until_wall;
    }
    return next;
}

void gpq_notify_time(struct gpq_agent *a)
{
    uint64_t now = gpq_monotonic();
    for (int i = 0; a->notify && i < AT_ONCE; i++) {
        struct job *j = &a->notify->job[i];
        if (j->state != RUNS && j->state != WAITS)
            continue;
        if (now < j->until) {
            j->until_wall = gpq_wall() + (j->until - now);
        } else if (j->state == WAITS) {
            start(a, j);
        } else if (!j->killed) {
            (void)kill(-j->pid, SIGKILL); /* its session; it is not reaped */
            j->killed = true;
        }
    }
}

void gpq_notify_close(struct gpq_agent *a)
{
    struct gpq_error e = { 0 };
    bool any = false;
    for (int i = 0; a->notify && i < AT_ONCE; i++)
        if (a->notify->job[i].state == RUNS || a->notify->job[i].state == OVER) {
            a->notify->job[i].state = OVER;
            any = true;
        }
    if (any && a->status == 0 && a->store->engine->begin(a->store, &e) == 0) {
        if (gpq_notify_store(a, &e) == 0)
            (void)a->store->engine->commit(a->store, &e);
        else
            a->store->engine->rollback(a->store);
    }
    free(a->notify);
    a->notify = NULL;
}
