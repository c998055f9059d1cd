/* SPDX-License-Identifier: MIT */
/*
 * cuda.c - the CUDA side of a worker, against a fake libcuda.so.1: what it meets before setup, what the look
 * after a task finds and whom it is charged to, the canary, waiting for a stream, pinning.
 *
 * The case is the host and the keeper: it starts a worker with a page of its own making, one life after the other.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpudispatch/cuda.h"
#include "gpudispatch/device.h"
#include "gpudispatch/dispatch.h"
#include "kernel.h"
#include "os/headroom.h"
#include "wire/frame.h"
#include "worker/cuda_abi.h"
#include "worker/worker.h"

/* As a script names device and MIG instance by their numbers. */
#define UUID(d) "GPU-fa4e000" d "-0000-4000-8000-00000000000" d
#define MIG(d, i) "MIG-fa4e000" d "-000" i "-4000-8000-00000000000" d

/* ---- the worker ---- */

/* What a task does.  LAUNCH: a kernel whose name is the task's data. */
enum { PLAIN, LAUNCH, LAUNCH_AND_FAIL, LAUNCH_AND_RETURN, LEAVE_PENDING, LOOK, WAIT_FOR_STREAM, BLOCK, LAUNCH_ON_SECOND, THREAD, FULL, NO_STREAM };
enum { SETUPS, CALLS, FLAGS, CONTEXTS, CURRENT, PINNED, REFUSED, PENDING, SIGNALS, STARTED, DEVICES_SEEN };

static struct {
    const char *library; /* which fake; NULL = none */
    const char *uuid0;
    bool linked, runtime;
} with;

static unsigned number(const char *name)
{
    const unsigned *at = t_cuda(name);

    T_CHECK(at);
    return *at;
}

static int *pending(void)
{
    static int of_linked;
    void *library = with.runtime ? dlopen(T_PROGRAMS "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL) : NULL, *at;

    if (!library)
        return &of_linked;
    at = dlsym(library, "fake_cudart_pending");
    T_CHECK(at);
    return at;
}

static int linked_last_error(void)
{
    int was = *pending();

    *pending() = 0;
    return was;
}

static void look_inside(void)
{
    void *current = NULL;

    t_word_set(CALLS, number("fake_cuda_calls"));
    t_word_set(FLAGS, number("fake_cuda_flags"));
    t_word_set(CONTEXTS, number("fake_cuda_contexts"));
    t_word_set(PINNED, number("fake_cuda_pinned"));
    t_word_set(REFUSED, number("fake_cuda_refused"));
    if (t_word(CALLS) > 0) {
        T_CUDA(gpi_cu_context_get_fn, "cuCtxGetCurrent", &current);
        t_word_set(CURRENT, current != NULL);
    }
}

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = NULL;
    (void)t_word_add(SETUPS);
    t_word_set(DEVICES_SEEN, gpud_worker_device_uuid(w, 0) && !strcmp(gpud_worker_device_uuid(w, 0), with.uuid0));
    T_CHECK(gpud_worker_device_uuid(w, 16) == NULL);
    if (with.linked)
        T_EQ(gpud_cuda_last_error(w, linked_last_error), 0);
    return 0;
}

/* Longer than the limit, in pieces that each signal ends. */
static void block(void)
{
    struct sigaction now;

    T_EQ(sigaction(SIGALRM, NULL, &now), 0);
    t_word_set(FLAGS, now.sa_flags & SA_RESTART ? 1 : 0);
    t_word_set(SIGNALS, 0);
    for (uint64_t until = t_now() + T_MS(300); t_now() < until;)
        if (poll(NULL, 0, 20) < 0 && errno == EINTR)
            (void)t_word_add(SIGNALS);
}

/* Ends at the limit; the context lives, and so does what runs. */
static int wait_for_stream(gpud_task *t)
{
    static int stop;
    int r;

    stop = 0;
    t_launch("endless", &stop);
    t_word_set(STARTED, 1);
    r = gpud_cuda_stream_sync(t, T_STREAM);
    stop = 1;
    T_EQ(gpud_cuda_stream_sync(t, T_STREAM), 0); /* what is done is done, limit or not */
    T_EQ(gpud_cuda_stream_sync(t, NULL), 0);
    return r;
}

/* A thread of the user's own, which has no context. */
static void *wait_in_thread(void *t)
{
    void *current = t;

    T_EQ(gpud_cuda_stream_sync(t, T_STREAM), 0);
    T_CUDA(gpi_cu_context_get_fn, "cuCtxGetCurrent", &current);
    T_CHECK(!current);
    return NULL;
}

