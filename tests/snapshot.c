/* SPDX-License-Identifier: MIT */
#include "snapshot.h"

#include "harness.h"
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static unsigned put_files(FILE *out)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir))) {
        char path[64], target[512];
        int fd = atoi(entry->d_name);
        ssize_t n;

        if (!isdigit((unsigned char)entry->d_name[0]) || fd == dirfd(dir))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        if (out)
            (void)fprintf(out, "file %d %s, flags %x %x\n", fd, target,
                          (unsigned)fcntl(fd, F_GETFL), (unsigned)fcntl(fd, F_GETFD));
        count++;
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

static unsigned put_threads(FILE *out)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir))) {
        char path[300], name[32] = "";
        FILE *in;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        in = fopen(path, "re");
        if (in) {
            (void)fgets(name, sizeof(name), in);
            (void)fclose(in);
        }
        name[strcspn(name, "\n")] = 0;
        if (out)
            (void)fprintf(out, "thread %s %s\n", entry->d_name, name);
        count++;
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

static unsigned put_children(FILE *out)
{
    struct t_procs all;
    unsigned count = 0;

    if (!t_has_children())
        return 0;
    all = t_procs_all();
    for (size_t i = 0; i < all.count; i++)
        if (all.list[i].parent == getpid()) {
            if (out)
                (void)fprintf(out, "child %d %s%s\n", (int)all.list[i].pid, all.list[i].comm,
                              all.list[i].state == 'Z' ? ", a zombie" : "");
            count++;
        }
    t_procs_free(&all);
    return count;
}

static unsigned put_mappings(FILE *out)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[1024];
    unsigned count = 0;

    while (in && fgets(line, sizeof(line), in))
        if (strstr(line, "memfd:gpud")) {
            if (out)
                (void)fprintf(out, "mapping %s", line);
            count++;
        }
    if (in)
        (void)fclose(in);
    return count;
}

static void put_signals(FILE *out)
{
    sigset_t mask;
    int n;

    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    for (n = 1; n <= 64; n++) {
        struct sigaction action;

        if (sigaction(n, NULL, &action))
            continue; /* 32 and 33 belong to the C library */
        (void)fprintf(out, "signal %d handler %p, flags %x\n", n,
                      (action.sa_flags & SA_SIGINFO) ? (void *)(uintptr_t)action.sa_sigaction
                                                     : (void *)(uintptr_t)action.sa_handler,
                      /* SA_RESTORER is the C library's */
                      (unsigned)action.sa_flags & ~0x04000000U);
    }
    (void)fprintf(out, "signals blocked:");
    for (n = 1; n <= 64; n++)
        if (sigismember(&mask, n) == 1)
            (void)fprintf(out, " %d", n);
    (void)fprintf(out, "\n");
}

static void put_surroundings(FILE *out)
{
    char line[512], directory[4096];
    FILE *in = fopen("/proc/self/status", "re");

    while (in && fgets(line, sizeof(line), in))
        if (!strncmp(line, "Umask:", 6))
            (void)fputs(line, out);
    if (in)
        (void)fclose(in);
    (void)fprintf(out, "directory %s\n", getcwd(directory, sizeof(directory)) ? directory : "?");
    (void)fprintf(out, "locale %s\n", setlocale(LC_ALL, NULL));
    for (char **e = environ; *e; e++)
        (void)fprintf(out, "environment %.200s\n", *e);
}

void t_snapshot_take(struct t_snapshot *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out;

    s->text = NULL;
    out = open_memstream(&text, &size);
    if (!out)
        T_FAIL("out of memory");
    (void)put_files(out);
    (void)put_threads(out);
    (void)put_children(out);
    (void)put_mappings(out);
    put_signals(out);
    put_surroundings(out);
    (void)fclose(out);
    s->text = text;
}

/* Prints the lines of `a` that `b` lacks; returns how many. */
static unsigned print_missing(const char *a, const char *b, const char *word)
{
    unsigned count = 0;

    while (*a) {
        size_t n = strcspn(a, "\n") + 1;
        char line[4500];
        const char *at;

        (void)snprintf(line, sizeof(line), "%.*s", (int)n, a);
        at = strstr(b, line);
        while (at && at != b && at[-1] != '\n')
            at = strstr(at + 1, line);
        if (!at) {
            (void)fprintf(stderr, "%s: %s", word, line);
            count++;
        }
        a += n;
    }
    return count;
}

static unsigned threads_before(const char *text)
{
    unsigned count = 0;

    for (const char *at = text; (at = strstr(at, "\nthread ")); at++)
        count++;
    return count;
}

/* Threads that were joined before the first snapshot, and stayed visible until then, or a
 * sanitizer's. */
static unsigned gone_threads(const char *before, const char *after)
{
    unsigned had = threads_before(before), has = threads_before(after);

    return had > has ? had - has : 0;
}

/* A joined thread may stay visible for a moment: join returns before the kernel is done. */
static void await_threads(unsigned threads)
{
    uint64_t until = t_now() + T_S(1);

    while (put_threads(NULL) > threads && t_now() < until)
        (void)poll(NULL, 0, 1);
}

void t_snapshot_compare(struct t_snapshot *before)
{
    struct t_snapshot after;
    unsigned differences;

    await_threads(threads_before(before->text));
    t_snapshot_take(&after);
    differences =
        print_missing(before->text, after.text, "gone") - gone_threads(before->text, after.text);
    differences += print_missing(after.text, before->text, "left");
    if (differences)
        T_FAIL("leak check: %u differences", differences);
    free(before->text);
    free(after.text);
}

struct t_counts t_counts_take(void)
{
    struct t_counts c = { put_files(NULL), put_threads(NULL), put_children(NULL),
                          put_mappings(NULL) };

    return c;
}

struct t_counts t_counts_later(const struct t_counts *before)
{
    await_threads(before->threads);
    return t_counts_take();
}

unsigned t_named_shared_memory(void)
{
    DIR *dir = opendir("/dev/shm");
    struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir)))
        count += strstr(entry->d_name, "gpud") != NULL;
    if (dir)
        (void)closedir(dir);
    return count;
}
