/* SPDX-License-Identifier: MIT */
/* sweep.c - every child of a process is killed, but those that are spared, however many there are.
 */
#include "harness.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/sweep.h"
#include "os/process.h"

static pid_t start_child(void)
{
    const pid_t self = getpid(), pid = fork();

    T_CMP(pid, >=, 0);
    if (pid == 0)
        while (gpi_process_die_with(self)) /* nothing is left of a case that has failed */
            (void)pause();
    if (pid == 0)
        _exit(0);
    return pid;
}

static void is_killed(pid_t pid)
{
    int status;

    T_EQ(waitpid(pid, &status, 0), pid);
    T_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void sweep_beside(const pid_t *spare, size_t n, unsigned remains)
{
    pid_t left[300];

    for (unsigned i = 0; i < remains; i++)
        left[i] = start_child();
    T_EQ(gpi_sweep(spare, n, NULL), (int)remains);
    for (unsigned i = 0; i < remains; i++)
        is_killed(left[i]);
    T_EQ(gpi_sweep(spare, n, NULL), 0);
}

/* The keepers of many slots are older than what a dead one has left, and so come first in any list.
 * [C11] */
T_CASE(remains_behind_many_keepers)
{
    static pid_t keeper[GPI_SWEEP_SPARED];
    const size_t n = 600;

    for (size_t i = 0; i < n; i++)
        keeper[i] = start_child();
    sweep_beside(keeper, n, 0);
    sweep_beside(keeper, n, 1);
    sweep_beside(keeper, n, 300);
    T_CHECK(!gpi_sweep_childless());
    T_EQ(gpi_sweep(NULL, 0, NULL), (int)n);
    for (size_t i = 0; i < n; i++)
        is_killed(keeper[i]);
    T_CHECK(gpi_sweep_childless());
    T_EQ(gpi_sweep(NULL, 0, NULL), 0);
}
