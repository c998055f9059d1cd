/* SPDX-License-Identifier: MIT */
/*
 * cuda.c - GPUs from option devices to the tasks that ran on them: found through a fake
 * libnvidia-ml.so.1, used through a fake libcuda.so.1, both by one script. This program's rpath
 * leads to them, in host, keepers and workers.
 */
#include "kernel.h"
#include "scripted.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SETUPS, STARTED, STOP, CUDA_LOADED };
enum { PLAIN, FAULT, ENDLESS, AWAITED, SURROUNDINGS, MEMORY };

typedef int memory_alloc_fn(unsigned long long *ret_at, size_t size);

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    (void)t_word_add(SETUPS);
    return 0;
}

/* "visible|order|the worker's devices" */
static int tell_surroundings(gpud_task *t)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    gpud_worker *w = gpud_task_worker(t);
    char text[1024];
    int n =
        snprintf(text, sizeof(text), "%s|%s|", visible ? visible : "none", order ? order : "none");

    for (uint32_t i = 0; i < gpud_worker_device_count(w); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i ? "," : "",
                      gpud_worker_device_uuid(w, i));
    return gpud_task_result_set(t, text, (size_t)n + 1);
}

/* In a memory that all see: whoever sets STOP ends the kernel. */
static int *stop_word(void)
{
    return (int *)(uintptr_t)&t_page->words[STOP];
}

static int process(gpud_task *t, void *state)
{
    unsigned long long at;

    (void)state;
    switch (gpud_task_tag(t) >> 32) {
    case FAULT:
        t_launch(gpud_task_data(t), NULL);
        return 0;
    case ENDLESS: /* process itself does not wait for it */
        t_launch("endless", stop_word());
        (void)t_word_add(STARTED);
        return 0;
    case AWAITED:
        t_launch("endless", stop_word());
        (void)t_word_add(STARTED);
        int r = gpud_cuda_stream_sync(t, T_STREAM);
        t_word_set(STOP, 1);
        T_EQ(gpud_cuda_stream_sync(t, T_STREAM), 0);
        return r;
    case SURROUNDINGS:
        return tell_surroundings(t);
    case MEMORY:
        T_CUDA(memory_alloc_fn, "cuMemAlloc_v2", &at, (size_t)4 << 30);
        return 0;
    default:
        t_word_set(CUDA_LOADED, t_cuda("cuInit") != NULL);
        return 0;
    }
}

/* ---- the host ---- */

/* Before gpud_init: the spawner takes it along. */
static void machine(const char *script)
{
    char path[1100];

    if (!getenv("GPUD_WORKER")) { /* executed: what the host has laid out is there */
        T_CHECK(getcwd(path, 1024));
        strcat(path, "/machine");
        t_write_script(path, script);
        T_EQ(setenv("FAKE_SCRIPT", path, 1), 0);
    }
    t_init(setup, process, NULL);
}

static void end(gpud_dispatcher **d, struct t_log *log)
{
    t_end(d, log);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
    T_CHECK(t_cuda("cuInit") == NULL); /* C14: the host has not even loaded it */
}

static void submit(gpud_dispatcher *d, uint64_t tag, const char *kernel)
{
    T_SUBMIT(d, .tag = tag, .data = kernel, .size = kernel ? strlen(kernel) + 1 : 0,
             .limit = tag >> 32 == PLAIN ? GPUD_NEVER : 0);
}

static void says(const char *text, const char *part)
{
    if (!strstr(text, part))
        T_FAIL("\"%s\" does not say \"%s\"", text, part);
}

/* The last outcome may come before the host hears that its worker has exited. */
static int two_were_replaced(void *d)
{
    return t_slot(d, 0).incarnation + t_slot(d, 1).incarnation >= 4;
}

/* The fault is the task's that caused it, with its name; what was sent behind it, and all others,
 * succeed. [C2] [C9] */
