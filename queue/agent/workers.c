/* SPDX-License-Identifier: MIT */
/* workers.c - claims tasks of classes, hands them to the dispatcher, and takes their results. */
#include "queue/agent/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/ahead.h"
#include "queue/agent/dispatch.h"
#include "queue/agent/fields.h"
#include "queue/agent/grant.h"
#include "queue/agent/lookup.h"
#include "queue/agent/needs.h"
#include "queue/agent/payload.h"
#include "queue/agent/reasons.h"
#include "queue/agent/said.h"
#include "queue/agent/turn.h"
#include "queue/files/save.h"
#include "queue/files/stamp.h"

/* Larger results are files: that of struct gpq_options, results_inline. */
#define INLINE ((size_t)64 << 10)
/* Until the dispatcher has learned them: those of struct gpud_class. */
#define BOOT GPUD_S(60)
#define RUN GPUD_S(1)
enum { CLAIMS_MOST = 4096 };

/* ---- How many are claimed ---- */

/* Twice as many as run at a time, and half as many again as make the dispatcher start a further
 * worker: their run time, divided by the workers, exceeds the start of one (sched.h). */
int64_t gpq_workers_ahead(struct gpq_agent *a, const struct gpq_class *class, bool at_most_once)
{
    struct gpud_class_stats s;
    if (at_most_once)
        return (int64_t) class->fit * class->batch;
    if (!gpq_class_stats(a, class->name, &s))
        return class->batch;
    uint64_t workers = s.workers + s.starting != 0 ? s.workers + s.starting : 1;
    uint64_t boot = s.boot_p50 != 0 ? s.boot_p50 : BOOT, run = s.run_p50 != 0 ? s.run_p50 : RUN;
    uint64_t busy = 2 * class->batch * (workers + 1);
    uint64_t further = workers < class->fit ? boot / run * workers * 3 / 2 + s.starting + 2 : 0;
    uint64_t most = busy > further ? busy : further;
    if (class->most != 0 && most > class->most)
        most = class->most;
    return most < CLAIMS_MOST ? (int64_t)most : CLAIMS_MOST;
}

/* ---- Claim ---- */

int gpq_workers_want(struct gpq_agent *a, struct gpq_class *class, const struct gpq_task *t,
                     uint64_t limit, struct gpq_error *e)
{
    struct gpq_unit *u = gpq_dispatch_alone(a, t);
    if (!u)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a task");
    u->class = class;
    u->limit = u->allowed = limit == GPUD_NEVER ? 0 : limit;
    u->phase = GPQ_GRANTED;
    gpq_turn_granted(a, u);
    return 0;
}

/* ---- Start ---- */

struct payload {
    struct gpq_agent *a;
    struct gpq_unit *u;
    int code;
    uint64_t id; /* of the dispatcher */
    struct gpud_error why;
};

/* The state of the file whose path the payload is, before its worker reads it: a later submit of a
 * file that has changed meanwhile makes a new task.  NULL: no path. */
static char *stamp_of(struct gpq_bytes payload)
{
    char path[GPQ_PATH], *words[] = { path, NULL };
    if (payload.size == 0 || payload.size >= sizeof(path) || *(const char *)payload.data != '/' ||
        memchr(payload.data, 0, payload.size))
        return NULL;
    memcpy(path, payload.data, payload.size);
    path[payload.size] = '\0';
    return gpq_stamp_make(words, "/");
}

/* The row lives until the reader returns, and the dispatcher copies what it needs of it. */
static int hand_over(const struct gpq_task *t, void *user)
{
    struct payload *p = user;
    struct gpud_task_desc d;
    char label[64];
    gpq_dispatch_describe(&d, t, p->u->limit, label);
    d.class_name = p->u->class->name;
    d.data = gpq_payload_of(t->content).data;
    d.size = gpq_payload_of(t->content).size;
    free(p->u->stamp);
    p->u->stamp = stamp_of(gpq_payload_of(t->content));
    p->code = gpud_dispatcher_submit(p->a->dispatcher, &d, 0, &p->id, &p->why);
    return 1;
}

