/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void t_check_code(const char *file, int line, const char *call, int code, int wanted)
{
    if (code != wanted)
        t_fail(file, line, "%s answers %d (%s), not %d (%s)", call, code, gpud_error_name(code),
               wanted, gpud_error_name(wanted));
}

/* ---- life ---- */

void t_init(gpud_setup_fn *setup, gpud_process_fn *process, gpud_cleanup_fn *cleanup)
{
    const struct gpud_definition definition = GPUD_DEFINITION("test", setup, process, cleanup);
    struct gpud_error error = GPUD_ERROR_INIT;

    if (gpud_init(&definition, 1, &error))
        T_FAIL("gpud_init: %s: %s: %s", gpud_error_name(error.code), error.field, error.text);
}

gpud_dispatcher *t_create(const struct gpud_options *options)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_options changed = *options;
    gpud_dispatcher *d = NULL;

    if (getenv("T_START_EXEC") && !changed.start)
        options = &changed, changed.start = GPUD_START_EXEC;
    if (gpud_dispatcher_create(&d, options, &error))
        T_FAIL("create: %s: %s: %s", gpud_error_name(error.code), error.field, error.text);
    T_CHECK(d);
    return d;
}

int t_no_work(gpud_task *t, void *state)
{
    (void)t, (void)state;
    return 0;
}

gpud_dispatcher *t_begin(gpud_setup_fn *setup, gpud_process_fn *process,
                         const struct gpud_options *options)
{
    t_init(setup, process, NULL);
    return t_create(options);
}

uint64_t t_submit(gpud_dispatcher *d, const struct gpud_task_desc *task)
{
    uint64_t id = 0;

    T_OK(gpud_dispatcher_submit(d, task, 0, &id, NULL));
    T_CHECK(id);
    return id;
}

void t_submit_tags(gpud_dispatcher *d, uint64_t from, uint64_t to)
{
    for (uint64_t tag = from; tag < to; tag++)
        T_SUBMIT(d, .tag = tag);
}

struct gpud_stats t_stats(gpud_dispatcher *d)
{
    struct gpud_stats stats = GPUD_STATS_INIT;

    T_OK(gpud_dispatcher_stats(d, &stats));
    return stats;
}

int t_none_queued(void *dispatcher)
{
    return t_stats(dispatcher).queued == 0;
}

struct wanted_slots {
    gpud_dispatcher *d;
    unsigned slot;
    uint32_t value;
};

static int slots_are_ready(void *user)
{
    struct wanted_slots *w = user;

    return t_stats(w->d).slots_ready >= w->value;
}

void t_wait_ready(gpud_dispatcher *d, unsigned slots)
{
    struct wanted_slots w = { d, 0, slots };

    t_wait_until("the slots are ready", slots_are_ready, &w);
}

struct gpud_slot_stats t_slot(gpud_dispatcher *d, unsigned slot)
{
    struct gpud_slot_stats rows[64] = { { .struct_size = sizeof(rows[0]) } };
    int n = gpud_dispatcher_slots(d, rows, 64);

    T_CMP(n, >, (int)slot);
    T_EQ(rows[slot].slot, slot);
    return rows[slot];
}

static int slot_is_in_state(void *user)
{
    struct wanted_slots *w = user;

    return t_slot(w->d, w->slot).state == w->value;
}

void t_wait_slot(gpud_dispatcher *d, unsigned slot, uint32_t state)
{
    struct wanted_slots w = { d, slot, state };
    char what[64];

    (void)snprintf(what, sizeof(what), "slot %u is %s", slot, gpud_slot_state_name(state));
    t_wait_until(what, slot_is_in_state, &w);
}

/* ---- what has been told ---- */

static void *copy(const void *data, size_t size)
{
    char *bytes = malloc(size + 1);

    if (!bytes)
        T_FAIL("out of memory");
    if (size)
        memcpy(bytes, data, size);
    bytes[size] = 0;
    return bytes;
}

