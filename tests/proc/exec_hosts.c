/* SPDX-License-Identifier: MIT */
/* exec_hosts.c - hosts for which workers are executed: with CUDA and threads, without gpud_init,
 * with dropped privileges, whose program is gone; and what they see of it. */
#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ECHO, WHO, CUDA };
enum { READY, GATE };

static pid_t born_in; /* set before gpud_init */

typedef int(init_fn)(unsigned flags);
typedef int(count_fn)(int *ret_count);

static struct {
    void *object;
    init_fn *init;
    count_fn *count;
    unsigned *calls;
} cuda;

static void *symbol(const char *name)
{
    void *at = dlsym(cuda.object, name);

    T_CHECK(at);
    return at;
}

static void load_cuda(void)
{
    void *at;

    if (!cuda.object)
        cuda.object = dlopen(T_PROGRAMS "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda.object)
        T_FAIL("%s", dlerror());
    at = symbol("cuInit");
    memcpy(&cuda.init, &at, sizeof(at));
    at = symbol("cuDeviceGetCount");
    memcpy(&cuda.count, &at, sizeof(at));
    cuda.calls = symbol("fake_cuda_calls");
}

static int process(gpud_task *t, void *state)
{
    int answer;

    (void)state;
    switch (gpud_task_tag(t)) {
    case WHO: /* 1 = executed */
        answer = born_in == getpid();
        return gpud_task_result_set(t, &answer, sizeof(answer));
    case CUDA:
        load_cuda();
        answer = cuda.init(0);
        return gpud_task_result_set(t, &answer, sizeof(answer));
    default:
        return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
    }
}

static int ask_and_hear(const struct gpud_options *o, uint64_t tag, const char *remark)
{
    gpud_dispatcher *d = t_create(o);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    int answer;

    T_SUBMIT(d, .tag = tag);
    t_collect(d, &log, 1);
    answer =
        *(const int *)t_check_outcome(__FILE__, __LINE__, &log, tag, GPUD_OUTCOME_SUCCESS)->result;
    e = t_log_at(&log, GPUD_EVENT_LOG, 0);
    if (T_THREAD_SANITIZED && !remark)
        e = NULL; /* it has a thread of its own */
    if (remark ? !e || !strstr(e->text, remark) : e != NULL)
        T_FAIL("the log says \"%s\", not \"%s\"", e ? e->text : "nothing",
               remark ? remark : "nothing");
    t_destroy(&d, &log);
    return answer;
}

static int ask(const struct gpud_options *o, uint64_t tag)
{
    return ask_and_hear(o, tag, NULL);
}

#define GOOD .definition = "echo", .plugin = T_PROGRAMS "/plugin_good.so"

static void echoes(const struct gpud_options *o, uint64_t tasks)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_create(o);

    for (uint64_t n = 0; n < tasks; n++)
        T_SUBMIT(d, .tag = n, .data = &n, .size = sizeof(n));
    t_collect(d, &log, tasks);
    for (uint64_t n = 0; n < tasks; n++)
        T_EQ(*(const uint64_t *)T_OUTCOME(&log, n, SUCCESS)->result, n);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    t_destroy(&d, &log);
}

/* ---- CUDA ---- */

/* C14 B9: AUTO forks where CUDA has not been initialised, and executes where it has; the library
 * asks once, at gpud_init. [T14] */
T_CASE(auto_looks_at_cuda)
{
    static const struct {
        const char *told;
        int executed;
    } cases[] = { { "3", 0 }, { "34", 0 }, { "0", 1 }, { "100", 1 }, { "999", 1 } };

    born_in = getpid();
    t_init(NULL, process, NULL); /* not loaded at all */
    T_EQ(ask(T_OPTIONS(0), WHO), 0);
    T_EQ(ask(T_OPTIONS(.start = GPUD_START_EXEC), WHO), 1);
    T_OK(gpud_fini());
    load_cuda();
    for (size_t i = 0; i < T_LENGTH(cases); i++) {
        /* a host of its own: the same program again comes to this place only with i = 0 */
        pid_t pid = fork();
        int status;

        T_CMP(pid, >=, 0);
        if (!pid) {
            unsigned before = *cuda.calls;

            (void)setenv("FAKE_CUDA_RESULT", cases[i].told, 1);
            t_init(NULL, process, NULL);
            T_EQ(ask_and_hear(T_OPTIONS(0), WHO, cases[i].executed ? "CUDA was in use" : NULL),
                 cases[i].executed);
            T_EQ(ask(T_OPTIONS(.start = GPUD_START_FORK), WHO), 0);
            T_EQ(*cuda.calls, before + 1);
            T_OK(gpud_fini());
            _exit(0);
        }
        T_EQ(waitpid(pid, &status, 0), pid);
        T_EQ(status, 0);
    }
    (void)dlclose(cuda.object);
}

