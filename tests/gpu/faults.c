/* SPDX-License-Identifier: MIT */
/* faults.c - errors of CUDA: which cost a worker, which do not, and that each costs its own task
 * only. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

/* What a stack does that has no end is not known: it may take for ever. */
#define BAD_LIMIT T_S(10)

/* Good, bad, good on one worker: gives the bad one's event.  The log is freed by the caller. */
static const struct gpud_event *provoke(struct t_log *log, gpud_dispatcher *d, uint32_t op,
                                        int error)
{
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_SUM), 0);
    gpu_submit(d, 1, GPU_ORDER(.op = op, .error = error), BAD_LIMIT);
    gpu_submit(d, 2, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, log, 3);
    (void)gpu_answer_of(log, 0);
    (void)gpu_answer_of(log, 2);
    return t_check_outcome(__FILE__, __LINE__, log, 1, 0);
}

/* A sticky error is charged to the task that made it, by its name and number; the worker is
 * replaced; the next task is fine on the same GPU.  C2 */
static void check_sticky(uint32_t op, int error, const char *words)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    const struct gpud_event *bad, *next;
    char name[64];

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1);
    bad = provoke(&log, d, op, error);
    next = T_OUTCOME(&log, 2, SUCCESS);
    T_EQ(bad->outcome, GPUD_OUTCOME_ERROR);
    T_EQ(bad->code, op == GPU_OP_REPORT ? error : GPUD_EDEVICE);
    if (!strstr(bad->text, words))
        T_FAIL("the text is \"%s\": it does not have \"%s\"", bad->text, words);
    T_EQ(bad->incarnation, 1);
    T_EQ(next->incarnation, 2);
    T_EQ(t_stats(d).crashed, 0);
    (void)snprintf(name, sizeof(name), "sticky_%d%s_to_next_task", error,
                   op == GPU_OP_REPORT ? "_reported" : "");
    gpu_result(name, (double)(next->started_at - bad->ended_at) / 1e6, "ms");
    gpu_readings_end();
    t_end(&d, &log);
}

/* process returns before the kernel has run: the check after the task finds it. */
T_LONG_CASE(illegal_address, 90)
{
    check_sticky(GPU_OP_PROVOKE, GPU_ILLEGAL_ADDRESS, "cudaErrorIllegalAddress (700)");
}

T_LONG_CASE(device_assert, 90)
{
    check_sticky(GPU_OP_PROVOKE, GPU_ASSERT, "cudaErrorAssert (710)");
}

T_LONG_CASE(launch_failure, 90)
{
    check_sticky(GPU_OP_PROVOKE, GPU_LAUNCH_FAILURE, "cudaErrorLaunchFailure (719)");
}

T_LONG_CASE(misaligned_address, 90)
{
    check_sticky(GPU_OP_PROVOKE, GPU_MISALIGNED, "cudaErrorMisalignedAddress (716)");
}

/* process finds the error itself and fails the task with its own text; the library's follows, and
 * the worker goes all the same. */
T_LONG_CASE(illegal_address_reported, 90)
{
    check_sticky(GPU_OP_REPORT, GPU_ILLEGAL_ADDRESS,
                 "cudaErrorIllegalAddress (700) (cudaErrorIllegalAddress (700)");
}

/* What these kernels make depends on chip and compiler: any sticky error will do, and is recorded.
 */
static void check_any_sticky(int wanted, const char *name)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    const struct gpud_event *bad;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1);
    bad = provoke(&log, d, GPU_OP_REPORT, wanted);
    gpu_result(name, bad->outcome == GPUD_OUTCOME_ERROR ? bad->code : 0, "code");
    if (bad->outcome == GPUD_OUTCOME_ERROR)
        T_EQ(T_OUTCOME(&log, 2, SUCCESS)->incarnation, 2);
    gpu_readings_end();
    t_end(&d, &log);
}

T_LONG_CASE(address_space, 90)
{
    check_any_sticky(GPU_ADDRESS_SPACE, "code_of_atomic_in_local_memory");
}

T_LONG_CASE(bad_jump, 90)
{
    check_any_sticky(GPU_PC, "code_of_jump_to_nowhere");
}

T_LONG_CASE(jump_into_data, 90)
{
    check_any_sticky(GPU_INSTRUCTION, "code_of_jump_into_data");
}

T_LONG_CASE(stack_overflow, 90)
{
    check_any_sticky(GPU_STACK, "code_of_endless_recursion");
}

/* Out of memory is an answer: the worker stays, and the next task is fine. */
T_LONG_CASE(out_of_memory, 90)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpu_answer a;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1);
    (void)provoke(&log, d, GPU_OP_HOARD, 0);
    a = gpu_answer_of(&log, 1);
    T_EQ(a.value[0], GPU_OUT_OF_MEMORY);
    T_EQ(a.value[1], GPU_OUT_OF_MEMORY);
    T_EQ(T_OUTCOME(&log, 2, SUCCESS)->incarnation, 1);
    T_EQ(gpu_answer_of(&log, 2).value[3], 0);
    gpu_readings_end();
    t_end(&d, &log);
}

/* The same left undrained by process: the check after the task takes it, and no later task meets
 * it. */
T_LONG_CASE(out_of_memory_left_behind, 90)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1);
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_LEAVE), 0);
    gpu_submit(d, 1, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, &log, 2);
    T_EQ(gpu_answer_of(&log, 0).value[0], GPU_OUT_OF_MEMORY);
    if (!gpu_rehearsed())
        T_EQ(gpu_answer_of(&log, 1).value[3], 0);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->incarnation, 1);
    gpu_readings_end();
    t_end(&d, &log);
}
