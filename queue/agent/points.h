/* SPDX-License-Identifier: MIT */
/*
 * points.h - what a test changes of the agent's world.
 *
 * Only the agent of the tests, built with GPQ_TEST_POINTS, has it.  The file that GPQ_TEST_CLOCK
 * names has the difference in ns between its wall clock and that of the machine.  After a change of
 * it the test sends SIGUSR1, as the kernel cancels a timer of a clock that is set.
 * GPQ_TEST_NOTIFY_MS is the limit of notifications, GPQ_TEST_WATCH_MS that of clients that watch
 * and do not read, and GPQ_TEST_SHAPES that of shapes (ahead.h).
 */
#ifndef GPQ_AGENT_POINTS_H
#define GPQ_AGENT_POINTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef GPQ_TEST_POINTS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { GPQ_CLOCK_SIGNAL = SIGUSR1 };

static inline int64_t gpq_clock_ahead(void)
{
    const char *path = getenv("GPQ_TEST_CLOCK");
    char text[32] = "";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return strtoll(text, NULL, 10);
}

static inline uint64_t gpq_notify_limit(uint64_t ns)
{
    const char *text = getenv("GPQ_TEST_NOTIFY_MS");

    return text ? strtoull(text, NULL, 10) * 1000000 : ns;
}

static inline uint64_t gpq_watch_limit(uint64_t ns)
{
    const char *text = getenv("GPQ_TEST_WATCH_MS");

    return text ? strtoull(text, NULL, 10) * 1000000 : ns;
}

static inline size_t gpq_shapes_limit(size_t n)
{
    const char *text = getenv("GPQ_TEST_SHAPES");

    return text ? strtoul(text, NULL, 10) : n;
}
#else
enum { GPQ_CLOCK_SIGNAL = 0 };

static inline int64_t gpq_clock_ahead(void)
{
    return 0;
}

static inline uint64_t gpq_notify_limit(uint64_t ns)
{
    return ns;
}

static inline uint64_t gpq_watch_limit(uint64_t ns)
{
    return ns;
}

static inline size_t gpq_shapes_limit(size_t n)
{
    return n;
}
#endif

#endif
