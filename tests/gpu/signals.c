/* SPDX-License-Identifier: MIT */
/* signals.c - SIGALRM while the driver makes a context and allocates. */
#include "gpu.h"

/* Ten thousand signals a second, at the thread that is inside the driver: every call still
 * succeeds. */
T_LONG_CASE(alarms_during_context_creation, 180)
{
    enum { TASKS = 3 };
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    double signals = 0, slowest = 0;

    gpu_begin();
    /* NO_BIND: the context is made inside process, where SIGALRM comes through; a new worker for
     * each would be too slow. */
    d = T_CREATE(.devices = gpu_devices(TASKS), .sent_ahead = 1,
                 .cuda = GPUD_CUDA_NO_BIND | GPUD_CUDA_NO_CHECK);
    t_wait_ready(d, TASKS);
    for (uint64_t tag = 0; tag < TASKS; tag++)
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_STORM), T_S(100));
    t_collect(d, &log, TASKS);
    for (uint64_t tag = 0; tag < TASKS; tag++) {
        struct gpu_answer a = gpu_answer_of(&log, tag);

        T_CMP(a.value[0], >, 0);
        T_EQ(T_OUTCOME(&log, tag, SUCCESS)->incarnation, 1);
        signals += a.value[0];
        slowest = a.value[1] > slowest ? a.value[1] : slowest;
    }
    gpu_result("alarm_storm_signals", signals, "signals");
    gpu_result("alarm_storm_context", slowest, "ms");
    gpu_readings_end();
    t_end(&d, &log);
}

/* A limit that passes inside the driver: the signal of the library itself, every 50 ms. The task is
 * late, and nothing else happens to it. */
T_LONG_CASE(limit_passes_inside_the_driver, 180)
{
    struct t_log log = { 0 };
    const struct gpu_answer *a;
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1, .grace = T_S(100),
                 .cuda = GPUD_CUDA_NO_BIND);
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_STORM), T_MS(1));
    gpu_submit(d, 1, GPU_ORDER(.op = GPU_OP_SUM), 0);
    t_collect(d, &log, 2);
    a = T_OUTCOME(&log, 0, TIMEOUT)->result;
    T_CHECK(a);
    T_EQ(a->error, 0);
    (void)gpu_answer_of(&log, 1);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->incarnation, 1);
    gpu_readings_end();
    t_end(&d, &log);
}