/* Memory that is not there; process lives with it. */
static int fill(void)
{
    gpi_cu_memory_alloc_fn *alloc;
    void *at = t_cuda("cuMemAlloc_v2");
    gpi_cu_pointer memory;

    memcpy(&alloc, &at, sizeof(alloc));
    T_EQ(alloc(&memory, (size_t)1 << 40), 2);
    return alloc(&memory, (size_t)1 << 20);
}

static int process_one(gpud_task *t)
{
    pthread_t thread;

    const char *kernel = gpud_task_data(t);

    switch (gpud_task_tag(t)) {
    case LAUNCH:
        t_launch(kernel, NULL);
        return 0;
    case LAUNCH_AND_FAIL:
        t_launch(kernel, NULL);
        return gpud_task_fail(t, 7, "its own words");
    case LAUNCH_AND_RETURN:
        t_launch(kernel, NULL);
        return gpud_cuda_stream_sync(t, T_STREAM);
    case LAUNCH_ON_SECOND: {
        void *second, *popped;
        T_CUDA(gpi_cu_primary_retain_fn, "cuDevicePrimaryCtxRetain", &second, 1);
        T_CUDA(gpi_cu_context_push_fn, "cuCtxPushCurrent_v2", second);
        t_launch(kernel, NULL);
        T_CUDA(gpi_cu_context_pop_fn, "cuCtxPopCurrent_v2", &popped);
        return 0;
    }
    case LEAVE_PENDING:
        t_word_set(PENDING, (uint32_t)*pending());
        *pending() = 2;
        return 0;
    case LOOK:
        look_inside();
        return 0;
    case WAIT_FOR_STREAM:
        return wait_for_stream(t);
    case BLOCK:
        block();
        return 0;
    case THREAD:
        t_launch("takes_20000", NULL);
        T_EQ(pthread_create(&thread, NULL, wait_in_thread, t), 0);
        return pthread_join(thread, NULL);
    case FULL:
        return fill();
    case NO_STREAM:
        return gpud_cuda_stream_sync(t, NULL);
    default:
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    return process_one(t);
}

static int process_batch(gpud_task *const *t, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        (void)process_one(t[i]);
    return 0;
}

/* ---- the host ---- */

struct scene {
    struct gpi_page *page;
    char *input;
    int orders[2], looks[2];
    uint64_t number;
    pid_t worker;
    size_t size;
    unsigned char *result;
};

static void *shared_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    T_CHECK(at != MAP_FAILED);
    return at;
}

static void open_scene(struct scene *s, const char *script, const char *devices)
{
    char names[64], *at = names;

    memset(s, 0, sizeof(*s));
    s->size = gpi_page_size(0);
    s->page = shared_memory(s->size);
    s->input = shared_memory(4096);
    s->result = (unsigned char *)s->input;
    T_EQ(pipe(s->orders), 0);
    T_EQ(pipe(s->looks), 0);
    T_EQ(fcntl(s->looks[0], F_SETFL, O_NONBLOCK), 0);
    s->page->device_kind = GPUD_DEVICE_GPU;
    s->page->max_batch = 1;
    for (uint32_t i = 0; i < (uint32_t)strlen(devices); i++) {
        snprintf(s->page->uuid[i], sizeof(s->page->uuid[i]), UUID("%c"), devices[i], devices[i]);
        at += snprintf(at, (size_t)(names + sizeof(names) - at), "%sgpu:%c", i ? "," : "", devices[i]);
    }
    snprintf(s->page->device, sizeof(s->page->device), "%s", names);
    with.library = T_PROGRAMS "/libcuda.so.1";
    with.uuid0 = s->page->uuid[0];
    with.runtime = true;
    with.linked = false;
    T_EQ(setenv("FAKE_SCRIPT_TEXT", script, 1), 0);
}

