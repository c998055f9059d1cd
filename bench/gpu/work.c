/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <stdio.h>
#include <string.h>

#include "../measure.h"
#include "../report.h"
#include "kernels.h"

/* A worker that is not ready by then, or a task without an end, is a fault. */
#define PATIENCE (60 * B_S)

enum { COPIES = 8 };

/* ---- in the worker ---- */

static int last_error(void)
{
    return gpu_left(1);
}

static int setup(gpud_worker *w, void **ret_state)
{
    uint64_t sum;
    int error;

    *ret_state = NULL;
    (void)gpud_cuda_last_error(w, last_error);
    if (gpu_built && strncmp(gpud_worker_device(w), "gpu:", 4) != 0)
        return 0;
    error = gpu_sum(10, &sum); /* context and kernels are there before the first task */
    return error ? gpud_worker_fail(w, error, gpu_error(error)) : 0;
}

static int run_kernel(uint64_t ns)
{
    int error = gpu_busy(ns);

    return error ? error : gpu_sync();
}

static int run_stream(gpud_task *t, uint64_t ns)
{
    int error = gpu_busy(ns);

    if (error)
        return error;
    return gpu_built ? gpud_cuda_stream_sync(t, NULL) : gpu_sync();
}

int g_loop(const struct g_order *o, double *ret_seconds)
{
    uint64_t start = b_now();
    int error = 0;

    for (uint32_t i = 0; i < o->count && !error; i++)
        error = run_kernel(o->ns);
    *ret_seconds = (double)(b_now() - start) / 1e9;
    return error;
}

static int copy_rate(void *to, const void *from, size_t size, double *ret_rate)
{
    double seconds = 0;
    int error = gpu_copy(to, from, size, 1, &seconds);

    if (!error)
        error = gpu_copy(to, from, size, COPIES, &seconds);
    *ret_rate = (double)size * COPIES / seconds / 1e9;
    return error;
}

static int run_copies(const void *data, size_t size, struct g_answer *a)
{
    void *to = NULL, *pinned = NULL;
    int error = gpu_alloc(size, &to);

    if (!error)
        error = gpu_host_alloc(size, &pinned);
    if (!error) {
        memcpy(pinned, data, size);
        error = copy_rate(to, pinned, size, &a->value[1]);
    }
    if (!error)
        error = copy_rate(to, data, size, &a->value[0]);
    (void)gpu_host_free(pinned);
    (void)gpu_free(to);
    return error;
}

static int run_for_ever(gpud_task *t)
{
    int error = gpu_endless(NULL);

    if (error)
        return error;
    (void)gpud_task_progress(t, 0, NULL);
    return gpu_sync();
}

static int obey(gpud_task *t, const struct g_order *o, struct g_answer *a)
{
    switch (o->op) {
    case G_KERNEL:
        return run_kernel(o->ns);
    case G_STREAM:
        return run_stream(t, o->ns);
    case G_COPY:
        return run_copies(o, gpud_task_size(t), a);
    case G_HANG:
        return run_for_ever(t);
    default:
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    const struct g_order *o = gpud_task_data(t);
    struct g_answer a = { { 0 } };
    int error = obey(t, o, &a);

    (void)state;
    if (error)
        return gpud_task_fail(t, error, gpu_error(error));
    return o->op == G_COPY ? gpud_task_result_set(t, &a, sizeof(a)) : 0;
}

int g_init(void)
{
    static const struct gpud_definition definitions[] = { GPUD_DEFINITION("gpu-bench", setup,
                                                                          process, NULL) };
    struct gpud_error error = GPUD_ERROR_INIT;

    return gpud_init(definitions, 1, &error) ? b_complain("%s", error.text) : 0;
}

/* ---- in the host ---- */

int g_next(gpud_dispatcher *d, uint32_t kind, struct gpud_event *ret_event,
           struct g_answer *ret_answer)
{
    uint64_t end = b_now() + PATIENCE, now;

    while ((now = b_now()) < end) {
        struct gpud_event e = GPUD_EVENT_INIT;

        if (gpud_dispatcher_poll(d, &e, 1, end - now) < 1)
            continue;
        if (e.kind == GPUD_EVENT_SETUP_FAILURE ||
            (e.kind == GPUD_EVENT_LOG && e.level <= GPUD_LEVEL_WARNING))
            (void)b_complain("%s: %s", e.device, e.text);
        if (e.kind != kind)
            continue;
        if (ret_answer && e.result_size == sizeof(*ret_answer))
            memcpy(ret_answer, e.result, sizeof(*ret_answer));
        if (kind == GPUD_EVENT_OUTCOME &&
            (e.outcome == GPUD_OUTCOME_ERROR || e.outcome == GPUD_OUTCOME_NO_WORKER))
            return b_complain("a task ended %s: %s", gpud_outcome_name(e.outcome), e.text);
        *ret_event = e;
        return 0;
    }
    return b_complain("nothing has happened for %u s", (unsigned)(PATIENCE / B_S));
}

int g_submit(gpud_dispatcher *d, const struct g_order *order, uint64_t *ret_id)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    int code;

    task.data = order;
    task.size = sizeof(*order);
    code = gpud_dispatcher_submit(d, &task, 0, ret_id, NULL);
    return code ? b_complain("submit: %s", gpud_error_text(code)) : 0;
}

int g_do(gpud_dispatcher *d, const struct g_order *order, struct g_answer *ret_answer)
{
    struct gpud_event e;

    if (g_submit(d, order, NULL) || g_next(d, GPUD_EVENT_OUTCOME, &e, ret_answer))
        return -1;
    return e.outcome == GPUD_OUTCOME_SUCCESS
               ? 0
               : b_complain("a task ended %s", gpud_outcome_name(e.outcome));
}

int g_open(gpud_dispatcher **ret_d, const char *devices, uint32_t cuda, uint64_t payload_budget)
{
    const struct g_order nothing = { .op = G_NOTHING };
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;

    o.devices = devices;
    o.queue_size = 16384;
    o.cuda = cuda;
    o.payload_budget = payload_budget;
    o.task_limit = PATIENCE;
    if (gpud_dispatcher_create(ret_d, &o, &error))
        return b_complain("create: %s", error.text);
    if (g_do(*ret_d, &nothing, NULL) == 0)
        return 0;
    (void)gpud_dispatcher_destroy(ret_d, NULL);
    return -1;
}
