/* SPDX-License-Identifier: MIT */
#include "keeper/sweep.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/ways.h"
#include "os/children.h"
#include "os/process.h"

#define ROUND 256 /* beside the spared; the next round gets more: each death wakes the caller */
#define LISTED (GPI_SWEEP_SPARED + ROUND)

static bool spared(pid_t pid, const pid_t *spare, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spare[i] == pid)
            return true;
    return false;
}

bool gpi_sweep_childless(void)
{
    siginfo_t si;

    return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) && errno == ECHILD;
}

int gpi_sweep(const pid_t *spare, size_t n, int *ret_denied)
{
    pid_t pids[LISTED];
    int found, others = 0, denied = 0;

    if (ret_denied)
        *ret_denied = 0;
    if (gpi_sweep_childless())
        return 0;
    found = gpi_process_children(pids, LISTED);
    if (found < 0)
        return -1;
    for (int i = 0; i < found && i < (int)LISTED; i++) {
        if (spared(pids[i], spare, n))
            continue;
        denied += gpi_process_kill(pids[i], -1) == GPI_WAYS;
        others++;
    }
    if (ret_denied)
        *ret_denied = denied;
    if (found == 0)
        return -1; /* there is a child: the list misses it while processes appear and vanish */
    return found > (int)LISTED ? others + found - (int)LISTED : others;
}

void gpi_sweep_tracers(const pid_t *spare, size_t n)
{
    pid_t pids[LISTED];
    const int found = gpi_process_children(pids, LISTED);

    for (int i = 0; i < found && i < (int)LISTED; i++)
        if (!spared(pids[i], spare, n))
            gpi_children_free(pids[i]);
}