static _Noreturn void be_worker(const struct scene *s, pid_t host)
{
    static struct gpud_definition definition = GPUD_DEFINITION("test", setup, process, NULL);
    char visible[GPI_DEVICES * GPI_DEVICE_UUID_SIZE];
    size_t at = 0;
    const struct gpi_worker_plan plan = {
        .definition = &definition, .page = s->page, .input = (unsigned char *)s->input, .result = s->result,
        .orders = s->orders[0], .looks = s->looks[1], .incarnation = s->page->incarnation, .keeper = host,
    };

    if (s->page->max_batch > 1)
        definition.process_batch = process_batch;
    for (int i = 0; i < (int)GPI_DEVICES && *s->page->uuid[i]; i++)
        at += (size_t)snprintf(visible + at, sizeof(visible) - at, "%s%s", i ? "," : "", s->page->uuid[i]);
    if (!getenv("CUDA_VISIBLE_DEVICES"))
        (void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    if (with.library && !dlopen(with.library, RTLD_NOW | RTLD_LOCAL))
        _exit(99);
    gpi_worker_run(&plan);
    _exit(98);
}

/* A new life, with what the host clears for it. */
static void start(struct scene *s)
{
    struct gpi_page *p = s->page;
    pid_t host = getpid();
    sigset_t all, old;

    p->incarnation++;
    p->first_number = s->number + 1;
    atomic_store(&p->sent_number, s->number);
    atomic_store(&p->setup_done, 0);
    atomic_store(&p->canary_done, GPI_CANARY_NOT_YET);
    atomic_store(&p->fault, 0);
    p->setup_code = 0;
    p->setup_text[0] = p->canary_text[0] = p->fault_text[0] = '\0';
    (void)sigfillset(&all); /* as a keeper's child is born */
    T_EQ(sigprocmask(SIG_SETMASK, &all, &old), 0);
    s->worker = fork();
    T_CHECK(s->worker >= 0);
    if (!s->worker)
        be_worker(s, host);
    T_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

static void wait_for(const struct scene *s, const char *what, bool (*come)(const struct scene *s))
{
    struct pollfd p = { .fd = s->looks[0], .events = POLLIN };
    struct gpi_frame f;
    uint64_t until = t_now() + T_PATIENCE;

    while (!come(s)) {
        if (t_now() > until)
            T_FAIL("waited in vain: %s", what);
        atomic_store(&s->page->host_sleeps, 1);
        (void)poll(&p, 1, 2);
        while (read(s->looks[0], &f, sizeof(f)) == (ssize_t)sizeof(f))
            T_CHECK(gpi_look_valid(&f));
    }
}

static bool set_up(const struct scene *s)
{
    return atomic_load(&s->page->setup_done) != 0;
}

static bool has_ended(const struct scene *s)
{
    return atomic_load(&s->page->cell[s->number % GPI_CELLS].end) >> 8 == s->number;
}

static void start_well(struct scene *s)
{
    start(s);
    wait_for(s, "setup", set_up);
    if (s->page->setup_done != 1)
        T_FAIL("setup failed: %s", s->page->setup_text);
}

static int reap(struct scene *s)
{
    int status;

    T_EQ(waitpid(s->worker, &status, 0), s->worker);
    s->worker = 0;
    return status;
}

static int exit_status(struct scene *s)
{
    int status = reap(s);

    if (!WIFEXITED(status))
        T_FAIL("the worker ended with wait status %#x", status);
    return WEXITSTATUS(status);
}

static void put(struct scene *s, uint64_t tag, const char *kernel, uint64_t limit)
{
    uint64_t n = ++s->number;
    struct gpi_cell *c = &s->page->cell[n % GPI_CELLS];

    c->task_id = n;
    c->tag = tag;
    c->limit = limit;
    c->data_off = (n % 16) * 64;
    c->data_size = 64;
    snprintf(s->input + c->data_off, 64, "%s", kernel);
    atomic_store(&c->claim, gpi_claim_word(n, GPI_SENT));
    atomic_store(&s->page->order[n % GPI_CELLS], (uint8_t)(n % GPI_CELLS));
}

static void ring(struct scene *s)
{
    const struct gpi_frame bell = { .magic = GPI_ORDER_MAGIC, .incarnation = s->page->incarnation, .what = GPI_ORDER_TASKS };

    atomic_store(&s->page->sent_number, s->number);
    if (gpi_page_must_ring(&s->page->worker_sleeps))
        T_EQ(write(s->orders[1], &bell, sizeof(bell)), sizeof(bell));
}

/* How the last one has ended. */
static struct gpi_ending ending_of(struct scene *s, uint64_t n)
{
    struct gpi_ending e;

    T_EQ(gpi_cell_look(&s->page->cell[n % GPI_CELLS], n, 1, gpi_now(), 0, &e), GPI_LOOK_ENDED);
    return e;
}

static struct gpi_ending run(struct scene *s, uint64_t tag, const char *kernel)
{
    put(s, tag, kernel, GPI_NEVER);
    ring(s);
    wait_for(s, "the end of a task", has_ended);
    return ending_of(s, s->number);
}

static const char *text_of(const struct scene *s, uint64_t n)
{
    return s->page->extra[n % GPI_CELLS].fail_text;
}

static void check_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        T_FAIL("\"%s\" does not say \"%s\"", text, part);
}

static void close_scene(struct scene *s)
{
    const struct gpi_frame end = { .magic = GPI_ORDER_MAGIC, .incarnation = s->page->incarnation, .what = GPI_ORDER_END };

    if (s->worker) {
        T_EQ(write(s->orders[1], &end, sizeof(end)), sizeof(end));
        T_EQ(exit_status(s), 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)close(s->orders[i]);
        (void)close(s->looks[i]);
    }
    (void)munmap(s->page, s->size);
    (void)munmap(s->input, 4096);
    T_EQ(unsetenv("FAKE_SCRIPT_TEXT"), 0);
}

/* It has not come to setup; what was said of it. */
static const char *refused(struct scene *s)
{
    t_word_set(SETUPS, 0);
    start(s);
    T_EQ(exit_status(s), 1);
    T_EQ(s->page->setup_done, 2);
    T_EQ(s->page->setup_code, GPUD_EDEVICE);
    T_EQ(t_word(SETUPS), 0);
    return s->page->setup_text;
}

/* ---- before setup ---- */

#define THREE "gpu 0 cuda=2\ngpu 1 cuda=0\ngpu 2 cuda=1\n" /* another order than NVML's */

T_CASE(devices_as_given)
{
    struct scene s;

    open_scene(&s, THREE, "20");
    start_well(&s);
    T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(DEVICES_SEEN), 1);
    T_EQ(t_word(CURRENT), 1);
    T_EQ(t_word(CONTEXTS), 1); /* of two devices the first */
    T_EQ(t_word(FLAGS), GPI_CU_SCHED_BLOCKING_SYNC);
    close_scene(&s);
}

