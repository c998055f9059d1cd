/* SPDX-License-Identifier: MIT */
/*
 * progress.c - a progress line on stderr: tasks done, speed, time left, the task of each worker.
 *
 * cc -std=c11 -Wall -Wextra progress.c -o progress $(pkg-config --cflags --libs gpudispatch)
 *
 * On a terminal the line changes in place; elsewhere a new line appears now and then:
 *     14/24 done, 1 failed, 9.7/s, 1 to 1 s left | cpu:0 film 15 40% | cpu:1 film 16 20%
 * The last line, on stdout, is "23 good, 1 failed".  The numbers are those of
 * gpud_dispatcher_stats and gpud_dispatcher_slots.  Any thread may call both at any rate, and
 * neither takes an event away from poll.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FILMS = 24, STEPS = 10, WORKERS = 2 };

static int process(gpud_task *t, void *state) /* runs in a worker */
{
    struct timespec step = { 0, 10000000 };

    (void)state;
    for (int i = 1; i <= STEPS; i++) {
        (void)nanosleep(&step, NULL);
        (void)gpud_task_progress(t, (double)i / STEPS, NULL); /* one store: call it often */
    }
    return gpud_task_tag(t) == 13 ? gpud_task_fail(t, 1, "no sound") : 0;
}

static void show(gpud_dispatcher *d)
{
    struct gpud_slot_stats rows[WORKERS] = { GPUD_SLOT_STATS_INIT }; /* [0] has the struct_size */
    struct gpud_stats s = GPUD_STATS_INIT;
    uint64_t failed;
    int n;

    if (gpud_dispatcher_stats(d, &s) || (n = gpud_dispatcher_slots(d, rows, WORKERS)) < 0)
        return;
    failed = s.error + s.timeout + s.crashed + s.cancelled + s.no_worker;
    fprintf(stderr, "%s%llu/%llu done, %llu failed, %.1f/s", isatty(2) ? "\r\033[K" : "",
            (unsigned long long)(s.success + failed), (unsigned long long)s.accepted,
            (unsigned long long)failed, s.throughput);
    if (s.eta_high != GPUD_NEVER) /* the estimate exists once some tasks have ended */
        fprintf(stderr, ", %.0f to %.0f s left", (double)s.eta_low / 1e9, (double)s.eta_high / 1e9);
    for (int i = 0; i < n && i < WORKERS; i++)
        if (rows[i].task_id)
            fprintf(stderr, " | %s %s %.0f%%", rows[i].device, rows[i].label,
                    100 * rows[i].progress);
        else
            fprintf(stderr, " | %s %s", rows[i].device, gpud_slot_state_name(rows[i].state));
    if (!isatty(2))
        fputc('\n', stderr);
}

int main(void)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("film", NULL, process, NULL);
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    unsigned good = 0, failed = 0;
    time_t shown = 0;
    char label[32];
    int r;

    options.devices = "cpu:2";
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "progress: %s\n", error.text);
        return 1;
    }
    for (task.tag = 1; task.tag <= FILMS; task.tag++) {
        (void)snprintf(label, sizeof label, "film %d", (int)task.tag);
        task.label = label;
        if ((r = gpud_dispatcher_submit(d, &task, 0, NULL, NULL))) {
            fprintf(stderr, "progress: %s\n", gpud_error_text(r));
            return 1;
        }
    }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER);
    while ((r = gpud_dispatcher_poll(d, &e, 1, GPUD_MS(200))) >= 0) { /* 0: no event in 200 ms */
        if (r == 1 && e.kind == GPUD_EVENT_OUTCOME)
            *(e.outcome == GPUD_OUTCOME_SUCCESS ? &good : &failed) += 1;
        if (r == 0 || time(NULL) != shown)
            show(d);
        shown = time(NULL);
    }
    show(d);
    printf("%s%u good, %u failed\n", isatty(2) ? "\n" : "", good, failed);
    (void)gpud_dispatcher_destroy(&d, NULL);
    (void)gpud_fini();
    return r == GPUD_EEND && good + failed == FILMS ? 0 : 1;
}