T_CASE(a_fault_costs_one_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    machine("gpus 2\n");
    d = T_CREATE(.devices = "all", .canary_backoff = T_MS(1));
    t_wait_ready(d, 2);
    for (unsigned i = 0; i < 24; i++)
        submit(d, T_TAG(i == 7 || i == 8 ? FAULT : PLAIN, i), i == 7 ? "fails_700" : "fails_719");
    t_collect(d, &log, 24);
    for (unsigned i = 0; i < 24; i++)
        if (i != 7 && i != 8)
            (void)T_OUTCOME(&log, T_TAG(PLAIN, i), SUCCESS);
    T_EQ(T_OUTCOME(&log, T_TAG(FAULT, 7), ERROR)->code, GPUD_EDEVICE);
    says(T_OUTCOME(&log, T_TAG(FAULT, 7), ERROR)->text,
         "cudaErrorIllegalAddress (700): an illegal memory access was encountered");
    says(T_OUTCOME(&log, T_TAG(FAULT, 8), ERROR)->text, "cudaErrorLaunchFailure (719)");
    t_wait_until("each fault has cost a life", two_were_replaced, d);
    t_wait_ready(d, 2);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
}

/* Each worker has its own GPU, whatever order CUDA has, and finds it by UUID before any code of the
 * user's; fakes look alike; CPU slots have what the host has. [T15] */
T_CASE(who_sees_what)
{
    static const char *const lists[] = { "2,0", "fake:2", "cpu:2" };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    if (!getenv("GPUD_WORKER"))
        T_EQ(setenv("CUDA_VISIBLE_DEVICES", "2,1,0", 1), 0); /* the host's: what indices count */
    machine("gpu 0 cuda=2\ngpu 1 cuda=0\ngpu 2 cuda=1\n");
    for (int i = 0; i < 3; i++) {
        const struct gpud_event *e;
        char expected[512];
        d = T_CREATE(.devices = lists[i], .devices_per_worker = 2);
        submit(d, T_TAG(SURROUNDINGS, i), NULL);
        t_collect(d, &log, 1);
        e = T_OUTCOME(&log, T_TAG(SURROUNDINGS, i), SUCCESS);
        if (i < 2) {
            const char *devices = strrchr(e->result, '|') + 1;
            (void)snprintf(expected, sizeof(expected), "%s|PCI_BUS_ID|%s", devices, devices);
            T_CHECK(strlen(devices) == 81 && strncmp(devices, "GPU-", 4) == 0);
        } else {
            (void)snprintf(expected, sizeof(expected), "2,1,0|none|cpu:0,cpu:1");
        }
        T_TEXT(e->result, expected);
        t_destroy(&d, &log);
        memset(&log, 0, sizeof(log));
    }
    T_OK(gpud_fini());
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

/* The library's variables are refused where it sets them, and a user's elsewhere. */
T_CASE(env_names_what_is_ours)
{
    static const char *const env[] = { "A=1", "CUDA_VISIBLE_DEVICES=7", NULL }, *const order[] = {
        "CUDA_DEVICE_ORDER", NULL
    };
    struct gpud_error e = { .struct_size = sizeof(e) };
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;

    machine("gpus 1\n");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "fake:1", .env = env), &e), EINVAL);
    T_TEXT(e.field, "env");
    says(e.text, "env[1], \"CUDA_VISIBLE_DEVICES=7\"");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "cpu:1,all", .env = order), &e), EINVAL);
    says(e.text, "env[0], \"CUDA_DEVICE_ORDER\"");
    d = T_CREATE(.devices = "cpu:1", .env = env);
    submit(d, T_TAG(SURROUNDINGS, 1), NULL);
    t_collect(d, &log, 1);
    T_TEXT(T_OUTCOME(&log, T_TAG(SURROUNDINGS, 1), SUCCESS)->result, "7|none|cpu:0");
    end(&d, &log);
}

/* No worker on CPU slots loads the driver. [C14] */
T_CASE(cpu_slots_load_nothing)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    machine("gpus 1\n");
    t_word_set(CUDA_LOADED, 7);
    d = T_CREATE(.devices = "cpu:1");
    submit(d, T_TAG(PLAIN, 1), NULL);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, T_TAG(PLAIN, 1), SUCCESS);
    T_EQ(t_word(CUDA_LOADED), 0);
    end(&d, &log);
}

/* A setup failure with the driver's word, before any code of the user's; a mended driver is taken
 * up. */
