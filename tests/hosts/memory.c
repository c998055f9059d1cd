/* SPDX-License-Identifier: MIT */
/* memory.c - hosts with little memory: 1 GiB of payloads through 64 MiB, with deaths on the way.
 * [C18] */
#include "work.h"

#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TASKS = T_SANITIZED ? 128 : 1024,
    SIZE = 1 << 20,
    BUDGET = 64 << 20,
    KILLS = T_SANITIZED ? 20 : 100
};

/* ---- the stream ---- */

static unsigned char *bytes;

/* Each task's bytes begin and end with its number. */
static int give(gpud_dispatcher *d, uint64_t n)
{
    memcpy(bytes, &n, sizeof(n));
    memcpy(bytes + SIZE - sizeof(n), &n, sizeof(n));
    return gpud_dispatcher_submit(
        d, T_TASK(.tag = H_TAG(H_ECHO, n), .data = bytes, .size = SIZE, .max_attempts = 255), 0,
        NULL, NULL);
}

static void check_echo(const struct gpud_event *e, unsigned char *seen)
{
    uint64_t n = e->tag & 0xffffffffU;

    if (e->outcome != GPUD_OUTCOME_SUCCESS)
        t_print_event(e);
    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    T_EQ(e->result_size, SIZE);
    T_CHECK(!memcmp(e->result, &n, sizeof(n)));
    T_CHECK(!memcmp((const char *)e->result + SIZE - sizeof(n), &n, sizeof(n)));
    T_CMP(n, <, TASKS);
    T_EQ(seen[n]++, 0);
}

/* Streams everything through, and kills a worker with SIGKILL each time so many have come back. */
static void stream(gpud_dispatcher *d)
{
    unsigned char *seen = calloc(TASKS, 1);
    uint64_t next = 0, got = 0, full = 0, kills = 0, until = t_now() + 4 * T_PATIENCE;

    bytes = calloc(1, SIZE);
    T_CHECK(bytes && seen);
    while (got < TASKS) {
        /* fewer than between two kills */
        struct gpud_event e[4] = { { .struct_size = sizeof(e[0]) } };
        int code = 0, n;

        while (next < TASKS && !(code = give(d, next)))
            next++;
        T_CHECK(!code || code == GPUD_EFULL);
        full += code == GPUD_EFULL;
        n = gpud_dispatcher_poll(d, e, 4, T_MS(50));
        T_CMP(n, >=, 0);
        T_CMP(t_now(), <, until);
        for (int i = 0; i < n; i++)
            if (e[i].kind == GPUD_EVENT_OUTCOME) {
                check_echo(&e[i], seen);
                got++;
            }
        T_CMP(t_stats(d).payload_used + t_stats(d).result_used, <=, BUDGET);
        if (kills < KILLS && got >= (kills + 1) * TASKS / (KILLS + 2)) {
            struct t_proc worker = t_worker(d, (unsigned)(kills++ % 2));

            (void)kill(worker.pid, SIGKILL);
        }
    }
    printf("submit said full %" PRIu64 " times, %" PRIu64 " workers were killed\n", full, kills);
    T_CMP(full, >, 0);
    T_EQ(kills, KILLS);
    free(seen);
    free(bytes);
}

static void stream_with_deaths(void)
{
    gpud_dispatcher *d;

    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2", .payload_budget = BUDGET,
                 .backoff = T_MS(1), .backoff_cap = T_MS(5), .failures_in_a_row = 1000000);
    stream(d);
    T_EQ(t_stats(d).payload_used, 0);
    h_work(d);
    t_end(&d, NULL);
}

/* 1 GiB through 64 MiB with 100 workers killed on the way: submit says full, each task has its
 * result, nothing named is left. [T16] */
T_LONG_CASE(stream_through_64_mib, 90)
{
    stream_with_deaths();
    T_EQ(t_named_shared_memory(), 0);
}

/* ---- with its memory locked ---- */