/* C14: what is forked from a host that uses CUDA cannot use it; what is executed can. */
T_CASE(cuda_in_workers)
{
    unsigned before;

    born_in = getpid();
    load_cuda();
    T_EQ(cuda.init(0), 0);
    before = *cuda.calls;
    t_init(NULL, process, NULL);
    T_EQ(ask(T_OPTIONS(.start = GPUD_START_FORK), CUDA), 3);
    T_EQ(ask_and_hear(T_OPTIONS(0), CUDA, "CUDA was in use"), 0);
    T_EQ(*cuda.calls, before + 1);
    T_OK(gpud_fini());
    (void)dlclose(cuda.object);
}

static void *wait_for_gate(void *unused)
{
    t_word_wait(GATE, 1);
    return unused;
}

/* A fork with other threads, or of much memory, is done, and remarked on. */
T_CASE(remarks)
{
    const size_t much = (size_t)300 << 20;
    pthread_t thread;
    char *memory;

    t_word_set(GATE, 0);
    t_thread(&thread, wait_for_gate, NULL);
    t_init(NULL, process, NULL);
    T_EQ(ask_and_hear(T_OPTIONS(0), WHO, "several threads"), 0);
    T_OK(gpud_fini());
    t_word_set(GATE, 1);
    t_join(thread);
    memory = mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    T_CHECK(memory != MAP_FAILED);
    memset(memory, 1, much);
    t_init(NULL, process, NULL);
    T_EQ(ask_and_hear(T_OPTIONS(0), WHO, " MiB at gpud_init"), 0);
    T_OK(gpud_fini());
    (void)munmap(memory, much);
}

static _Atomic int stop_threads;

static void *allocate(void *unused)
{
    while (!atomic_load(&stop_threads))
        free(malloc(1000));
    return unused;
}

/* C14: a host with CUDA in use, eight busy threads and much memory, that never called gpud_init:
 * to fork is refused, to execute works. [T14] */
T_CASE(cuda_and_threads)
{
    const size_t much = (size_t)(T_SANITIZED ? 64 : 512) << 20;
    char *memory = mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t threads[8];
    gpud_dispatcher *refused = NULL;
    unsigned before;

    T_CHECK(memory != MAP_FAILED);
    memset(memory, 1, much);
    load_cuda();
    T_EQ(cuda.init(0), 0);
    before = *cuda.calls;
    for (unsigned i = 0; i < 8; i++)
        t_thread(&threads[i], allocate, NULL);
    T_CODE(gpud_dispatcher_create(&refused, T_OPTIONS(.devices = "cpu:2", .start = GPUD_START_FORK),
                                  NULL),
           ENOINIT);
    T_CHECK(!refused);
    echoes(T_OPTIONS(GOOD, .devices = "cpu:2"), 50);
    T_EQ(*cuda.calls, before);
    atomic_store(&stop_threads, 1);
    for (unsigned i = 0; i < 8; i++)
        t_join(threads[i]);
    (void)munmap(memory, much);
    (void)dlclose(cuda.object);
}

/* ---- without gpud_init ---- */

static _Atomic int child_signals;

static void on_child(int number)
{
    (void)number;
    atomic_fetch_add(&child_signals, 1);
}

