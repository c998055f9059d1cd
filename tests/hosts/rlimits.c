/* SPDX-License-Identifier: MIT */
/* rlimits.c - hosts that reach a limit of the system: -n, -u, -f, -v.             [C15] [C18] [C19]
 */
#include "work.h"

#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By the call itself: glibc and musl name its first argument differently. */
static void limit(int resource, uint64_t soft)
{
    struct rlimit r;

    T_EQ(syscall(SYS_prlimit64, 0, resource, NULL, &r), 0);
    r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
    T_EQ(syscall(SYS_prlimit64, 0, resource, &r, NULL), 0);
}

static int highest_file(void)
{
    int highest = 2;

    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            highest = fd;
    return highest;
}

/* One life of the library under a limit that may be too low for any of its steps. */
enum life { NO_INIT, NO_CREATE, NO_WORKER, WORKED };

static void check_refusal(const struct gpud_error *e, int code, int sys_errno)
{
    T_CHECK(code == GPUD_ESYSTEM || code == GPUD_ENOMEM || code == GPUD_ESPAWNER);
    T_EQ(e->code, code);
    /* pthread_create calls every lack EAGAIN */
    if (code != GPUD_ESPAWNER && e->sys_errno != sys_errno &&
        !(e->sys_errno == EAGAIN && !strcmp(e->field, "drive")))
        T_FAIL("errno %d in: %s", e->sys_errno, e->text);
    T_CHECK(*e->text);
}

static enum life live(int sys_errno, const struct gpud_options *options)
{
    const struct gpud_definition definition = GPUD_DEFINITION("square", NULL, h_process, NULL);
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;
    enum life life = WORKED;
    uint64_t n = 3;
    int code = gpud_init(&definition, 1, &error);

    if (code) {
        check_refusal(&error, code, sys_errno);
        return NO_INIT;
    }
    code = gpud_dispatcher_create(&d, options, &error);
    if (code) {
        T_CHECK(!d);
        check_refusal(&error, code, sys_errno);
        T_OK(gpud_fini());
        return NO_CREATE;
    }
    T_SUBMIT(d, .tag = n, .data = &n, .size = sizeof(n));
    t_collect(d, &log, 1);
    if (log.count && t_log_outcomes(&log, GPUD_OUTCOME_NO_WORKER)) {
        T_CMP(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), >=, 1);
        life = NO_WORKER;
    } else {
        T_EQ(*(const uint64_t *)T_OUTCOME(&log, n, SUCCESS)->result, 9);
    }
    t_end(&d, &log);
    return life;
}

/* ---- -n ---- */

static void few_files(void *user)
{
    uint64_t full = *(uint64_t *)user, base = (uint64_t)highest_file() + 1;
    const struct gpud_options *options =
        T_OPTIONS(.devices = "cpu:1", .backoff = T_MS(1), .payload_budget = 16u << 20);
    unsigned seen[4] = { 0 };
    struct t_snapshot before;

    for (uint64_t room = 0; room < 60 && seen[WORKED] < 3; room++) {
        t_snapshot_take(&before);
        limit(RLIMIT_NOFILE, base + room);
        seen[live(EMFILE, options)]++;
        limit(RLIMIT_NOFILE, full);
        t_snapshot_compare(&before);
    }
    printf("without init %u, without create %u, without worker %u, worked %u\n", seen[NO_INIT],
           seen[NO_CREATE], seen[NO_WORKER], seen[WORKED]);
    T_CMP(seen[NO_INIT], >, 0);
    T_CMP(seen[NO_CREATE], >, 0);
    T_EQ(seen[WORKED], 3);
    h_host_untouched();
}

/* C15 C19: with any number of descriptors left, each call that fails says why and leaves nothing,
 * and a task that no worker can run gets its outcome. */
T_LONG_CASE(open_files, 90)
{
    struct rlimit r;
    uint64_t full;

    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    full = r.rlim_cur;
    h_in_child(few_files, &full);
}

