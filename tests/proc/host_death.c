/* SPDX-License-Identifier: MIT */
/*
 * host_death.c - the host, the spawner or a keeper dies.
 *
 * A case starts a host as another program, waits until it is in the state in question, kills
 * what it is about, and looks whether all that carries the host's mark is gone within 1 s [C11].
 */
#include "fixture.h"

#include "snapshot.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY, SETUPS, RUNNING, DAEMONS, SIBLING, GATE };
enum { SIBLING_PID };

/* ---- the host that will die ---- */

enum { SLOTS = 3 };

static int hang_setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    t_block_signals();
    (void)t_word_add(SETUPS);
    t_rest();
}

static void leave_daemon(void)
{
    pid_t pid = fork();

    if (pid) {
        (void)waitpid(pid, NULL, 0);
        return;
    }
    (void)setsid();
    if (fork())
        _exit(0);
    t_block_signals();
    (void)t_word_add(DAEMONS);
    t_rest();
}

static int hang(gpud_task *t, void *state)
{
    (void)state;
    if (!strcmp(gpud_task_label(t), "daemon"))
        leave_daemon();
    if (!strcmp(gpud_task_label(t), "blocked")) {
        t_block_signals();
        (void)t_word_add(RUNNING);
        for (;;)
            atomic_fetch_add(&t_page->numbers[10], 1); /* burns */
    }
    (void)t_word_add(RUNNING);
    t_rest();
}

/* argv[1] says in which state it is to die: idle, setup, process, blocked, daemon, sibling. */
T_PROGRAM(host)
{
    const char *state = argv[argc - 1];
    int in_setup = !strcmp(state, "setup"), idle = !strcmp(state, "idle");
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    d = T_BEGIN(in_setup ? hang_setup : NULL, hang, .devices = "cpu:3");
    if (!in_setup)
        t_wait_ready(d, SLOTS);
    for (uint64_t i = 0; i < SLOTS && !in_setup && !idle; i++)
        T_SUBMIT(d, .label = state);
    if (!strcmp(state, "sibling")) {
        pid_t pid = fork(); /* holds a copy of every fd of ours */

        if (!pid) {
            (void)t_word_add(SIBLING);
            t_rest();
        }
        atomic_store(&t_page->numbers[SIBLING_PID], (uint64_t)pid);
        t_word_wait(SIBLING, 1);
    }
    (void)t_word_add(READY);
    while (t_poll(d, &log, GPUD_NEVER) >= 0)
        ;
    return 0;
}

/* ---- the case's side ---- */

struct family {
    pid_t host;
    char mark[64];
    struct t_procs members; /* all that carry the mark */
};

static struct family start_host(const char *state)
{
    struct family f;

    (void)snprintf(f.mark, sizeof(f.mark), "T_FAMILY=%d.%llx", (int)getpid(),
                   (unsigned long long)t_now());
    f.host = t_program_start("host", state, f.mark);
    t_word_wait(READY, 1);
    if (!strcmp(state, "setup"))
        t_word_wait(SETUPS, SLOTS);
    else if (strcmp(state, "idle") != 0)
        t_word_wait(RUNNING, SLOTS);
    if (!strcmp(state, "daemon"))
        t_word_wait(DAEMONS, SLOTS);
    f.members = t_procs_with_env(f.mark);
    /* host, spawner, keepers, workers at the least */
    T_CMP(f.members.count, >=, 2 + 2 * SLOTS);
    return f;
}

static struct t_proc member(const struct family *f, const char *name, unsigned n)
{
    for (size_t i = 0; i < f->members.count; i++)
        if (!strncmp(f->members.list[i].comm, name, strlen(name)) && !n--)
            return f->members.list[i];
    T_FAIL("no %s among %zu processes", name, f->members.count);
}

/* Waits until nothing carries the mark (but `except`), and says how long it took; 1 s is the
 * promise. */
static void expect_gone(struct family *f, pid_t except)
{
    uint64_t start = t_now(), waited;
    size_t count, i;

    do {
        struct t_procs left = t_procs_with_env(f->mark);

        waited = t_now() - start;
        for (i = 0, count = 0; i < left.count; i++) {
            if (left.list[i].pid == except)
                continue;
            if (waited > T_S(1))
                (void)fprintf(stderr, "still there: %d %s\n", (int)left.list[i].pid,
                              left.list[i].comm);
            count++;
        }
        t_procs_free(&left);
        if (count && waited > T_S(1))
            T_FAIL("%zu processes live 1 s after their host", count);
        if (count)
            (void)poll(NULL, 0, 1);
    } while (count);
    printf("all gone after %.1f ms\n", (double)waited / 1e6);
    t_procs_free(&f->members);
}

static void kill_host(struct family *f, pid_t except)
{
    t_kill(f->host, SIGKILL);
    T_EQ(waitpid(f->host, NULL, 0), f->host);
    expect_gone(f, except);
}

static void host_dies(const char *state)
{
    struct family f = start_host(state);

    kill_host(&f, 0);
}

