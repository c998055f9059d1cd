/* SPDX-License-Identifier: MIT */
#include "ours.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure.h"
#include "place.h"
#include "report.h"

/* A cell that waits this long for one event has found a fault. */
#define PATIENCE (10 * B_S)

/* Lie in a page that the spawner, and so each worker, shares with the host. */
static struct {
    _Atomic uint64_t setup, cleanup, cleaned;
} * moments;

/* ---- in the worker ---- */

static int pin_worker(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const int *cpu = gpud_worker_setup_data(w, &size);

    *ret_state = NULL;
    if (size != sizeof(*cpu) || b_pin(0, *cpu))
        return gpud_worker_fail(w, 1, "could not be pinned");
    return 0;
}

static int come_up(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const struct b_life *life = gpud_worker_setup_data(w, &size);

    moments->setup = b_now();
    *ret_state = NULL;
    if (size != sizeof(*life) || b_pin(0, life->cpu))
        return gpud_worker_fail(w, 1, "could not be pinned");
    b_sleep(life->boot);
    return 0;
}

static void go_down(gpud_worker *w, void *state)
{
    const struct b_life *life = gpud_worker_setup_data(w, NULL);

    (void)state;
    moments->cleanup = b_now();
    b_sleep(life->unload);
    moments->cleaned = b_now();
}

static int is_over(const gpud_task *t)
{
    return gpud_task_expired(t) || gpud_task_cancelled(t);
}

static int obey(gpud_task *t, void *state)
{
    const struct b_order *order = gpud_task_data(t);
    volatile unsigned spin = 0;
    void *result = NULL;
    uint64_t late;
    sigset_t all;

    (void)state;
    if (order->op == B_NOTHING)
        return 0;
    if (order->op == B_SLEEP) {
        b_sleep(order->size * UINT64_C(1000));
        return 0;
    }
    if (order->op == B_ECHO)
        return gpud_task_result_set(t, order, gpud_task_size(t));
    if (order->op == B_RESULT)
        return gpud_task_result_alloc(t, order->size, &result);
    if (order->op == B_LATE) {
        while (!is_over(t))
            /* what comes between the two is made good by the next alarm, 50 ms later */
            (void)pause();
        late = b_now() - gpud_task_deadline(t);
        return gpud_task_result_set(t, &late, sizeof(late));
    }
    if (order->op == B_DEAF) {
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        for (;;)
            spin = spin + 1;
    }
    (void)gpud_task_progress(t, 0.0, NULL);
    while (!is_over(t)) {
        if (order->op == B_HOLD)
            (void)pause();
        else
            spin = spin + 1;
    }
    return 0;
}

static int obey_many(gpud_task *const *tasks, size_t n, void *state)
{
    size_t i;

    for (i = 0; i < n; i++)
        (void)obey(tasks[i], state);
    return 0;
}

/* ---- in the host ---- */

static int count_event(const struct gpud_event *event, void *user)
{
    struct b_ours *o = user;

    if (event->kind != GPUD_EVENT_OUTCOME)
        return 0;
    o->ended++;
    if (event->outcome != GPUD_OUTCOME_SUCCESS)
        o->failed++;
    return 0;
}

static int complain_code(const char *what, int code)
{
    return b_complain("%s: %s (%s)", what, gpud_error_name(code), gpud_error_text(code));
}

static const struct gpud_definition definitions[] = {
    GPUD_DEFINITION("bench", pin_worker, obey, NULL),
    GPUD_DEFINITION_BATCH("batch", pin_worker, obey_many, NULL),
    GPUD_DEFINITION("model", come_up, obey, go_down)
};
#define DEFINITIONS (sizeof(definitions) / sizeof(definitions[0]))

int b_ours_init_worker(void)
{
    return gpud_init(definitions, 1, NULL); /* start EXEC is measured with the first alone */
}

