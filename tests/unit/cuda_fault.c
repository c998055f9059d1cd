/* SPDX-License-Identifier: MIT */
/* cuda_fault.c - the look after a task: what CUDA says then, and whom it is charged to. */
#include "cuda_scene.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "worker/worker.h"

/* After each sticky error one task has failed, with its name, and the next life is fine. */
T_CASE(sticky_errors)
{
    static const struct {
        int code;
        const char *name;
    } sticky[] = {
        { 226, "Contained" }, { 700, "IllegalAddress" }, { 702, "LaunchTimeout" }, { 710,
          "Assert" }, { 714, "HardwareStackError" },
        { 715, "IllegalInstruction" }, { 716, "MisalignedAddress" }, { 717,
          "InvalidAddressSpace" }, { 718, "InvalidPc" }, { 719, "LaunchFailure" },
        { 721, "TensorMemoryLeak" }, { 810, "MpsClientTerminated" }, { 911, "ExternalDevice" },
        { 214, "ECCUncorrectable" }, { 220, "NvlinkUncorrectable" }, { 709,
          "ContextIsDestroyed" }, { 999, "Unknown" }, { 4, "CudartUnloading" },
        { 12345, NULL }, /* unknown to us: the context does not come back */
    };
    struct c_scene s;
    char kernel[32], name[64];
    struct gpi_ending e;

    c_open(&s, "gpus 1\n", "0");
    for (size_t i = 0; i < sizeof(sticky) / sizeof(*sticky); i++) {
        c_start_well(&s);
        T_EQ(c_run(&s, PLAIN, "").code, 0);
        snprintf(kernel, sizeof(kernel), "fails_%d", sticky[i].code);
        snprintf(name, sizeof(name), "cudaError%s (%d)", sticky[i].name, sticky[i].code);
        c_put(&s, LAUNCH, kernel, GPI_NEVER);
        c_put(&s, PLAIN, "", GPI_NEVER); /* sent ahead */
        c_ring(&s);
        T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
        e = c_ending_of(&s, s.number - 1);
        T_EQ(e.end, GPI_END_FAILED);
        T_EQ(e.code, GPUD_EDEVICE);
        T_CHECK(e.has_text);
        c_says(c_text_of(&s, s.number - 1),
               sticky[i].name ? name : "CUDA_ERROR_OF_THE_FAKE (12345)");
        T_EQ(s.page->fault, sticky[i].code);
        T_TEXT(s.page->fault_text, c_text_of(&s, s.number - 1));
        /* C2: not touched */
        T_EQ(s.page->cell[s.number % GPI_CELLS].claim, gpi_claim_word(s.number, GPI_SENT));
    }
    c_start_well(&s);
    T_EQ(c_run(&s, LAUNCH, "plain").code, 0);
    T_EQ(s.page->fault, 0);
    c_close(&s);
}

/* "Not sticky" is decided by the context, which works on. */
T_CASE(errors_that_pass)
{
    struct c_scene s;
    struct gpi_ending e;

    c_open(&s, "gpu 0 fail cuCtxSynchronize 720*1\n", "0");
    c_start_well(&s);
    e = c_run(&s, PLAIN, "");
    T_EQ(e.code, GPUD_EDEVICE);
    c_says(c_text_of(&s, s.number), "cudaErrorCooperativeLaunchTooLarge (720)");
    for (int i = 0; i < 3; i++)
        T_EQ(c_run(&s, PLAIN, "").code, 0);
    T_EQ(s.page->fault, 0);
    c_close(&s);
}

/* What process met and lived with is no later task's: not in a runtime that is a shared object,
 * loaded when it likes, nor in a linked one that setup has named. */
T_CASE(pending_errors_are_taken)
{
    struct c_scene s;

    for (int linked = 0; linked < 2; linked++) {
        c_open(&s, "gpus 1\n", "0");
        c_with.runtime = !linked;
        c_with.linked = linked;
        c_start_well(&s);
        t_word_set(PENDING, 99);
        T_EQ(c_run(&s, LEAVE_PENDING, "").code, 0);
        T_EQ(t_word(PENDING), 0);
        for (int i = 0; i < 3; i++) {
            t_word_set(PENDING, 99);
            T_EQ(c_run(&s, LEAVE_PENDING, "").code, 0);
            T_EQ(t_word(PENDING), 0);
        }
        c_close(&s);
    }
}

