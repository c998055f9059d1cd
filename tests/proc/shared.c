/* SPDX-License-Identifier: MIT */
/* shared.c - option setup_shared: one piece of memory for all workers, without a copy. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ, WRITE, MAKE_WRITABLE, CHECK_SIZE };
#define MIB (1ull << 20)
#define LARGE (T_SANITIZED ? 32 * MIB : 256 * MIB)

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    return 0;
}

/* Gives the sum of one word per page, and its number of bytes. */
static int process(gpud_task *t, void *state)
{
    size_t size = 0;
    const unsigned char *data = gpud_worker_setup_data(state, &size);
    uint64_t sum[2] = { 0, size };
    long page = sysconf(_SC_PAGESIZE);

    switch (gpud_task_tag(t) % 8) {
    case WRITE:
        *(volatile unsigned char *)(uintptr_t)data = 1;
        return 0;
    case MAKE_WRITABLE:
        return mprotect((void *)(uintptr_t)data, (size_t)page, PROT_READ | PROT_WRITE) == 0;
    default:
        for (size_t at = 0; at < size; at += (size_t)page)
            sum[0] += data[at];
        return gpud_task_result_set(t, sum, sizeof(sum));
    }
}

static gpud_shared *make(uint64_t size)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_shared *s = NULL;

    if (gpud_shared_create(size, &s, &error))
        T_FAIL("shared_create: %s: %s", gpud_error_name(error.code), error.text);
    T_EQ(gpud_shared_size(s), size);
    T_CHECK(gpud_shared_data(s));
    return s;
}

/* Fills it, and gives what workers are to find. */
static uint64_t fill(gpud_shared *s)
{
    unsigned char *data = gpud_shared_data(s);
    uint64_t size = gpud_shared_size(s), sum = 0;
    long page = sysconf(_SC_PAGESIZE);

    for (uint64_t at = 0; at < size; at += (uint64_t)page) {
        data[at] = (unsigned char)(at / (uint64_t)page * 7 + 1);
        sum += data[at];
    }
    return sum;
}

static void check_sums(gpud_dispatcher *d, uint64_t tasks, uint64_t sum, uint64_t size)
{
    struct t_log log = { 0 };

    for (uint64_t tag = 0; tag < tasks; tag++)
        T_SUBMIT(d, .tag = 8 * tag + READ);
    t_collect(d, &log, tasks);
    for (uint64_t tag = 0; tag < tasks; tag++) {
        const uint64_t *found = T_OUTCOME(&log, 8 * tag + READ, SUCCESS)->result;
        T_EQ(found[0], sum);
        T_EQ(found[1], size);
    }
    t_log_free(&log);
}

static uint64_t resident(pid_t pid, const char *field)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    f = fopen(path, "re");
    T_CHECK(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, field, strlen(field)) &&
            sscanf(line + strlen(field), ": %llu", &kib) == 1)
            break;
    T_EQ(fclose(f), 0);
    return kib * 1024;
}

/* 256 MiB for four workers: there once.  The host does not grow, and the five together hold it
 * once: their proportional shares add up to it. */
T_CASE(one_copy)
{
    gpud_shared *s;
    gpud_dispatcher *d;
    uint64_t sum, before, after, together = 0;

    t_init(setup, process, NULL);
    s = make(LARGE);
    sum = fill(s);
    before = resident(getpid(), "Rss");
    T_CMP(before, >=, LARGE);
    d = T_CREATE(.devices = "cpu:4", .setup_shared = s, .payload_budget = 16 * MIB);
    t_wait_ready(d, 4);
    T_EQ(t_stats(d).payload_used, 0);
    check_sums(d, 64, sum, LARGE); /* each worker several, all of it read */
    after = resident(getpid(), "Rss");
    if (!T_SANITIZED)
        T_CMP(after, <, before + 16 * MIB);
    for (unsigned i = 0; i < 4; i++)
        together += resident((pid_t)t_slot(d, i).pid, "Pss");
    together += resident(getpid(), "Pss");
    if (!T_SANITIZED)
        T_CMP(together, <, LARGE + LARGE / 2);
    t_end(&d, NULL);
    T_OK(gpud_shared_destroy(&s));
    T_CHECK(!s);
}

/* Destroyed right after create; several dispatchers, one after and one beside the other; restarts.
 */