int b_ours_init(void)
{
    void *page = mmap(NULL, sizeof(*moments), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
    int rc;

    if (page == MAP_FAILED)
        return b_complain("no shared page");
    moments = page;
    rc = gpud_init(definitions, DEFINITIONS, NULL);
    if (rc == GPUD_ENOTSUP)
        rc = gpud_init(definitions, 1, NULL); /* without batches */
    return rc ? complain_code("gpud_init", rc) : 0;
}

struct b_moments b_ours_moments(void)
{
    return (struct b_moments){ .setup = moments->setup,
                               .cleanup = moments->cleanup,
                               .cleaned = moments->cleaned };
}

int b_ours_wait_ready(struct b_ours *o, unsigned workers, uint32_t drive)
{
    uint64_t until = b_now() + PATIENCE;
    struct gpud_stats s = GPUD_STATS_INIT;

    while (b_now() < until) {
        if (drive == GPUD_DRIVE_CALLER)
            (void)b_ours_receive(o, B_MS);
        else
            b_sleep(B_MS);
        if (gpud_dispatcher_stats(o->d, &s) == 0 && s.slots_ready == workers)
            return 0;
    }
    return b_complain("%u of %u workers became ready", (unsigned)s.slots_ready, workers);
}

int b_ours_complain(const char *what, int code, const struct gpud_error *error)
{
    (void)complain_code(what, code);
    return b_complain("field \"%s\": %s", error->field, error->text);
}

int b_ours_create(struct b_ours *o, const struct gpud_options *options, struct gpud_error *reterr)
{
    memset(o, 0, sizeof(*o));
    o->handler = count_event;
    o->events = calloc(B_EVENTS, sizeof(*o->events));
    return o->events ? gpud_dispatcher_create(&o->d, options, reterr) : GPUD_ENOMEM;
}

int b_ours_open(struct b_ours *o, const struct b_ours_options *options)
{
    struct gpud_options wanted = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    const char *again[] = { "/proc/self/exe", B_WORKER_ARGUMENT, NULL };
    char devices[24];
    int rc;

    (void)snprintf(devices, sizeof(devices), "%s:%u", options->fakes ? "fake" : "cpu",
                   options->workers);
    wanted.definition = options->max_batch ? "batch" : "bench";
    wanted.max_batch = options->max_batch;
    wanted.start = options->start;
    if (options->start == GPUD_START_EXEC)
        wanted.argv = again;
    wanted.drive = options->drive;
    wanted.devices = devices;
    wanted.queue_size = options->queue_size;
    wanted.sent_ahead = options->sent_ahead;
    wanted.task_limit = options->task_limit;
    wanted.grace = options->grace;
    wanted.payload_budget = options->payload_budget;
    wanted.setup_data = &options->cpu;
    wanted.setup_size = sizeof(options->cpu);
    wanted.log_level = GPUD_LEVEL_ERROR;
    rc = b_ours_create(o, &wanted, &error);
    if (rc == GPUD_ENOTSUP || rc == GPUD_ENODEFINITION) {
        b_ours_close(o);
        return B_NOT_BUILT;
    }
    if (rc) {
        (void)b_ours_complain("gpud_dispatcher_create", rc, &error);
    } else if (b_ours_wait_ready(o, options->workers, options->drive)) {
        rc = -1;
    }
    if (rc)
        b_ours_close(o);
    return rc ? -1 : 0;
}

void b_ours_close(struct b_ours *o)
{
    int rc = gpud_dispatcher_destroy(&o->d, NULL);

    if (rc)
        (void)complain_code("gpud_dispatcher_destroy", rc);
    free(o->events);
    o->events = NULL;
}

void b_ours_task(struct gpud_task_desc *task, struct b_order *order, uint32_t op)
{
    struct gpud_task_desc fresh = GPUD_TASK_DESC_INIT;

    memset(order, 0, sizeof(*order));
    order->op = op;
    *task = fresh;
    task->data = order;
    task->size = sizeof(*order);
}

int b_ours_receive(struct b_ours *o, uint64_t wait)
{
    int i, n;

    o->events[0].struct_size = (uint32_t)sizeof(*o->events);
    n = gpud_dispatcher_poll(o->d, o->events, B_EVENTS, wait);
    for (i = 0; i < n; i++)
        (void)o->handler(&o->events[i], o);
    return n;
}

int b_ours_trip(struct b_ours *o, const struct gpud_task_desc *task)
{
    uint64_t ended = o->ended, failed = o->failed;
    int rc = gpud_dispatcher_submit(o->d, task, 0, NULL, NULL);

    if (rc)
        return complain_code("submit", rc);
    while (o->ended == ended) {
        rc = b_ours_receive(o, GPUD_NEVER); /* as the raw loop: no clock for a time limit */
        if (rc < 0)
            return complain_code("poll", rc);
    }
    return o->failed == failed ? 0 : b_complain("a task did not end SUCCESS");
}

int b_ours_running(struct b_ours *o, uint64_t id, int64_t *ret_pid, uint64_t *ret_started)
{
    struct gpud_slot_stats rows[B_EVENTS];
    uint64_t until = b_now() + PATIENCE;
    int i, n;

    rows[0].struct_size = (uint32_t)sizeof(rows[0]);
    do {
        n = gpud_dispatcher_slots(o->d, rows, B_EVENTS);
        for (i = 0; i < n; i++) {
            if (rows[i].task_id != id || rows[i].pid == 0)
                continue;
            *ret_pid = rows[i].pid;
            *ret_started = rows[i].task_started;
            return 0;
        }
        n = b_ours_receive(o, B_S); /* its progress event ends the wait */
    } while (n >= 0 && b_now() < until);
    return b_complain("a task did not start");
}

int b_ours_start(struct b_ours *o, uint32_t op, uint64_t limit, uint64_t *ret_id)
{
    struct gpud_task_desc task;
    struct b_order order;
    int rc;

    b_ours_task(&task, &order, op);
    task.limit = limit;
    rc = gpud_dispatcher_submit(o->d, &task, 0, ret_id, NULL);
    return rc ? complain_code("submit", rc) : 0;
}

int b_ours_outcome(struct b_ours *o, uint64_t id, struct gpud_event *ret_event)
{
    uint64_t until = b_now() + PATIENCE;
    int i, n;

    do {
        n = b_ours_receive(o, B_S);
        for (i = 0; i < n; i++) {
            if (o->events[i].kind != GPUD_EVENT_OUTCOME || o->events[i].task_id != id)
                continue;
            *ret_event = o->events[i];
            return 0;
        }
    } while (n >= 0 && b_now() < until);
    return b_complain("no outcome came for a task");
}