/* A payload that can never fit is the task's own fault.  All else is the machine's. */
static void refuse(struct gpq_agent *a, struct gpq_unit *u, const struct payload *p)
{
    gpq_log("%u.%u not started: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), p->why.text);
    if (p->code == GPUD_ETOOBIG) {
        gpq_turn_ended(a, u, GPQ_OUTCOME_ERROR, p->why.text);
        return;
    }
    if (p->code == GPUD_EFULL) { /* the payloads of those that are inside fill the memory */
        u->class->most = u->class->inside != 0 ? u->class->inside : 1;
        gpq_ahead_room(a, false);
    } else {
        gpq_starts_wait(a, p->why.text);
    }
    gpq_turn_returned(a, u, GPQ_RETURN_UNSTARTED, p->why.text);
}

void gpq_workers_start(struct gpq_agent *a, struct gpq_unit *u)
{
    struct payload p = { .a = a, .u = u, .code = GPUD_ESYSTEM, .why = GPUD_ERROR_INIT };
    struct gpq_error e = { .text = "the store has no such task" };
    u->phase = GPQ_STARTING;
    if (gpq_task_read(a->store, u->task, hand_over, &p, &e) <= 0)
        snprintf(p.why.text, sizeof(p.why.text), "%.200s", e.text);
    if (p.code != 0) {
        refuse(a, u, &p);
        return;
    }
    u->alone = false;
    u->phase = GPQ_RUNS;
    u->class->inside++;
    gpq_work_renumber(a, u, p.id);
    if (u->cancelled) /* between its claim and here */
        (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_HARD);
}

/* ---- End ---- */

static bool keep_result(struct gpq_unit *u, const struct gpud_event *event)
{
    u->result = malloc((size_t)event->result_size + 1);
    if (!u->result)
        return false;
    if (event->result_size != 0)
        memcpy(u->result, event->result, (size_t)event->result_size);
    u->result_size = (size_t)event->result_size;
    return true;
}

/* Of what the worker printed: the last bytes, as the log of the attempt. */
static void write_log(const struct gpq_agent *a, const struct gpq_unit *u,
                      const struct gpud_event *event)
{
    char path[GPQ_PATH];
    if (event->output_size == 0 ||
        gpq_path(path, "%s/logs/%u.%u.%u", a->state, GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task),
                 u->attempt) < 0)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int fault =
        fd < 0 ? -errno
               : gpq_write_all(&gpq_system_files, fd, event->output, (size_t)event->output_size);
    if (fault < 0)
        gpq_log("%s: %s", path, strerror(-fault));
    if (fd >= 0)
        close(fd);
}

