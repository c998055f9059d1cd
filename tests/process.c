/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads a whole file of /proc, with a terminator; NULL when it is gone or forbidden. */
static char *slurp(pid_t pid, const char *name, size_t *ret_size)
{
    char path[64];
    size_t room = 4096, size = 0;
    char *text;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    text = malloc(room + 1);
    while (text && (n = read(fd, text + size, room - size)) > 0) {
        size += (size_t)n;
        if (size == room) {
            char *more = realloc(text, 2 * room + 1);
            if (!more)
                break;
            text = more;
            room *= 2;
        }
    }
    (void)close(fd);
    if (text)
        text[size] = 0;
    *ret_size = size;
    return text;
}

int t_proc_read(pid_t pid, struct t_proc *ret_p)
{
    struct t_proc p = { .pid = pid };
    size_t size, length;
    char *text = slurp(pid, "stat", &size), *open_paren, *close_paren;
    unsigned long long start = 0;
    int parent = 0, fields = 0;
    long threads = 0;

    if (!text)
        return -1;
    /* The name may hold blanks and brackets: the last bracket ends it. */
    open_paren = strchr(text, '(');
    close_paren = strrchr(text, ')');
    if (open_paren && close_paren && close_paren > open_paren) {
        length = (size_t)(close_paren - open_paren - 1);
        if (length >= sizeof(p.comm))
            length = sizeof(p.comm) - 1;
        memcpy(p.comm, open_paren + 1, length);
        fields = sscanf(close_paren + 1,
                        " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%ld %*d %llu",
                        &p.state, &parent, &threads, &start);
    }
    free(text);
    if (fields != 4)
        return -1;
    if (p.state == 'Z' && threads > 1)
        p.state = 'S'; /* only its first thread has ended: its files are not closed yet */
    p.parent = (pid_t)parent;
    p.start = start;
    *ret_p = p;
    return 0;
}

static void append(struct t_procs *procs, size_t *room, const struct t_proc *p)
{
    if (procs->count == *room) {
        size_t more = *room ? 2 * *room : 256;
        struct t_proc *list = realloc(procs->list, more * sizeof(*list));
        if (!list)
            abort();
        procs->list = list;
        *room = more;
    }
    procs->list[procs->count++] = *p;
}

struct t_procs t_procs_all(void)
{
    struct t_procs all = { NULL, 0 };
    struct dirent *entry;
    struct t_proc p;
    size_t room = 0;
    DIR *dir = opendir("/proc");

    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]) &&
            !t_proc_read((pid_t)atoi(entry->d_name), &p))
            append(&all, &room, &p);
    if (dir)
        (void)closedir(dir);
    return all;
}

int t_has_children(void)
{
    siginfo_t info;

    return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) || errno != ECHILD;
}

struct t_procs t_procs_below(pid_t root)
{
    struct t_procs all = t_procs_all(), below = { NULL, 0 };
    size_t room = 0, i, j, before;

    /* Parents need not come before children: go round until nothing is added. */
    do {
        before = below.count;
        for (i = 0; i < all.count; i++) {
            int known = all.list[i].pid == 0, wanted = all.list[i].parent == root;
            for (j = 0; j < below.count; j++)
                wanted |= all.list[i].parent == below.list[j].pid;
            if (wanted && !known) {
                append(&below, &room, &all.list[i]);
                all.list[i].pid = 0; /* taken */
            }
        }
    } while (below.count != before);
    t_procs_free(&all);
    return below;
}

static int has_env(pid_t pid, const char *assignment)
{
    size_t size = 0, at;
    char *text = slurp(pid, "environ", &size);
    int found = 0;

    for (at = 0; text && at < size && !found; at += strlen(text + at) + 1)
        found = !strcmp(text + at, assignment);
    free(text);
    return found;
}

struct t_procs t_procs_with_env(const char *assignment)
{
    struct t_procs all = t_procs_all(), with = { NULL, 0 };
    size_t room = 0, i;

    for (i = 0; i < all.count; i++)
        if (all.list[i].state != 'Z' && all.list[i].state != 'X' &&
            has_env(all.list[i].pid, assignment))
            append(&with, &room, &all.list[i]);
    t_procs_free(&all);
    return with;
}

void t_procs_free(struct t_procs *p)
{
    free(p->list);
    p->list = NULL;
    p->count = 0;
}

int t_proc_ended(const struct t_proc *p)
{
    struct t_proc now;

    return t_proc_read(p->pid, &now) || now.start != p->start || now.state == 'Z' ||
           now.state == 'X';
}