T_CASE(a_driver_that_does_not_start)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    machine("gpus 1\ndriver fail cuInit 802\nwhen mended driver mend cuInit\n");
    d = T_CREATE(.devices = "all", .failures_in_a_row = 1000, .backoff = T_MS(5),
                 .backoff_cap = T_MS(20));
    submit(d, T_TAG(PLAIN, 1), NULL);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 2);
    T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 1)->code, GPUD_EDEVICE);
    says(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 1)->text, "cudaErrorSystemNotReady (802)");
    T_EQ(t_word(SETUPS), 0);
    t_trigger("mended");
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, T_TAG(PLAIN, 1), SUCCESS);
    end(&d, &log);
}

/* Process has long come back, its kernel never ends: the task is TIMEOUT (hard), the canary comes
 * first in the next life. [T7] */
T_CASE(an_endless_kernel_is_killed)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    machine("gpus 1\n");
    d = T_CREATE(.devices = "gpu:0", .task_limit = T_MS(50), .grace = T_MS(100));
    t_wait_ready(d, 1);
    submit(d, T_TAG(ENDLESS, 1), NULL);
    submit(d, T_TAG(PLAIN, 2), NULL);
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(ENDLESS, 1), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(T_OUTCOME(&log, T_TAG(PLAIN, 2), SUCCESS)->incarnation, 2);
    T_EQ(t_stats(d).canaries, 1);
    T_EQ(t_stats(d).canary_failures, 0);
    end(&d, &log);
}

/* The canary after a kill computes wrong: no task until two in a row are right. */
T_CASE(a_canary_keeps_the_device_out)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    machine("gpu 0 canary=fail*1\n");
    d = T_CREATE(.devices = "gpu:0", .task_limit = T_MS(50), .grace = T_MS(50),
                 .canary_backoff = T_MS(1));
    submit(d, T_TAG(ENDLESS, 1), NULL);
    submit(d, T_TAG(PLAIN, 2), NULL);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(ENDLESS, 1), TIMEOUT)->phase, GPUD_PHASE_HARD);
    (void)T_OUTCOME(&log, T_TAG(PLAIN, 2), SUCCESS);
    says(t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_QUARANTINED)->text,
         "wrong result: word 512 is ");
    T_EQ(t_stats(d).canaries, 3);
    T_EQ(t_stats(d).canary_failures, 1);
    T_EQ(t_word(SETUPS), 2);
    end(&d, &log);
}

/* Awaited with the library's call, the same kernel costs a TIMEOUT and nothing else. */
T_CASE(an_awaited_kernel_is_not)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    machine("gpus 1\n");
    d = T_CREATE(.devices = "gpu:0", .task_limit = T_MS(50), .grace = T_S(30));
    t_wait_ready(d, 1);
    submit(d, T_TAG(AWAITED, 1), NULL);
    submit(d, T_TAG(PLAIN, 2), NULL);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(AWAITED, 1), TIMEOUT)->phase, GPUD_PHASE_PROCESS);
    T_EQ(T_OUTCOME(&log, T_TAG(PLAIN, 2), SUCCESS)->incarnation, 1);
    T_EQ(t_word(SETUPS), 1);
    end(&d, &log);
}

static int was_read(void *d)
{
    return t_device(d, "gpu:0").sampled_at > 0;
}

/* The successor waits until what the dead one held is back. [C8] [T17] */
T_CASE(memory_comes_back_first)
{
    struct t_log log = { 0 };
    struct gpud_slot_stats s;
    uint64_t died;
    gpud_dispatcher *d;

    (void)mkdir("machine.held", 0700); /* a worker that is executed comes by here, too */
    machine("gpu 0 memory=16GiB late=400ms\n");
    d = T_CREATE(.devices = "all");
    t_wait_ready(d, 1);
    t_wait_until("a reading", was_read, d); /* what was free before the first life is not known */
    submit(d, T_TAG(FAULT, 2), "fails_700");
    submit(d, T_TAG(MEMORY, 1), NULL);
    submit(d, T_TAG(FAULT, 3), "fails_700");
    t_collect(d, &log, 3);
    died = T_OUTCOME(&log, T_TAG(FAULT, 3), ERROR)->ended_at;
    submit(d, T_TAG(PLAIN, 3), NULL);
    t_collect(d, &log, 4);
    T_CMP(T_OUTCOME(&log, T_TAG(PLAIN, 3), SUCCESS)->started_at - died, >=, T_MS(400));
    s = t_slot(d, 0);
    T_EQ(s.incarnation, 3);
    end(&d, &log);
}