/* As a grant has them; the event has no UUIDs. */
static char *devices_of(const struct gpud_event *event)
{
    json_t *json = *event->device ? json_pack("{s:s}", "names", event->device) : NULL;
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* An error has a text of the task itself.  Of a worker that has crashed it is the last line that it
 * printed, and otherwise the text of the library. */
static char *said_by(const struct gpud_event *event)
{
    bool error = event->outcome == GPUD_OUTCOME_ERROR && *event->text;
    char *said = error ? NULL : gpq_said(event->output, (size_t)event->output_size);
    return said ? said : gpq_said(event->text, strlen(event->text));
}

static int32_t status_of(const struct gpud_event *event)
{
    if (event->outcome == GPUD_OUTCOME_SUCCESS)
        return 0;
    if (event->exit_kind == GPUD_EXIT_SIGNAL)
        return -event->exit_status;
    if (event->exit_kind == GPUD_EXIT_CODE)
        return event->exit_status;
    return event->code > 0 ? event->code : 0; /* below 0: a failure of the library, no signal */
}

/* Why an attempt does not count, or GPQ_RETURNS: it does. */
static uint32_t returns_by(const struct gpq_unit *u, const struct gpud_event *event)
{
    if (event->outcome == GPUD_OUTCOME_CANCELLED && u->evicted && !u->cancelled)
        return GPQ_RETURN_DEVICE;
    if (event->outcome == GPUD_OUTCOME_CANCELLED && !u->cancelled)
        return event->attempt == 0 ? GPQ_RETURN_UNSTARTED : GPQ_RETURN_STOPPED;
    if (event->outcome == GPUD_OUTCOME_CRASHED && event->code == GPUD_EDEVICE)
        return GPQ_RETURN_DEVICE;
    return GPQ_RETURNS;
}

void gpq_workers_ended(struct gpq_agent *a, struct gpq_unit *u, const struct gpud_event *event)
{
    uint32_t why = returns_by(u, event);
    bool success = event->outcome == GPUD_OUTCOME_SUCCESS;
    u->phase = GPQ_ENDED;
    u->class->inside--;
    u->class->most += u->class->most != 0;
    u->status = status_of(event);
    u->started = gpq_wall_of(event->started_at);
    u->ended = gpq_wall_of(event->ended_at);
    write_log(a, u, event);
    free(u->devices);
    free(u->said);
    u->devices = devices_of(event);
    u->said = success ? NULL : said_by(event);
    if (event->outcome == GPUD_OUTCOME_NO_WORKER) /* the event of its class may have been dropped */
        u->class->failed = true;
    if (success && event->result && !keep_result(u, event))
        gpq_turn_returned(a, u, GPQ_RETURN_STOPPED, "no memory for its result");
    else if (why != GPQ_RETURNS)
        gpq_turn_returned(a, u, why,
                          why == GPQ_RETURN_DEVICE && u->evicted ? GPQ_DRAINED : event->text);
    else
        gpq_turn_ended(a, u, event->outcome, success ? event->device : event->text);
}

int gpq_workers_result(struct gpq_agent *a, struct gpq_unit *u, struct gpq_end *end,
                       char name[GPQ_RESULT_NAME], struct gpq_error *e)
{
    const struct gpq_bytes bytes = { u->result, u->result_size };
    if (!u->result || end->outcome != GPQ_OUTCOME_SUCCESS)
        return 0;
    end->result_size = bytes.size;
    if (bytes.size <= INLINE) {
        end->result = bytes;
        return 0;
    }
    end->result_file = name;
    return gpq_result_save(&gpq_system_files, a->state, u->task, u->attempt, bytes, name, e);
}

/* ---- Pause, drain, failure ---- */

/* The dispatcher has reasons for a task that has not started, and knows none that has ended. */
bool gpq_workers_run(struct gpq_agent *a, const struct gpq_unit *u)
{
    size_t n = 0;
    return gpud_dispatcher_explain(a->dispatcher, u->id, NULL, NULL, 0, &n, NULL) == 0 && n == 0;
}

/* No worker sees the cancel of a task that has not started. */
static void take_back(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    if (u->class == user && u->phase == GPQ_RUNS && !u->cancelled && !gpq_workers_run(a, u))
        (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_SOFT);
}

void gpq_workers_pause(struct gpq_agent *a, struct gpq_class *class, bool paused)
{
    if (!class->there || class->paused == paused)
        return;
    class->paused = paused;
    (void)gpud_dispatcher_class_set(a->dispatcher, class->name,
                                    paused ? GPUD_CLASS_PAUSE : GPUD_CLASS_RESUME, NULL);
    if (paused)
        gpq_work_each(a, take_back, class);
    else
        gpq_ahead_again(a);
}

void gpq_workers_drain(struct gpq_agent *a)
{
    for (size_t i = 0; a->classes && i < a->classes->n; i++)
        gpq_workers_pause(a, &a->classes->list[i], true);
}

static void evict_slot(struct gpq_agent *a, const struct gpud_slot_stats *slot, const char *device)
{
    struct gpq_unit *u = slot->task_id != 0 ? gpq_work_by_id(a, slot->task_id) : NULL;
    if (!u || !u->class || u->evicted || !gpq_list_has(slot->devices, device))
        return;
    u->evicted = true;
    (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_HARD);
}

void gpq_workers_evict(struct gpq_agent *a, const char *device)
{
    int n = gpud_dispatcher_slots(a->dispatcher, NULL, 0);
    struct gpud_slot_stats *rows = n > 0 ? calloc((size_t)n, sizeof(*rows)) : NULL;
    if (!rows)
        return;
    for (int i = 0; i < n; i++)
        rows[i] = (struct gpud_slot_stats)GPUD_SLOT_STATS_INIT;
    int there = gpud_dispatcher_slots(a->dispatcher, rows, (size_t)n);
    for (int i = 0; i < there && i < n; i++)
        evict_slot(a, &rows[i], device);
    free(rows);
}

void gpq_workers_changed(struct gpq_agent *a, const struct gpud_event *event)
{
    struct gpq_class *class = gpq_class_find(a, event->class_name);
    if (!class ||
        (event->class_change != GPUD_CHANGE_FAILED && event->class_change != GPUD_CHANGE_RESUMED))
        return;
    class->failed = event->class_change == GPUD_CHANGE_FAILED;
    if (!class->failed)
        return;
    snprintf(class->text, sizeof(class->text), "%.255s", event->text);
    gpq_log("class %s has failed: %s; its tasks that wait end, and the next one tries again",
            class->name, event->text);
}

void gpq_workers_idle(struct gpq_agent *a, struct gpq_class *class)
{
    if (!class->failed || class->paused)
        return;
    class->failed = false;
    (void)gpud_dispatcher_class_set(a->dispatcher, class->name, GPUD_CLASS_RESUME, NULL);
}

/* ---- Why a task waits ---- */

static int read_content(const struct gpq_spec *spec, void *user)
{
    json_t **content = user;
    *content = json_loadb(spec->content.data, spec->content.size, 0, NULL);
    return 1;
}

/* The content of the task's spec, which has its class; NULL without memory, or without a task. */
static json_t *content_of(struct gpq_agent *a, uint64_t task)
{
    json_t *content = NULL;
    struct gpq_error e;
    struct gpq_task t;
    if (gpq_task_look(a->store, task, &t, &e) > 0)
        (void)a->store->engine->spec(a->store, t.spec, read_content, &content, &e);
    return content;
}

static int explain_class(struct gpq_agent *a, const char *name, json_t *array)
{
    const struct gpq_class *class = gpq_class_find(a, name);
    struct gpud_task_desc d = GPUD_TASK_DESC_INIT;
    char text[384];
    int code = 0;
    if (!gpq_class_usable(a, name, text, sizeof(text)))
        return gpq_reason_add(array, "CLASS", text);
    if (class->failed)
        code = gpq_reason_add(array, "FAILED", class->text);
    d.class_name = name;
    return code == 0 ? gpq_dispatch_explain(a, 0, &d, array) : code;
}

int gpq_workers_explain(struct gpq_agent *a, uint64_t task, json_t *array)
{
    json_t *content = content_of(a, task);
    const char *name = json_string_value(json_object_get(content, "class"));
    int code = name && strcmp(name, GPQ_COMMANDS) != 0 ? explain_class(a, name, array) : 0;
    json_decref(content);
    return code;
}
