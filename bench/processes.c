/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "report.h"

#define MAX_PROCESSES 8192
#define MAX_TREE 64

/* Reads a small file without stdio, whose buffers would show in what we measure. */
static int read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, text, size - 1);
    (void)close(fd);
    if (n < 0)
        return -1;
    text[n] = 0;
    return 0;
}

/* Gives field number `wanted` (from 1) of /proc/PID/stat, for numbers after the name. */
static uint64_t stat_field(pid_t pid, int wanted)
{
    char path[64], text[1024], *at;
    int field = 2;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (read_text(path, text, sizeof(text)))
        return 0;
    at = strrchr(text, ')'); /* the name itself may hold spaces and brackets */
    while (at && field < wanted) {
        at = strchr(at + 1, ' ');
        field++;
    }
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static int is_among(pid_t pid, pid_t root, const pid_t *pids, int n)
{
    int i;

    if (pid == root)
        return 1;
    for (i = 0; i < n; i++)
        if (pids[i] == pid)
            return 1;
    return 0;
}

int b_descendants(pid_t root, pid_t *pids, size_t n)
{
    static struct {
        pid_t pid, parent;
    } all[MAX_PROCESSES];
    struct dirent *e;
    DIR *dir = opendir("/proc");
    int i, count = 0, found = 0, before;

    if (!dir)
        return -1;
    while ((e = readdir(dir)) && count < MAX_PROCESSES) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        all[count].pid = pid;
        all[count++].parent = (pid_t)stat_field(pid, 4);
    }
    (void)closedir(dir);
    do {
        before = found;
        for (i = 0; i < count && (size_t)found < n; i++)
            if (is_among(all[i].parent, root, pids, found) &&
                !is_among(all[i].pid, root, pids, found))
                pids[found++] = all[i].pid;
    } while (found != before);
    return found;
}

static uint64_t number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

int b_pin_tree(int cpu)
{
    pid_t pids[MAX_TREE];
    int i, n = b_descendants(getpid(), pids, MAX_TREE);

    for (i = 0; i < n; i++)
        if (b_pin(pids[i], cpu))
            return b_complain("process %d could not be pinned", (int)pids[i]);
    return n < 0 ? b_complain("/proc could not be read") : 0;
}

size_t b_threads(pid_t pid, struct b_thread *rows, size_t n)
{
    char path[96], text[4096];
    struct dirent *e;
    size_t count = 0;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    if (!dir)
        return 0;
    while ((e = readdir(dir)) && count < n) {
        pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

        if (tid <= 0)
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
        if (read_text(path, text, sizeof(text)))
            continue;
        rows[count].pid = pid;
        rows[count].tid = tid;
        rows[count].switches = number_after(text, "\nvoluntary_ctxt_switches:") +
                               number_after(text, "\nnonvoluntary_ctxt_switches:");
        (void)sscanf(text, "Name: %15s", rows[count].name);
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* Reads /proc/PID/smaps_rollup, which counts exactly.  0 or -1. */
static int read_rollup(pid_t pid, char text[2048])
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    return read_text(path, text, 2048);
}

uint64_t b_resident(pid_t pid)
{
    char text[2048];

    return read_rollup(pid, text) ? 0 : number_after(text, "\nRss:") * 1024;
}

/* Gives the bytes of a process's own and shared memory, programs and libraries not counted; 0 when
 * unknown. */
static uint64_t data_of(pid_t pid)
{
    char text[2048];

    if (read_rollup(pid, text))
        return 0;
    return (number_after(text, "\nPss_Anon:") + number_after(text, "\nPss_Shmem:")) * 1024;
}

uint64_t b_data_of_tree(void)
{
    pid_t pids[MAX_TREE];
    uint64_t sum = data_of(getpid()), one;
    int i, n = b_descendants(getpid(), pids, MAX_TREE);

    if (sum == 0 || n < 0)
        return 0;
    for (i = 0; i < n; i++) {
        one = data_of(pids[i]);
        if (one == 0)
            return 0;
        sum += one;
    }
    return sum;
}

uint64_t b_faults(pid_t pid)
{
    return stat_field(pid, 10);
}
