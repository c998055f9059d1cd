/* SPDX-License-Identifier: MIT */
/* rights.c - hosts that drop privileges, and a host that is PID 1 of a namespace. */
#include "work.h"

#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void needs_root(void)
{
    if (geteuid())
        t_skip("only root can drop privileges");
}

/* A user that nobody else on this machine is, so that its limits are ours alone. */
static uid_t stranger(void)
{
    return (uid_t)(100000 + getpid());
}

static void drop(uid_t uid)
{
    T_EQ(setgroups(0, NULL), 0);
    T_EQ(setresgid(uid, uid, uid), 0);
    T_EQ(setresuid(uid, uid, uid), 0);
}

/* ---- privileges ---- */

static void drops_before(void *user)
{
    (void)user;
    drop(NOBODY);
    h_host_untouched();
}

/* A host that drops its privileges and then calls gpud_init works, unprivileged. */
T_CASE(drops_before_init)
{
    needs_root();
    h_in_child(drops_before, NULL);
}

static void drops_after(void *user)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_counts before, after;
    gpud_dispatcher *d = NULL;

    (void)user;
    h_init();
    before = t_counts_take();
    drop(NOBODY);
    T_CODE(gpud_dispatcher_create(
               &d, T_OPTIONS(.definition = "square", .devices = "cpu:2", .start = GPUD_START_FORK),
               &error),
           ECREDS);
    T_CHECK(!d);
    T_EQ(error.code, GPUD_ECREDS);
    T_CHECK(strstr(error.text, "gpud_init"));
    after = t_counts_take();
    T_CHECK(!memcmp(&before, &after, sizeof(before)));
    T_OK(gpud_fini());
    h_host_untouched(); /* a gpud_init of the new user's is in order */
}

/* One that drops them after gpud_init would fork workers with the rights it gave up: refused. */
T_CASE(drops_after_init)
{
    needs_root();
    h_in_child(drops_after, NULL);
}

static void drops_a_group(void *user)
{
    const gid_t groups[] = { 1, 2, 3 };
    gpud_dispatcher *d = NULL;

    (void)user;
    T_EQ(setgroups(3, groups), 0);
    h_init();
    T_EQ(setgroups(2, groups), 0);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.definition = "square", .start = GPUD_START_FORK),
                                  NULL),
           ECREDS);
    T_EQ(setgroups(3, groups), 0);
    T_EQ(setresgid(0, NOBODY, 0), 0);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.definition = "square", .start = GPUD_START_FORK),
                                  NULL),
           ECREDS);
    T_EQ(setresgid(0, 0, 0), 0);
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    h_work(d);
    t_end(&d, NULL);
}

/* Groups count as well, also the effective one alone; given back they are as they were. */
T_CASE(drops_a_group_after_init)
{
    needs_root();
    h_in_child(drops_a_group, NULL);
}

static void drops_with_dispatcher(void *user)
{
    gpud_dispatcher *d;

    (void)user;
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    h_work(d);
    drop(NOBODY);
    h_work(d); /* the kill of a worker goes through its keeper, which may still do it */
    t_end(&d, NULL);
}

/* A dispatcher from before the drop goes on: its workers have the old rights, as the host chose. */
T_CASE(drops_after_create)
{
    needs_root();
    h_in_child(drops_with_dispatcher, NULL);
}

/* ---- small pipes ---- */

static void with_small_pipes(void *user)
{
    enum { HOGS = 1100 };
    static int hog[HOGS][2];
    struct t_snapshot before;
    int p[2], size = 0;

    (void)user;
    drop(stranger());
    for (int i = 0; i < HOGS; i++)
        T_EQ(pipe(hog[i]), 0);
    T_EQ(pipe(p), 0);
    size = fcntl(p[0], F_GETPIPE_SZ);
    if (size > 8192)
        t_skip("pipes of this user do not become small: they have %d bytes", size);
    t_snapshot_take(&before);
    for (int round = 0; round < 3; round++) {
        gpud_dispatcher *d;

        h_init();
        d = T_CREATE(.definition = "square", .devices = "cpu:2", .sent_ahead = 64);
        h_work(d);
        h_work(d);
        t_end(&d, NULL);
    }
    t_snapshot_compare(&before);
}

/* An unprivileged user with many pipes gets pipes of 8 KiB or one page: all bells still fit. */
T_CASE(small_pipes)
{
    needs_root();
    h_in_child(with_small_pipes, NULL);
}

/* ---- PID 1 ---- */

static int daemon_is_gone(void *user)
{
    (void)user;
    return kill((pid_t)atomic_load(&t_page->numbers[H_DAEMON_PID]), 0) < 0 && errno == ESRCH;
}

static void first_of_namespace(void *user)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    int own_proc = *(int *)user;

    T_EQ(getpid(), 1);
    if (own_proc && (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
                     mount("proc", "/proc", "proc", 0, NULL)))
        t_skip("/proc cannot be mounted here: %s", strerror(errno));
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    h_work(d);
    (void)T_RUN(d, &log, CRASHED, .tag = H_TAG(H_DAEMON, 0));
    t_wait_until("the daemon of a dead worker is gone", daemon_is_gone, NULL);
    t_log_free(&log);
    h_work(d);
    t_end(&d, NULL);
    if (!T_THREAD_SANITIZED) {
        T_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* no zombie was left to PID 1 */
        T_EQ(errno, ECHILD);
    }
}

static void make_namespace(void *user)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS))
        t_skip("no PID namespace can be made here: %s", strerror(errno));
    h_in_child(first_of_namespace, user);
}

/* The host is PID 1 of a namespace, as in a container without an init. */
T_CASE(first_process)
{
    int own_proc = 1;

    needs_root();
    h_in_child(make_namespace, &own_proc);
}

/* ... and /proc is still that of the outer namespace, in which all have other numbers. */
T_CASE(first_process_with_outer_proc)
{
    int own_proc = 0;

    needs_root();
    h_in_child(make_namespace, &own_proc);
}
