/* SPDX-License-Identifier: MIT */
/* doctor_system.c - group system: kernel, C library, the calls that the library uses, and who
 * inherits orphans. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "tools/cli/out.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define PROBE_SIZE (1u << 20)
#define REAP_PATIENCE (5 * SECOND) /* some look once in a second or two */

/* ---- kernel, C library, calls ---- */

static unsigned kernel_number(void)
{
    struct utsname u;
    unsigned major = 0, minor = 0;

    if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
        return 0;
    return major * 1000 + minor;
}

/* Its name and version where it tells them, as glibc does. */
static const char *c_library(char *to, size_t size)
{
    size_t n = 0;

#ifdef _CS_GNU_LIBC_VERSION
    n = confstr(_CS_GNU_LIBC_VERSION, to, size);
#endif
    return n > 0 && n <= size ? to : "a C library other than glibc";
}

static void check_kernel(struct doctor *d)
{
    struct utsname u;
    char library[64];

    if (uname(&u))
        finding(d, VERDICT_NOTE, "kernel", NULL, "uname fails: %s", strerror(errno));
    else
        finding(d, VERDICT_OK, "kernel", NULL, "%s %s, %s, %s", u.sysname, u.release, u.machine,
                c_library(library, sizeof library));
}

/* Says of a call that is not there whether the kernel is too old for it, or a filter hides it. */
static const char *why_missing(int err, unsigned since)
{
    if (err == ENOSYS && kernel_number() && kernel_number() < since)
        return "the kernel is too old for it";
    if (err == ENOSYS || err == EPERM)
        return "a seccomp filter forbids it";
    return strerror(err);
}

static void check_call(struct doctor *d, const char *name, long result, unsigned since,
                       const char *without)
{
    int err = errno;

    if (result >= 0) {
        finding(d, VERDICT_OK, name, NULL, "works");
        if (result > 2)
            close((int)result);
    } else {
        finding(d, VERDICT_NOTE, name,
                err == EPERM || err == ENOSYS ? "allow it in the container's seccomp profile, or "
                                                "use a newer container runtime or kernel"
                                              : NULL,
                "%s; %s", why_missing(err, since), without);
    }
}

static void check_calls(struct doctor *d)
{
    check_call(d, "pidfd_open", syscall(SYS_pidfd_open, getpid(), 0), 5003,
               "the library notices deaths by other means");
    check_call(d, "close_range", syscall(SYS_close_range, ~0u, ~0u, 0), 5009,
               "the library closes descriptors one by one");
}

/* Memory as the library makes it: a memory file, sealed, taken and mapped. */
static int make_memory(void)
{
    int fd = memfd_create("gpudispatch-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), err = 0;
    void *map;

    if (fd < 0)
        return errno;
    if (ftruncate(fd, PROBE_SIZE) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
        fallocate(fd, 0, 0, PROBE_SIZE))
        err = errno;
    map = err ? MAP_FAILED : mmap(NULL, PROBE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        munmap(map, PROBE_SIZE);
    else if (!err)
        err = errno;
    close(fd);
    return err;
}

static void check_memory_files(struct doctor *d)
{
    int err = make_memory();
    struct statvfs v;
    char size[24];

    if (err)
        finding(d, VERDICT_PROBLEM, "memory files",
                err == EPERM || err == ENOSYS
                    ? "allow memfd_create in the container's seccomp profile"
                    : "raise ulimit -f, or the memory cgroup's limit",
                "memfd_create or fallocate fails: %s; no dispatcher can be created", strerror(err));
    else
        finding(d, VERDICT_OK, "memory files", NULL, "memfd_create works");
    if (statvfs("/dev/shm", &v) == 0)
        finding(d, VERDICT_OK, "/dev/shm", NULL,
                "%s; the library does not use it, code in workers may",
                bytes_text((uint64_t)v.f_blocks * v.f_frsize, size));
}

static void check_seccomp(struct doctor *d)
{
    uint64_t mode = 0, privileges = 0;

    (void)file_number("/proc/self/status", "NoNewPrivs:", &privileges);
    if (!file_number("/proc/self/status", "Seccomp:", &mode))
        finding(d, VERDICT_NOTE, "seccomp", NULL,
                "/proc/self/status does not show whether a filter is on");
    else
        finding(d, VERDICT_OK, "seccomp", NULL, "%s%s",
                mode ? "a filter is on; the checks above show the calls it denies" : "no filter",
                privileges ? ", no new privileges" : "");
}

/* ---- who inherits orphans, and does it reap them? ---- */

static void be_orphan(int wait_fd)
{
    char c;

    while (read(wait_fd, &c, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

/* Makes a process whose parent is gone, and lets it end.  Its pid, or -1. */
static pid_t end_an_orphan(void)
{
    int hold[2], tell[2];
    pid_t child, orphan = -1;

    if (pipe2(hold, O_CLOEXEC))
        return -1;
    if (pipe2(tell, O_CLOEXEC)) {
        close(hold[0]);
        close(hold[1]);
        return -1;
    }
    child = fork();
    if (child == 0) {
        orphan = fork();
        if (orphan == 0) {
            close(hold[1]);
            be_orphan(hold[0]);
        }
        _exit(write(tell[1], &orphan, sizeof orphan) != sizeof orphan);
    }
    close(hold[0]);
    close(tell[1]);
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    if (read(tell[0], &orphan, sizeof orphan) != sizeof orphan)
        orphan = -1;
    close(tell[0]);
    close(hold[1]); /* now it ends */
    return orphan;
}

/* State and parent of a process; false: it is gone. */
static bool process_state(pid_t pid, char *ret_state, int *ret_parent)
{
    char path[64], line[512], *end;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!file_line(path, line, sizeof line))
        return false;
    end = strrchr(line, ')');
    return end && sscanf(end, ") %c %d", ret_state, ret_parent) == 2;
}

static void check_orphans(struct doctor *d)
{
    uint64_t begun = now();
    pid_t orphan = kill(1, 0) == 0 || errno == EPERM ? end_an_orphan() : -1;
    char state = '?', path[64], name[64] = "?";
    int parent = 0;

    if (orphan <= 0) {
        finding(d, VERDICT_NOTE, "orphans", "see ulimit -u below",
                "no process could be started to check who reaps them");
        return;
    }
    while (process_state(orphan, &state, &parent) && now() - begun < REAP_PATIENCE)
        usleep(1000);
    if (!process_state(orphan, &state, &parent)) {
        finding_timed(d, VERDICT_OK, "orphans", NULL, now() - begun, "are reaped%s",
                      getpid() == 1 ? "; this is process 1" : "");
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/comm", parent);
    (void)file_line(path, name, sizeof name);
    finding_timed(
        d, VERDICT_NOTE, "orphans", "start the container with an init (docker run --init)",
        now() - begun,
        "process %d (%s) inherits orphans, but does not reap them: each program that dies leaves "
        "zombies",
        parent, name);
}

void check_system(struct doctor *d)
{
    check_kernel(d);
    check_calls(d);
    check_memory_files(d);
    check_seccomp(d);
    check_orphans(d);
}
