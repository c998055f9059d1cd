/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int cpus[2] = { -1, -1 };
static unsigned cpu_count;

void b_place_init(void)
{
    cpu_set_t set;
    int cpu;

    if (sched_getaffinity(0, sizeof(set), &set))
        return;
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &set))
            continue;
        if (cpu_count < 2)
            cpus[cpu_count] = cpu;
        cpu_count++;
    }
}

unsigned b_cpu_count(void)
{
    return cpu_count;
}

int b_cpu_number(unsigned i)
{
    return i < 2 ? cpus[i] : -1;
}

int b_pin(pid_t pid, int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return 0;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(pid, sizeof(set), &set);
}

void b_child_begin(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

void b_child_end(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

int b_burners_start(struct b_burners *b)
{
    pid_t parent = getpid();
    volatile unsigned spin = 0;
    unsigned i;

    for (i = 0; i < B_BURNERS; i++)
        b->pids[i] = 0;
    for (i = 0; i < B_BURNERS && i < cpu_count; i++) {
        b->pids[i] = fork();
        if (b->pids[i] < 0) {
            b_burners_stop(b);
            return -1;
        }
        if (b->pids[i] > 0)
            continue;
        b_child_begin(parent);
        (void)b_pin(0, cpus[i]);
        for (;;)
            spin = spin + 1;
    }
    return 0;
}

void b_burners_stop(struct b_burners *b)
{
    unsigned i;

    for (i = 0; i < B_BURNERS; i++) {
        b_child_end(b->pids[i]);
        b->pids[i] = 0;
    }
}
