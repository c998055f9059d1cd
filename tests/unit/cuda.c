/* SPDX-License-Identifier: MIT */
/* cuda.c - the CUDA side of a worker, against a fake libcuda.so.1: what it meets before setup, and
 * pinning. */
#include "cuda_scene.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "gpudispatch/device.h"
#include "gpudispatch/dispatch.h"
#include "kernel.h"
#include "os/headroom.h"
#include "worker/cuda_abi.h"
#include "worker/worker.h"

/* ---- before setup ---- */

#define THREE "gpu 0 cuda=2\ngpu 1 cuda=0\ngpu 2 cuda=1\n" /* another order than NVML's */

T_CASE(devices_as_given)
{
    struct c_scene s;

    c_open(&s, THREE, "20");
    c_start_well(&s);
    T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(DEVICES_SEEN), 1);
    T_EQ(t_word(CURRENT), 1);
    T_EQ(t_word(CONTEXTS), 1); /* of two devices the first */
    T_EQ(t_word(FLAGS), GPI_CU_SCHED_BLOCKING_SYNC);
    c_close(&s);
}

T_CASE(spin_as_asked)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    s.page->cuda = GPUD_CUDA_SPIN;
    c_start_well(&s);
    T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(FLAGS), GPI_CU_SCHED_SPIN);
    c_close(&s);
}

T_CASE(no_bind_makes_no_context)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    s.page->cuda = GPUD_CUDA_NO_BIND;
    s.page->canary = GPI_CANARY_FIRST;
    c_start_well(&s);
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CURRENT), 0);
    T_EQ(t_word(CONTEXTS), 0);
    c_close(&s);
}

/* Never user code on another's device. [T15] */
T_CASE(other_devices_than_given)
{
    struct c_scene s;
    const char *text;

    c_open(&s, THREE, "01");
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", C_UUID("1") "," C_UUID("0"), 1), 0);
    text = c_refused(&s);
    c_says(text, C_UUID("0"));
    c_says(text, C_UUID("1"));
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", C_UUID("0"), 1), 0);
    c_says(c_refused(&s), "has 1 devices, expected 2: " C_UUID("0") ", " C_UUID("1"));
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", "0,1,2", 1), 0);
    c_says(c_refused(&s), "CUDA's device 0 is " C_UUID("1"));
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    c_close(&s);
}

T_CASE(mig_instances)
{
    struct c_scene s;

    c_open(&s, "gpu 0 mig=1g.10gb*2\n", "0");
    s.page->device_kind = GPUD_DEVICE_MIG;
    snprintf(s.page->uuid[0], sizeof(s.page->uuid[0]), "%s", C_MIG("0", "2"));
    s.page->canary = GPI_CANARY_FIRST;
    c_start_well(&s);
    T_EQ(c_run(&s, LAUNCH, "takes_1000").code, 0);
    c_put(&s, LAUNCH, "fails_700", GPI_NEVER);
    c_ring(&s);
    T_EQ(c_exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", C_MIG("0", "1"), 1), 0);
    c_says(c_refused(&s), "CUDA's device 0 is " C_MIG("0", "1") ", expected " C_MIG("0", "2"));
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    c_with.library = T_PROGRAMS "/libcuda_old.so";
    c_says(c_refused(&s), "the driver is too old for MIG instances");
    c_close(&s);
}

/* Why there is no GPU: the name, the number, and what to do. */
T_CASE(drivers_that_do_not_start)
{
    static const struct {
        const char *script, *says, *advises;
    } cases[] = {
        { "driver fail cuInit 3\n", "cudaErrorInitializationError (3)", "EXEC" },
        { "driver fail cuInit 34\n", "cudaErrorStubLibrary (34)", "no driver is installed" },
        { "driver fail cuInit 35\n", "cudaErrorInsufficientDriver (35)", "too old" },
        { "driver fail cuInit 100\n", "cudaErrorNoDevice (100)", "" },
        { "driver fail cuInit 304\n", "cudaErrorOperatingSystem (304)", "" },
        { "driver fail cuInit 802\n", "cudaErrorSystemNotReady (802)", "fabric manager" },
        { "driver fail cuInit 802\n", "cudaErrorSystemNotReady (802)",
          "confidential computing: nvidia-smi conf-compute -srs 1" },
        { "driver fail cuInit 805\n", "cudaErrorMpsConnectionFailed (805)",
          "nvidia-cuda-mps-control -d" },
        { "driver fail cuInit 806\n", "cudaErrorMpsRpcFailure (806)", "server.log" },
        { "driver fail cuInit 807\n", "cudaErrorMpsServerNotReady (807)",
          "waits until all clients have ended" },
        { "driver fail cuInit 808\n", "cudaErrorMpsMaxClientsReached (808)", "fewer workers" },
        { "driver fail cuInit 809\n", "cudaErrorMpsMaxConnectionsReached (809)", "fewer workers" },
        { "driver state=mismatch\n", "cudaErrorSystemDriverMismatch (803)",
          "library and kernel module have different versions" },
        { "driver state=too-old\n", "cudaErrorCompatNotSupportedOnDevice (804)", "too old" },
        { "driver state=revoked\n", "cudaErrorUnknown (999)", "" },
        { "driver fail cuInit 12345\n", "CUDA_ERROR_OF_THE_FAKE (12345)", "" },
        { "gpu 0 lost\n", "cudaErrorNoDevice (100)", "" },
        { "gpu 0 fail cuDevicePrimaryCtxRetain 46\n", "cudaErrorDevicesUnavailable (46)",
          "another process or long kernels fill it" },
        { "gpu 0 mode=prohibited\n",
          C_UUID("0") " (compute mode PROHIBITED): no context: cudaErrorDevicesUnavailable (46)",
          "" },
        { "gpu 0 mode=exclusive fail cuDevicePrimaryCtxRetain 46\n",
          "(compute mode EXCLUSIVE_PROCESS): no context: cudaErrorDevicesUnavailable (46)",
          "another process or long kernels fill it" },
    };
    struct c_scene s;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *text;
        c_open(&s, cases[i].script, "0");
        text = c_refused(&s);
        c_says(text, cases[i].says);
        c_says(text, cases[i].advises);
        c_close(&s);
    }
}

