/* SPDX-License-Identifier: MIT */
/* start.c - the agent's part of the start of a run. */
#include "queue/runner/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/fault.h"
#include "queue/files/lock.h"
#include "queue/files/save.h"
#include "queue/runner/record.h"

/* What the runner gets, in the order of its descriptors. */
enum { RECORD, PLAN, STATE, GIVEN };

static int make_record(const struct gpq_start *s, int *ret_fd, struct gpq_error *e)
{
    char path[GPQ_PATH], head[GPQ_RECORD_LINE];
    struct stat st;
    int ret = gpq_run_path(path, s->state, &s->plan->id);

    if (!ret)
        ret = gpq_lock_take(path, ret_fd);
    if (ret == -EBUSY)
        return gpq_fail(e, GPQ_EBUSY, "%.300s: locked by another runner", path);
    if (ret)
        return gpq_fault(e, ret, "record of the run, in %.300s/run", s->state);
    if (fstat(*ret_fd, &st))
        return gpq_fault(e, errno, "%s", path);
    if (st.st_size)
        return gpq_fail(e, GPQ_EREFUSED, "%.300s: has %lld bytes, expected a new record", path,
                        (long long)st.st_size);
    ret = gpq_write_all(&gpq_system_files, *ret_fd, head,
                        gpq_record_head(head, &s->plan->id, s->boot, s->plan->port));
    return ret ? gpq_fault(e, ret, "%s", path) : 0;
}

static int make_plan(const struct gpq_plan *p, int *ret_fd, struct gpq_error *e)
{
    void *data;
    size_t size;
    int ret = gpq_plan_write(p, &data, &size);

    if (ret == -EINVAL || ret == -E2BIG)
        return gpq_fail(e, GPQ_EINVAL,
                        ret == -E2BIG ? "plan of the run: over %zu bytes"
                                      : "plan of the run: a field is not valid",
                        GPQ_PLAN_MOST);
    if (ret)
        return gpq_fault(e, ret, "plan of the run");
    *ret_fd = memfd_create("gpud-plan", MFD_CLOEXEC);
    ret = *ret_fd < 0 ? -errno : gpq_write_all(&gpq_system_files, *ret_fd, data, size);
    free(data);
    return ret ? gpq_fault(e, ret, "plan of the run") : 0;
}

/* Adds what the child does: each descriptor first moves to a number that none of them has. */
static int add_files(posix_spawn_file_actions_t *actions, const int given[GIVEN])
{
    int above = GPQ_RUN_RECORD + GIVEN, ret = 0;

    for (int i = 0; i < GIVEN; i++)
        above = given[i] >= above ? given[i] + 1 : above;
    for (int i = 0; !ret && i < GIVEN; i++)
        ret = posix_spawn_file_actions_adddup2(actions, given[i], above + i);
    for (int i = 0; !ret && i < GIVEN; i++)
        ret = posix_spawn_file_actions_adddup2(actions, above + i, GPQ_RUN_RECORD + i);
    return ret;
}

static int spawn(const struct gpq_start *s, const int given[GIVEN], pid_t *ret_pid)
{
    char name[] = "gpudispatch-runner", *argv[] = { name, NULL }, *none[] = { NULL };
    char *const *environment = s->environment ? s->environment : none;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    int ret = posix_spawn_file_actions_init(&actions);

    if (ret)
        return -ret;
    ret = posix_spawnattr_init(&attributes);
    if (ret) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -ret;
    }
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    ret = add_files(&actions, given);
    if (!ret)
        ret = posix_spawn(ret_pid, s->runner, &actions, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -ret;
}

int gpq_run_start(const struct gpq_start *s, pid_t *ret_runner, struct gpq_error *e)
{
    int given[GIVEN] = { -1, -1, -1 }, ret = make_plan(s->plan, &given[PLAN], e);

    if (!ret)
        ret = make_record(s, &given[RECORD], e);
    if (!ret) {
        given[STATE] = open(s->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (given[STATE] < 0)
            ret = gpq_fault(e, errno, "state directory %.300s", s->state);
    }
    if (!ret) {
        ret = spawn(s, given, ret_runner);
        if (ret)
            ret = gpq_fault(e, ret, "%.300s", s->runner);
    }
    for (int i = 0; i < GIVEN; i++)
        if (given[i] >= 0)
            (void)close(given[i]);
    return ret;
}
