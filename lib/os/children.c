/* SPDX-License-Identifier: MIT */
#include "os/children.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fds.h"
#include "os/process.h"

/* ---- children ---- */

/* All numbers of one process, from the namespace of /proc inwards; gives how many, 0 when it is
 * gone. */
static int numbers_of(pid_t in_proc, pid_t *ret, int max)
{
    char path[64], line[512];
    FILE *f;
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)in_proc);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *at = line + 6, *end;
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        for (long one; n < max && (one = strtol(at, &end, 10), end != at); at = end)
            ret[n++] = (pid_t)one;
        break;
    }
    if (f)
        fclose(f);
    return n;
}

#define NAMESPACES_MAX 33 /* 32 can be nested */

/* One of the numbers that such a file gives, -1 when there is none. */
static pid_t number_after(const char *path, const char *name)
{
    char line[512];
    FILE *f = fopen(path, "re");
    const size_t n = strlen(name);
    pid_t number = -1;

    while (f && number < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0)
            number = (pid_t)atoi(line + n);
    if (f)
        fclose(f);
    return number;
}

static pid_t number_of(pid_t in_proc, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", (int)in_proc);
    return number_after(path, name);
}

/* Turns the numbers of our children that /proc gave into ours.  None can vanish: only we reap
 * them. */
static bool own_numbers(pid_t self, pid_t *pids, size_t n)
{
    pid_t all[NAMESPACES_MAX];
    int depth = numbers_of(self, all, NAMESPACES_MAX);

    if (depth <= 1)
        return depth == 1; /* the same namespace, as nearly always */
    for (size_t i = 0; i < n; i++) {
        if (numbers_of(pids[i], all, NAMESPACES_MAX) < depth)
            return false;
        pids[i] = all[depth - 1];
    }
    return true;
}

static int children_from_stat(pid_t self, pid_t *pids, size_t max)
{
    DIR *dir = opendir("/proc");
    struct dirent *e;
    int n = 0;

    if (!dir)
        return -1;
    while (n >= 0 && (e = readdir(dir))) {
        char path[300], text[512], *after;
        FILE *f;
        int parent = 0;
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        f = fopen(path, "re");
        if (!f && (errno == ENOENT || errno == ESRCH))
            continue; /* it has gone meanwhile */
        if (!f) {
            n = -1; /* it may be one of ours */
            continue;
        }
        if (fgets(text, sizeof text, f) && (after = strrchr(text, ')')))
            (void)sscanf(after + 1, " %*c %d", &parent);
        fclose(f);
        if (parent != self)
            continue;
        if ((size_t)n < max)
            pids[n] = (pid_t)atoi(e->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

static int children_from_list(pid_t self, pid_t *pids, size_t max)
{
    char path[64];
    FILE *f;
    int n = 0, pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)self); /* the only thread */
    f = fopen(path, "re");
    if (!f)
        return children_from_stat(self, pids, max); /* CONFIG_PROC_CHILDREN is not everywhere */
    while (fscanf(f, "%d", &pid) == 1) {
        if ((size_t)n < max)
            pids[n] = (pid_t)pid;
        n++;
    }
    fclose(f);
    return n;
}

int gpi_process_children(pid_t *pids, size_t max)
{
    pid_t self = gpi_process_number();
    int n = self < 0 ? -1 : children_from_list(self, pids, max);

    if (n <= 0)
        return n;
    return own_numbers(self, pids, (size_t)n < max ? (size_t)n : max) ? n : -1;
}

/* ---- tracers ---- */

#define ANCESTORS_MAX 4096
#define TRACERS_MAX 8 /* of which one traces the next */

/* What /proc calls a child of ours, or -1. */
static pid_t child_in_proc(pid_t self, pid_t child)
{
    enum { LISTED = 2048 };
    pid_t raw[LISTED], own[LISTED], all[NAMESPACES_MAX];
    int n;

    if (numbers_of(self, all, NAMESPACES_MAX) == 1)
        return child;
    n = children_from_list(self, raw, LISTED);
    n = n < LISTED ? n : LISTED;
    for (int i = 0; i < n; i++)
        own[i] = raw[i];
    if (n < 0 || !own_numbers(self, own, (size_t)n))
        return -1;
    for (int i = 0; i < n; i++)
        if (own[i] == child)
            return raw[i];
    return -1;
}

static bool descends(pid_t self, pid_t pid)
{
    for (int i = 0; pid > 1 && i < ANCESTORS_MAX; i++) {
        pid = number_of(pid, "PPid:");
        if (pid == self)
            return true;
    }
    return false;
}

/* It is not a child of ours, so its number may become another's at any time: its pidfd is opened
 * before the last look that says whose number it is. */
static void kill_tracer(pid_t self, pid_t tracer, const char *traced)
{
    pid_t all[NAMESPACES_MAX] = { 0 };
    int depth = numbers_of(self, all, NAMESPACES_MAX), pidfd = -1;

    if (depth >= 1 && numbers_of(tracer, all, NAMESPACES_MAX) >= depth) {
        pidfd = gpi_process_pidfd(all[depth - 1]);
        if (number_of(number_after(traced, "TracerPid:"), "Tgid:") == tracer)
            (void)gpi_process_kill(all[depth - 1], pidfd);
    }
    gpi_fd_close(&pidfd);
}

/* Calls `each` with the path of each thread's status, as long as that returns true.  Whether it
 * always did. */
static bool for_threads(pid_t pid, bool (*each)(const char *status, void *user), void *user)
{
    char path[300];
    struct dirent *e;
    bool go_on = true;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && go_on && (e = readdir(dir))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)pid, e->d_name);
        go_on = e->d_name[0] == '.' || each(path, user);
    }
    if (dir)
        closedir(dir);
    return dir && go_on;
}

struct tracers {
    pid_t self;
    int depth;
};

static bool free_thread(const char *status, void *user)
{
    struct tracers *t = user;
    pid_t thread = number_after(status, "TracerPid:"); /* of its threads the one that traces */
    pid_t tracer = thread > 0 ? number_of(thread, "Tgid:") : -1;

    if (tracer <= 0 || tracer == t->self || !descends(t->self, tracer))
        return true;
    if (t->depth++ < TRACERS_MAX)
        (void)for_threads(tracer, free_thread, t);
    t->depth--;
    kill_tracer(t->self, tracer, status);
    return true;
}

void gpi_children_free(pid_t child)
{
    struct tracers t = { .self = gpi_process_number() };
    pid_t in_proc = t.self > 0 ? child_in_proc(t.self, child) : -1;

    if (in_proc > 0)
        (void)for_threads(in_proc, free_thread, &t);
}

static bool thread_ended(const char *status, void *unused)
{
    char line[512];
    FILE *f = fopen(status, "re");
    bool ended = !f && (errno == ENOENT || errno == ESRCH);

    (void)unused;
    while (f && fgets(line, sizeof line, f))
        ended |= strncmp(line, "State:\tZ", 8) == 0 || strncmp(line, "State:\tX", 8) == 0;
    if (f)
        fclose(f);
    return ended;
}

bool gpi_children_ended(pid_t child)
{
    pid_t self = gpi_process_number(), in_proc = self > 0 ? child_in_proc(self, child) : -1;

    return in_proc > 0 && for_threads(in_proc, thread_ended, NULL);
}
