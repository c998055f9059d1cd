/* SPDX-License-Identifier: MIT */
/*
 * device_sets.c - several devices per worker, for a model that does not fit on one device.  Four
 * devices make two workers with two devices each.
 *
 * cc -std=c11 -Wall -Wextra device_sets.c -o device_sets $(pkg-config --cflags --libs gpudispatch)
 *
 * ./device_sets [DEVICES] takes "cpu:4" (the default), "fake:4" (simulated GPUs) or "all" (the GPUs
 * of the machine).  It prints for each task the worker, and each device's part of the sum:
 *     sum 0..999 = 499500 by worker 1: cpu:2 0..499, cpu:3 500..999
 * A worker on GPUs sees only its own devices: CUDA numbers them 0 and 1 in every worker.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TASKS = 6, SET = 2, MOST = 16 }; /* a set has at most 16 devices */

struct model { /* of one worker, with one part on each of its devices */
    uint32_t n;
    const char *parts[MOST];
};

static int setup(gpud_worker *w, void **ret_state)
{
    static struct model model; /* each worker process has its own */

    model.n = gpud_worker_device_count(w);
    for (uint32_t i = 0; i < model.n; i++) /* with CUDA: cudaSetDevice(i), then load part i */
        model.parts[i] = gpud_worker_device_at(w, i);
    *ret_state = &model;
    return model.n <= MOST ? 0 : gpud_worker_fail(w, 1, "too many devices");
}

static int process(gpud_task *t, void *state)
{
    const struct model *m = state;
    unsigned n = *(const unsigned *)gpud_task_data(t), sum = 0;
    struct timespec pass = { 0, 20000000 }; /* stands for a pass over the model */
    char shares[512] = "", text[640];
    size_t used = 0;

    for (unsigned i = 0; i < m->n; i++) { /* with CUDA: launch all, then wait */
        unsigned from = n / m->n * i, to = i + 1 == m->n ? n : n / m->n * (i + 1);

        for (unsigned x = from; x < to; x++)
            sum += x;
        if (used < sizeof shares)
            used += (size_t)snprintf(shares + used, sizeof shares - used, "%s %s %u..%u",
                                     i ? "," : "", m->parts[i], from, to - 1);
    }
    (void)nanosleep(&pass, NULL);
    (void)snprintf(text, sizeof text, "sum 0..%u = %u by worker %u:%s", n - 1, sum,
                   gpud_worker_slot(gpud_task_worker(t)), shares);
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("sum", setup, process, NULL);
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    int r, failed = 0;

    options.devices = argc > 1 ? argv[1] : "cpu:4";
    options.devices_per_worker = SET; /* neighbours; the list has a multiple of SET */
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "device_sets: %s\n", error.text);
        return 1;
    }
    for (unsigned n = 1000; n <= 1000 * TASKS; n += 1000) {
        task.data = &n;
        task.size = sizeof n;
        if ((r = gpud_dispatcher_submit(d, &task, 0, NULL, NULL))) {
            fprintf(stderr, "device_sets: %s\n", gpud_error_text(r));
            return 1;
        }
    }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER);
    while ((r = gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER)) > 0) {
        if (e.kind == GPUD_EVENT_SETUP_FAILURE)
            fprintf(stderr, "device_sets: %s: %s\n", e.device, e.text);
        if (e.kind != GPUD_EVENT_OUTCOME)
            continue;
        failed += e.outcome != GPUD_OUTCOME_SUCCESS;
        printf("%s\n", e.outcome == GPUD_OUTCOME_SUCCESS ? (const char *)e.result : e.text);
    }
    (void)gpud_dispatcher_destroy(&d, NULL);
    (void)gpud_fini();
    return r == GPUD_EEND && failed == 0 ? 0 : 1;
}
