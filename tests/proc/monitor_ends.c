/* SPDX-License-Identifier: MIT */
/*
 * monitor_ends.c - the process that reads devices, and its end: it cannot be killed, dies, is
 * stopped, outlives nobody; nobody else is hurt by it.
 */
#include "monitors.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY };

/* ---- it cannot be killed ---- */

/* What stands for D state here: this process traces it, so once it is dead the spawner cannot reap
 * it, and has a child that SIGKILL does not rid it of, until we let go. */
static void hold(const struct t_proc *p)
{
    if (ptrace(PTRACE_SEIZE, p->pid, NULL, NULL))
        t_skip("no process can be traced here: %s", strerror(errno));
}

static void let_go(const struct t_proc *p)
{
    T_EQ(waitpid(p->pid, NULL, __WALL), p->pid);
}

/* Neither close nor gpud_fini waits for it for longer than a moment. */
static void cannot_be_killed(void)
{
    gpud_monitor *m = t_monitor_open(1, "gpu 0 hang sample\n");
    struct t_proc p;

    t_monitor_ask_in_vain(m, 1);
    p = t_the_monitor();
    hold(&p);
    t_monitor_close_quickly(&m);
    t_fini_quickly();
    let_go(&p);
}

T_CASE(unkillable_monitor_delays_nobody)
{
    t_init(NULL, t_no_work, NULL);
    cannot_be_killed();
}

T_CASE(unkillable_monitor_delays_nobody_without_init)
{
    cannot_be_killed();
}

/* ... nor does the slot whose keeper has died: what that has left is swept without it. */
T_CASE(unkillable_monitor_does_not_hold_up_sweeps)
{
    struct t_proc p, worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1", .backoff = T_MS(5));
    gpud_monitor *m;

    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    p = t_the_monitor();
    hold(&p);
    T_OK(gpud_monitor_close(&m));
    t_wait_ended(&p); /* a zombie that nobody reaps */
    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&worker);
    (void)T_RUN(d, &log, SUCCESS, .tag = 0);
    t_destroy(&d, &log);
    t_fini_quickly();
    let_go(&p);
}

/* A live one is spared when the spawner sweeps. */
T_CASE(sweeping_spares_the_monitor)
{
    struct t_proc p, worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1", .backoff = T_MS(5));
    gpud_monitor *m;

    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    p = t_the_monitor();
    for (uint64_t i = 0; i < 3; i++) {
        t_wait_ready(d, 1);
        worker = t_worker(d, 0);
        keeper = t_keeper_of(&worker);
        t_kill(keeper.pid, SIGKILL);
        t_wait_ended(&worker);
        T_SUBMIT(d, .tag = 0);
        t_collect(d, &log, i + 1);
    }
    T_EQ(t_the_monitor().pid, p.pid);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    t_destroy(&d, &log);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- somebody dies ---- */

static int is_gone(void *m)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;

    return gpud_monitor_read(m, &row, 1, 0, T_MS(5)) == GPUD_ESPAWNER;
}

