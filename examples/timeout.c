/* SPDX-License-Identifier: MIT */
/*
 * timeout.c - four tasks against the clock.  One ends in time.  One stops when its limit expires.
 * One never checks its limit.  One waits too long in the queue.  Each of them costs itself only.
 *
 * cc -std=c11 -Wall -Wextra timeout.c -o timeout $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints for each task the outcome, the phase in which the task ended, and its result or text:
 *     quick     SUCCESS  PROCESS  all 5 steps
 *     polite    TIMEOUT  PROCESS  N steps, then the limit
 *     stubborn  TIMEOUT  HARD     exceeded its time limit of 0.200 s (limit of the task) ...
 *     waiting   TIMEOUT  QUEUED   not started within 0.100 s (expires of the task)
 * The lines have the order in which the tasks end.  The last line is "workers killed: 1": the
 * library killed the worker of the stubborn task.  Later tasks would run on its replacement.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int process(gpud_task *t, void *state) /* runs in a worker */
{
    const int *steps = gpud_task_data(t);
    struct timespec step = { 0, 10000000 };
    char text[64];
    int done = 0;

    (void)state;
    while (*steps < 0)
        ; /* stands for a call into another library that never returns */
    while (done < *steps && !gpud_task_expired(t)) { /* check wherever the task can stop */
        (void)nanosleep(&step, NULL);                /* SIGALRM interrupts it at the limit */
        done++;
    }
    if (done == *steps)
        (void)snprintf(text, sizeof text, "all %d steps", done);
    else
        (void)snprintf(text, sizeof text, "%d steps, then the limit", done);
    /* a TIMEOUT keeps the result that was set */
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

static int submit(gpud_dispatcher *d, const char *label, int steps, uint64_t limit,
                  uint64_t expires)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;

    task.data = &steps;
    task.size = sizeof steps;
    task.label = label;
    task.limit = limit;     /* for process, in ns; 0: option task_limit */
    task.expires = expires; /* for the wait before it, in ns; 0: option expires */
    return gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
}

int main(void)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("steps", NULL, process, NULL);
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_stats stats = GPUD_STATS_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    int r;

    options.devices = "cpu:1";      /* one worker, so one task at a time */
    options.task_limit = GPUD_S(5); /* for tasks without a limit of their own */
    options.grace = GPUD_MS(500);   /* between a task's limit and SIGKILL for its worker */
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "timeout: %s\n", error.text);
        return 1;
    }
    if ((r = submit(d, "quick", 5, 0, 0)) || (r = submit(d, "polite", 1000, GPUD_MS(200), 0)) ||
        (r = submit(d, "stubborn", -1, GPUD_MS(200), 0)) ||
        (r = submit(d, "waiting", 5, 0, GPUD_MS(100)))) {
        fprintf(stderr, "timeout: %s\n", gpud_error_text(r));
        return 1;
    }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER);
    while ((r = gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER)) > 0)
        if (e.kind == GPUD_EVENT_OUTCOME)
            printf("%-9s %-8s %-8s %s\n", e.label, gpud_outcome_name(e.outcome),
                   gpud_phase_name(e.phase), e.result ? (const char *)e.result : e.text);
    (void)gpud_dispatcher_stats(d, &stats);
    printf("workers killed: %llu\n", (unsigned long long)stats.hard_kills);
    (void)gpud_dispatcher_destroy(&d, NULL);
    (void)gpud_fini();
    if (r != GPUD_EEND)
        fprintf(stderr, "timeout: %s\n", gpud_error_text(r));
    return r != GPUD_EEND;
}
