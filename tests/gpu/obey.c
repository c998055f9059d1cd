/* SPDX-License-Identifier: MIT */
/* obey.c - the worker of all cases: it does what a task's order says. */
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SUM_TO = 1000, STORM_MS = 500, STORM_BYTES = 1 << 20, COPIES = 8 };

struct obey {
    const void *setup_bytes;
    size_t setup_size;
};

int gpu_process(gpud_task *t, void *state);
int gpu_setup(gpud_worker *w, void **ret_state);

static int take_last_error(void)
{
    return gpu_left(1);
}

int gpu_setup(gpud_worker *w, void **ret_state)
{
    static struct obey obey;
    int code = gpud_cuda_last_error(w, take_last_error);

    if (code && code != GPUD_ENOTSUP)
        return gpud_worker_fail(w, code, "gpud_cuda_last_error");
    obey.setup_bytes = gpud_worker_setup_data(w, &obey.setup_size);
    *ret_state = &obey;
    return 0;
}

static double cpu_s(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double gigabytes_a_second(uint64_t bytes, double seconds)
{
    return (double)bytes / seconds / 1e9;
}

static int add_up(struct gpu_answer *a)
{
    uint64_t sum = 0;
    int error = gpu_sum(SUM_TO, &sum);

    a->value[0] = (double)sum;
    return error ? error : sum == (uint64_t)SUM_TO * (SUM_TO + 1) / 2 ? 0 : -1;
}

/* Asks for more than there is. */
static int hoard(struct gpu_answer *a, int drain)
{
    size_t free_bytes = 0, total = 0;
    void *memory = NULL;
    int error = gpu_memory(&free_bytes, &total);

    if (error)
        return error;
    a->value[0] = gpu_alloc(total * 1024, &memory);
    if (drain)
        a->value[1] = gpu_left(1);
    return memory ? -1 : 0;
}

static int run_for_ever(const struct gpu_order *o)
{
    void *memory = NULL;
    int error = gpu_alloc(o->size, &memory);

    if (!error)
        error = gpu_endless(NULL);
    if (error)
        return error;
    t_word_set(0, 1);
    return gpu_sync();
}

/* Past its limit the kernel is told to end, and the worker lives on. */
static int run_until_told(gpud_task *t, struct gpu_answer *a)
{
    volatile uint32_t *stop = NULL;
    int error = gpu_flag(&stop), code;

    if (!error)
        error = gpu_endless(stop);
    if (error)
        return error;
    if (gpu_rehearsed()) {
        while (!gpud_task_expired(t))
            (void)usleep(1000);
        code = GPUD_ETIMEOUT;
    } else {
        code = gpud_cuda_stream_sync(t, NULL);
    }
    a->value[0] = (double)(int64_t)(t_now() - gpud_task_deadline(t)) / 1e6;
    a->value[1] = code;
    *stop = 1;
    return gpu_sync();
}

static int keep_busy(struct gpu_answer *a, uint64_t ns)
{
    uint64_t start = t_now(), last = start, n = 0;

    while (last - start < ns) {
        uint64_t before = last;
        int error = gpu_busy(T_MS(1));

        if (!error)
            error = gpu_sync();
        if (error)
            return error;
        last = t_now(), n++;
        if ((double)(last - before) / 1e6 > a->value[0])
            a->value[0] = (double)(last - before) / 1e6;
    }
    a->value[1] = (double)(last - start) / 1e6 / (double)n;
    return 0;
}

static int wait_long(struct gpu_answer *a, uint64_t ns)
{
    uint64_t sum;
    int error = gpu_sum(10, &sum); /* the context is there, the kernels are loaded */
    double before;
    uint64_t start;

    if (!error)
        error = gpu_busy(ns);
    before = cpu_s(), start = t_now();
    if (!error)
        error = gpu_sync();
    a->value[0] = (cpu_s() - before) * 100 / ((double)(t_now() - start) / 1e9);
    a->value[1] = (double)(t_now() - start) / 1e6;
    return error;
}

/* ---- signals ---- */

struct storm {
    pthread_t target;
    _Atomic int over;
    uint64_t signals;
};

static void *send_signals(void *user)
{
    const struct timespec pause = { .tv_nsec = 100000 };
    struct storm *s = user;

    while (!s->over) {
        s->signals += pthread_kill(s->target, SIGALRM) == 0;
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Allocates and frees, again and again. */
static int allocate_much(void)
{
    uint64_t end = t_now() + T_MS(STORM_MS);
    int error = 0;

    for (size_t i = 0; t_now() < end && !error; i++) {
        void *memory = NULL;

        error = gpu_alloc((size_t)STORM_BYTES * (1 + i % 8), &memory);
        if (!error)
            error = gpu_free(memory);
    }
    return error;
}

static int work_in_storm(struct gpu_answer *a)
{
    struct storm s = { .target = pthread_self() };
    pthread_t sender;
    uint64_t start = t_now();
    int error;

    if (pthread_create(&sender, NULL, send_signals, &s))
        return -1;
    error = gpu_context();
    a->value[1] = (double)(t_now() - start) / 1e6;
    if (!error)
        error = allocate_much();
    if (!error)
        error = add_up(a);
    s.over = 1;
    (void)pthread_join(sender, NULL);
    a->value[0] = (double)s.signals;
    return error;
}

/* ---- copies and pinning ---- */

static int copy_rate(const void *from, size_t size, double *ret_rate)
{
    void *to = NULL;
    double seconds = 0;
    int error = gpu_alloc(size, &to);

    if (!error)
        error = gpu_copy(to, from, size, 1, &seconds);
    if (!error)
        error = gpu_copy(to, from, size, COPIES, &seconds);
    (void)gpu_free(to);
    *ret_rate = gigabytes_a_second((uint64_t)size * COPIES, seconds);
    return error;
}

static int compare_copies(struct gpu_answer *a, const void *data, size_t size)
{
    void *pinned = NULL;
    int error = copy_rate(data, size, &a->value[0]);

    if (!error)
        error = gpu_host_alloc(size, &pinned);
    if (error)
        return error;
    memcpy(pinned, data, size);
    error = copy_rate(pinned, size, &a->value[1]);
    (void)gpu_host_free(pinned);
    return error;
}

static int pin_all(const uint8_t *at, size_t size, size_t piece)
{
    int error = 0;

    for (size_t done = 0; done < size && !error; done += piece)
        error = gpu_pin(at + done, size - done < piece ? size - done : piece, 1);
    return error;
}

static int unpin_all(const uint8_t *at, size_t size, size_t piece)
{
    int error = 0;

    for (size_t done = 0; done < size && !error; done += piece)
        error = gpu_unpin(at + done);
    return error;
}

static int pin_and_copy(struct gpu_answer *a, const struct obey *obey, size_t piece)
{
    const uint8_t *at = obey->setup_bytes;
    size_t size = obey->setup_size, part = size < piece ? size : piece;
    uint64_t start;
    int error = copy_rate(at, part, &a->value[1]);

    if (error)
        return error;
    start = t_now();
    t_word_add(1);
    error = pin_all(at, size, piece);
    a->value[0] = (double)(t_now() - start) / 1e9;
    if (error == GPU_NOT_SUPPORTED) { /* of memory that is mapped read-only: an answer */
        a->value[0] = -1;
        (void)gpu_left(1);
        return 0;
    }
    if (!error)
        error = copy_rate(at, part, &a->value[2]);
    return error ? error : unpin_all(at, size, piece);
}

static int obey_order(gpud_task *t, const struct obey *obey, const struct gpu_order *o,
                      struct gpu_answer *a)
{
    switch (o->op) {
    case GPU_OP_SUM:
        return add_up(a);
    case GPU_OP_PROVOKE:
        return gpu_provoke(o->error);
    case GPU_OP_REPORT:
        return gpu_provoke(o->error) ? -1 : gpu_sync();
    case GPU_OP_HOARD:
        return hoard(a, 1);
    case GPU_OP_LEAVE:
        return hoard(a, 0);
    case GPU_OP_ENDLESS:
        return run_for_ever(o);
    case GPU_OP_STOPPABLE:
        return run_until_told(t, a);
    case GPU_OP_BUSY:
        return keep_busy(a, o->ns);
    case GPU_OP_LONG:
        return wait_long(a, o->ns);
    case GPU_OP_STORM:
        return work_in_storm(a);
    case GPU_OP_COPY:
        return compare_copies(a, o, gpud_task_size(t));
    case GPU_OP_PIN:
        return pin_and_copy(a, obey, o->size);
    default:
        return -1;
    }
}

int gpu_process(gpud_task *t, void *state)
{
    struct gpu_order o;
    struct gpu_answer a = { .pid = (int32_t)getpid() };
    char text[160];
    int error;

    if (gpud_task_size(t) < sizeof(o))
        return -1;
    memcpy(&o, gpud_task_data(t), sizeof(o));
    a.value[3] = gpu_left(0); /* what the task before has left behind */
    error = obey_order(t, state, o.op == GPU_OP_COPY ? gpud_task_data(t) : &o, &a);
    a.error = error;
    if (gpud_task_result_set(t, &a, sizeof(a)))
        return -1;
    if (!error)
        return 0;
    (void)snprintf(text, sizeof(text), "%s (%d)", gpu_error(error), error);
    return gpud_task_fail(t, error, text);
}