static uint64_t resident(void)
{
    FILE *in = fopen("/proc/self/statm", "re");
    uint64_t size = 0, all = 0;

    T_CHECK(in);
    T_EQ(fscanf(in, "%" SCNu64 " %" SCNu64, &size, &all), 2);
    (void)fclose(in);
    return all * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void locked(void *user)
{
    struct rlimit r;
    gpud_dispatcher *d;
    uint64_t before;

    (void)user;
    if ((geteuid() && (getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur != RLIM_INFINITY)) ||
        mlockall(MCL_CURRENT | MCL_FUTURE))
        t_skip("memory cannot be locked here without a limit");
    before = resident();
    h_init();
    d = t_create(
        T_OPTIONS(.definition = "square", .devices = "cpu:2", .payload_budget = (uint64_t)1 << 30));
    h_work(d);
    T_CMP(resident() - before, <, 64u << 20);
    T_EQ(munlockall(), 0);
    t_end(&d, NULL);
}

/* C18: a host that locks all memory it will ever have (as real-time programs do) does not get the
 * whole budget put into memory at create. */
T_CASE(locked_memory)
{
    if (T_SANITIZED)
        t_skip("a sanitizer's shadow cannot be locked");
    h_in_child(locked, NULL);
}

/* ---- in a memory cgroup of 128 MiB ---- */

struct group {
    char path[4500];
    int v2;
    pid_t remover; /* a child that removes it once this end of a pipe is closed */
    int end;
};

static int put(const struct group *g, const char *name, const char *text)
{
    char path[4600];
    int fd, n;

    (void)snprintf(path, sizeof(path), "%s/%s", g->path, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = (int)write(fd, text, strlen(text));
    (void)close(fd);
    return n < 0 ? -1 : 0;
}

/* The number after `word` in a file of the group; with "" the first number. */
static uint64_t number(const struct group *g, const char *name, const char *word)
{
    char path[4600], text[4096] = "", *at;
    FILE *in;

    (void)snprintf(path, sizeof(path), "%s/%s", g->path, name);
    in = fopen(path, "re");
    T_CHECK(in);
    (void)fread(text, 1, sizeof(text) - 1, in);
    (void)fclose(in);
    at = strstr(text, word);
    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* A child of the group that this process is in; 0, or -1 with errno. */
static int make_group(struct group *g)
{
    char line[4096];
    FILE *in = fopen("/proc/self/cgroup", "re");

    *g->path = 0;
    while (in && fgets(line, sizeof(line), in)) {
        char *path = strchr(line, '/');

        if (!path)
            continue;
        path[strcspn(path, "\n")] = 0;
        if (strstr(line, ":memory:"))
            (void)snprintf(g->path, sizeof(g->path), "/sys/fs/cgroup/memory%s/gpud-test-%d", path,
                           (int)getpid());
        else if (!strncmp(line, "0::", 3) && !*g->path)
            (void)snprintf(g->path, sizeof(g->path), "/sys/fs/cgroup%s/gpud-test-%d", path,
                           (int)getpid());
    }
    if (in)
        (void)fclose(in);
    g->v2 = !strstr(g->path, "/memory/");
    if (mkdir(g->path, 0755))
        return -1;
    if (!put(g, g->v2 ? "memory.max" : "memory.limit_in_bytes", "134217728"))
        return 0;
    (void)rmdir(g->path);
    return -1;
}

static int group_is_removed(void *user)
{
    return !rmdir(((struct group *)user)->path);
}

/* A child that removes the group when the case has ended, also when it has failed. */
static pid_t start_remover(struct group *g, int *ret_end)
{
    int p[2];
    char none;
    pid_t pid;

    T_EQ(pipe2(p, O_CLOEXEC), 0);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (pid) {
        (void)close(p[0]);
        *ret_end = p[1];
        return pid;
    }
    (void)close(p[1]);
    (void)!read(p[0], &none, 1);
    t_wait_until("the group is empty", group_is_removed, g);
    _exit(0);
}

/* Makes it, or skips. */
static void open_group(struct group *g)
{
    if (T_SANITIZED)
        t_skip("a sanitizer needs more than 128 MiB for itself");
    if (make_group(g))
        t_skip("no memory cgroup can be made here: %s", strerror(errno));
    g->remover = start_remover(g, &g->end);
}

static void nothing_was_killed(const struct group *g)
{
    T_EQ(number(g, g->v2 ? "memory.events" : "memory.oom_control", "oom_kill "), 0);
}

static void close_group(struct group *g)
{
    int status = 0;

    nothing_was_killed(g);
    (void)close(g->end);
    T_EQ(waitpid(g->remover, &status, 0), g->remover);
    T_EQ(status, 0);
}

static void in_group(void *user)
{
    const struct group *g = user;
    gpud_dispatcher *d;

    T_EQ(put(g, "cgroup.procs", "0"), 0);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    T_CMP(t_stats(d).payload_budget, <=, 32u << 20); /* a quarter of what the group has left */
    h_work(d);
    t_end(&d, NULL);
    stream_with_deaths();
}

static void too_large_a_budget(void *user)
{
    unsigned char *four = calloc(1, 4u << 20);
    struct gpud_task_desc task = {
        .struct_size = sizeof(task), .tag = H_TAG(H_ECHO, 0), .data = four, .size = 4u << 20
    };
    struct gpud_event e = GPUD_EVENT_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    unsigned more = 100;
    int r;

    T_EQ(put(user, "cgroup.procs", "0"), 0);
    T_CHECK(four);
    h_init();
    d = t_create(
        T_OPTIONS(.definition = "square", .devices = "cpu:1", .payload_budget = (uint64_t)1 << 30));
    for (uint64_t n = 0; !(r = gpud_dispatcher_submit(d, &task, 0, NULL, &error)); n++)
        T_CMP(n, <=, 1024); /* queue_size: tasks without room for a result end at once */
    T_EQ(r, GPUD_EFULL);
    T_TEXT(error.field, "size");
    T_TEXT(
        error.text,
        "the machine or memory cgroup has too little memory left for 4194304 bytes of task data");
    while (more--) { /* full all the time */
        T_EQ(gpud_dispatcher_poll(d, &e, 1, T_S(10)), 1);
        (void)gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
    }
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    while ((r = gpud_dispatcher_poll(d, &e, 1, T_S(10))) == 1)
        ;
    T_EQ(r, GPUD_EEND);
    T_EQ(t_stats(d).accepted, t_stats(d).delivered);
    T_CMP(t_stats(d).success, >, 0);
    T_EQ(t_stats(d).deaths, 0);
    free(four);
    t_end(&d, NULL);
}

/* C18: a budget larger than the group: submit says full before the group is, results have their
 * part of it, nothing is killed for memory. */
T_LONG_CASE(more_than_the_cgroup_has, 60)
{
    static struct group g;

    open_group(&g);
    h_in_child(too_large_a_budget, &g);
    close_group(&g);
}

/* Streams for ever; word H_READY counts what has come back. */
T_PROGRAM(endless_stream)
{
    struct group g = { .v2 = 0 };
    gpud_dispatcher *d;

    (void)snprintf(g.path, sizeof(g.path), "%s", argv[argc - 1]);
    T_EQ(put(&g, "cgroup.procs", "0"), 0);
    bytes = calloc(1, SIZE);
    T_CHECK(bytes);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2", .payload_budget = BUDGET);
    for (uint64_t n = 0;;) {
        struct gpud_event e[8] = { { .struct_size = sizeof(e[0]) } };
        int count;

        while (!give(d, n % TASKS))
            n++;
        count = gpud_dispatcher_poll(d, e, 8, T_MS(50));
        for (int i = 0; i < count; i++)
            (void)t_word_add(H_READY);
    }
}

static int memory_is_back(void *user)
{
    const struct group *g = user;

    return number(g, g->v2 ? "memory.current" : "memory.usage_in_bytes", "") < (16u << 20);
}

/* C11: the group bounds everything, the default budget follows it, nothing is killed for memory; a
 * host killed in the middle of its transfer leaves no page of shared memory behind. [T16] */
T_LONG_CASE(stream_in_128_mib, 120)
{
    static struct group g;

    open_group(&g);
    h_in_child(in_group, &g);
    nothing_was_killed(&g);
    for (uint32_t round = 0; round < 20; round++) {
        struct h_family f = h_family_start("endless_stream", g.path);

        t_word_wait(H_READY, 1 + round * 7 % 60);
        t_kill(f.host, SIGKILL);
        (void)h_family_reap(&f);
        h_family_gone(&f, 0);
    }
    t_wait_until("the memory is given back", memory_is_back, &g);
    close_group(&g);
}
