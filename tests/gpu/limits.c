/* SPDX-License-Identifier: MIT */
/* limits.c - kernels that do not end, workers that are killed under them, and what the others see.
 */
#include "gpu.h"

#include <signal.h>
#include <stdio.h>

enum { LIMIT_MS = 1000, GRACE_MS = 500, HOARD_MIB = 1024, NEIGHBOURS = 3, PATIENCE_S = 60 };

#define MIB ((uint64_t)1 << 20)

static double ms(uint64_t from, uint64_t to)
{
    return (double)(int64_t)(to - from) / 1e6;
}

/* Reads the GPU's memory until less than `below` is in use, taking in events meanwhile; when that
 * was. */
static uint64_t wait_for_memory(gpud_dispatcher *d, struct t_log *log, uint64_t below)
{
    uint64_t end = t_now() + T_S(PATIENCE_S);

    while (gpu_memory_used() >= below) {
        (void)t_poll(d, log, 0);
        if (t_now() > end)
            T_FAIL("the memory of a dead worker is not back after %d s", PATIENCE_S);
    }
    return t_now();
}

/* A kernel that never ends is killed with its worker at limit and grace; its memory comes back, the
 * successor passes its canary, and the next task is fine. C6 C8 */
T_LONG_CASE(endless_kernel, 180)
{
    struct t_log log = { 0 };
    const struct gpud_event *bad, *next;
    uint64_t during, back;
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1, .grace = T_MS(GRACE_MS));
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, &log, 1);
    gpu_submit(d, 1, GPU_ORDER(.op = GPU_OP_ENDLESS, .size = HOARD_MIB * MIB), T_MS(LIMIT_MS));
    gpu_submit(d, 2, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_word_wait(0, 1);
    during = gpu_memory_used();
    back = gpu_rehearsed() ? t_now() : wait_for_memory(d, &log, during - HOARD_MIB * MIB / 2);
    t_collect(d, &log, 3);
    bad = T_OUTCOME(&log, 1, TIMEOUT);
    next = T_OUTCOME(&log, 2, SUCCESS);
    (void)gpu_answer_of(&log, 2);
    T_EQ(bad->phase, GPUD_PHASE_HARD);
    T_EQ(next->incarnation, 2);
    T_CMP(bad->ended_at - bad->started_at, >=, T_MS(LIMIT_MS + GRACE_MS));
    gpu_result("endless_kernel_killed_after_limit_and_grace",
               ms(bad->started_at, bad->ended_at) - LIMIT_MS - GRACE_MS, "ms");
    gpu_result("endless_kernel_memory_back", ms(bad->ended_at, back), "ms");
    gpu_result("endless_kernel_to_next_task", ms(bad->ended_at, next->started_at), "ms");
    gpu_result("setup_with_canary", (double)t_slot(d, 0).setup_time / 1e6, "ms");
    gpu_readings_end();
    t_end(&d, &log);
}

/* gpud_cuda_stream_sync ends at the limit; a task that then stops its kernel keeps worker and
 * context. C6 */
T_LONG_CASE(kernel_that_can_be_told, 90)
{
    struct t_log log = { 0 };
    const struct gpud_event *late;
    const struct gpu_answer *a;
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1, .grace = T_S(20));
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_SUM), 0);
    gpu_submit(d, 1, GPU_ORDER(.op = GPU_OP_STOPPABLE), T_MS(LIMIT_MS));
    gpu_submit(d, 2, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, &log, 3);
    late = T_OUTCOME(&log, 1, TIMEOUT);
    T_EQ(late->phase, GPUD_PHASE_PROCESS);
    T_EQ(late->result_size, sizeof(*a));
    a = late->result;
    T_EQ(a->error, 0);
    T_EQ(a->value[1], GPUD_ETIMEOUT);
    (void)gpu_answer_of(&log, 2);
    T_EQ(T_OUTCOME(&log, 2, SUCCESS)->incarnation, 1);
    gpu_result("stream_sync_returns_after_limit", a->value[0], "ms");
    gpu_readings_end();
    t_end(&d, &log);
}

/* Gives the slot that runs a task. */
static unsigned slot_of(gpud_dispatcher *d, uint64_t task_id)
{
    for (unsigned slot = 0; slot <= NEIGHBOURS; slot++)
        if (t_slot(d, slot).task_id == task_id)
            return slot;
    T_FAIL("no slot runs the endless task");
}

/* One of four workers on a GPU is killed under its kernel: the others' kernels go on, and so do
 * their tasks. C2 */
T_LONG_CASE(one_of_four_is_killed, 180)
{
    struct t_log log = { 0 };
    double longest = 0, mean = 0;
    gpud_dispatcher *d;
    struct t_proc victim;
    uint64_t id;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(NEIGHBOURS + 1), .sent_ahead = 1);
    t_wait_ready(d, NEIGHBOURS + 1);
    for (uint64_t tag = 0; tag < NEIGHBOURS; tag++)
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_BUSY, .ns = T_S(3)), 0);
    id = t_submit(d, T_TASK(.tag = NEIGHBOURS, .data = GPU_ORDER(.op = GPU_OP_ENDLESS, .size = MIB),
                            .size = sizeof(struct gpu_order)));
    t_word_wait(0, 1);
    victim = t_worker(d, slot_of(d, id));
    t_kill(victim.pid, SIGKILL);
    gpu_submit(d, NEIGHBOURS + 1, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, &log, NEIGHBOURS + 2);
    (void)T_OUTCOME(&log, NEIGHBOURS, CRASHED);
    (void)gpu_answer_of(&log, NEIGHBOURS + 1);
    for (uint64_t tag = 0; tag < NEIGHBOURS; tag++) {
        struct gpu_answer a = gpu_answer_of(&log, tag);

        longest = a.value[0] > longest ? a.value[0] : longest;
        mean += a.value[1] / NEIGHBOURS;
    }
    gpu_result("neighbour_killed_mean_of_1_ms_kernels", mean, "ms");
    gpu_result("neighbour_killed_longest_1_ms_kernel", longest, "ms");
    gpu_readings_end();
    t_end(&d, &log);
}