/* C13 A6: no SIGCHLD, no child that wait(NULL) or waitpid(-1) could meet or hang on. */
T_CASE(no_children)
{
    struct sigaction action = { .sa_handler = on_child }, old;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    int status;

    T_EQ(sigaction(SIGCHLD, &action, &old), 0);
    for (int round = 0; round < 5; round++) {
        d = T_CREATE(GOOD, .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER);
        T_SUBMIT(d, .tag = 1, .label = "die");
        T_SUBMIT(d, .tag = 2);
        t_collect(d, &log, 2);
        while (wait(NULL) > 0) /* with none it does not wait */
            ;
        T_EQ(errno, ECHILD);
        T_EQ(waitpid(-1, &status, 0), -1);
        T_EQ(errno, ECHILD);
        t_destroy(&d, &log);
        T_EQ(waitpid(-1, &status, __WALL), -1);
    }
    T_EQ(child_signals, 0);
    T_EQ(sigaction(SIGCHLD, &old, NULL), 0);
}

/* The same of a host that takes orphans: the spawner is its child, and is reaped. */
T_CASE(subreaper)
{
    T_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int round = 0; round < 5; round++) {
        echoes(T_OPTIONS(GOOD), 10);
        errno = 0;
        T_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1);
        T_EQ(errno, ECHILD);
    }
}

static unsigned spawners(void)
{
    char token[160];
    struct t_procs all;
    unsigned n = 0;

    (void)snprintf(token, sizeof(token), "T_TOKEN=%s", getenv("T_TOKEN"));
    all = t_procs_with_env(token);
    for (size_t i = 0; i < all.count; i++)
        n += !strcmp(all.list[i].comm, "gpud-spawner");
    t_procs_free(&all);
    return n;
}

static int are_two(void *unused)
{
    (void)unused;
    return spawners() == 2;
}

/* C16 C19: each dispatcher has a spawner of its own, from create to destroy. */
T_CASE(two_dispatchers)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d[2];

    if (!getenv("T_TOKEN"))
        t_skip("needs the runner");
    T_EQ(spawners(), 0);
    for (int i = 0; i < 2; i++)
        d[i] = T_CREATE(GOOD, .devices = "cpu:2");
    for (int i = 0; i < 2; i++)
        t_wait_ready(d[i], 2); /* a keeper has the spawner's name for a moment */
    t_wait_until("each has a spawner", are_two, NULL);
    T_SUBMIT(d[0], .tag = 1);
    t_collect(d[0], &log, 1);
    t_destroy(&d[0], &log);
    T_EQ(spawners(), 1);
    T_SUBMIT(d[1], .tag = 1);
    t_collect(d[1], &log, 1);
    t_init(NULL, process, NULL); /* and gpud_init may still come */
    T_OK(gpud_fini());
    t_destroy(&d[1], &log);
    T_EQ(spawners(), 0);
}

/* Its own spawner dies: the workers go on, and destroy does not wait for it. */
T_CASE(spawner_dies)
{
    struct t_log log = { 0 };
    struct t_procs all;
    char token[160];
    gpud_dispatcher *d;
    struct t_proc worker;

    if (!getenv("T_TOKEN"))
        t_skip("needs the runner");
    d = T_CREATE(GOOD);
    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 1);
    (void)snprintf(token, sizeof(token), "T_TOKEN=%s", getenv("T_TOKEN"));
    all = t_procs_with_env(token);
    for (size_t i = 0; i < all.count; i++)
        if (!strcmp(all.list[i].comm, "gpud-spawner"))
            t_kill(all.list[i].pid, SIGKILL);
    t_procs_free(&all);
    t_collect_kind(d, &log, GPUD_EVENT_LOG, 1);
    worker = t_worker(d, 0);
    T_SUBMIT(d, .tag = 2, .label = "die");
    T_SUBMIT(d, .tag = 3);
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, 2, CRASHED);
    (void)T_OUTCOME(&log, 3, SUCCESS);
    t_wait_ended(&worker);
    t_destroy(&d, &log);
}

/* A forked child of a host without gpud_init: EFORKED, destroy frees, and the parent's goes on. */
T_CASE(forked_child)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_CREATE(GOOD);
    int status;
    pid_t pid;

    t_wait_ready(d, 1);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid) {
        T_CODE(gpud_dispatcher_submit(d, T_TASK(0), 0, NULL, NULL), EFORKED);
        T_OK(gpud_dispatcher_destroy(&d, NULL));
        echoes(T_OPTIONS(GOOD, .drive = GPUD_DRIVE_CALLER), 3);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    t_destroy(&d, &log);
}

