/* SPDX-License-Identifier: MIT */
/*
 * points.h - instants at which a test stops the runner and kills it.
 *
 * Only the runner of the tests, built with GPQ_TEST_POINTS, has them.  There GPQ_TEST_POINT in its
 * environment names the one at which it stops itself.
 */
#ifndef GPQ_RUNNER_POINTS_H
#define GPQ_RUNNER_POINTS_H

#ifdef GPQ_TEST_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static inline void gpq_point(const char *name)
{
    const char *wanted = getenv("GPQ_TEST_POINT");

    if (wanted && !strcmp(wanted, name))
        (void)raise(SIGSTOP);
}
#else
static inline void gpq_point(const char *name)
{
    (void)name;
}
#endif

#endif
