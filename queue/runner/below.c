/* SPDX-License-Identifier: MIT */
/* below.c - the processes below the runner. */
#include "queue/runner/below.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/runner/process.h"

/* Generations between the runner and a process; deeper ones are met when those above have ended. */
enum { GENERATIONS = 64 };

bool gpq_below_reap(pid_t command, uint64_t *killed)
{
    for (;;) {
        siginfo_t ended = { .si_pid = 0 };
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) || !ended.si_pid)
            return false;
        if (ended.si_pid == command)
            return true;
        *killed += ended.si_code == CLD_KILLED && ended.si_status == SIGKILL;
        (void)waitpid(ended.si_pid, NULL, __WALL);
    }
}

bool gpq_below_none(void)
{
    siginfo_t ended;

    return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) && errno == ECHILD;
}

/* The number is the child's: only the runner reaps it. */
static int kill_child(pid_t child, void *user)
{
    struct gpq_below_killed *k = user;

    k->found++;
    k->denied += kill(child, SIGKILL) && errno == EPERM;
    return 0;
}

int gpq_below_kill(struct gpq_below_killed *ret)
{
    *ret = (struct gpq_below_killed){ 0 };
    return gpq_process_children(kill_child, ret);
}

static int kill_if_below(const struct gpq_process *p, void *user)
{
    const pid_t self = *(const pid_t *)user;
    struct gpq_process above = *p;
    int pidfd;

    for (int i = 0; above.parent != self; i++)
        if (i == GENERATIONS || above.parent <= 1 || gpq_process_read(above.parent, &above))
            return 0;
    pidfd = gpq_process_open(p->pid, p->ticks);
    if (pidfd >= 0) {
        (void)gpq_process_signal(pidfd, SIGKILL);
        (void)close(pidfd);
    }
    return 0;
}

void gpq_below_kill_all(void)
{
    pid_t self = getpid();

    (void)gpq_process_each(kill_if_below, &self);
}
