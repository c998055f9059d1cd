/* SPDX-License-Identifier: MIT */
/*
 * retry.c - tasks that crash their workers.  A crash costs only the task that caused it, and the
 * library retries that task in a fresh worker if the host allows it.
 *
 * cc -std=c11 -Wall -Wextra retry.c -o retry $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints for each task the outcome, the number of attempts, and the text of the outcome:
 *     good     SUCCESS after 1 attempt
 *     shaky    SUCCESS after 3 attempts: (how the first two ended)
 *     broken   CRASHED after 3 attempts: (how each ended)
 *     refused  ERROR   after 1 attempt: no such customer
 * in some order.  The line after "broken" has the last output of its worker, and the last line has
 * two counters.  Exit status: 0 if all tasks end as described here, else 1.
 */
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int process(gpud_task *t, void *state) /* runs in a worker */
{
    const char *kind = gpud_task_data(t);

    (void)state;
    if (strcmp(kind, "broken") == 0) {
        fprintf(stderr, "assertion failed: weights != NULL\n");
        abort();
    }
    if (strcmp(kind, "shaky") == 0 && gpud_task_attempt(t) < 3)
        exit(7); /* counts as a crash; no atexit handler of the host runs */
    if (strcmp(kind, "refused") == 0)
        /* not a crash: another attempt would return the same error */
        return gpud_task_fail(t, 404, "no such customer");
    return 0;
}

static int submit(gpud_dispatcher *d, const char *kind)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;

    task.data = kind;
    task.size = strlen(kind) + 1;
    task.label = kind;
    return gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
}

/* Prints one event.  Returns 1 for a task that ended as the first comment describes. */
static int print_event(const struct gpud_event *e)
{
    if (e->kind != GPUD_EVENT_OUTCOME)
        return 0;
    printf("%-8s %-7s after %u attempt%s%s%s\n", e->label, gpud_outcome_name(e->outcome),
           e->attempt, e->attempt == 1 ? "" : "s", *e->text ? ": " : "", e->text);
    /* In other outcomes the output may be a line of another task: see enum gpud_stdio. */
    if (e->outcome == GPUD_OUTCOME_CRASHED && e->output_size)
        printf("         the worker's last words: %.*s", (int)e->output_size, e->output);
    switch (e->outcome) {
    case GPUD_OUTCOME_SUCCESS: return strcmp(e->label, "good") == 0 || e->attempt == 3;
    case GPUD_OUTCOME_CRASHED: return strcmp(e->label, "broken") == 0 && e->attempt == 3;
    default: return e->code == 404;
    }
}

int main(void)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("work", NULL, process, NULL);
    static const char *const kinds[] = { "good", "shaky", "broken", "refused" };
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_stats stats = GPUD_STATS_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    int r, expected = 0;

    options.devices = "cpu:2";
    options.max_attempts = 3;                /* of each task; the default is 1 */
    options.retry_causes = GPUD_RETRY_CRASH; /* retries only crashes; this is the default */
    options.retry_backoff = GPUD_MS(10);     /* before the second attempt, 20 ms before the third */
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "retry: %s\n", error.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((r = submit(d, kinds[i]))) {
            fprintf(stderr, "retry: %s\n", gpud_error_text(r));
            return 1;
        }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER);
    while (gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER) > 0)
        expected += print_event(&e);
    (void)gpud_dispatcher_stats(d, &stats);
    printf("workers lost %llu, attempts repeated %llu\n", (unsigned long long)stats.deaths,
           (unsigned long long)stats.retried);
    (void)gpud_dispatcher_destroy(&d, NULL);
    (void)gpud_fini();
    return expected == 4 ? 0 : 1;
}
