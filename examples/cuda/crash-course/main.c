/* SPDX-License-Identifier: MIT */
/*
 * main.c - crash-course runs three accidents as tasks between good tasks, on a GPU or, without one,
 * on a processor.  It prints the outcome of each task, and whether the task after it succeeded.
 * It is built with the tree; --help lists its options.
 */
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accidents.h"

/* The endless task is killed after both; every other task ends soon. */
static const uint64_t limit = GPUD_S(2), grace = GPUD_MS(500);

static const uint32_t course[] = { ACCIDENT_NONE, ACCIDENT_ADDRESS, ACCIDENT_NONE, ACCIDENT_ENDLESS,
                                   ACCIDENT_NONE, ACCIDENT_ASSERT,  ACCIDENT_NONE };
enum { TASKS = sizeof course / sizeof *course };

static const char help[] = "Usage: crash-course [--devices DEVICE]\n"
                           "Runs an access to an illegal address, an endless kernel and a failed "
                           "assert as tasks between good ones,\n"
                           "on one worker, and prints how each ended.\n"
                           "\n"
                           "  --devices DEVICE  such as \"0\" or \"cpu:1\" [the first GPU; where "
                           "there is none, cpu:1 with a segmentation\n"
                           "                    fault, an endless loop and abort]\n"
                           "  --help            this text\n"
                           "\n"
                           "Exit status: 0 each ended as it should and all good ones succeeded, 1 "
                           "not so, 2 wrong usage.\n";

/* The names of each accident and the outcomes it should have, on a GPU and on a processor. */
static const struct lesson {
    const char *gpu_name, *cpu_name;
    uint32_t gpu_outcome, cpu_outcome;
} lessons[ACCIDENT_COUNT] = {
    { "sum of squares", "sum of squares", GPUD_OUTCOME_SUCCESS, GPUD_OUTCOME_SUCCESS },
    { "illegal address", "segmentation fault", GPUD_OUTCOME_ERROR, GPUD_OUTCOME_CRASHED },
    { "endless kernel", "endless loop", GPUD_OUTCOME_TIMEOUT, GPUD_OUTCOME_TIMEOUT },
    { "device assert", "abort", GPUD_OUTCOME_ERROR, GPUD_OUTCOME_CRASHED },
};

/* ---- the worker ---- */

static int setup(gpud_worker *w, void **ret_state)
{
    static accident_fn *run;
    run = strncmp(gpud_worker_device(w), "gpu:", 4) == 0 ? accident_gpu : accident_cpu;
    *ret_state = &run;
    return run != NULL
               ? 0
               : gpud_worker_fail(
                     w, 1, "this program was built without the CUDA toolkit: use --devices cpu:1");
}

static int process(gpud_task *t, void *state)
{
    accident_fn **run = state;
    char text[TEXT_BYTES] = "";
    int code = (*run)(t, *(const uint32_t *)gpud_task_data(t), text);
    return code != 0 && text[0] != '\0' ? gpud_task_fail(t, code, text) : code;
}

/* ---- the host ---- */

struct run {
    int on_gpu;
    unsigned told, wrong;
    uint64_t ended_at; /* of the task before */
};

static uint64_t right_sum(void)
{
    return (uint64_t)SQUARES * (SQUARES + 1) * (2 * SQUARES + 1) / 6;
}

static int is_right(const struct run *run, const struct gpud_event *e)
{
    const struct lesson *l = &lessons[course[e->tag]];
    uint64_t sum = 0;
    if (e->outcome != (run->on_gpu ? l->gpu_outcome : l->cpu_outcome))
        return 0;
    if (e->outcome != GPUD_OUTCOME_SUCCESS)
        return 1;
    if (e->result_size == sizeof sum)
        memcpy(&sum, e->result, sizeof sum);
    return sum == right_sum();
}

static int on_outcome(const struct gpud_event *e, void *user)
{
    struct run *run = user;
    const struct lesson *l = &lessons[course[e->tag]];
    int right = is_right(run, e);
    double ms = e->started_at != 0 ? (double)(e->ended_at - e->started_at) / 1e6 : 0;
    printf("%u  %-18s %-9s %8.1f ms  worker %u.%u  %s%s\n", (unsigned)e->tag + 1,
           run->on_gpu ? l->gpu_name : l->cpu_name, gpud_outcome_name(e->outcome), ms,
           (unsigned)e->slot, (unsigned)e->incarnation, e->text, right ? "" : "  <- WRONG");
    if (run->ended_at != 0 && e->started_at > run->ended_at && e->outcome == GPUD_OUTCOME_SUCCESS)
        printf("   begun %.1f ms after the end of the one before\n",
               (double)(e->started_at - run->ended_at) / 1e6);
    run->ended_at = e->ended_at;
    run->told++;
    run->wrong += !right;
    return 0;
}