T_PROGRAM(host)
{
    gpud_dispatcher *d = T_CREATE(GOOD, .devices = "cpu:3");

    (void)argc, (void)argv;
    t_wait_ready(d, 3);
    (void)t_word_add(READY);
    t_rest();
}

static int all_gone(void *token)
{
    struct t_procs all = t_procs_with_env(token);
    size_t n = 0;

    for (size_t i = 0; i < all.count; i++)
        n += all.list[i].pid != getpid() && all.list[i].state != 'Z';
    t_procs_free(&all);
    return n == 0;
}

/* C11: nothing that was executed outlives the host. */
T_CASE(host_dies)
{
    char token[160];
    pid_t pid;

    if (!getenv("T_TOKEN"))
        t_skip("needs the runner");
    (void)snprintf(token, sizeof(token), "T_TOKEN=%s", getenv("T_TOKEN"));
    pid = t_program_start("host", NULL, NULL);
    t_word_wait(READY, 1);
    T_CHECK(!all_gone(token));
    t_kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
    t_wait_until("all is gone", all_gone, token);
}

/* ---- dropped privileges ---- */

/* FORK is refused with its own code; AUTO and EXEC run with what the host has now. */
T_PROGRAM(drops)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;

    (void)argc, (void)argv;
    t_init(NULL, process, NULL);
    T_EQ(setgroups(0, NULL), 0);
    T_EQ(setresgid(65534, 65534, 65534), 0);
    T_EQ(setresuid(65534, 65534, 65534), 0);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.start = GPUD_START_FORK), &error), ECREDS);
    T_TEXT(error.field, "start");
    if (access(T_PROGRAMS "/plugin_good.so", R_OK))
        t_skip("the build folder is not for everybody");
    d = T_CREATE(GOOD);
    T_EQ(*(const uid_t *)T_RUN(d, &log, SUCCESS, .tag = 1, .label = "uid")->result, 65534);
    t_destroy(&d, &log);
    (void)t_word_add(READY);
    _exit(0);
}

T_CASE(dropped_privileges)
{
    int status;
    pid_t pid;

    if (getuid())
        t_skip("only root can drop privileges");
    pid = t_program_start("drops", NULL, NULL);
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        _exit(77); /* it has said why */
    T_EQ(status, 0);
    T_EQ(t_word(READY), 1);
}

/* ---- the program's file ---- */

/* A program whose file is deleted, or replaced by another, after gpud_init: the same one runs
 * again. */
T_PROGRAM(loses_its_file)
{
    (void)argc;
    born_in = getpid();
    t_init(NULL, process, NULL);
    T_EQ(unlink("copy"), 0);
    if (!strcmp(argv[1], "replaced")) {
        T_EQ(symlink("/bin/true", "copy"), 0);
    }
    T_EQ(ask(T_OPTIONS(.start = GPUD_START_EXEC), WHO), 1);
    T_OK(gpud_fini());
    _exit(0);
}

static void copy_self(void)
{
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        to = open("copy", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    ssize_t n;

    while ((n = read(from, bytes, sizeof(bytes))) > 0)
        T_EQ(write(to, bytes, (size_t)n), n);
    T_EQ(n, 0);
    (void)close(from);
    (void)close(to);
}

static void library_path(char *to, size_t size)
{
    Dl_info info;

    T_CHECK(dladdr((void *)(uintptr_t)gpud_init, &info));
    (void)snprintf(to, size, "%.*s", (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
                   info.dli_fname);
}

T_CASE(program_without_file)
{
    static const char *const ways[] = { "deleted", "replaced" };
    char path[4096];

    library_path(path, sizeof(path));
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t pid;

        copy_self();
        pid = fork();
        if (!pid) {
            (void)setenv("LD_LIBRARY_PATH", path, 1);
            (void)execl("copy", "copy", "--program", "loses_its_file", ways[i], (char *)NULL);
            _exit(127);
        }
        T_EQ(waitpid(pid, &status, 0), pid);
        T_EQ(status, 0);
        (void)unlink("copy");
    }
}