/* The monitor is killed: that is told; another one is well. */
T_CASE(monitor_is_killed)
{
    struct t_proc p;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    p = t_the_monitor();
    t_kill(p.pid, SIGKILL);
    t_wait_until("its death is told", is_gone, m);
    T_EQ(t_monitor_driver(m, T_PATIENCE).state, GPUD_DRIVER_FAILED);
    T_OK(gpud_monitor_close(&m));
    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    T_CHECK(t_the_monitor().pid != p.pid);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* The spawner is killed: its monitors go with it, and no other can be opened there. */
T_CASE(spawner_is_killed)
{
    struct t_proc p, spawner;
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m, *other = NULL;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, "gpu 0 hang sample\n");
    t_monitor_ask_in_vain(m, 1);
    p = t_the_monitor();
    spawner = t_spawner();
    t_kill(spawner.pid, SIGKILL);
    t_wait_ended(&p);
    /* it closes its connections one by one: the monitor may end before the last one is closed */
    t_wait_ended(&spawner);
    t_wait_until("its death is told", is_gone, m);
    T_CODE(gpud_monitor_open(&other, "fake:1", &e), ESPAWNER);
    T_CHECK(!other);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* A host with monitors, one of which hangs; with gpud_init or, "bundled", without. */
T_PROGRAM(host)
{
    gpud_monitor *m, *hung;

    if (strcmp(argv[argc - 1], "bundled") != 0)
        t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    hung = t_monitor_open(1, "gpu 0 hang sample\n");
    t_monitor_ask_in_vain(hung, 1);
    if (!strcmp(argv[argc - 1], "sibling") && !fork()) {
        (void)t_word_add(READY);
        t_rest();
    }
    (void)t_word_add(READY);
    t_rest();
}

/* C11: the host is killed, or it and its spawners at the same instant: within a second all is
 * gone. A forked sibling holds all the sockets, and changes nothing. */
static void host_dies(const char *how, int with_spawner)
{
    struct t_procs family;
    uint64_t start;
    size_t left;
    char mark[64];
    pid_t host;

    (void)snprintf(mark, sizeof(mark), "T_FAMILY=%d.%llx", (int)getpid(),
                   (unsigned long long)t_now());
    host = t_program_start("host", how, mark);
    t_word_wait(READY, strcmp(how, "sibling") ? 1 : 2);
    T_EQ(t_monitors(NULL), 2);
    family = t_procs_with_env(mark);
    for (size_t i = 0; i < family.count && with_spawner; i++)
        if (!strcmp(family.list[i].comm, "gpud-spawner"))
            t_kill(family.list[i].pid, SIGKILL);
    t_procs_free(&family);
    t_kill(host, SIGKILL);
    T_EQ(waitpid(host, NULL, 0), host);
    start = t_now();
    while ((left = t_monitors(NULL)))
        if (t_now() - start > T_S(1))
            T_FAIL("%zu monitors live 1 s after their host", left);
    printf("gone after %.1f ms\n", (double)(t_now() - start) / 1e6);
    family = t_procs_with_env(mark);
    for (size_t i = 0; i < family.count; i++)
        (void)kill(family.list[i].pid, SIGKILL); /* the sibling */
    t_procs_free(&family);
}

T_CASE(host_is_killed)
{
    host_dies("init", 0);
}

T_CASE(host_and_spawner_are_killed)
{
    host_dies("init", 1);
}

T_CASE(host_with_sibling_is_killed)
{
    host_dies("sibling", 0);
}

T_CASE(host_with_bundled_spawners_is_killed)
{
    host_dies("bundled", 0);
}

T_CASE(host_and_bundled_spawners_are_killed)
{
    host_dies("bundled", 1);
}

/* ---- other hosts ---- */

static int two_monitors(void *unused)
{
    (void)unused;
    return t_monitors(NULL) == 2;
}

/* Without gpud_init the bundled program does it; after close nothing of it is left. */
T_CASE(without_init)
{
    gpud_monitor *m = t_monitor_open(2, NULL), *second = t_monitor_open(1, "driver hang open\n");

    (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
    (void)t_monitor_rows(second, 0, 0, T_MS(10));
    t_wait_until("there are two", two_monitors, NULL);
    t_monitor_close_quickly(&second);
    T_EQ(t_monitors(NULL), 1);
    t_monitor_close_quickly(&m);
    T_CHECK(t_no_monitor(NULL));
}

/* A forked child is not the owner: EFORKED, close frees, the parent's goes on; the child may have
 * one of its own. */
static void forked_child(void)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;
    gpud_monitor *m = t_monitor_open(1, NULL);
    struct t_proc p;
    int status;
    pid_t pid;

    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    p = t_the_monitor();
    pid = fork();
    if (!pid) {
        T_CODE(gpud_monitor_read(m, &row, 1, 0, 0), EFORKED);
        T_CODE(gpud_monitor_driver(m, &info, 0), EFORKED);
        T_OK(gpud_monitor_close(&m));
        T_CHECK(!m);
        m = t_monitor_open(1, NULL);
        (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
        T_OK(gpud_monitor_close(&m));
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    T_EQ(t_the_monitor().pid, p.pid);
    T_OK(gpud_monitor_close(&m));
}

T_CASE(forked_child_with_init)
{
    t_init(NULL, t_no_work, NULL);
    forked_child();
    T_OK(gpud_fini());
}

T_CASE(forked_child_without_init)
{
    forked_child();
}

/* A forked child that keeps copies of our sockets keeps no monitor alive. */
T_CASE(closed_while_a_child_holds_copies)
{
    gpud_monitor *m;
    pid_t pid;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, "gpu 0 hang sample\n");
    t_monitor_ask_in_vain(m, 1);
    pid = fork();
    if (!pid)
        t_rest();
    T_OK(gpud_monitor_close(&m));
    t_wait_until("the monitor is gone", t_no_monitor, NULL);
    t_kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
    T_OK(gpud_fini());
}

static int only_the_spawner(void *unused)
{
    struct t_procs below = t_procs_below(getpid());
    size_t count = below.count;

    (void)unused;
    t_procs_free(&below);
    return count == 1; /* zombies are counted, too */
}

/* C19: fifty monitors after each other leave nothing; the harness looks at the rest. */
T_CASE(fifty_after_each_other)
{
    t_init(NULL, t_no_work, NULL);
    for (int i = 0; i < 50; i++) {
        gpud_monitor *m = t_monitor_open(2, i % 5 ? NULL : "gpu 1 hang enumerate\n");

        if (i % 5)
            (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
        T_OK(gpud_monitor_close(&m));
    }
    t_wait_until("nothing is left but the spawner", only_the_spawner, NULL);
    T_OK(gpud_fini());
}

/* One that cannot see the end of its socket, being stopped, is killed when its connection ends. */
T_CASE(stopped_monitor_is_killed)
{
    struct t_proc p;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, NULL);
    (void)t_monitor_rows(m, 1, 0, T_PATIENCE);
    p = t_the_monitor();
    t_stop(&p); /* else it may see that end first */
    T_OK(gpud_monitor_close(&m));
    t_wait_ended(&p);
    T_OK(gpud_fini());
}