/* Another of ours gets a signal at the same instant. */
static void host_dies_with(const char *name, unsigned n, int number)
{
    struct family f = start_host("daemon");

    t_kill(member(&f, name, n).pid, number);
    kill_host(&f, 0);
}

/* A host that sends payloads back and forth as fast as it can; word RUNNING counts what has come
 * back. */
static int echo(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

static int give_payload(struct gpud_task_desc *task, size_t n, void *user)
{
    static _Thread_local unsigned char bytes[100000];

    (void)n;
    (void)user;
    task->data = bytes;
    task->size = sizeof(bytes);
    return 1;
}

static int count_echo(const struct gpud_event *e, void *user)
{
    (void)e, (void)user;
    (void)t_word_add(RUNNING);
    return 0;
}

T_PROGRAM(transfer)
{
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    d = T_BEGIN(NULL, echo, .devices = "cpu:3", .payload_budget = 32u << 20);
    return gpud_dispatcher_run(d, give_payload, T_CALLBACKS(.on_success = count_echo), NULL, NULL);
}

/* C11 C18: SIGKILL at many moments of a busy transfer: nothing lives, nothing named is left. [T16]
 */
T_CASE(host_dies_mid_transfer)
{
    const unsigned rounds = (unsigned)t_rounds(50, 30);

    for (unsigned round = 0; round < rounds; round++) {
        struct family f = { .members = { NULL, 0 } };

        t_word_set(RUNNING, 0);
        (void)snprintf(f.mark, sizeof(f.mark), "T_FAMILY=%d.%u", (int)getpid(), round);
        f.host = t_program_start("transfer", NULL, f.mark);
        t_word_wait(RUNNING, 1 + round * 7 % 90);
        kill_host(&f, 0);
    }
    T_EQ(t_named_shared_memory(), 0);
}

/* C11 [T10] */
T_CASE(host_dies_idle)
{
    host_dies("idle");
}

/* C11 [T10] */
T_CASE(host_dies_in_setup)
{
    host_dies("setup");
}

/* C11 [T10] [G15] */
T_CASE(host_dies_in_process)
{
    host_dies("process");
}

/* C11: workers burn with all signals blocked. */
T_CASE(host_dies_with_signals_blocked)
{
    host_dies("blocked");
}

/* C11: daemonised grandchildren that block all signals go too. [T10] */
T_CASE(host_dies_with_daemons)
{
    host_dies("daemon");
}

/* C11 F12: a bare-forked sibling holds every fd of the host, so no end of file ever comes; and with
 * `too` another of ours dies at the same instant. */
static void host_dies_with_sibling(const char *too)
{
    struct family f = start_host("sibling");
    struct t_proc sibling;

    if (too)
        t_kill(member(&f, too, 0).pid, SIGKILL);
    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[SIBLING_PID]), &sibling), 0);
    kill_host(&f, sibling.pid);
    T_CHECK(!t_proc_ended(&sibling));
    t_kill(sibling.pid, SIGKILL);
    t_wait_ended(&sibling);
}

T_CASE(host_with_sibling_dies)
{
    host_dies_with_sibling(NULL);
}

T_CASE(host_with_sibling_and_spawner_die)
{
    host_dies_with_sibling("gpud-spawner");
}

T_CASE(host_with_sibling_and_keeper_die)
{
    host_dies_with_sibling("gpud-keeper");
}

/* C11: host and spawner at the same instant. */
T_CASE(host_and_spawner_die)
{
    host_dies_with("gpud-spawner", 0, SIGKILL);
}

/* C11: a spawner that somebody has stopped is no survivor. */
T_CASE(spawner_is_stopped_and_host_dies)
{
    host_dies_with("gpud-spawner", 0, SIGSTOP);
}

/* C11: host and one keeper at the same instant. */
T_CASE(host_and_keeper_die)
{
    host_dies_with("gpud-keeper", 1, SIGKILL);
}

static int wait_for_gate(gpud_task *t, void *state)
{
    (void)t, (void)state;
    (void)t_word_add(RUNNING);
    t_word_wait(GATE, 1);
    return 0;
}

T_PROGRAM(careless)
{
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    d = T_BEGIN(NULL, wait_for_gate, .devices = "cpu:3");
    for (uint64_t i = 0; i < SLOTS; i++)
        T_SUBMIT(d, 0);
    t_word_wait(RUNNING, SLOTS);
    (void)t_word_add(READY);
    exit(5);
}

/* C11: the host ends by exit without a word to the library. */
T_CASE(host_exits_without_destroy)
{
    struct family f = { .members = { NULL, 0 } };
    int status = 0;

    (void)snprintf(f.mark, sizeof(f.mark), "T_FAMILY=%d", (int)getpid());
    f.host = t_program_start("careless", NULL, f.mark);
    T_EQ(waitpid(f.host, &status, 0), f.host);
    T_CHECK(WIFEXITED(status));
    T_EQ(WEXITSTATUS(status), 5);
    expect_gone(&f, 0);
}
