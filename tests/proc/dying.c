/* SPDX-License-Identifier: MIT */
/*
 * dying.c - a worker on its way out, and something else befalls it: its device is fenced or
 * removed, its fork fails, its keeper dies.
 */
#include "scripted.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/control.h" /* a keeper's word is forged */

enum { STARTED };
enum { WORK, HANG, DIE, OUTLIVE_KEEPER };
#define LONG T_S(60) /* a limit that no case reaches */
#define GRACE T_S(2) /* in which the keeper is stopped */

static int process(gpud_task *t, void *state)
{
    const uint64_t verb = gpud_task_tag(t);

    (void)state;
    if (verb == DIE)
        (void)raise(SIGKILL);
    if (verb == OUTLIVE_KEEPER)
        T_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);
    if (verb == WORK)
        return 0;
    t_block_signals();
    (void)t_word_add(STARTED);
    t_rest();
}

/* ---- the keeper's socket ---- */

/* A second descriptor of the keeper's end of its control socket: to read what waits there, and to
 * speak for it. */
static int keeper_end(const struct t_proc *keeper)
{
    int pidfd = (int)syscall(SYS_pidfd_open, keeper->pid, 0), fd = -1;
    char path[64];
    struct dirent *entry;
    DIR *fds;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper->pid);
    fds = opendir(path);
    while (pidfd >= 0 && fd < 0 && fds && (entry = readdir(fds)) != NULL) {
        struct stat s;
        char name[400];

        (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (!stat(name, &s) && S_ISSOCK(s.st_mode))
            fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);
    }
    if (fds)
        (void)closedir(fds);
    if (fd < 0)
        t_skip("no descriptor of another process can be had here: %s", strerror(errno));
    T_EQ(close(pidfd), 0);
    return fd;
}

static int has_unread(void *user)
{
    int unread = 0;

    return !ioctl(*(int *)user, FIONREAD, &unread) && unread > 0;
}

/* A keeper that is stopped has been sent something. */
static void wait_for_order(const struct t_proc *keeper)
{
    int fd = keeper_end(keeper);

    t_wait_until("the keeper has an order", has_unread, &fd);
    T_EQ(close(fd), 0);
}

/* Runs the task on slot 0, without the dispatcher's thread, and returns who serves it. */
static void run_on_first(gpud_dispatcher *d, struct t_log *log, struct gpud_task_desc *task,
                         struct t_proc *ret_worker, struct t_proc *ret_keeper)
{
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    (void)t_submit(d, task);
    (void)t_poll(d, log, 0);
    t_word_wait(STARTED, 1);
    *ret_worker = t_worker(d, 0);
    *ret_keeper = t_keeper_of(ret_worker);
}

/* C10: the keeper is to kill the worker at its task's limit, and would spare a worker that was
 * stopped without the host's knowledge.  Its device has failed meanwhile: it is killed all the
 * same, without ever going on, and the verdict stays. */
T_LONG_CASE(spared_on_a_fenced_device, 120)
{
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_fakes(1, "when gone gpu 0 lost", T_OPTIONS(.grace = GRACE, .kill_limit = LONG));
    T_SUBMIT(d, .tag = HANG, .limit = T_S(1));
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    wait_for_order(&keeper);
    t_stop(&worker);
    t_trigger("gone");
    t_collect_kind(d, &log, GPUD_EVENT_DEVICE, 1); /* that it is lost */
    t_kill(keeper.pid, SIGCONT);
    t_wait_ended(&worker);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, HANG, TIMEOUT)->phase, GPUD_PHASE_HARD);
    t_end(&d, &log);
}

static int rests(void *user)
{
    struct t_proc *p = user;

    return !t_proc_read(p->pid, p) && p->state == 'S';
}

/* ---- nobody can say that it is dead ---- */

/* The device is removed meanwhile: the slot leaves the roster, although its worker survives. */
T_LONG_CASE(removed_before_the_proof, 120)
{
    struct gpud_stats stats = { .struct_size = sizeof stats };
    struct t_proc spawner, keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_fakes(2, "", T_OPTIONS(.kill_limit = T_MS(500), .drive = GPUD_DRIVE_CALLER));
    run_on_first(d, &log, T_TASK(.tag = OUTLIVE_KEEPER), &worker, &keeper);
    spawner = t_spawner();
    t_stop(&spawner);
    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&keeper);
    (void)t_poll(d, &log, 0);
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    t_kill(spawner.pid, SIGKILL);
    t_wait_ended(&spawner);
    t_collect(d, &log, 1);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    T_OK(gpud_dispatcher_stats(d, &stats));
    T_EQ(stats.slots, 1);
    t_kill(worker.pid, SIGKILL);
    t_wait_ended(&worker);
    t_end(&d, &log);
}

/* ---- there is no worker at all ---- */

/* C9: the keeper says that it cannot fork, and a close has ordered a kill: no failed setup. */
T_LONG_CASE(fork_fails_beside_a_close, 120)
{
    const struct gpi_control failed = {
        .kind = GPI_CTL_STARTED, .incarnation = 2, .sys_errno = EAGAIN
    };
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER,
                                 .close_limit = T_S(1), .kill_limit = LONG);
    int fd;

    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    fd = keeper_end(&keeper);
    T_SUBMIT(d, .tag = DIE);
    (void)t_poll(d, &log, 0);
    t_wait_ended(&worker);
    t_wait_until("the keeper rests", rests, &keeper); /* it has said that the worker is dead */
    t_stop(&keeper);
    t_collect(d, &log, 1);
    T_CHECK(t_word_waits(NULL)); /* START */
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, GPUD_NEVER));
    (void)t_poll(d, &log, 0); /* KILL */
    T_EQ(send(fd, &failed, sizeof(failed), 0), sizeof(failed));
    t_collect_rest(d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    T_EQ(t_stats(d).setup_failures, 0);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_STOPPED);
    T_EQ(close(fd), 0);
    t_destroy(&d, &log);
    (void)kill(keeper.pid, SIGCONT);
    t_wait_ended(&keeper);
    T_OK(gpud_fini());
}

/* C2: the keeper reports that the worker died on its own, ahead of the kill.  Then the keeper dies,
 * and the host reads that first. */
T_LONG_CASE(died_by_itself_and_then_its_keeper, 120)
{
    struct t_proc keeper, worker, keeper1, worker1;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .grace = GRACE,
                                 .kill_limit = LONG, .drive = GPUD_DRIVE_CALLER);
    int fd;

    run_on_first(d, &log, T_TASK(.tag = HANG, .limit = T_S(1)), &worker, &keeper);
    worker1 = t_worker(d, 1);
    keeper1 = t_keeper_of(&worker1);
    t_stop(&keeper);
    fd = keeper_end(&keeper);
    while (!has_unread(&fd))
        (void)t_poll(d, &log, T_MS(1));
    T_EQ(close(fd), 0);
    t_kill(keeper1.pid, SIGKILL); /* its end wakes the spawner's socket first */
    t_wait_ended(&keeper1);
    t_wait_ended(&worker1);
    t_pass(T_MS(300));
    t_kill(worker.pid, SIGKILL);
    t_wait_ended(&worker);
    t_kill(keeper.pid, SIGCONT);
    t_pass(T_MS(300));
    t_wait_until("the keeper rests", rests, &keeper);
    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&keeper);
    t_pass(T_MS(300));
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, HANG, CRASHED)->exit_kind, GPUD_EXIT_SIGNAL);
    t_end(&d, &log);
}
