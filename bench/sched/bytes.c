/* SPDX-License-Identifier: MIT */
/*
 * bytes.c - memory of the object per task and per shape: how much more a plan for a million has
 * than one for a tenth of that.  All memory is taken in create, so the growth of the address space
 * is all.  Each plan is made in a process of its own: what an earlier one has freed would be used
 * again.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"
#include "sched/plan.h"

#define FEW 100000u /* so that malloc returns its array to the kernel, too */
#define MANY 1000000u

/* Returns the bytes of data of this process; 0 if they cannot be read. */
static double data_size(void)
{
    unsigned long total, resident, shared, text, lib, data = 0;
    FILE *in = fopen("/proc/self/statm", "re");

    if (!in)
        return 0;
    if (fscanf(in, "%lu %lu %lu %lu %lu %lu", &total, &resident, &shared, &text, &lib, &data) != 6)
        data = 0;
    (void)fclose(in);
    return (double)data * (double)sysconf(_SC_PAGESIZE);
}

static _Noreturn void make_plan(int fd, uint32_t tasks, uint32_t shapes)
{
    const struct gpi_plan_settings settings = {
        .tasks = tasks, .shapes = shapes, .classes = 64, .devices = 8, .runs = 64
    };
    const double before = data_size();
    const struct gpi_plan *p = gpi_plan_create(&settings);
    const double size = p && before > 0 ? data_size() - before : -1;

    _exit(write(fd, &size, sizeof size) == (ssize_t)sizeof size ? 0 : 1);
}

/* Returns the bytes of a plan; negative if they cannot be read. */
static double size_of(uint32_t tasks, uint32_t shapes)
{
    double size = -1;
    int ends[2];
    pid_t pid;

    if (pipe(ends))
        return -1;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        make_plan(ends[1], tasks, shapes);
    (void)close(ends[1]);
    if (read(ends[0], &size, sizeof size) != (ssize_t)sizeof size)
        size = -1;
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return size;
}

/* Pages make some thousandths of a byte. */
static double per_item(double size)
{
    return round(size / (MANY - FEW) * 10) / 10;
}

int b_sched_bytes(const struct b_sched_set *set, double *figures)
{
    const double few = size_of(FEW, FEW), tasks = size_of(MANY, FEW), shapes = size_of(FEW, MANY);

    (void)set;
    if (few < 0 || tasks < few || shapes < few)
        return b_complain("the size of a plan cannot be read");
    figures[B_SCHED_bytes_per_task] = per_item(tasks - few);
    figures[B_SCHED_bytes_per_shape] = per_item(shapes - few);
    return 0;
}