static void files_run_out(void *user)
{
    gpud_dispatcher *d, *other = NULL;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_counts before, after;

    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    t_wait_ready(d, 2);
    before = t_counts_take();
    limit(RLIMIT_NOFILE, (uint64_t)highest_file() + 1);
    while (open("/dev/null", O_RDONLY) >= 0) /* fills what is free below */
        ;
    T_EQ(errno, EMFILE);
    h_work(d); /* a worker's death included: its replacement needs no descriptor in the host */
    T_CODE(gpud_dispatcher_create(&other, T_OPTIONS(.definition = "square"), &error), ESYSTEM);
    T_EQ(error.sys_errno, EMFILE);
    T_CHECK(strstr(error.text, strerror(EMFILE)));
    limit(RLIMIT_NOFILE, *(uint64_t *)user);
    after = t_counts_take();
    T_EQ(after.threads, before.threads);
    T_EQ(after.mappings, before.mappings);
    other = T_CREATE(.definition = "cube", .devices = "cpu:1");
    h_work(other);
    t_destroy(&other, NULL);
    h_work(d);
    t_end(&d, NULL);
}

/* Reached later, the limit costs nothing that works already, and new things only until it is
 * raised. */
T_CASE(open_files_run_out)
{
    struct rlimit r;
    uint64_t full;

    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    full = r.rlim_cur;
    h_in_child(files_run_out, &full);
}

/* ---- -u ---- */

static void be_nobody_else(void)
{
    uid_t uid = (uid_t)(200000 + getpid());

    if (geteuid())
        t_skip("only root can be a user that has no other processes");
    T_EQ(setgroups(0, NULL), 0);
    T_EQ(setresgid(uid, uid, uid), 0);
    T_EQ(setresuid(uid, uid, uid), 0);
}

static void few_processes(void *user)
{
    const struct gpud_options *options =
        T_OPTIONS(.devices = "cpu:1", .backoff = T_MS(1), .payload_budget = 16u << 20);
    unsigned seen[4] = { 0 };
    struct t_snapshot before;

    (void)user;
    be_nobody_else();
    for (uint64_t n = 1; n < 30 && seen[WORKED] < 3; n++) {
        t_snapshot_take(&before);
        limit(RLIMIT_NPROC, n);
        seen[live(EAGAIN, options)]++;
        limit(RLIMIT_NPROC, 1000);
        t_snapshot_compare(&before);
    }
    printf("without init %u, without create %u, without worker %u, worked %u\n", seen[NO_INIT],
           seen[NO_CREATE], seen[NO_WORKER], seen[WORKED]);
    T_CMP(seen[NO_INIT], >, 0);
    T_CMP(seen[NO_WORKER], >, 0);
    T_EQ(seen[WORKED], 3);
    h_host_untouched();
}

/* C15 C19: the same with processes. */
T_LONG_CASE(processes, 60)
{
    h_in_child(few_processes, NULL);
}

static int is_backing_off(void *user)
{
    struct gpud_slot_stats row = t_slot(user, 0);

    return row.state == GPUD_SLOT_BACKOFF;
}

static void allow_processes(const struct t_proc *p, uint64_t n)
{
    struct rlimit r;

    T_EQ(prlimit(p->pid, RLIMIT_NPROC, NULL, &r), 0);
    r.rlim_cur = n;
    T_EQ(prlimit(p->pid, RLIMIT_NPROC, &r, NULL), 0);
}

static void processes_run_out(void *user)
{
    struct t_log log = { 0 };
    struct t_proc worker, keeper;
    gpud_dispatcher *d;
    const struct gpud_event *e;
    uint64_t n = 7;

    (void)user;
    be_nobody_else();
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:1", .backoff = T_MS(20),
                 .failures_in_a_row = 1000000);
    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    allow_processes(&keeper, 1);
    t_kill(worker.pid, SIGKILL);
    T_SUBMIT(d, .tag = n, .data = &n, .size = sizeof(n));
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 3); /* the death, then starts that failed */
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 2);
    if (!strstr(e->text, strerror(EAGAIN)))
        T_FAIL("the event says: %s", e->text);
    t_wait_until("the slot backs off", is_backing_off, d);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 0);
    allow_processes(&keeper, 1000);
    t_collect(d, &log, 1);
    T_EQ(*(const uint64_t *)T_OUTCOME(&log, n, SUCCESS)->result, 49);
    t_log_free(&log);
    h_work(d);
    t_end(&d, NULL);
}