/* It is a line, of no control characters. */
static void check_line(const struct gpud_event *e)
{
    char line[256];
    int n = gpud_event_format(e, line, sizeof(line));

    T_CMP(n, >, 0);
    T_EQ(strlen(line) == (size_t)n, (size_t)n < sizeof(line));
    for (const char *p = line; *p; p++)
        T_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

/* What holds for every event, whatever the case is about. */
static void check_event(const struct gpud_event *e)
{
    uint64_t now = t_now();

    T_EQ(e->struct_size, sizeof(*e));
    T_CHECK(e->label && e->text && e->device);
    T_CHECK(!e->result_size || e->result);
    T_CHECK(!e->output_size || e->output);
    T_CHECK(!e->output_before_size || e->output_before);
    T_CMP(e->output_size + e->output_before_size, <=, 8192);
    T_CMP(e->stream, <=, e->kind == GPUD_EVENT_LOG ? GPUD_STREAM_STDERR : GPUD_STREAM_NONE);
    T_EQ(e->reserved, 0);
    check_line(e);
    if (e->kind != GPUD_EVENT_OUTCOME)
        return;
    T_CMP(e->outcome, >=, 1);
    T_CMP(e->outcome, <, GPUD_OUTCOME_COUNT);
    T_CHECK(e->task_id);
    T_CMP(e->queued_at, >, 0);
    T_CMP(e->queued_at, <=, now);
    T_CMP(e->ended_at, <=, now);
    if (e->started_at) {
        T_CMP(e->queued_at, <=, e->sent_at);
        if (e->phase != GPUD_PHASE_QUEUED) /* else sent for another attempt, which did not start */
            T_CMP(e->sent_at, <=, e->started_at);
        T_CMP(e->started_at, <=, e->ended_at);
        T_CMP(e->attempt, >=, 1);
    }
    if (e->outcome == GPUD_OUTCOME_SUCCESS) {
        T_CHECK(e->started_at);
        T_EQ(e->code, 0);
        T_CHECK(e->exit_kind == GPUD_EXIT_NONE || e->slot == GPUD_NO_SLOT); /* external */
        T_EQ(e->phase, GPUD_PHASE_PROCESS);
    }
}

int t_log_add(const struct gpud_event *e, void *user)
{
    struct t_log *log = user;
    struct gpud_event *kept;

    check_event(e);
    if (log->count == log->room) {
        log->room = log->room ? 2 * log->room : 64;
        log->list = realloc(log->list, log->room * sizeof(*log->list));
        if (!log->list)
            T_FAIL("out of memory");
    }
    kept = &log->list[log->count++];
    *kept = *e;
    kept->label = copy(e->label, strlen(e->label));
    kept->text = copy(e->text, strlen(e->text));
    kept->device = copy(e->device, strlen(e->device));
    kept->device_uuid = copy(e->device_uuid, e->device_uuid ? strlen(e->device_uuid) : 0);
    kept->result = copy(e->result, e->result_size);
    kept->output = copy(e->output, e->output_size);
    kept->output_before = copy(e->output_before, e->output_before_size);
    return 0;
}

void t_log_free(struct t_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        free((void *)(uintptr_t)log->list[i].label);
        free((void *)(uintptr_t)log->list[i].text);
        free((void *)(uintptr_t)log->list[i].device);
        free((void *)(uintptr_t)log->list[i].device_uuid);
        free((void *)(uintptr_t)log->list[i].result);
        free((void *)(uintptr_t)log->list[i].output);
        free((void *)(uintptr_t)log->list[i].output_before);
    }
    free(log->list);
    *log = (struct t_log){ NULL, 0, 0 };
}

size_t t_log_count(const struct t_log *log, uint32_t kind)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        n += log->list[i].kind == kind;
    return n;
}

size_t t_log_outcomes(const struct t_log *log, uint32_t outcome)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        n += log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].outcome == outcome;
    return n;
}

const struct gpud_event *t_log_at(const struct t_log *log, uint32_t kind, size_t n)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == kind && !n--)
            return &log->list[i];
    return NULL;
}

int t_poll(gpud_dispatcher *d, struct t_log *log, uint64_t wait)
{
    struct gpud_event events[32];
    int n, i;

    events[0].struct_size = sizeof(events[0]);
    n = gpud_dispatcher_poll(d, events, 32, wait);
    if (n < 0 && n != GPUD_EEND)
        T_FAIL("poll answers %d (%s)", n, gpud_error_name(n));
    for (i = 0; i < n; i++)
        (void)t_log_add(&events[i], log);
    return n;
}