T_CASE(spin_as_asked)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    s.page->cuda = GPUD_CUDA_SPIN;
    start_well(&s);
    T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(FLAGS), GPI_CU_SCHED_SPIN);
    close_scene(&s);
}

T_CASE(no_bind_makes_no_context)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    s.page->cuda = GPUD_CUDA_NO_BIND;
    s.page->canary = GPI_CANARY_FIRST;
    start_well(&s);
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CURRENT), 0);
    T_EQ(t_word(CONTEXTS), 0);
    close_scene(&s);
}

/* Never user code on another's device. [T15] */
T_CASE(other_devices_than_given)
{
    struct scene s;
    const char *text;

    open_scene(&s, THREE, "01");
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", UUID("1") "," UUID("0"), 1), 0);
    text = refused(&s);
    check_has(text, UUID("0"));
    check_has(text, UUID("1"));
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", UUID("0"), 1), 0);
    check_has(refused(&s), "shows 1 devices, and this worker was given 2: " UUID("0") ", " UUID("1"));
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", "0,1,2", 1), 0);
    check_has(refused(&s), "CUDA's device 0 is " UUID("1"));
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    close_scene(&s);
}

T_CASE(mig_instances)
{
    struct scene s;

    open_scene(&s, "gpu 0 mig=1g.10gb*2\n", "0");
    s.page->device_kind = GPUD_DEVICE_MIG;
    snprintf(s.page->uuid[0], sizeof(s.page->uuid[0]), "%s", MIG("0", "2"));
    s.page->canary = GPI_CANARY_FIRST;
    start_well(&s);
    T_EQ(run(&s, LAUNCH, "takes_1000").code, 0);
    put(&s, LAUNCH, "fails_700", GPI_NEVER);
    ring(&s);
    T_EQ(exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", MIG("0", "1"), 1), 0);
    check_has(refused(&s), "CUDA's device 0 is " MIG("0", "1") ", and this worker was given " MIG("0", "2"));
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    with.library = T_PROGRAMS "/libcuda_old.so";
    check_has(refused(&s), "the driver is too old for MIG instances");
    close_scene(&s);
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
        { "driver state=mismatch\n", "cudaErrorSystemDriverMismatch (803)", "the driver was changed under us" },
        { "driver state=too-old\n", "cudaErrorCompatNotSupportedOnDevice (804)", "too old" },
        { "driver state=revoked\n", "cudaErrorUnknown (999)", "" },
        { "driver fail cuInit 12345\n", "CUDA_ERROR_OF_THE_FAKE (12345)", "" },
        { "gpu 0 lost\n", "cudaErrorNoDevice (100)", "" },
        { "gpu 0 fail cuDevicePrimaryCtxRetain 46\n", "cudaErrorDevicesUnavailable (46)", "another process has it" },
        { "gpu 0 mode=prohibited\n", UUID("0") " (compute mode PROHIBITED): no context: cudaErrorDevicesUnavailable (46)", "" },
        { "gpu 0 mode=exclusive fail cuDevicePrimaryCtxRetain 46\n", "(compute mode EXCLUSIVE_PROCESS): no context: cudaErrorDevicesUnavailable (46)", "another process has it" },
    };
    struct scene s;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *text;
        open_scene(&s, cases[i].script, "0");
        text = refused(&s);
        check_has(text, cases[i].says);
        check_has(text, cases[i].advises);
        close_scene(&s);
    }
}

