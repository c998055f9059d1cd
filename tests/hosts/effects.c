/* SPDX-License-Identifier: MIT */
/* effects.c - counts the library's effects on a host: docs/explain/embedding.md.    [C13] [C19] */
#include "work.h"

#include "snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in the first table of docs/explain/embedding.md: change both together. */
enum { FILES_PER_PROCESS = 3, FILES_PER_DISPATCHER = 8, FILES_PER_SLOT = 8 };
enum { MAPPINGS_PER_DISPATCHER = 1, MAPPINGS_PER_SLOT = 2 };
enum { SLOTS = 3 };

static struct t_counts before;

static void expect(unsigned files, unsigned threads, unsigned mappings)
{
    struct t_counts now = t_counts_take();

    T_EQ(now.files - before.files, files);
    T_EQ(now.threads - before.threads, threads);
    T_EQ(now.mappings - before.mappings, mappings);
    T_EQ(now.children - before.children, 1); /* the spawner */
}

static void expect_processes(unsigned wanted)
{
    struct t_procs below = t_procs_below(getpid());

    T_EQ(below.count, wanted);
    t_procs_free(&below);
}

/* What the host has not had open before is ours: high numbers, close-on-exec. */
static void check_marks(const unsigned char *had)
{
    for (int fd = 0; fd < 2048; fd++) {
        int flags = had[fd] ? -1 : fcntl(fd, F_GETFD);

        if (flags < 0)
            continue;
        T_CMP(fd, >=, 700);
        T_CHECK(flags & FD_CLOEXEC);
    }
}

/* All that can be blocked is blocked in every thread but those that were there. */
static unsigned count_deaf_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir))) {
        char path[300], line[256];
        uint64_t blocked = 0;
        FILE *in;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        in = fopen(path, "re");
        while (in && fgets(line, sizeof(line), in))
            if (sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1)
                break;
        if (in)
            (void)fclose(in);
        count +=
            (blocked | 1u << (SIGKILL - 1) | 1u << (SIGSTOP - 1) | (uint64_t)3 << 31) == UINT64_MAX;
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

static int one_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    if ((*(uint64_t *)user)++)
        return 0;
    task->data = user;
    task->size = sizeof(uint64_t);
    return 1;
}

static int look_inside_run(const struct gpud_event *e, void *user)
{
    (void)e, (void)user;
    t_word_set(0, t_counts_take().threads - before.threads);
    return 0;
}

/* The source blocks until the callback has counted the feeder it runs on. */
static int one_task_then_wait(struct gpud_task_desc *task, size_t n, void *user)
{
    int more = one_task(task, n, user);

    if (!more)
        t_word_wait(0, 1);
    return more;
}

/* A keeper's word of its worker may come behind the worker's own. */
static void wait_for_keepers(gpud_dispatcher *d)
{
    struct gpud_event e = GPUD_EVENT_INIT;

    for (unsigned slot = 0; slot < SLOTS; slot++)
        while (!t_slot(d, slot).pid)
            T_EQ(gpud_dispatcher_poll(d, &e, 1, T_MS(1)), 0);
}

static void count_all(uint32_t drive)
{
    const unsigned own_thread = drive == GPUD_DRIVE_THREAD,
                   files = FILES_PER_DISPATCHER + SLOTS * FILES_PER_SLOT;
    unsigned deaf = count_deaf_threads();
    unsigned char had[2048];
    uint64_t given = 0;
    gpud_dispatcher *d;

    for (int fd = 0; fd < 2048; fd++)
        had[fd] = fcntl(fd, F_GETFD) >= 0;
    before = t_counts_take();
    h_init();
    expect(FILES_PER_PROCESS, 0, 0);
    check_marks(had);
    d = T_CREATE(.definition = "square", .devices = "cpu:3", .drive = drive);
    h_work(d);
    if (own_thread)
        t_wait_ready(d, SLOTS);
    wait_for_keepers(d);
    expect(FILES_PER_PROCESS + files, own_thread,
           MAPPINGS_PER_DISPATCHER + SLOTS * MAPPINGS_PER_SLOT);
    if (own_thread)
        expect_processes(1 + 2 * SLOTS); /* spawner; keeper and worker each */
    T_EQ(count_deaf_threads() - deaf, own_thread);
    check_marks(had);
    t_word_set(0, 0);
    T_OK(gpud_dispatcher_run(d, one_task_then_wait, T_CALLBACKS(.on_success = look_inside_run),
                             &given, NULL));
    T_EQ(t_word(0), own_thread + 1); /* the feeder */
    expect(FILES_PER_PROCESS + files, own_thread,
           MAPPINGS_PER_DISPATCHER + SLOTS * MAPPINGS_PER_SLOT);
    t_destroy(&d, NULL);
    expect(FILES_PER_PROCESS, 0, 0);
    T_OK(gpud_fini());
}

T_CASE(counted)
{
    count_all(GPUD_DRIVE_THREAD);
    count_all(GPUD_DRIVE_CALLER);
}

/* No timer of any kind is set in the host. */
static unsigned timers(void)
{
    FILE *in = fopen("/proc/self/timers", "re");
    char line[256];
    unsigned count = 0;

    while (in && fgets(line, sizeof(line), in))
        count += !strncmp(line, "ID:", 3);
    if (in)
        (void)fclose(in);
    return count;
}

T_CASE(no_timers)
{
    unsigned had = timers();
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2", .task_limit = T_S(100));
    T_SUBMIT(d, .tag = H_TAG(H_GATE, 0));
    t_word_wait(H_STARTED, 1);
    T_EQ(timers(), had);
    T_EQ(alarm(0), 0);
    t_word_set(H_OPEN, 1);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* What a worker finds: who it is, in its environment; its own session; nothing on stdin. */
static int tell_itself(gpud_task *t, void *state)
{
    char text[400], byte;

    (void)state;
    (void)snprintf(text, sizeof(text), "%s %s %s session %d group %d stdin %zd",
                   getenv("GPUD_SLOT"), getenv("GPUD_INCARNATION"), getenv("GPUD_DEVICES"),
                   getsid(0) == getpid(), getpgrp() == getpid(), read(0, &byte, 1));
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

T_CASE(worker_surroundings)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, tell_itself, NULL);
    d = T_CREATE(.devices = "cpu:1");
    T_TEXT((const char *)T_RUN(d, &log, SUCCESS, .tag = 1)->result,
           "0 1 cpu:0 session 1 group 1 stdin 0");
    T_CHECK(!getenv("GPUD_SLOT") && !getenv("GPUD_INCARNATION") && !getenv("GPUD_DEVICES"));
    t_end(&d, &log);
}
