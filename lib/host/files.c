/* SPDX-License-Identifier: MIT */
/*
 * files.c - how many file descriptors a dispatcher takes in the host: the one place that counts
 * them.  tests/proc/denied.c compares the count with the descriptors that a dispatcher has open.
 *
 * It leaves out two of a spawner of its own and one to the process that reads its devices, which
 * are open before its slots are known; and the two or three of gpud_dispatcher_fd, which fails on
 * its own when it cannot have them.
 */
#include <errno.h>

#include "base/failure.h"
#include "base/refused.h"
#include "host/dispatcher.h"
#include "os/fds.h"

#define FILES_FIXED 7u /* spawner; epoll, wake, lib_fd; input_fd, input_ro_fd; launch_fd */
#define FILES_SLOT 8u  /* page_fd, result_fd; orders, orders_kept, looks, output; keeper, worker */

uint32_t gpi_files_fixed(const struct gpi_birth *b)
{
    const struct gpi_class_birth *c = &b->class;
    const uint32_t most = FILES_FIXED + (b->spawner_pidfd >= 0) + (b->log_fd >= 0);

    if (b->set.pooled) /* each class takes its own when it is added */
        return most - 1;
    return most + (c->program_fd >= 0) + (c->setup_fd >= 0) +
           (c->launch->stdio == GPUD_STDIO_INHERIT ? 2 : 0);
}

/* With option stdio EVENTS each slot also has a pipe for stderr.  While the host requests the
 * keeper of the last slot, that slot has no keeper and worker yet, but the worker's ends of its
 * pipes. */
uint32_t gpi_files_slots(bool lines, uint32_t slots)
{
    return slots * (FILES_SLOT + lines) + 1 + lines;
}

int gpi_files_check(uint32_t need, uint32_t open, uint32_t slots, const char *field,
                    struct gpud_error *e)
{
    uint64_t limit;
    uint32_t left = gpi_fd_free(need - open, &limit) + open;

    if (left >= need)
        return 0;
    gpi_refused_forget(); /* no system call has refused it */
    return gpi_fail(e, GPUD_ESYSTEM, EMFILE, field,
                    "%u slot%s need%s %u file descriptors, %u of %llu are left (RLIMIT_NOFILE, "
                    "ulimit -n)",
                    slots, slots > 1 ? "s" : "", slots > 1 ? "" : "s", need, left,
                    (unsigned long long)limit);
}