void t_collect_kind(gpud_dispatcher *d, struct t_log *log, uint32_t kind, size_t n)
{
    uint64_t until = t_now() + T_PATIENCE;

    while (t_log_count(log, kind) < n) {
        if (t_poll(d, log, T_MS(200)) == GPUD_EEND || t_now() > until) {
            for (size_t i = 0; i < log->count && i < 64; i++)
                t_print_event(&log->list[i]);
            T_FAIL("%zu events %s came, %zu were awaited", t_log_count(log, kind),
                   gpud_event_name(kind), n);
        }
    }
}

void t_collect(gpud_dispatcher *d, struct t_log *log, size_t n)
{
    t_collect_kind(d, log, GPUD_EVENT_OUTCOME, n);
}

static int has_outcome(const struct t_log *log, uint64_t tag)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].tag == tag)
            return 1;
    return 0;
}

const struct gpud_event *t_run(const char *file, int line, gpud_dispatcher *d, struct t_log *log,
                               uint32_t outcome, const struct gpud_task_desc *task)
{
    (void)t_submit(d, task);
    while (!has_outcome(log, task->tag))
        t_collect(d, log, t_log_count(log, GPUD_EVENT_OUTCOME) + 1);
    return t_check_outcome(file, line, log, task->tag, outcome);
}

void t_collect_log(gpud_dispatcher *d, struct t_log *log, const char *words)
{
    for (size_t n = 0;; n++) {
        t_collect_kind(d, log, GPUD_EVENT_LOG, n + 1);
        if (strstr(t_log_at(log, GPUD_EVENT_LOG, n)->text, words))
            return;
    }
}

void t_collect_rest(gpud_dispatcher *d, struct t_log *log)
{
    uint64_t until = t_now() + T_PATIENCE;

    while (t_poll(d, log, T_MS(200)) != GPUD_EEND)
        if (t_now() > until)
            T_FAIL("poll does not come to EEND");
}

void t_print_event(const struct gpud_event *e)
{
    (void)fprintf(
        stderr,
        "  event %s: task %" PRIu64 ", tag %" PRIu64 ", %s, phase %s, code %d (%s), attempt %u, "
        "slot %d life %u %s, exit %u/%d, text \"%s\", result %" PRIu64 " bytes, sent +%.3f ms, "
        "started +%.3f ms, ended +%.3f ms\n",
        gpud_event_name(e->kind), e->task_id, e->tag, gpud_outcome_name(e->outcome),
        gpud_phase_name(e->phase), e->code, gpud_error_name(e->code), e->attempt, (int)e->slot,
        e->incarnation, gpud_slot_state_name(e->slot_state), e->exit_kind, e->exit_status, e->text,
        e->result_size, e->sent_at ? (double)(e->sent_at - e->queued_at) / 1e6 : -1,
        e->started_at ? (double)(e->started_at - e->queued_at) / 1e6 : -1,
        e->ended_at ? (double)(e->ended_at - e->queued_at) / 1e6 : -1);
    if (e->output_size)
        (void)fprintf(stderr, "  output of the worker: %.*s\n", (int)e->output_size, e->output);
}

const struct gpud_event *t_check_outcome(const char *file, int line, const struct t_log *log,
                                         uint64_t tag, uint32_t outcome)
{
    const struct gpud_event *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].tag == tag) {
            found = &log->list[i];
            n++;
        }
    if (n != 1)
        t_fail(file, line, "tag %" PRIu64 " has %zu outcomes", tag, n);
    if (outcome && found->outcome != outcome) {
        t_print_event(found);
        t_fail(file, line, "tag %" PRIu64 " ended %s, not %s", tag,
               gpud_outcome_name(found->outcome), gpud_outcome_name(outcome));
    }
    return found;
}

void t_check_exactly_once(const struct t_log *log, uint64_t n)
{
    unsigned char *seen = calloc(1, n + 1);
    size_t i, count = 0;

    T_CHECK(seen);
    for (i = 0; i < log->count; i++) {
        if (log->list[i].kind != GPUD_EVENT_OUTCOME)
            continue;
        T_CMP(log->list[i].tag, <, n);
        if (seen[log->list[i].tag]++)
            T_FAIL("tag %" PRIu64 " was delivered twice", log->list[i].tag);
        count++;
    }
    free(seen);
    T_EQ(count, n);
}

void t_destroy(gpud_dispatcher **d, struct t_log *log)
{
    uint64_t uncollected = 12345, start = t_now();

    T_EQ(t_stats(*d).idle_with_work, 0);
    T_OK(gpud_dispatcher_destroy(d, &uncollected));
    T_CHECK(!*d);
    T_EQ(uncollected, 0);
    T_CMP(t_now() - start, <, T_S(5)); /* nothing runs: no limit may be waited for */
    if (log)
        t_log_free(log);
}

