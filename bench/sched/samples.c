/* SPDX-License-Identifier: MIT */
/* samples.c - times without interruptions. */
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../report.h"

/* Shorter than the slice of another program, longer than most decisions: the kernel is asked
 * rarely. */
#define LONG_NS 50000

static long count_switches(void)
{
    struct rusage use = { 0 };

    (void)getrusage(RUSAGE_SELF, &use);
    return use.ru_nivcsw;
}

int b_samples_init(struct b_samples *s, size_t room)
{
    *s = (struct b_samples){ malloc(sizeof *s->ns * room), 0, room, 0, count_switches() };
    return s->ns ? 0 : b_complain("no memory for %zu times", room);
}

void b_samples_fini(struct b_samples *s)
{
    free(s->ns);
}

void b_samples_add(struct b_samples *s, double ns, double clock)
{
    const long before = s->switches;

    if (s->n == s->room)
        return;
    if (ns > LONG_NS)
        s->switches = count_switches();
    if (s->switches != before)
        s->interrupted++;
    else
        s->ns[s->n++] = ns > clock ? ns - clock : 0;
}

double b_samples_mean(const struct b_samples *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += s->ns[i];
    return s->n ? sum / (double)s->n : NAN;
}
