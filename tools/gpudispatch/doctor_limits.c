/* SPDX-License-Identifier: MIT */
/* doctor_limits.c - group limits: those of resources, of the cgroup, and how much room they leave.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor.h"
#include "tools/cli/out.h"

/* docs/explain/embedding.md: descriptors of a dispatcher, of the process, and of a slot. */
#define FILES_FIXED 16u
#define FILES_PER_WORKER 8u
#define PROCESSES_PER_WORKER 2u /* a keeper and the worker; what the worker makes comes on top */
/* room for fewer is worth a note: one per device of a large machine */
#define WORKERS_FEW 16u
#define FILE_SMALL ((uint64_t)1 << 30)
#define FILE_TOO_SMALL ((uint64_t)16 << 20)
#define MEMORY_SMALL ((uint64_t)1 << 30)

#define NO_LIMIT UINT64_MAX

/* By the call itself: glibc and musl name its first argument differently. */
static uint64_t limit(int resource)
{
    struct rlimit r;

    return syscall(SYS_prlimit64, 0, resource, NULL, &r) || r.rlim_cur == RLIM_INFINITY
               ? NO_LIMIT
               : r.rlim_cur;
}

static bool is_number(const char *name)
{
    return isdigit((unsigned char)name[0]) != 0;
}

/* ---- room for workers ---- */

static uint64_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += is_number(e->d_name);
    if (dir)
        closedir(dir);
    return n ? n - 1 : 0; /* the directory itself */
}

static enum verdict enough(uint64_t workers)
{
    return workers >= WORKERS_FEW ? VERDICT_OK : workers ? VERDICT_NOTE : VERDICT_PROBLEM;
}

static void check_files(struct doctor *d)
{
    uint64_t most = limit(RLIMIT_NOFILE), used = open_files() + FILES_FIXED;
    uint64_t workers = most > used ? (most - used) / FILES_PER_WORKER : 0;

    if (most == NO_LIMIT)
        finding(d, VERDICT_OK, "open files", NULL, "no limit");
    else
        finding(d, enough(workers), "open files",
                enough(workers) == VERDICT_OK ? NULL : "raise ulimit -n to 1024 or more",
                "%llu (ulimit -n): room for %llu workers in a program like this one",
                (unsigned long long)most, (unsigned long long)workers);
}

/* Threads of this user count, too. */
static uint64_t own_threads(void)
{
    DIR *dir = opendir("/proc");
    uint64_t n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300];
        struct stat st;
        if (!is_number(e->d_name))
            continue;
        snprintf(path, sizeof path, "/proc/%s/task", e->d_name);
        if (stat(path, &st) == 0 && st.st_uid == geteuid())
            n += st.st_nlink > 2 ? st.st_nlink - 2 : 1;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* The tightest of the cgroups above us: what is left of pids.max. */
static uint64_t cgroup_pids_left(void)
{
    uint64_t least = NO_LIMIT;
    char line[512];
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof line, f)) {
        bool v2 = !strncmp(line, "0::", 3);
        char *group = strchr(line, '/'), *slash;
        if (!group || !(v2 || strstr(line, ":pids:")))
            continue;
        group[strcspn(group, "\n")] = '\0';
        do {
            char path[640];
            uint64_t most, used;
            snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/pids.max", v2 ? "" : "/pids", group);
            if (file_number(path, "", &most)) {
                snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/pids.current", v2 ? "" : "/pids",
                         group);
                if (file_number(path, "", &used) && (most > used ? most - used : 0) < least)
                    least = most > used ? most - used : 0;
            }
            slash = strrchr(group, '/');
            if (slash)
                *slash = '\0';
        } while (slash);
    }
    if (f)
        fclose(f);
    return least;
}

static void check_processes(struct doctor *d)
{
    uint64_t most = geteuid() == 0 ? NO_LIMIT : limit(RLIMIT_NPROC),
             used = most == NO_LIMIT ? 0 : own_threads();
    uint64_t left = most == NO_LIMIT ? NO_LIMIT
                    : most > used    ? most - used
                                     : 0,
             group = cgroup_pids_left();
    const char *by = group < left ? "pids.max of the cgroup" : "ulimit -u";

    left = group < left ? group : left;
    if (left == NO_LIMIT)
        finding(d, VERDICT_OK, "processes", NULL, "no limit for this user");
    else
        finding(d, enough(left / PROCESSES_PER_WORKER), "processes",
                enough(left / PROCESSES_PER_WORKER) == VERDICT_OK
                    ? NULL
                    : "raise this limit; a worker with CUDA also has about ten threads",
                "room for %llu more (%s)", (unsigned long long)left, by);
}

/* ---- sizes ---- */

static void check_file_size(struct doctor *d)
{
    uint64_t most = limit(RLIMIT_FSIZE);
    enum verdict verdict = most < FILE_TOO_SMALL ? VERDICT_PROBLEM
                           : most < FILE_SMALL   ? VERDICT_NOTE
                                                 : VERDICT_OK;
    char size[24];

    if (most == NO_LIMIT)
        finding(d, VERDICT_OK, "file size", NULL, "no limit");
    else
        finding(d, verdict, "file size", most < FILE_SMALL ? "raise ulimit -f" : NULL,
                "%s (ulimit -f): task data and results together cannot be larger",
                bytes_text(most, size));
}

static void check_address_space(struct doctor *d)
{
    uint64_t most = limit(RLIMIT_AS);
    char size[24];

    if (most == NO_LIMIT)
        finding(d, VERDICT_OK, "address space", NULL, "no limit");
    else
        finding(
            d, VERDICT_NOTE, "address space",
            "ulimit -v unlimited; limit memory with the cgroup instead",
            "%s (ulimit -v): CUDA reserves far more than it uses, and fails under most such limits",
            bytes_text(most, size));
}

static void check_locked(struct doctor *d)
{
    uint64_t most = limit(RLIMIT_MEMLOCK);
    char size[24];

    finding(d, VERDICT_OK, "locked memory", NULL, "%s (ulimit -l)",
            most == NO_LIMIT ? "no limit" : bytes_text(most, size));
}

static void check_core(struct doctor *d)
{
    uint64_t most = limit(RLIMIT_CORE);
    char pattern[160] = "core";

    (void)file_line("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
    if (most == 0 && pattern[0] != '|')
        finding(d, VERDICT_OK, "core files", NULL, "the kernel writes none");
    else
        finding(d, VERDICT_NOTE, "core files",
                pattern[0] == '|'
                    ? "as root: sysctl kernel.core_pattern=core, or keep it while you debug crashes"
                    : "ulimit -c 0, or keep it while you debug crashes",
                "the kernel dumps a worker that crashes (%.100s), and its successor waits for that",
                pattern);
}

static void check_memory(struct doctor *d)
{
    uint64_t kib = 0;
    char size[24];

    if (!file_number("/proc/meminfo", "MemAvailable:", &kib))
        finding(d, VERDICT_NOTE, "memory", "mount /proc",
                "unknown, since /proc/meminfo cannot be read");
    else
        finding(d, kib * 1024 < MEMORY_SMALL ? VERDICT_NOTE : VERDICT_OK, "memory",
                kib * 1024 < MEMORY_SMALL ? "end other programs" : NULL,
                "%s available on the machine", bytes_text(kib * 1024, size));
}

void check_limits(struct doctor *d)
{
    check_files(d);
    check_processes(d);
    check_file_size(d);
    check_address_space(d);
    check_locked(d);
    check_core(d);
    check_memory(d);
}