T_CASE(no_driver_and_ancient_ones)
{
    struct scene s;
    void *real;

    open_scene(&s, "gpus 1\n", "0");
    with.library = T_PROGRAMS "/libcuda_ancient.so";
    check_has(refused(&s), "the driver is too old: its libcuda.so.1 has no cuStreamQuery");
    with.library = T_PROGRAMS "/libcuda_old.so"; /* knows no MIG UUIDs, and needs none */
    start_well(&s);
    close_scene(&s);
    real = dlopen("libcuda.so.1", RTLD_LAZY); /* not before: those above have that name, too */
    if (real) {
        (void)dlclose(real);
        printf("there is a driver here: a machine without one is not seen\n");
        return;
    }
    open_scene(&s, "gpus 1\n", "0");
    with.library = NULL;
    check_has(refused(&s), "no NVIDIA driver: libcuda.so.1");
    close_scene(&s);
}

/* Nothing works in a process that was forked from one that uses CUDA: what to do is said. */
T_CASE(forked_from_a_user_of_cuda)
{
    struct scene s;
    void *library;

    open_scene(&s, "gpus 1\n", "0");
    library = dlopen(with.library, RTLD_NOW | RTLD_LOCAL);
    T_CHECK(library);
    T_CUDA(gpi_cu_init_fn, "cuInit", 0);
    check_has(refused(&s), "cudaErrorInitializationError (3)");
    check_has(s.page->setup_text, "start workers with EXEC");
    (void)dlclose(library);
    close_scene(&s);
}

/* A signal in the middle of cuInit would make the driver fail. */
T_CASE(signals_while_devices_are_opened)
{
    struct scene s;
    uint64_t until = t_now() + T_PATIENCE;
    unsigned sent = 0;

    open_scene(&s, "driver slow cuInit 200ms\ngpu 0 slow cuDevicePrimaryCtxRetain 100ms\n", "0");
    start(&s);
    while (!set_up(&s) && t_now() < until) {
        (void)kill(s.worker, SIGALRM);
        (void)poll(NULL, 0, 0);
        sent++;
    }
    printf("%u signals\n", sent);
    T_CMP(sent, >, 100);
    T_TEXT(s.page->setup_text, "");
    T_EQ(run(&s, LAUNCH, "takes_1000").code, 0);
    close_scene(&s);
}

/* C14: not one call where there is no GPU. */
T_CASE(cpu_slots_call_nothing)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_CPU;
    s.page->cuda = GPUD_CUDA_PIN;
    start_well(&s);
    for (int i = 0; i < 3; i++)
        T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CALLS), 0);
    T_EQ(run(&s, NO_STREAM, "").code, GPUD_ENOTSUP);
    close_scene(&s);
}

/* ---- canary ---- */

T_CASE(canary_comes_before_setup)
{
    struct scene s;

    open_scene(&s, "gpus 2\n", "10");
    s.page->canary = GPI_CANARY_FIRST;
    start_well(&s);
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CONTEXTS), 1); /* the second device's is gone */
    close_scene(&s);

    open_scene(&s, "gpus 2\ngpu 1 canary=fail\n", "01");
    s.page->canary = GPI_CANARY_FIRST;
    check_has(refused(&s), "canary on " UUID("1") ": it computes wrong: word 512 of the result is ");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    T_TEXT(s.page->canary_text, s.page->setup_text);
    close_scene(&s);
}

T_CASE(canary_meets_a_fault)
{
    struct scene s;

    open_scene(&s, "gpu 0 fail kernel 719\n", "0");
    s.page->canary = GPI_CANARY_FIRST;
    check_has(refused(&s), "the kernel: cudaErrorLaunchFailure (719)");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    close_scene(&s);
    open_scene(&s, "gpu 0 memory=1GiB used=100%\n", "0");
    s.page->canary = GPI_CANARY_FIRST;
    check_has(refused(&s), "cudaErrorMemoryAllocation (2)");
    close_scene(&s);
}

/* A driver that cannot translate says nothing of the device. */
T_CASE(canary_without_translation)
{
    static const char *const scripts[] = { "gpu 0 fail cuModuleLoadData 221\n", "gpu 0 fail cuModuleLoadData 223\n", "gpu 0 fail cuModuleLoadData 222\n" };
    struct scene s;

    for (int i = 0; i < 3; i++) {
        open_scene(&s, scripts[i], "0");
        s.page->canary = GPI_CANARY_FIRST;
        start_well(&s);
        T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
        close_scene(&s);
    }
}

static void canary_alone(struct scene *s, uint32_t done)
{
    s->page->canary = GPI_CANARY_ONLY;
    t_word_set(SETUPS, 0);
    start(s);
    T_EQ(exit_status(s), 0);
    T_EQ(t_word(SETUPS), 0);
    T_EQ(s->page->setup_done, 0);
    T_EQ(s->page->canary_done, done);
}

