/* SPDX-License-Identifier: MIT */
/*
 * batching.c - several tasks in one call of process_batch.  Models like that: one pass over eight
 * inputs costs little more than a pass over one.
 *
 * cc -std=c11 -Wall -Wextra batching.c -o batching $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints each input that failed, and then the number of calls that ran all tasks:
 *     input 13: ERROR, unlucky
 *     39 of 40 right, in N calls of up to 8
 * Each task of a batch has an outcome of its own, so the bad input costs no other task anything.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <time.h>

enum { INPUTS = 40, MOST = 8 };

/* Runs in a worker.  n is between 1 and option max_batch. */
static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    struct timespec pass = { 0, 5000000 }; /* one pass over the model: 5 ms for any n */
    double in[MOST], out;

    (void)state;
    for (size_t i = 0; i < n; i++)
        in[i] = *(const double *)gpud_task_data(tasks[i]);
    (void)nanosleep(&pass, NULL);
    for (size_t i = 0; i < n; i++) {
        out = in[i] * 2;
        if (in[i] == 13)
            (void)gpud_task_fail(tasks[i], 1, "unlucky");
        else if (gpud_task_result_set(tasks[i], &out, sizeof out))
            (void)gpud_task_fail(tasks[i], 2, "no room for the result");
    }
    return 0; /* another value fails every task without a gpud_task_fail */
}

/* Submits all inputs.  Returns 0, or the code of the submit that failed. */
static int submit(gpud_dispatcher *d)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    int r = 0;

    for (int i = 0; i < INPUTS && r == 0; i++) {
        double in = i;

        task.data = &in;
        task.size = sizeof in;
        task.tag = (uint64_t)i;
        r = gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
    }
    return r;
}

/* Returns 1 if the event is the outcome of a task with the right result. */
static int right(const struct gpud_event *e)
{
    if (e->kind != GPUD_EVENT_OUTCOME)
        return 0;
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        return *(const double *)e->result == 2.0 * (double)e->tag;
    printf("input %d: %s, %s\n", (int)e->tag, gpud_outcome_name(e->outcome), e->text);
    return 0;
}

int main(void)
{
    static const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("double", NULL, process_batch, NULL);
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_stats stats = GPUD_STATS_INIT;
    struct gpud_event events[16] = { GPUD_EVENT_INIT }; /* the first record has the struct_size */
    gpud_dispatcher *d = NULL;
    int n, good = 0;

    options.devices = "cpu:2";
    options.max_batch = MOST;
    options.batch_wait = GPUD_MS(2); /* how long a worker with fewer tasks waits for more */
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "batching: %s\n", error.text);
        return 1;
    }
    if ((n = submit(d)) || (n = gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER))) {
        fprintf(stderr, "batching: %s\n", gpud_error_text(n));
        return 1;
    }
    while ((n = gpud_dispatcher_poll(d, events, 16, GPUD_NEVER)) > 0)
        for (int i = 0; i < n; i++)
            good += right(&events[i]);
    (void)gpud_dispatcher_stats(d, &stats);
    printf("%d of %d right, in %llu calls of up to %d\n", good, INPUTS,
           (unsigned long long)stats.batches, MOST);
    (void)gpud_dispatcher_destroy(&d, NULL);
    (void)gpud_fini();
    return n == GPUD_EEND && good == INPUTS - 1 ? 0 : 1;
}
