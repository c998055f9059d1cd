/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - our side of compare.py: makes a dispatcher and does the jobs that are named on stdin,
 * one a line; answers each with one line. Public headers only.
 *
 *   trip N          the median round trip of N one-byte tasks, one after the other: microseconds
 *   small N         N one-byte tasks, as many at a time as the queue takes: tasks a second
 *   many N          the same by submit_many
 *   echo N SIZE     N tasks of SIZE bytes that come back, one after the other: GB/s, both ways
 *   together
 *   give N SIZE     N tasks of SIZE bytes written into a lent buffer by the host, one byte comes
 *   back: GB/s
 *   crash           a worker is killed by SIGKILL inside a task: milliseconds until its outcome is
 *   known
 *   hang MS         a task that never ends, with a limit: milliseconds past the limit until its
 *   outcome is known
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gpudispatch/gpudispatch.h>

#define EVENTS 256
#define N_AT_ONCE 64 /* tasks of one call of submit_many, as many as a Pool's chunk */
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* The first byte of a task. */
enum op { NOTHING = 0, ECHO = 1, HANG = 2 };

static uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static int pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return 0;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

/* ---- in the worker ---- */

static int begin(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const int *cpu = gpud_worker_setup_data(w, &size);

    *ret_state = NULL;
    return pin(*cpu) ? gpud_worker_fail(w, 1, "could not be pinned") : 0;
}

static int work(gpud_task *t, void *state)
{
    const char *data = gpud_task_data(t);
    void *result = NULL;
    int rc;

    (void)state;
    if (data[0] == HANG) {
        (void)gpud_task_progress(t, 0.0, NULL);
        for (;;)
            (void)pause();
    }
    if (data[0] != ECHO)
        return gpud_task_result_set(t, data, 1);
    rc = gpud_task_result_alloc(t, gpud_task_size(t), &result);
    if (rc == 0)
        memcpy(result, data, gpud_task_size(t));
    return rc;
}

/* ---- in the host ---- */

static gpud_dispatcher *dispatcher;
static struct gpud_event events[EVENTS];
static uint64_t ended, failed;

static int fail(const char *what, int code)
{
    (void)fprintf(stderr, "jobs: %s: %s\n", what, gpud_error_name(code));
    return -1;
}

static int receive(uint64_t wait)
{
    int i, n;

    events[0].struct_size = (uint32_t)sizeof(events[0]);
    n = gpud_dispatcher_poll(dispatcher, events, EVENTS, wait);
    for (i = 0; i < n; i++) {
        if (events[i].kind != GPUD_EVENT_OUTCOME)
            continue;
        ended++;
        failed += events[i].outcome != GPUD_OUTCOME_SUCCESS;
    }
    return n;
}

static int trip(const struct gpud_task_desc *task)
{
    uint64_t before = ended;
    int rc = gpud_dispatcher_submit(dispatcher, task, 0, NULL, NULL);

    while (rc == 0 && ended == before) {
        int n = receive(GPUD_NEVER);
        rc = n < 0 ? n : 0;
    }
    return rc;
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int job_trip(size_t n)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    uint64_t *took = calloc(n ? n : 1, sizeof(*took));
    char byte = NOTHING;
    size_t i;
    int rc = 0;

    task.data = &byte;
    task.size = 1;
    for (i = 0; took && rc == 0 && i < n; i++) {
        uint64_t start = now();
        rc = trip(&task);
        took[i] = now() - start;
    }
    if (took && rc == 0 && n > 0) {
        qsort(took, n, sizeof(*took), compare_times);
        (void)printf("%.3f\n", (double)took[n / 2] / 1e3);
    }
    free(took);
    return rc ? fail("trip", rc) : 0;
}

/* Gives in up to n of N_AT_ONCE tasks alike, one after the other or in one call.  Returns a code;
 * *ret_taken is always set. */
static int give_in(const struct gpud_task_desc *tasks, size_t n, int many, size_t *ret_taken)
{
    int rc;

    if (many)
        return gpud_dispatcher_submit_many(dispatcher, tasks, n, 0, NULL, ret_taken, NULL);
    rc = gpud_dispatcher_submit(dispatcher, tasks, 0, NULL, NULL);
    *ret_taken = rc == 0;
    return rc;
}

static int job_small(uint64_t n, int many)
{
    struct gpud_task_desc tasks[N_AT_ONCE];
    uint64_t start, goal = ended + n, sent = 0;
    char byte = NOTHING;
    size_t i, taken;
    int rc = 0;

    for (i = 0; i < N_AT_ONCE; i++) {
        tasks[i] = (struct gpud_task_desc)GPUD_TASK_DESC_INIT;
        tasks[i].data = &byte;
        tasks[i].size = 1;
    }
    start = now();
    while (rc == 0 && ended < goal) {
        for (; rc == 0 && sent < n; sent += taken)
            rc = give_in(tasks, n - sent < N_AT_ONCE ? (size_t)(n - sent) : N_AT_ONCE, many,
                         &taken);
        if (rc == GPUD_EFULL)
            rc = 0;
        if (rc == 0 && (rc = receive(GPUD_NEVER)) > 0)
            rc = 0;
    }
    if (rc)
        return fail("small", rc);
    (void)printf("%.0f\n", (double)n * 1e9 / (double)(now() - start));
    return 0;
}

static int job_echo(unsigned n, uint64_t size)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    char *data = malloc(size);
    uint64_t start;
    unsigned i;
    int rc = data ? 0 : GPUD_ENOMEM;

    if (data)
        memset(data, ECHO, size);
    task.data = data;
    task.size = size;
    start = now();
    for (i = 0; rc == 0 && i < n; i++)
        rc = trip(&task);
    if (rc == 0)
        (void)printf("%.4f\n", 2.0 * (double)n * (double)size / (double)(now() - start));
    free(data);
    return rc ? fail("echo", rc) : 0;
}