static int on_event(const struct gpud_event *e, void *user)
{
    (void)user;
    if (e->kind == GPUD_EVENT_SETUP_FAILURE)
        fprintf(stderr, "crash-course: %s: the worker does not start: %s\n", e->device, e->text);
    else if (e->kind == GPUD_EVENT_DEVICE ||
             (e->kind == GPUD_EVENT_LOG && e->level <= GPUD_LEVEL_WARNING))
        printf("   %s%s%s\n", e->device, e->device[0] != '\0' ? ": " : "", e->text);
    return 0;
}

static int create_on(gpud_dispatcher **ret_d, const char *devices, struct gpud_error *error)
{
    struct gpud_options o = GPUD_OPTIONS_INIT;
    o.devices = devices;
    o.task_limit = limit;
    o.grace = grace;
    o.sent_ahead = 1;
    return gpud_dispatcher_create(ret_d, &o, error);
}

/* Uses the named device, else the first GPU, else a processor, and then prints the reason. */
static int create(gpud_dispatcher **ret_d, const char *devices)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    int code = GPUD_EDEVICE;
    if (devices != NULL)
        code = create_on(ret_d, devices, &error);
    else if (accident_gpu != NULL)
        code = create_on(ret_d, "0", &error);
    if (devices == NULL && code == GPUD_EDEVICE) {
        printf("No GPU: %s.\nThe same on a processor:\n",
               accident_gpu != NULL ? error.text : "built without the CUDA toolkit");
        code = create_on(ret_d, "cpu:1", &error);
    }
    if (code != 0)
        fprintf(stderr, "crash-course: cannot make the dispatcher: %s\n", error.text);
    return code;
}

static int is_on_gpu(gpud_dispatcher *d)
{
    struct gpud_slot_stats row = { .struct_size = sizeof row };
    return gpud_dispatcher_slots(d, &row, 1) >= 1 && strncmp(row.device, "gpu:", 4) == 0;
}

static int next_task(struct gpud_task_desc *task, size_t n, void *user)
{
    static unsigned next; /* there is one run, and one thread calls its source */
    (void)n, (void)user;
    if (next == TASKS)
        return 0;
    task->tag = next;
    task->data = &course[next++];
    task->size = sizeof *course;
    return 1;
}

static int hold_course(const char *devices)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    gpud_dispatcher *d = NULL;
    struct run run = { 0 };
    if (create(&d, devices) != 0)
        return 1;
    run.on_gpu = is_on_gpu(d);
    callbacks.on_success = callbacks.on_error = on_outcome;
    callbacks.on_event = on_event;
    int code = gpud_dispatcher_run(d, next_task, &callbacks, &run, NULL);
    gpud_dispatcher_destroy(&d, NULL);
    if (code != 0)
        fprintf(stderr, "crash-course: the run failed: %s\n", gpud_error_text(code));
    printf("%u of %u ended as they should\n", run.told - run.wrong, (unsigned)TASKS);
    return code != 0 || run.wrong != 0 || run.told != TASKS;
}

/* Returns the devices of the command line, NULL for none.  *ret_status is -1 to go on, else the
 * exit status. */
static const char *read_arguments(int argc, char **argv, int *ret_status)
{
    *ret_status = -1;
    if (argc == 1)
        return NULL;
    if (argc == 3 && strcmp(argv[1], "--devices") == 0)
        return argv[2];
    *ret_status = argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    fputs(help, *ret_status == 0 ? stdout : stderr);
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definitions[] = { GPUD_DEFINITION("accident", setup,
                                                                          process, NULL) };
    struct gpud_error error = GPUD_ERROR_INIT;
    int status;
    const char *devices = read_arguments(argc, argv, &status);
    if (status >= 0)
        return status;
    if (gpud_init(definitions, 1, &error) != 0) {
        fprintf(stderr, "crash-course: %s\n", error.text);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines, also in a file shared with stderr */
    status = hold_course(devices);
    gpud_fini();
    return status;
}
