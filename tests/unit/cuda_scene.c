/* SPDX-License-Identifier: MIT */
#include "cuda_scene.h"

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
#include "wire/frame.h"
#include "worker/cuda_abi.h"
#include "worker/worker.h"

/* ---- the worker ---- */

struct c_with c_with;

static unsigned number(const char *name)
{
    const unsigned *at = t_cuda(name);

    T_CHECK(at);
    return *at;
}

static int *pending(void)
{
    static int of_linked;
    void *library =
             c_with.runtime ? dlopen(T_PROGRAMS "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL) : NULL,
         *at;

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
    t_word_set(DEVICES_SEEN, gpud_worker_device_uuid(w, 0) &&
                                 !strcmp(gpud_worker_device_uuid(w, 0), c_with.uuid0));
    T_CHECK(gpud_worker_device_uuid(w, 16) == NULL);
    if (c_with.linked)
        T_EQ(gpud_cuda_last_error(w, linked_last_error), 0);
    return 0;
}

/* Longer than the limit, in waits that each signal ends. */
static void block(void)
{
    struct sigaction now;

    T_EQ(sigaction(SIGALRM, NULL, &now), 0);
    t_word_set(FLAGS, now.sa_flags & SA_RESTART ? 1 : 0);
    t_word_set(SIGNALS, 0);
    for (uint64_t until = t_now() + T_MS(500), at; (at = t_now()) < until;)
        if (poll(NULL, 0, (int)((until - at) / T_MS(1)) + 1) < 0 && errno == EINTR)
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
        t_thread(&thread, wait_in_thread, t);
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

void *c_shared_memory(size_t size)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    T_CHECK(at != MAP_FAILED);
    return at;
}

void c_open(struct c_scene *s, const char *script, const char *devices)
{
    char names[64], *at = names;

    memset(s, 0, sizeof(*s));
    s->size = gpi_page_size(0);
    s->page = c_shared_memory(s->size);
    s->input = c_shared_memory(4096);
    s->result = (unsigned char *)s->input;
    T_EQ(pipe(s->orders), 0);
    T_EQ(pipe(s->looks), 0);
    T_EQ(fcntl(s->looks[0], F_SETFL, O_NONBLOCK), 0);
    s->page->device_kind = GPUD_DEVICE_GPU;
    s->page->max_batch = 1;
    for (uint32_t i = 0; i < (uint32_t)strlen(devices); i++) {
        snprintf(s->page->uuid[i], sizeof(s->page->uuid[i]), C_UUID("%c"), devices[i], devices[i]);
        at += snprintf(at, (size_t)(names + sizeof(names) - at), "%sgpu:%c", i ? "," : "",
                       devices[i]);
    }
    snprintf(s->page->device, sizeof(s->page->device), "%s", names);
    c_with.library = T_PROGRAMS "/libcuda.so.1";
    c_with.uuid0 = s->page->uuid[0];
    c_with.runtime = true;
    c_with.linked = false;
    T_EQ(setenv("FAKE_SCRIPT_TEXT", script, 1), 0);
}

static _Noreturn void be_worker(const struct c_scene *s, pid_t host)
{
    static struct gpud_definition definition = GPUD_DEFINITION("test", setup, process, NULL);
    char visible[GPI_DEVICES * GPI_DEVICE_UUID_SIZE];
    size_t at = 0;
    const struct gpi_worker_plan plan = {
        .definition = &definition,
        .page = s->page,
        .input = (unsigned char *)s->input,
        .result = s->result,
        .orders = s->orders[0],
        .looks = s->looks[1],
        .incarnation = s->page->incarnation,
        .keeper = host,
    };

    if (s->page->max_batch > 1)
        definition.process_batch = process_batch;
    for (int i = 0; i < (int)GPI_DEVICES && *s->page->uuid[i]; i++)
        at += (size_t)snprintf(visible + at, sizeof(visible) - at, "%s%s", i ? "," : "",
                               s->page->uuid[i]);
    if (!getenv("CUDA_VISIBLE_DEVICES"))
        (void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    if (c_with.library && !dlopen(c_with.library, RTLD_NOW | RTLD_LOCAL))
        _exit(99);
    gpi_worker_run(&plan);
    _exit(98);
}

void c_start(struct c_scene *s)
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

void c_wait_for(const struct c_scene *s, const char *what, bool (*come)(const struct c_scene *s))
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

bool c_set_up(const struct c_scene *s)
{
    return atomic_load(&s->page->setup_done) != 0;
}

bool c_has_ended(const struct c_scene *s)
{
    return atomic_load(&s->page->cell[s->number % GPI_CELLS].end) >> 8 == s->number;
}

void c_start_well(struct c_scene *s)
{
    c_start(s);
    c_wait_for(s, "setup", c_set_up);
    if (s->page->setup_done != 1)
        T_FAIL("setup failed: %s", s->page->setup_text);
}

int c_reap(struct c_scene *s)
{
    int status;

    T_EQ(waitpid(s->worker, &status, 0), s->worker);
    s->worker = 0;
    return status;
}

int c_exit_status(struct c_scene *s)
{
    int status = c_reap(s);

    if (!WIFEXITED(status))
        T_FAIL("the worker ended with wait status %#x", status);
    return WEXITSTATUS(status);
}

void c_put(struct c_scene *s, uint64_t tag, const char *kernel, uint64_t limit)
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

void c_ring(struct c_scene *s)
{
    const struct gpi_frame bell = { .magic = GPI_ORDER_MAGIC,
                                    .incarnation = s->page->incarnation,
                                    .what = GPI_ORDER_TASKS };

    atomic_store(&s->page->sent_number, s->number);
    if (gpi_page_must_ring(&s->page->worker_sleeps))
        T_EQ(write(s->orders[1], &bell, sizeof(bell)), sizeof(bell));
}

struct gpi_ending c_ending_of(struct c_scene *s, uint64_t n)
{
    struct gpi_ending e;

    T_EQ(gpi_cell_look(&s->page->cell[n % GPI_CELLS], n, 1, gpi_now(), 0, &e), GPI_LOOK_ENDED);
    return e;
}

struct gpi_ending c_run(struct c_scene *s, uint64_t tag, const char *kernel)
{
    c_put(s, tag, kernel, GPI_NEVER);
    c_ring(s);
    c_wait_for(s, "the end of a task", c_has_ended);
    return c_ending_of(s, s->number);
}

const char *c_text_of(const struct c_scene *s, uint64_t n)
{
    return s->page->extra[n % GPI_CELLS].fail_text;
}

void c_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        T_FAIL("\"%s\" does not say \"%s\"", text, part);
}

void c_close(struct c_scene *s)
{
    const struct gpi_frame end = { .magic = GPI_ORDER_MAGIC,
                                   .incarnation = s->page->incarnation,
                                   .what = GPI_ORDER_END };

    if (s->worker) {
        T_EQ(write(s->orders[1], &end, sizeof(end)), sizeof(end));
        T_EQ(c_exit_status(s), 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)close(s->orders[i]);
        (void)close(s->looks[i]);
    }
    (void)munmap(s->page, s->size);
    (void)munmap(s->input, 4096);
    T_EQ(unsetenv("FAKE_SCRIPT_TEXT"), 0);
}

const char *c_refused(struct c_scene *s)
{
    t_word_set(SETUPS, 0);
    c_start(s);
    T_EQ(c_exit_status(s), 1);
    T_EQ(s->page->setup_done, 2);
    T_EQ(s->page->setup_code, GPUD_EDEVICE);
    T_EQ(t_word(SETUPS), 0);
    return s->page->setup_text;
}