T_CASE(canary_alone_ends_the_worker)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    canary_alone(&s, GPI_CANARY_PASSED);
    close_scene(&s);
    open_scene(&s, "gpu 0 canary=fail\n", "0");
    canary_alone(&s, GPI_CANARY_FAILED);
    check_has(s.page->canary_text, "canary: it computes wrong");
    close_scene(&s);
    open_scene(&s, "gpu 0 lost\n", "0");
    s.page->canary = GPI_CANARY_ONLY;
    check_has(refused(&s), "cudaErrorNoDevice (100)"); /* it could not be opened */
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    T_TEXT(s.page->canary_text, s.page->setup_text);
    close_scene(&s);
}

T_CASE(fakes_boot_and_fail_as_told)
{
    struct scene s;
    uint64_t began;

    open_scene(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_FAKE;
    s.page->fake_boot = T_MS(150);
    s.page->canary = GPI_CANARY_FIRST;
    began = t_now();
    start_well(&s);
    T_CMP(t_now() - began, >=, T_MS(150));
    T_EQ(s.page->canary_done, GPI_CANARY_PASSED);
    T_EQ(run(&s, LOOK, "").code, 0);
    T_EQ(t_word(CALLS), 0); /* no driver */
    T_EQ(run(&s, NO_STREAM, "").code, GPUD_ENOTSUP);
    close_scene(&s);
    open_scene(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_FAKE;
    s.page->fake_fails = 1;
    s.page->canary = GPI_CANARY_FIRST;
    check_has(refused(&s), "the script of this fake device says that it fails");
    T_EQ(s.page->canary_done, GPI_CANARY_FAILED);
    canary_alone(&s, GPI_CANARY_FAILED);
    close_scene(&s);
}

/* ---- the look after a task ---- */

/* After each sticky error one task has failed, with its name, and the next life is fine. */
T_CASE(sticky_errors)
{
    static const struct {
        int code;
        const char *name;
    } sticky[] = {
        { 226, "Contained" }, { 700, "IllegalAddress" }, { 702, "LaunchTimeout" }, { 710, "Assert" }, { 714, "HardwareStackError" },
        { 715, "IllegalInstruction" }, { 716, "MisalignedAddress" }, { 717, "InvalidAddressSpace" }, { 718, "InvalidPc" }, { 719, "LaunchFailure" },
        { 721, "TensorMemoryLeak" }, { 810, "MpsClientTerminated" }, { 911, "ExternalDevice" },
        { 214, "ECCUncorrectable" }, { 220, "NvlinkUncorrectable" }, { 709, "ContextIsDestroyed" }, { 999, "Unknown" }, { 4, "CudartUnloading" },
        { 12345, NULL }, /* unknown to us: the context does not come back */
    };
    struct scene s;
    char kernel[32], name[64];
    struct gpi_ending e;

    open_scene(&s, "gpus 1\n", "0");
    for (size_t i = 0; i < sizeof(sticky) / sizeof(*sticky); i++) {
        start_well(&s);
        T_EQ(run(&s, PLAIN, "").code, 0);
        snprintf(kernel, sizeof(kernel), "fails_%d", sticky[i].code);
        snprintf(name, sizeof(name), "cudaError%s (%d)", sticky[i].name, sticky[i].code);
        put(&s, LAUNCH, kernel, GPI_NEVER);
        put(&s, PLAIN, "", GPI_NEVER); /* sent ahead */
        ring(&s);
        T_EQ(exit_status(&s), GPI_EXIT_FAULT);
        e = ending_of(&s, s.number - 1);
        T_EQ(e.end, GPI_END_FAILED);
        T_EQ(e.code, GPUD_EDEVICE);
        T_CHECK(e.has_text);
        check_has(text_of(&s, s.number - 1), sticky[i].name ? name : "CUDA_ERROR_OF_THE_FAKE (12345)");
        T_EQ(s.page->fault, sticky[i].code);
        T_TEXT(s.page->fault_text, text_of(&s, s.number - 1));
        T_EQ(s.page->cell[s.number % GPI_CELLS].claim, gpi_claim_word(s.number, GPI_SENT)); /* C2: not touched */
    }
    start_well(&s);
    T_EQ(run(&s, LAUNCH, "plain").code, 0);
    T_EQ(s.page->fault, 0);
    close_scene(&s);
}

/* "Not sticky" is decided by the context, which works on. */
T_CASE(errors_that_pass)
{
    struct scene s;
    struct gpi_ending e;

    open_scene(&s, "gpu 0 fail cuCtxSynchronize 720*1\n", "0");
    start_well(&s);
    e = run(&s, PLAIN, "");
    T_EQ(e.code, GPUD_EDEVICE);
    check_has(text_of(&s, s.number), "cudaErrorCooperativeLaunchTooLarge (720)");
    for (int i = 0; i < 3; i++)
        T_EQ(run(&s, PLAIN, "").code, 0);
    T_EQ(s.page->fault, 0);
    close_scene(&s);
}

/* What process met and lived with is no later task's: not in a runtime that is a shared object, loaded when it likes,
 * nor in a linked one that setup has named. */
T_CASE(pending_errors_are_taken)
{
    struct scene s;

    for (int linked = 0; linked < 2; linked++) {
        open_scene(&s, "gpus 1\n", "0");
        with.runtime = !linked;
        with.linked = linked;
        start_well(&s);
        t_word_set(PENDING, 99);
        T_EQ(run(&s, LEAVE_PENDING, "").code, 0);
        T_EQ(t_word(PENDING), 0);
        for (int i = 0; i < 3; i++) {
            t_word_set(PENDING, 99);
            T_EQ(run(&s, LEAVE_PENDING, "").code, 0);
            T_EQ(t_word(PENDING), 0);
        }
        close_scene(&s);
    }
}

T_CASE(full_memory_is_no_fault)
{
    struct scene s;

    open_scene(&s, "gpu 0 memory=8GiB\n", "0");
    start_well(&s);
    for (int i = 0; i < 3; i++)
        T_EQ(run(&s, FULL, "").code, 0);
    T_EQ(s.page->incarnation, 1);
    close_scene(&s);
}

T_CASE(own_failure_keeps_its_words)
{
    struct scene s;
    struct gpi_ending e;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    put(&s, LAUNCH_AND_FAIL, "fails_700", GPI_NEVER);
    ring(&s);
    T_EQ(exit_status(&s), GPI_EXIT_FAULT);
    e = ending_of(&s, s.number);
    T_EQ(e.code, 7);
    T_TEXT(text_of(&s, s.number), "its own words (cudaErrorIllegalAddress (700): an illegal memory access was encountered)");
    start_well(&s);
    put(&s, LAUNCH_AND_RETURN, "fails_719", GPI_NEVER);
    ring(&s);
    T_EQ(exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(ending_of(&s, s.number).code, GPUD_EDEVICE);
    check_has(text_of(&s, s.number), "cudaErrorLaunchFailure (719)");
    close_scene(&s);
}

/* All that ran in the call, but those that had failed by themselves. */
T_CASE(batch_shares_the_fault)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    s.page->max_batch = 3;
    start_well(&s);
    put(&s, PLAIN, "", GPI_NEVER);
    put(&s, LAUNCH_AND_FAIL, "plain", GPI_NEVER);
    put(&s, LAUNCH, "fails_700", GPI_NEVER);
    put(&s, PLAIN, "", GPI_NEVER); /* the next batch */
    ring(&s);
    T_EQ(exit_status(&s), GPI_EXIT_FAULT);
    T_EQ(ending_of(&s, 1).code, GPUD_EDEVICE);
    check_has(text_of(&s, 1), "cudaErrorIllegalAddress (700)");
    T_EQ(ending_of(&s, 2).code, 7);
    check_has(text_of(&s, 2), "its own words (cudaErrorIllegalAddress (700)");
    T_EQ(ending_of(&s, 3).code, GPUD_EDEVICE);
    T_EQ(s.page->cell[4].claim, gpi_claim_word(4, GPI_SENT));
    close_scene(&s);
}

T_CASE(fault_on_another_device)
{
    struct scene s;

    open_scene(&s, "gpus 2\n", "01");
    start_well(&s);
    put(&s, LAUNCH_ON_SECOND, "fails_716", GPI_NEVER);
    ring(&s);
    T_EQ(exit_status(&s), GPI_EXIT_FAULT);
    check_has(text_of(&s, s.number), "cudaErrorMisalignedAddress (716)");
    close_scene(&s);
}

/* The device's work is the task's: its end is not told before. */
T_CASE(task_lasts_as_long_as_its_kernel)
{
    struct scene s;
    struct gpi_ending e;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    e = run(&s, LAUNCH, "takes_50000");
    T_CMP(e.ended_at - e.started_at, >=, T_MS(50));
    s.page->cuda = GPUD_CUDA_NO_CHECK;
    e = run(&s, LAUNCH, "takes_50000");
    T_CMP(e.ended_at - e.started_at, <, T_MS(50));
    close_scene(&s);
}

/* The look waits for a kernel that never ends; only death ends it. */
T_CASE(endless_kernel_is_killed_in_the_look)
{
    struct scene s;

    open_scene(&s, "gpu 0 hang kernel\n", "0");
    start_well(&s);
    put(&s, LAUNCH, "plain", T_MS(20));
    ring(&s);
    t_pass(T_MS(100));
    T_CHECK(!has_ended(&s));
    T_EQ(kill(s.worker, SIGKILL), 0);
    T_CHECK(WIFSIGNALED(reap(&s)));
    T_CHECK(!has_ended(&s));
    close_scene(&s);
}

/* ---- limits ---- */

/* On a GPU one signal, and calls go on; on a CPU slot there is another every 50 ms. */
T_CASE(one_alarm_on_gpus)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    put(&s, BLOCK, "", T_MS(20));
    ring(&s);
    wait_for(&s, "the end of a task", has_ended);
    T_EQ(t_word(FLAGS), 1);
    T_EQ(t_word(SIGNALS), 1);
    T_CHECK(ending_of(&s, s.number).expired);
    close_scene(&s);
    open_scene(&s, "gpus 1\n", "0");
    s.page->device_kind = GPUD_DEVICE_CPU;
    start_well(&s);
    put(&s, BLOCK, "", T_MS(20));
    ring(&s);
    wait_for(&s, "the end of a task", has_ended);
    T_EQ(t_word(FLAGS), 0);
    T_CMP(t_word(SIGNALS), >, 2);
    close_scene(&s);
}

T_CASE(stream_sync_ends_at_the_limit)
{
    struct scene s;
    struct gpi_ending e;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    put(&s, WAIT_FOR_STREAM, "", T_MS(50));
    ring(&s);
    wait_for(&s, "the end of a task", has_ended);
    e = ending_of(&s, s.number);
    T_EQ(e.code, GPUD_ETIMEOUT);
    T_CMP(e.ended_at - e.started_at, >=, T_MS(50));
    T_CMP(e.ended_at - e.started_at, <, T_S(T_SANITIZED ? 5 : 1));
    T_EQ(run(&s, LAUNCH, "plain").code, 0); /* the same life, the same context */
    T_EQ(s.page->incarnation, 1);
    T_EQ(run(&s, LAUNCH_AND_RETURN, "takes_3000").code, 0);
    close_scene(&s);
}

T_CASE(stream_sync_in_a_thread)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    T_EQ(run(&s, THREAD, "").code, 0);
    T_EQ(run(&s, LAUNCH, "plain").code, 0);
    close_scene(&s);
}

