/* SPDX-License-Identifier: MIT */
/* cuda_canary.c - the canary before setup, or alone: what it finds out, and what is told of it;
 * fakes that boot and fail. */
#include "cuda_scene.h"

#include "gpudispatch/device.h"
#include "worker/worker.h"

T_CASE(canary_comes_before_setup)
{
    struct c_scene s;

    c_open(&s, "gpus 2\n", "10");
    s.page->canary = GPI_CANARY_FIRST;
    c_start_well(&s);
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CONTEXTS), 1); /* the second device's is gone */
    c_close(&s);

    c_open(&s, "gpus 2\ngpu 1 canary=fail\n", "01");
    s.page->canary = GPI_CANARY_FIRST;
    c_says(c_refused(&s), "canary on " C_UUID("1") ": wrong result: word 512 is ");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    T_TEXT(s.page->canary_text, s.page->setup_text);
    c_close(&s);
}

T_CASE(canary_meets_a_fault)
{
    struct c_scene s;

    c_open(&s, "gpu 0 fail kernel 719\n", "0");
    s.page->canary = GPI_CANARY_FIRST;
    c_says(c_refused(&s), "the kernel: cudaErrorLaunchFailure (719)");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    c_close(&s);
    c_open(&s, "gpu 0 memory=1GiB used=100%\n", "0");
    s.page->canary = GPI_CANARY_FIRST;
    c_says(c_refused(&s), "cudaErrorMemoryAllocation (2)");
    c_close(&s);
}

/* A driver that cannot translate says nothing of the device. */
T_CASE(canary_without_translation)
{
    static const char *const scripts[] = { "gpu 0 fail cuModuleLoadData 221\n",
                                           "gpu 0 fail cuModuleLoadData 223\n",
                                           "gpu 0 fail cuModuleLoadData 222\n" };
    struct c_scene s;

    for (int i = 0; i < 3; i++) {
        c_open(&s, scripts[i], "0");
        s.page->canary = GPI_CANARY_FIRST;
        c_start_well(&s);
        T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
        c_close(&s);
    }
}

static void canary_alone(struct c_scene *s, uint32_t done)
{
    s->page->canary = GPI_CANARY_ONLY;
    t_word_set(SETUPS, 0);
    c_start(s);
    T_EQ(c_exit_status(s), 0);
    T_EQ(t_word(SETUPS), 0);
    T_EQ(s->page->setup_done, 0);
    T_EQ(s->page->canary_done, done);
}

T_CASE(canary_alone_ends_the_worker)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    canary_alone(&s, GPI_CANARY_PASSED);
    c_close(&s);
    c_open(&s, "gpu 0 canary=fail\n", "0");
    canary_alone(&s, GPI_CANARY_FAILED);
    c_says(s.page->canary_text, "canary: wrong result");
    c_close(&s);
    c_open(&s, "gpu 0 lost\n", "0");
    s.page->canary = GPI_CANARY_ONLY;
    c_says(c_refused(&s), "cudaErrorNoDevice (100)"); /* it could not be opened */
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    T_TEXT(s.page->canary_text, s.page->setup_text);
    c_close(&s);
}

T_CASE(fakes_boot_and_fail_as_told)
{
    struct c_scene s;
    uint64_t began;

    c_open(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_FAKE;
    s.page->fake_boot = T_MS(150);
    s.page->canary = GPI_CANARY_FIRST;
    began = t_now();
    c_start_well(&s);
    T_CMP(t_now() - began, >=, T_MS(150));
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CALLS), 0); /* no driver */
    T_EQ(c_run(&s, NO_STREAM, "").code, GPUD_ENOTSUP);
    c_close(&s);
    c_open(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_FAKE;
    s.page->fake_fails = 1;
    s.page->canary = GPI_CANARY_FIRST;
    c_says(c_refused(&s), "failed by the script of this fake device");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    canary_alone(&s, GPI_CANARY_FAILED);
    c_close(&s);
}