static int job_give(unsigned n, uint64_t size)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    uint64_t start = now();
    void *data = NULL;
    unsigned i;
    int rc = 0;

    task.size = size;
    for (i = 0; rc == 0 && i < n; i++) {
        rc = gpud_dispatcher_buffer_alloc(dispatcher, size, &data);
        if (rc)
            break;
        memset(data, NOTHING, size);
        task.data = data;
        rc = trip(&task);
    }
    if (rc)
        return fail("give", rc);
    (void)printf("%.4f\n", (double)n * (double)size / (double)(now() - start));
    return 0;
}

/* Starts a task that hangs.  Gives its worker's process once it runs. */
static int hang(uint64_t limit, pid_t *ret_pid)
{
    struct gpud_slot_stats rows[64];
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    uint64_t id, until = now() + 10 * S;
    char byte = HANG;
    int i, n, rc;

    task.data = &byte;
    task.size = 1;
    task.limit = limit;
    rc = gpud_dispatcher_submit(dispatcher, &task, 0, &id, NULL);
    while (rc == 0 && now() < until) {
        n = receive(10 * MS); /* its progress comes at once */
        if (n < 0)
            return n;
        rows[0].struct_size = (uint32_t)sizeof(rows[0]);
        n = gpud_dispatcher_slots(dispatcher, rows, 64);
        for (i = 0; i < n; i++)
            if (rows[i].task_id == id && rows[i].pid > 0) {
                *ret_pid = (pid_t)rows[i].pid;
                return 0;
            }
    }
    return rc ? rc : GPUD_ESYSTEM;
}

static int job_crash(void)
{
    uint64_t start, before = ended;
    pid_t pid = 0;
    int n = 0, rc = hang(0, &pid);

    if (rc)
        return fail("crash", rc);
    start = now();
    (void)kill(pid, SIGKILL);
    while (n >= 0 && ended == before)
        n = receive(S);
    if (n < 0)
        return fail("crash", n);
    (void)printf("%.3f\n", (double)(now() - start) / 1e6);
    return 0;
}

static int job_hang(uint64_t limit)
{
    uint64_t before = ended, start = now();
    pid_t pid = 0;
    int n = 0, rc = hang(limit, &pid);

    if (rc)
        return fail("hang", rc);
    while (n >= 0 && ended == before)
        n = receive(S);
    if (n < 0)
        return fail("hang", n);
    (void)printf("%.3f\n", ((double)(now() - start) - (double)limit) / 1e6);
    return 0;
}

/* Does what a line says; 0, or -1 after a complaint. */
static int do_line(const char *line)
{
    unsigned n = 0;
    uint64_t size = 0;

    if (sscanf(line, "trip %u", &n) == 1)
        return job_trip(n);
    if (sscanf(line, "small %" SCNu64, &size) == 1)
        return job_small(size, 0);
    if (sscanf(line, "many %" SCNu64, &size) == 1)
        return job_small(size, 1);
    if (sscanf(line, "echo %u %" SCNu64, &n, &size) == 2 && size > 0)
        return job_echo(n, size);
    if (sscanf(line, "give %u %" SCNu64, &n, &size) == 2 && size > 0)
        return job_give(n, size);
    if (strcmp(line, "crash\n") == 0)
        return job_crash();
    if (sscanf(line, "hang %u", &n) == 1)
        return job_hang(n * MS);
    (void)fprintf(stderr, "jobs: unknown: %s", line);
    return -1;
}

static int wait_ready(unsigned workers)
{
    struct gpud_stats stats = GPUD_STATS_INIT;
    uint64_t until = now() + 10 * S;

    while (now() < until) {
        (void)receive(MS);
        if (gpud_dispatcher_stats(dispatcher, &stats) == 0 && stats.slots_ready == workers)
            return 0;
    }
    return -1;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definitions[] = { GPUD_DEFINITION("jobs", begin, work,
                                                                          NULL) };
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    int rc, host_cpu, worker_cpu;
    char devices[24], line[128];
    unsigned workers;

    if (argc != 4) {
        (void)fprintf(
            stderr,
            "usage: gpudispatch-jobs WORKERS HOST_CPU WORKER_CPU   (a CPU of -1: anywhere)\n");
        return 2;
    }
    workers = (unsigned)atoi(argv[1]);
    host_cpu = atoi(argv[2]);
    worker_cpu = atoi(argv[3]);
    rc = gpud_init(definitions, 1, &error);
    if (rc)
        return fail("gpud_init", rc) ? 1 : 0;
    if (pin(host_cpu))
        return 1;
    (void)snprintf(devices, sizeof(devices), "cpu:%u", workers);
    options.drive = GPUD_DRIVE_CALLER;
    options.devices = devices;
    options.setup_data = &worker_cpu;
    options.setup_size = sizeof(worker_cpu);
    options.queue_size = 4096;
    options.payload_budget = UINT64_C(256) << 20;
    options.task_limit = 60 * S;
    options.grace = 50 * MS;
    options.log_level = GPUD_LEVEL_ERROR;
    rc = gpud_dispatcher_create(&dispatcher, &options, &error);
    if (rc) {
        (void)fprintf(stderr, "jobs: %s\n", error.text);
        return 1;
    }
    rc = wait_ready(workers);
    while (rc == 0 && fgets(line, sizeof(line), stdin)) {
        rc = do_line(line);
        (void)fflush(stdout);
        if (rc == 0)
            rc = wait_ready(workers); /* a replacement may be on its way */
    }
    (void)gpud_dispatcher_destroy(&dispatcher, NULL);
    (void)gpud_fini();
    return rc ? 1 : 0;
}