T_CASE(full_memory_is_no_fault)
{
    struct c_scene s;

    c_open(&s, "gpu 0 memory=8GiB\n", "0");
    c_start_well(&s);
    for (int i = 0; i < 3; i++)
        T_EQ(c_run(&s, FULL, "").code, 0);
    T_EQ(s.page->incarnation, 1);
    c_close(&s);
}

T_CASE(own_failure_keeps_its_words)
{
    struct c_scene s;
    struct gpi_ending e;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    c_put(&s, LAUNCH_AND_FAIL, "fails_700", GPI_NEVER);
    c_ring(&s);
    T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
    e = c_ending_of(&s, s.number);
    T_EQ(e.code, 7);
    T_TEXT(
        c_text_of(&s, s.number),
        "its own words (cudaErrorIllegalAddress (700): an illegal memory access was encountered)");
    c_start_well(&s);
    c_put(&s, LAUNCH_AND_RETURN, "fails_719", GPI_NEVER);
    c_ring(&s);
    T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(c_ending_of(&s, s.number).code, GPUD_EDEVICE);
    c_says(c_text_of(&s, s.number), "cudaErrorLaunchFailure (719)");
    c_close(&s);
}

/* All that ran in the call, but those that had failed by themselves. */
T_CASE(batch_shares_the_fault)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    s.page->max_batch = 3;
    c_start_well(&s);
    c_put(&s, PLAIN, "", GPI_NEVER);
    c_put(&s, LAUNCH_AND_FAIL, "plain", GPI_NEVER);
    c_put(&s, LAUNCH, "fails_700", GPI_NEVER);
    c_put(&s, PLAIN, "", GPI_NEVER); /* the next batch */
    c_ring(&s);
    T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(c_ending_of(&s, 1).code, GPUD_EDEVICE);
    c_says(c_text_of(&s, 1), "cudaErrorIllegalAddress (700)");
    T_EQ(c_ending_of(&s, 2).code, 7);
    c_says(c_text_of(&s, 2), "its own words (cudaErrorIllegalAddress (700)");
    T_EQ(c_ending_of(&s, 3).code, GPUD_EDEVICE);
    T_EQ(s.page->cell[4].claim, gpi_claim_word(4, GPI_SENT));
    c_close(&s);
}

T_CASE(fault_on_another_device)
{
    struct c_scene s;

    c_open(&s, "gpus 2\n", "01");
    c_start_well(&s);
    c_put(&s, LAUNCH_ON_SECOND, "fails_716", GPI_NEVER);
    c_ring(&s);
    T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
    c_says(c_text_of(&s, s.number), "cudaErrorMisalignedAddress (716)");
    c_close(&s);
}

/* The device's work is the task's: its end is not told before. */
T_CASE(task_lasts_as_long_as_its_kernel)
{
    struct c_scene s;
    struct gpi_ending e;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    e = c_run(&s, LAUNCH, "takes_50000");
    T_CMP(e.ended_at - e.started_at, >=, T_MS(50));
    s.page->cuda = GPUD_CUDA_NO_CHECK;
    e = c_run(&s, LAUNCH, "takes_2000000");
    T_CMP(e.ended_at - e.started_at, <, T_S(2));
    c_close(&s);
}

/* The look waits for a kernel that never ends; only death ends it. */
T_CASE(endless_kernel_is_killed_in_the_look)
{
    struct c_scene s;

    c_open(&s, "gpu 0 hang kernel\n", "0");
    c_start_well(&s);
    c_put(&s, LAUNCH, "plain", T_MS(20));
    c_ring(&s);
    t_pass(T_MS(100));
    T_CHECK(!c_has_ended(&s));
    t_kill(s.worker, SIGKILL);
    T_CHECK(WIFSIGNALED(c_reap(&s)));
    T_CHECK(!c_has_ended(&s));
    c_close(&s);
}
