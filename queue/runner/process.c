/* SPDX-License-Identifier: MIT */
/* process.c - processes by /proc. */
#include "queue/runner/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "queue/files/pidfd.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

enum { KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD */
enum { EXEC_MS = 1000 };             /* for an exec: its program may have to be read from a disk */

/* Opens a file of a process; -ESRCH where it has ended. */
static int open_file(pid_t pid, const char *name)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int gpq_process_read(pid_t pid, struct gpq_process *ret)
{
    int fd = open_file(pid, "stat"), parent, session;
    char text[1024];
    const char *after;
    ssize_t n;

    if (fd < 0)
        return fd;
    n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        n = n < 0 && errno != ESRCH ? -errno : -ESRCH;
    (void)close(fd);
    if (n < 0)
        return (int)n;
    text[n] = 0;
    after = strrchr(text, ')'); /* the name of the program may hold anything */
    *ret = (struct gpq_process){ .pid = pid };
    /* Fields 3 to 22: state, parent, group, session, ..., flags, ..., threads, ..., start. */
    if (!after ||
        sscanf(after + 1,
               " %c %d %*s %d %*s %*s %" SCNu32 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu32
               " %*s %" SCNu64,
               &ret->state, &parent, &session, &ret->flags, &ret->threads, &ret->ticks) != 6)
        return -EIO;
    ret->parent = parent;
    ret->session = session;
    return 0;
}

/* A process whose first thread has ended is a zombie, too, while other threads go on. */
static bool has_ended(const struct gpq_process *p)
{
    return p->state == 'X' || (p->state == 'Z' && p->threads <= 1);
}

int gpq_process_each(int (*fn)(const struct gpq_process *p, void *user), void *user)
{
    DIR *d = opendir("/proc");
    const struct dirent *entry;
    struct gpq_process p;
    int ret = 0;

    if (!d)
        return -errno;
    while (!ret && (errno = 0, entry = readdir(d))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        ret = gpq_process_read((pid_t)atoi(entry->d_name), &p);
        if (!ret && !has_ended(&p))
            ret = fn(&p, user);
        else if (ret == -ESRCH || ret == -EACCES || ret == -EPERM) /* ended, or hidden (hidepid) */
            ret = 0;
    }
    if (!ret && errno)
        ret = -errno;
    (void)closedir(d);
    return ret;
}

/* ---- Children ---- */

struct child_search {
    pid_t self;
    int (*fn)(pid_t child, void *user);
    void *user;
};

static int visit_if_child(const struct gpq_process *p, void *user)
{
    const struct child_search *s = user;

    return p->parent == s->self ? s->fn(p->pid, s->user) : 0;
}

int gpq_process_children(int (*fn)(pid_t child, void *user), void *user)
{
    struct child_search s = { getpid(), fn, user };
    char path[64];
    FILE *list;
    int ret = 0, pid;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)s.self);
    list = fopen(path, "re");
    if (!list) /* CONFIG_PROC_CHILDREN is not everywhere */
        return gpq_process_each(visit_if_child, &s);
    while (!ret && fscanf(list, "%d", &pid) == 1)
        ret = fn((pid_t)pid, user);
    (void)fclose(list);
    return ret;
}

/* ---- The environment ---- */

/* Compares a stream of bytes with a text and its NUL byte, where each text of the stream begins. */
struct match {
    const char *text;
    size_t at; /* bytes that agree; SIZE_MAX: this text of the stream differs */
};

static bool feed(struct match *m, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (m->at != SIZE_MAX && m->text[m->at] != data[i])
            m->at = SIZE_MAX;
        if (data[i])
            m->at += m->at != SIZE_MAX;
        else if (m->at != SIZE_MAX)
            return true;
        else
            m->at = 0;
    }
    return false;
}

/* Reads the environment; 1 or 0, or -EAGAIN: it is empty, or a newer kernel has none. */
static int search_file(pid_t pid, const char *name, const char *assignment)
{
    struct match m = { assignment, 0 };
    int fd = open_file(pid, name);
    char data[4096];
    bool found = false, any = false;
    ssize_t n;

    if (fd < 0)
        return fd == -ESRCH ? -EAGAIN : 0;
    while (!found && ((n = read(fd, data, sizeof(data))) > 0 || (n < 0 && errno == EINTR))) {
        found = n > 0 && feed(&m, data, (size_t)n);
        any = any || n > 0;
    }
    (void)close(fd);
    return found ? 1 : any ? 0 : -EAGAIN;
}

/* The same by the threads of a process whose first one has ended, and has no memory any more. */
static int search_threads(pid_t pid, const char *assignment)
{
    char name[300];
    const struct dirent *entry;
    DIR *d;
    int ret = -EAGAIN;

    (void)snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
    d = opendir(name);
    if (!d)
        return 0;
    while (ret == -EAGAIN && (entry = readdir(d))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || atoi(entry->d_name) == pid)
            continue;
        (void)snprintf(name, sizeof(name), "task/%s/environ", entry->d_name);
        ret = search_file(pid, name, assignment);
    }
    (void)closedir(d);
    return ret;
}

static int search_environment(pid_t pid, const char *assignment)
{
    int ret = search_file(pid, "environ", assignment);

    return ret == -EAGAIN ? search_threads(pid, assignment) : ret;
}

/* Between the end of its old memory and its new program a process has no arguments, either.  Else
 * there is at least a NUL byte. */
static bool is_executing(const struct gpq_process *p)
{
    struct gpq_process now;
    int fd;
    char byte;
    bool ret;

    if (p->flags & KERNEL_THREAD)
        return false;
    fd = open_file(p->pid, "cmdline");
    if (fd < 0)
        return false;
    ret = read(fd, &byte, 1) == 0;
    (void)close(fd);
    /* What has ended has none, too, and a first thread that has. */
    return ret && !gpq_process_read(p->pid, &now) && now.ticks == p->ticks && now.state != 'Z' &&
           now.state != 'X';
}

int gpq_process_has_variable(const struct gpq_process *p, const char *assignment)
{
    for (int i = 0;; i++) {
        int ret = search_environment(p->pid, assignment);
        if (ret >= 0)
            return ret;
        /* It may have got its environment between the two. */
        if (!is_executing(p)) {
            ret = search_environment(p->pid, assignment);
            if (ret >= 0 || !is_executing(p))
                return ret > 0;
        }
        if (i == EXEC_MS)
            return -EAGAIN;
        (void)poll(NULL, 0, 1);
    }
}

/* ---- pidfds ---- */

int gpq_process_open(pid_t pid, uint64_t ticks)
{
    int pidfd = gpq_pidfd_open(pid), ret;
    struct gpq_process p;

    if (pidfd < 0)
        return pidfd;
    ret = gpq_process_read(pid, &p);
    if (!ret && p.ticks == ticks && !has_ended(&p))
        return pidfd;
    (void)close(pidfd);
    return ret ? ret : -ESRCH;
}

int gpq_process_signal(int pidfd, int number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) ? -errno : 0;
}