/* C9: a worker that cannot be forked is a failed start with its errno; the slot backs off, the task
 * waits, and when there is room again it runs. */
T_CASE(processes_run_out_later)
{
    h_in_child(processes_run_out, NULL);
}

/* ---- -f ---- */

static void small_files(void *user)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_counts before, after;
    gpud_dispatcher *d = NULL;
    uint64_t mib;

    (void)user;
    h_init();
    before = t_counts_take();
    limit(RLIMIT_FSIZE, 1 << 20);
    T_CODE(
        gpud_dispatcher_create(&d, T_OPTIONS(.definition = "square", .devices = "cpu:2"), &error),
        ESYSTEM);
    T_TEXT(error.field, "payload_budget");
    T_CHECK(strstr(error.text, "ulimit -f"));
    limit(RLIMIT_FSIZE, 0);
    T_CODE(
        gpud_dispatcher_create(&d, T_OPTIONS(.definition = "square", .devices = "cpu:2"), &error),
        ESYSTEM);
    after = t_counts_take();
    T_CHECK(!memcmp(&before, &after, sizeof(before)));
    for (mib = 2; mib < 64; mib += 3) {
        int code;

        limit(RLIMIT_FSIZE, mib << 20);
        code = gpud_dispatcher_create(&d, T_OPTIONS(.definition = "square", .devices = "cpu:2"),
                                      &error);
        if (code) {
            T_CMP(mib, <, 16);
            T_CHECK(*error.text);
            continue;
        }
        h_work(d);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
    limit(RLIMIT_FSIZE, 1 << 20); /* after create and in workers it forbids nothing of ours */
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    h_init();
    d = T_CREATE(.definition = "cube", .devices = "cpu:2");
    limit(RLIMIT_FSIZE, 0);
    h_work(d);
    t_end(&d, NULL);
}

/* C18 A4: a limit on files bounds shared memory too: a clear refusal or smaller arenas, never
 * SIGXFSZ. */
T_LONG_CASE(file_size, 60)
{
    h_in_child(small_files, NULL);
}

/* ---- -v ---- */

static uint64_t address_space(void)
{
    FILE *in = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    T_CHECK(in);
    T_EQ(fscanf(in, "%lu", &pages), 1);
    (void)fclose(in);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void small_address_space(void *user)
{
    const struct gpud_options *modest =
        T_OPTIONS(.devices = "cpu:1", .payload_budget = 16u << 20, .queue_size = 16);
    struct gpud_error error = GPUD_ERROR_INIT;
    unsigned seen[4] = { 0 };
    struct t_snapshot before;
    gpud_dispatcher *d = NULL;

    (void)user;
    for (uint64_t mib = 0; mib < 400 && seen[WORKED] < 3; mib += 4) {
        t_snapshot_take(&before);
        limit(RLIMIT_AS, address_space() + (mib << 20));
        seen[live(ENOMEM, modest)]++;
        limit(RLIMIT_AS, RLIM_INFINITY);
        t_snapshot_compare(&before);
    }
    printf("without init %u, without create %u, without worker %u, worked %u\n", seen[NO_INIT],
           seen[NO_CREATE], seen[NO_WORKER], seen[WORKED]);
    T_CMP(seen[NO_CREATE], >, 0);
    T_EQ(seen[WORKED], 3);
    h_init();
    limit(RLIMIT_AS, address_space() + (64u << 20));
    T_CODE(gpud_dispatcher_create(
               &d, T_OPTIONS(.definition = "square", .payload_budget = (uint64_t)1 << 30), &error),
           ENOMEM);
    T_EQ(error.sys_errno, ENOMEM);
    T_TEXT(error.field, "payload_budget");
    limit(RLIMIT_AS, RLIM_INFINITY);
    T_OK(gpud_fini());
    h_host_untouched();
}

/* C15: address space that ends is ENOMEM, which names what was too large. */
T_LONG_CASE(address_space, 60)
{
    if (T_SANITIZED)
        t_skip("a sanitizer's shadow takes all address space");
    h_in_child(small_address_space, NULL);
}