T_CASE(lives)
{
    gpud_shared *s;
    gpud_dispatcher *a, *b;
    struct t_log log = { 0 };
    uint64_t sum, size = 3 * MIB + 17;

    s = make(size); /* also before gpud_init */
    sum = fill(s);
    a = T_BEGIN(setup, process, .devices = "cpu:2", .setup_shared = s);
    check_sums(a, 8, sum, size);
    b = T_CREATE(.devices = "cpu:1", .setup_shared = s);
    T_OK(gpud_shared_destroy(&s));
    T_OK(gpud_shared_destroy(&s));
    T_OK(gpud_shared_destroy(NULL));
    t_destroy(&a, NULL);
    check_sums(b, 8, sum, size);
    T_SUBMIT(b, .tag = WRITE); /* its replacement maps it again */
    t_collect(b, &log, 1);
    (void)T_OUTCOME(&log, WRITE, CRASHED);
    check_sums(b, 8, sum, size);
    t_end(&b, &log);
}

/* A worker can neither write there nor make it writable; the host's bytes stay. */
T_CASE(read_only)
{
    gpud_shared *s = make(8 * MIB);
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    ((unsigned char *)gpud_shared_data(s))[0] = 77;
    d = T_BEGIN(setup, process, .devices = "cpu:1", .setup_shared = s);
    T_SUBMIT(d, .tag = WRITE);
    T_SUBMIT(d, .tag = 8 + MAKE_WRITABLE);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, WRITE, CRASHED);
    (void)T_OUTCOME(&log, 8 + MAKE_WRITABLE, SUCCESS);
    T_EQ(((unsigned char *)gpud_shared_data(s))[0], 77);
    t_end(&d, &log);
    T_OK(gpud_shared_destroy(&s));
}

/* C15: what cannot be is told, and changes nothing. */
T_CASE(arguments)
{
    gpud_shared *const untouched = (gpud_shared *)(uintptr_t)8;
    gpud_shared *s = untouched;
    gpud_dispatcher *d = NULL;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct rlimit before, low;

    T_CODE(gpud_shared_create(0, &s, &error), EINVAL);
    T_TEXT(error.field, "size");
    T_CODE(gpud_shared_create(1, NULL, &error), EINVAL);
    T_TEXT(error.field, "ret_shared");
    T_CODE(gpud_shared_create(UINT64_MAX, &s, &error), ENOMEM);
    T_CHECK(strstr(error.text, "18446744073709551615"));
    T_CODE(gpud_shared_create(1ull << 60, &s, NULL), ENOMEM);
    T_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){ 1 << 20, before.rlim_max };
    T_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    T_CODE(gpud_shared_create((1 << 20) + 1, &s, &error), ESYSTEM);
    T_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    T_CHECK(s == untouched);
    T_CHECK(!gpud_shared_data(NULL));
    T_EQ(gpud_shared_size(NULL), 0);

    s = make(1);
    t_init(setup, process, NULL);
    T_CODE(gpud_dispatcher_create(
               &d, T_OPTIONS(.setup_shared = s, .setup_data = "x", .setup_size = 1), &error),
           EINVAL);
    T_TEXT(error.field, "setup_shared");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.setup_shared = s, .setup_data = "x"), &error),
           EINVAL);
    T_CHECK(!d);
    T_OK(gpud_fini());
    T_OK(gpud_shared_destroy(&s));
}

/* In a process forked from the host it is not there, and destroy only frees: what lies at its
 * address in the child stays. */
T_CASE(forked)
{
    gpud_shared *s = make(MIB);
    unsigned char *data = gpud_shared_data(s);
    int status = -1;
    pid_t pid;

    data[0] = 7;
    pid = fork();
    T_CMP(pid, >=, 0);
    if (pid == 0) {
        struct gpud_error error = GPUD_ERROR_INIT;
        gpud_dispatcher *d = NULL;
        unsigned char *own = mmap(data, MIB, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (own != data || gpud_shared_data(s) || gpud_shared_size(s) != MIB)
            _exit(1);
        t_init(setup, process, NULL);
        if (gpud_dispatcher_create(&d, T_OPTIONS(.setup_shared = s), &error) != GPUD_EFORKED ||
            strcmp(error.field, "setup_shared"))
            _exit(2);
        if (gpud_shared_destroy(&s) || s)
            _exit(3);
        own[MIB - 1] = 1;
        _exit(gpud_fini() ? 4 : 0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    T_EQ(data[0], 7);
    T_OK(gpud_shared_destroy(&s));
}
