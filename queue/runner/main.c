/* SPDX-License-Identifier: MIT */
/* main.c - gpudispatch-runner: what it was given, and its surroundings. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "queue/runner/life.h"
#include "queue/runner/record.h"

enum { UNUSABLE = 2 };

/* ---- What it was given ---- */

/* Reads a whole file from its first byte on, and at most `most` bytes.  NULL on failure. */
static char *read_fd(int fd, size_t most, size_t *ret_size)
{
    struct stat st;
    size_t size, done = 0;
    char *data;

    if (fstat(fd, &st) || st.st_size <= 0 || (uint64_t)st.st_size > most)
        return NULL;
    size = (size_t)st.st_size;
    data = malloc(size);
    while (data && done < size) {
        ssize_t n = pread(fd, data + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(data);
            return NULL;
        }
        done += (size_t)n;
    }
    *ret_size = size;
    return data;
}

static bool read_plan(struct gpq_plan *ret)
{
    size_t size;
    char *data = read_fd(GPQ_RUN_PLAN, GPQ_PLAN_MOST, &size);
    bool ok = data && !gpq_plan_read(data, size, ret);

    free(data);
    (void)close(GPQ_RUN_PLAN);
    return ok;
}

/* The record must be that of the plan's run, and must have nothing but its head. */
static bool check_record(const struct gpq_plan *plan, size_t *ret_size)
{
    struct gpq_record r;
    char *data = read_fd(GPQ_RUN_RECORD, GPQ_RECORD_MOST, ret_size);
    bool ok = data && !gpq_record_read(data, *ret_size, &r) && !r.has_runner && !r.torn &&
              gpq_run_same(&r.id, &plan->id);

    free(data);
    return ok;
}

/* ---- Surroundings ---- */

/* For kernels before 5.9, one by one. */
static void close_slowly(int first)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (d && (entry = readdir(d))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd >= first && fd != dirfd(d))
            (void)close(fd);
    }
    if (d)
        (void)closedir(d);
}

static void close_from(int first)
{
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, (unsigned)first, ~0U, 0U))
        return;
#endif
    close_slowly(first);
}

/* stdio is /dev/null: a closed descriptor would get the number of the next file. */
static bool settle_files(void)
{
    int null;

    close_from(GPQ_RUN_STATE + 1);
    for (int fd = GPQ_RUN_RECORD; fd <= GPQ_RUN_STATE; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC))
            return false;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return false;
    for (int fd = 0; fd < 3; fd++)
        if (fd != null)
            (void)dup3(null, fd, 0);
    if (null > 2)
        (void)close(null);
    return !fchdir(GPQ_RUN_STATE);
}

static void settle_process(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid(); /* fails only where it has its own session already */
    (void)prctl(PR_SET_NAME, "gpud-runner");
}

int main(void)
{
    struct gpq_plan plan;
    size_t size;
    int ret = UNUSABLE;

    settle_process();
    if (!settle_files() || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) || !read_plan(&plan))
        return UNUSABLE;
    if (check_record(&plan, &size))
        ret = gpq_life(&plan, size);
    gpq_plan_free(&plan);
    return ret;
}