T_CASE(stream_sync_ends_at_a_cancel)
{
    struct scene s;

    open_scene(&s, "gpus 1\n", "0");
    start_well(&s);
    t_word_set(STARTED, 0);
    put(&s, WAIT_FOR_STREAM, "", GPI_NEVER);
    ring(&s);
    t_word_wait(STARTED, 1);
    atomic_store(&s.page->cancel, 1ull << (s.number % GPI_CELLS));
    wait_for(&s, "the end of a task", has_ended);
    T_EQ(ending_of(&s, s.number).code, GPUD_ECANCELLED);
    atomic_store(&s.page->cancel, 0);
    T_EQ(run(&s, LAUNCH, "plain").code, 0);
    close_scene(&s);
}

/* ---- pinning ---- */

#define ARENA (((uint64_t)5 << 29)) /* two pieces and a half */

static void open_arenas(struct scene *s, const char *script)
{
    open_scene(s, script, "0");
    (void)munmap(s->input, 4096);
    s->input = shared_memory(ARENA);
    s->result = shared_memory(ARENA);
    s->page->input_size = s->page->result_size = ARENA;
    s->page->cuda = GPUD_CUDA_PIN;
}

static void close_arenas(struct scene *s)
{
    (void)munmap(s->input + 4096, ARENA - 4096);
    (void)munmap(s->result, ARENA);
    close_scene(s);
}