void t_end(gpud_dispatcher **d, struct t_log *log)
{
    t_destroy(d, log);
    T_OK(gpud_fini());
}

/* ---- processes of the library ---- */

struct t_proc t_worker(gpud_dispatcher *d, unsigned slot)
{
    uint64_t until = t_now() + T_PATIENCE;
    struct t_proc found = { .pid = 0 };

    for (;;) {
        struct gpud_slot_stats row = t_slot(d, slot);

        /* A row may still name a worker whose death has not been reported yet. */
        if (row.pid && !t_proc_read((pid_t)row.pid, &found) && !t_proc_ended(&found))
            return found;
        if (t_now() > until)
            T_FAIL("slot %u has no worker: %s for %.3f s, life %u, pid %d", slot,
                   gpud_slot_state_name(row.state), (double)(t_now() - row.since) / 1e9,
                   row.incarnation, (int)row.pid);
        (void)poll(NULL, 0, 2);
    }
}

struct t_proc t_keeper_of(const struct t_proc *worker)
{
    struct t_proc p;

    if (t_proc_read(worker->parent, &p))
        T_FAIL("the keeper of %d is gone", (int)worker->pid);
    T_TEXT(p.comm, "gpud-keeper");
    return p;
}

struct t_proc t_spawner(void)
{
    struct t_procs below = t_procs_below(getpid());
    struct t_proc found = { .pid = 0 };

    for (size_t i = 0; i < below.count; i++)
        if (!strcmp(below.list[i].comm, "gpud-spawner")) {
            T_CHECK(!found.pid);
            found = below.list[i];
        }
    t_procs_free(&below);
    T_CHECK(found.pid);
    return found;
}

static int has_ended(void *user)
{
    return t_proc_ended(user);
}

void t_wait_ended(const struct t_proc *p)
{
    struct t_proc copy_of_p = *p;
    char what[64];

    (void)snprintf(what, sizeof(what), "%s %d has ended", p->comm, (int)p->pid);
    t_wait_until(what, has_ended, &copy_of_p);
}

static int is_stopped(void *user)
{
    struct t_proc p, *wanted = user;

    return !t_proc_read(wanted->pid, &p) && p.state == 'T';
}

int t_thread_sleeps(void *word)
{
    const uint32_t tid = atomic_load((_Atomic uint32_t *)word);
    struct t_proc p;

    return tid && t_proc_read((pid_t)tid, &p) == 0 && p.state == 'S';
}

void t_stop(const struct t_proc *p)
{
    struct t_proc copy_of_p = *p;
    char what[64];

    t_kill(p->pid, SIGSTOP);
    (void)snprintf(what, sizeof(what), "%s %d stands still", p->comm, (int)p->pid);
    t_wait_until(what, is_stopped, &copy_of_p);
}

struct t_proc t_stopped_spawner(void)
{
    gpud_dispatcher *d = T_CREATE(.devices = "cpu:1");
    struct t_proc spawner;

    t_wait_ready(d, 1); /* by then the spawner has its name */
    spawner = t_spawner();
    t_destroy(&d, NULL);
    t_stop(&spawner);
    return spawner;
}

/* Without touching it, as ThreadSanitizer sees it: another thread may close it. */
static int is_unread_socket(int dir, const char *name)
{
    char kind[8] = "";
    int unread = 0;

    if (readlinkat(dir, name, kind, sizeof(kind) - 1) < 0 || strcmp(kind, "socket:") != 0)
        return 0;
    return syscall(SYS_ioctl, (int)strtol(name, NULL, 10), SIOCOUTQ, &unread) == 0 && unread > 0;
}

int t_word_waits(void *unused)
{
    DIR *fds = opendir("/proc/self/fd");
    struct dirent *entry;
    int waits = 0;

    (void)unused;
    T_CHECK(fds);
    while ((entry = readdir(fds)) != NULL)
        waits |= is_unread_socket(dirfd(fds), entry->d_name);
    (void)closedir(fds);
    return waits;
}

int t_raise_descriptors(unsigned n)
{
    struct rlimit r;

    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (r.rlim_cur >= n)
        return 1;
    if (r.rlim_max < n)
        return 0;
    r.rlim_cur = n;
    T_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    return 1;
}
