/* SPDX-License-Identifier: MIT */
/* cuda_stream.c - limits on a GPU: one alarm, and a wait for a stream that ends at the limit and at
 * a cancel. */
#include "cuda_scene.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "gpudispatch/device.h"
#include "worker/worker.h"

/* On a GPU one signal, and calls go on; on a CPU slot there is another every 50 ms. */
T_CASE(one_alarm_on_gpus)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    c_put(&s, BLOCK, "", T_MS(100));
    c_ring(&s);
    c_wait_for(&s, "the end of a task", c_has_ended);
    T_EQ(t_word(FLAGS), 1);
    T_EQ(t_word(SIGNALS), 1);
    T_CHECK(c_ending_of(&s, s.number).expired);
    c_close(&s);
    c_open(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_CPU;
    c_start_well(&s);
    c_put(&s, BLOCK, "", T_MS(100));
    c_ring(&s);
    c_wait_for(&s, "the end of a task", c_has_ended);
    T_EQ(t_word(FLAGS), 0);
    T_CMP(t_word(SIGNALS), >, 2);
    c_close(&s);
}

T_CASE(stream_sync_ends_at_the_limit)
{
    struct c_scene s;
    struct gpi_ending e;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    c_put(&s, WAIT_FOR_STREAM, "", T_MS(50));
    c_ring(&s);
    c_wait_for(&s, "the end of a task", c_has_ended);
    e = c_ending_of(&s, s.number);
    T_EQ(e.code, GPUD_ETIMEOUT);
    T_CMP(e.ended_at - e.started_at, >=, T_MS(50));
    T_CMP(e.ended_at - e.started_at, <, T_S(T_SANITIZED ? 5 : 1));
    T_EQ(c_run(&s, LAUNCH, "plain").code, 0); /* the same life, the same context */
    T_EQ(s.page->incarnation, 1);
    T_EQ(c_run(&s, LAUNCH_AND_RETURN, "takes_3000").code, 0);
    c_close(&s);
}

T_CASE(stream_sync_in_a_thread)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    T_EQ(c_run(&s, THREAD, "").code, 0);
    T_EQ(c_run(&s, LAUNCH, "plain").code, 0);
    c_close(&s);
}

T_CASE(stream_sync_ends_at_a_cancel)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    c_start_well(&s);
    t_word_set(STARTED, 0);
    c_put(&s, WAIT_FOR_STREAM, "", GPI_NEVER);
    c_ring(&s);
    t_word_wait(STARTED, 1);
    atomic_store(&s.page->cancel, 1ull << (s.number % GPI_CELLS));
    c_wait_for(&s, "the end of a task", c_has_ended);
    T_EQ(c_ending_of(&s, s.number).code, GPUD_ECANCELLED);
    atomic_store(&s.page->cancel, 0);
    T_EQ(c_run(&s, LAUNCH, "plain").code, 0);
    c_close(&s);
}