/* As the arena of task data is in a worker. */
static void look_at_arenas(struct scene *s)
{
    T_EQ(run(s, LOOK, "").code, 0);
    T_EQ(run(s, PLAIN, "").code, 0);
}

T_CASE(arenas_are_pinned_in_pieces)
{
    struct scene s;

    if (!gpi_headroom_for((uint64_t)1 << 30))
        t_skip("too little memory is left for a piece");
    open_arenas(&s, "gpus 1\n");
    start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 6);
    T_EQ(t_word(REFUSED), 0);
    close_arenas(&s);
}

/* All of an arena or nothing: CUDA refuses to copy what is pinned in part. */
T_CASE(pinning_falls_back)
{
    struct scene s;

    if (!gpi_headroom_for((uint64_t)1 << 30))
        t_skip("too little memory is left for a piece");
    open_arenas(&s, "gpu 0 fail cuMemHostRegister_v2 2*1\n");
    start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(REFUSED), 1);
    T_EQ(t_word(PINNED), 3); /* the results' */
    close_arenas(&s);
    open_arenas(&s, "gpu 0 fail cuDeviceGetAttribute 1\n"); /* does not say that it can */
    start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 3);
    close_arenas(&s);
    open_arenas(&s, "gpu 0 slow cuMemHostRegister_v2 100ms\nat 150ms gpu 0 fail cuMemHostRegister_v2 1\n");
    start_well(&s);
    look_at_arenas(&s);
    T_EQ(t_word(PINNED), 0);
    close_arenas(&s);
}
