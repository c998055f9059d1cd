/* SPDX-License-Identifier: MIT */
#include "rest.h"

#include "harness.h"
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a process has been up to: context switches of all its threads but this one, -1 when it is
 * gone; and whether one of them runs, or would if it had a CPU. */
struct doings {
    int64_t switches;
    int runs;
};

static struct doings doings_of(pid_t pid)
{
    char path[320], line[256], state;
    struct doings all = { 0, 0 };
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        FILE *in;

        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == gettid())
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
        in = fopen(path, "re");
        while (in && fgets(line, sizeof(line), in)) {
            if (!strncmp(line, "voluntary_ctxt_switches:", 24))
                all.switches += atoll(line + 24);
            if (sscanf(line, "State: %c", &state) == 1)
                all.runs |= state == 'R' || state == 'D';
        }
        if (in)
            (void)fclose(in);
    }
    if (!dir)
        return (struct doings){ -1, 0 };
    (void)closedir(dir);
    return all;
}

struct counts {
    struct t_procs procs;
    struct doings of[64];
    int runs; /* any of them */
};

static struct counts count_all(void)
{
    struct counts c = { .procs = t_procs_below(getpid()) };

    T_CMP(c.procs.count, <, 63);
    for (size_t i = 0; i <= c.procs.count; i++) {
        c.of[i] = doings_of(i < c.procs.count ? c.procs.list[i].pid : getpid());
        c.runs |= c.of[i].runs;
    }
    return c;
}

static int differ(const struct counts *a, const struct counts *b, int say)
{
    int count = 0;

    if (a->procs.count != b->procs.count)
        return 1; /* some are still being started */
    for (size_t i = 0; i <= a->procs.count; i++)
        if (a->of[i].switches != b->of[i].switches) {
            if (say)
                (void)fprintf(stderr, "%s woke up %d times\n",
                              i < a->procs.count ? a->procs.list[i].comm : "the host",
                              (int)(b->of[i].switches - a->of[i].switches));
            count++;
        }
    return count;
}

static int is_quiet(void *user)
{
    struct counts a = count_all(), b;
    int quiet;

    (void)user;
    t_pass(T_MS(60));
    b = count_all();
    quiet = !differ(&a, &b, 0) && !a.runs && !b.runs; /* who waits for a CPU has not come to rest */
    t_procs_free(&a.procs);
    t_procs_free(&b.procs);
    return quiet;
}

void t_expect_rest(unsigned tenths, void (*look)(void *user), void *user)
{
    struct counts a, b;

    if (!T_THREAD_SANITIZED) /* which has a thread that wakes up all the time in each process */
        t_wait_until("everything has come to rest", is_quiet, NULL);
    a = count_all();
    for (unsigned i = 0; i < tenths; i++) {
        if (look)
            look(user);
        t_pass(T_MS(100));
    }
    b = count_all();
    /* A sanitizer has a thread of its own that wakes up. */
    if (differ(&a, &b, 1) && !T_SANITIZED)
        T_FAIL("not idle");
    t_procs_free(&a.procs);
    t_procs_free(&b.procs);
}