T_CASE(no_driver_and_ancient_ones)
{
    struct c_scene s;
    void *real;

    c_open(&s, "gpus 1\n", "0");
    c_with.library = T_PROGRAMS "/libcuda_ancient.so";
    c_says(c_refused(&s), "the driver is too old: its libcuda.so.1 has no cuStreamQuery");
    c_with.library = T_PROGRAMS "/libcuda_old.so"; /* knows no MIG UUIDs, and needs none */
    c_start_well(&s);
    c_close(&s);
    real = dlopen("libcuda.so.1", RTLD_LAZY); /* not before: those above have that name, too */
    if (real) {
        (void)dlclose(real);
        printf("there is a driver here: a machine without one is not seen\n");
        return;
    }
    c_open(&s, "gpus 1\n", "0");
    c_with.library = NULL;
    c_says(c_refused(&s), "no NVIDIA driver: libcuda.so.1");
    c_close(&s);
}

/* Nothing works in a process that was forked from one that uses CUDA: what to do is said. */
T_CASE(forked_from_a_user_of_cuda)
{
    struct c_scene s;
    void *library;

    c_open(&s, "gpus 1\n", "0");
    library = dlopen(c_with.library, RTLD_NOW | RTLD_LOCAL);
    T_CHECK(library);
    T_CUDA(gpi_cu_init_fn, "cuInit", 0);
    c_says(c_refused(&s), "cudaErrorInitializationError (3)");
    c_says(s.page->setup_text, "start workers with EXEC");
    (void)dlclose(library);
    c_close(&s);
}

/* A signal in the middle of cuInit would make the driver fail. */
T_CASE(signals_while_devices_are_opened)
{
    struct c_scene s;
    uint64_t until = t_now() + T_PATIENCE;
    unsigned sent = 0;

    c_open(&s, "driver slow cuInit 200ms\ngpu 0 slow cuDevicePrimaryCtxRetain 100ms\n", "0");
    c_start(&s);
    while (!c_set_up(&s) && t_now() < until) {
        (void)kill(s.worker, SIGALRM);
        (void)poll(NULL, 0, 0);
        sent++;
    }
    printf("%u signals\n", sent);
    T_CMP(sent, >, 100);
    T_TEXT(s.page->setup_text, "");
    T_EQ(c_run(&s, LAUNCH, "takes_1000").code, 0);
    c_close(&s);
}

/* C14: not one call where there is no GPU. */
T_CASE(cpu_slots_call_nothing)
{
    struct c_scene s;

    c_open(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_CPU;
    s.page->cuda = GPUD_CUDA_PIN;
    c_start_well(&s);
    for (int i = 0; i < 3; i++)
        T_EQ(c_run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CALLS), 0);
    T_EQ(c_run(&s, NO_STREAM, "").code, GPUD_ENOTSUP);
    c_close(&s);
}

/* ---- pinning ---- */

#define ARENA (((uint64_t)5 << 29)) /* two pieces and a half */

static void open_arenas(struct c_scene *s, const char *script)
{
    c_open(s, script, "0");
    (void)munmap(s->input, 4096);
    s->input = c_shared_memory(ARENA);
    s->result = c_shared_memory(ARENA);
    s->page->input_size = s->page->result_size = ARENA;
    s->page->cuda = GPUD_CUDA_PIN;
}

static void close_arenas(struct c_scene *s)
{
    (void)munmap(s->input + 4096, ARENA - 4096);
    (void)munmap(s->result, ARENA);
    c_close(s);
}

/* As the arena of task data is in a worker. */
static void look_at_arenas(struct c_scene *s)
{
    T_EQ(c_run(s, LOOK, "").code, 0);
    T_EQ(c_run(s, PLAIN, "").code, 0);
}

T_CASE(arenas_are_pinned_in_pieces)
{
    struct c_scene s;

    if (!gpi_headroom_for((uint64_t)1 << 30))
        t_skip("too little memory is left for a piece");
    open_arenas(&s, "gpus 1\n");
    c_start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 6);
    T_EQ(t_word(REFUSED), 0);
    close_arenas(&s);
}

/* All of an arena or nothing: CUDA refuses to copy what is pinned in part. */
T_CASE(pinning_falls_back)
{
    struct c_scene s;

    if (!gpi_headroom_for((uint64_t)1 << 30))
        t_skip("too little memory is left for a piece");
    open_arenas(&s, "gpu 0 fail cuMemHostRegister_v2 2*1\n");
    c_start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(REFUSED), 1);
    T_EQ(t_word(PINNED), 3); /* the results' */
    close_arenas(&s);
    open_arenas(&s, "gpu 0 fail cuDeviceGetAttribute 1\n"); /* does not say that it can */
    c_start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 3);
    close_arenas(&s);
    open_arenas(
        &s, "gpu 0 slow cuMemHostRegister_v2 100ms\nat 150ms gpu 0 fail cuMemHostRegister_v2 1\n");
    c_start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 0);
    close_arenas(&s);
}
