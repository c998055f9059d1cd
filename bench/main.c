/* SPDX-License-Identifier: MIT */
/*
 * main.c - runs the cells one after the other, each in a process of its own with a time limit, so
 * that no cell sees the memory, the children or the faults of another; then prints what they
 * reported.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cells.h"
#include "machine.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_fork.h"
#include "report.h"
#include "sched/run.h"
#include "view/run.h"
#ifdef BENCH_HAVE_QUEUE
#include "queue/run.h"
#endif

static const struct b_cell cells[] = {
    { "idle", b_cell_idle, 0, 0, 40, " idle_switches_10s idle_switches_in_poll_3s " },
    { "idle_start", b_cell_idle_start, 0, 0, 60, " idle_switches_30s " },
    { "trip_1cpu", b_cell_trip, 1, 0, 20,
      " rtt_vs_pipe_1cpu rtt_thread_vs_pipe_1cpu rtt_wait_vs_pipe_1cpu " },
    { "trip_2cpu", b_cell_trip, 2, 0, 30, " rtt_vs_pipe_2cpu rtt_thread_vs_pipe_2cpu " },
    { "pipelined_w1", b_cell_pipelined, 2, 1, 20,
      " pipelined_vs_raw_w1 pipelined_run_vs_raw_w1 pipelined_thread_vs_raw_w1 "
      "host_ns_vs_raw_w1 " },
    { "pipelined_w8", b_cell_pipelined, 2, 8, 20,
      " pipelined_vs_raw_w8 pipelined_run_vs_raw_w8 pipelined_thread_vs_raw_w8 "
      "host_ns_vs_raw_w8 " },
    { "pipelined_w64", b_cell_pipelined, 2, 64, 40,
      " pipelined_vs_raw_w64 pipelined_many_vs_raw_w64 pipelined_run_vs_raw_w64"
      " pipelined_thread_vs_raw_w64"
      " host_ns_vs_raw_w64 host_ns_many_vs_raw_w64 host_ns_run_vs_raw_w64 host_ns_thread_vs_raw_w64"
      " ring_vs_raw_w64 pipelined_vs_ring_w64 pipelined_many_vs_ring_w64 " },
    { "pipelined_w1_1cpu", b_cell_pipelined, 1, 1, 20,
      " pipelined_vs_raw_w1_1cpu host_ns_vs_raw_w1_1cpu " },
    { "pipelined_w8_1cpu", b_cell_pipelined, 1, 8, 20,
      " pipelined_vs_raw_w8_1cpu host_ns_vs_raw_w8_1cpu " },
    { "pipelined_w64_1cpu", b_cell_pipelined, 1, 64, 20,
      " pipelined_vs_raw_w64_1cpu host_ns_vs_raw_w64_1cpu " },
    { "scale", b_cell_scale, 2, 64, 60,
      " workers1_vs_raw_w64 workers2_vs_raw_w64 workers4_vs_raw_w64 workers8_vs_raw_w64 "
      "workers16_vs_raw_w64"
      " workers32_vs_raw_w64 workers64_vs_raw_w64 host_ns_workers1_vs_raw host_ns_workers2_vs_raw"
      " host_ns_workers4_vs_raw host_ns_workers8_vs_raw host_ns_workers16_vs_raw "
      "host_ns_workers32_vs_raw"
      " host_ns_workers64_vs_raw workers2_many_vs_raw_w64 host_ns_workers2_many_vs_raw " },
    { "batch_w8", b_cell_batch, 2, 8, 20, " pipelined_batch_vs_raw_w8 " },
    { "batch_w64", b_cell_batch, 2, 64, 20, " pipelined_batch_vs_raw_w64 " },
    { "restart", b_cell_restart, 2, 0, 20, " restart_vs_forkserver restart_vs_eager_forkserver " },
    { "restart_1cpu", b_cell_restart, 1, 0, 20, " restart_vs_forkserver_1cpu " },
    { "restart_big", b_cell_restart_big, 2, 0, 30, " restart_rss1g_vs_0 " },
    { "restart_exec", b_cell_restart_exec, 2, 0, 30, " exec_restart_vs_posix_spawn " },
    { "soft_limit", b_cell_soft_limit, 2, 0, 20, " soft_limit_late_us_p99 " },
    { "death", b_cell_death, 0, 0, 40, " death_to_outcome_ms_p99 " },
    { "hard_limit", b_cell_hard_limit, 0, 0, 30, " hard_limit_late_ms_loaded " },
    { "memory", b_cell_memory, 0, 0, 20, " bytes_per_queued_task " },
    { "endless", b_cell_endless, 0, 0, 60, " endless_growth_kib " },
    { "payload_2cpu", b_cell_payload, 2, 0, 20, " payload_inplace_vs_64b " },
    { "payload_1cpu", b_cell_payload, 1, 0, 20,
      " payload_inplace_vs_64b_1cpu payload_copy_vs_memcpy payload_faults_per_task "
      "payload_result_vs_64b_1cpu"
      " result_faults_per_task " },
    { "classes_w8_1cpu", b_cell_classes, 1, 8, 30,
      " classes8_vs_one_w8_1cpu one_class_vs_plain_w8_1cpu classes8_vs_plain_w8_1cpu " },
    { "classes_w64_1cpu", b_cell_classes, 1, 64, 30,
      " classes8_vs_one_w64_1cpu one_class_vs_plain_w64_1cpu classes8_vs_plain_w64_1cpu " },
    { "classes_w8", b_cell_classes, 2, 8, 30,
      " classes8_vs_one_w8 one_class_vs_plain_w8 classes8_vs_plain_w8 " },
    { "classes_w64", b_cell_classes, 2, 64, 30,
      " classes8_vs_one_w64 one_class_vs_plain_w64 classes8_vs_plain_w64 " },
    { "evict", b_cell_evict, 2, 0, 30,
      " evict_beyond_unload_us_p50 evict_beyond_unload_us_p99 evict_order_us_p99 "
      "evict_gone_us_p99 evict_start_us_p99 evict_setup_us_p99 " },
    { "evict_1cpu", b_cell_evict, 1, 0, 30, " evict_beyond_unload_us_1cpu " },
    { "makespan", b_cell_makespan, 0, 0, 120, " makespan_live_vs_sim wait_live_vs_sim " },
};

#define CELLS (sizeof(cells) / sizeof(cells[0]))

static int reports(const struct b_cell *cell, const char *key)
{
    size_t n = strlen(key);
    const char *at = cell->keys;

    while ((at = strstr(at, key))) {
        if (at[-1] == ' ' && at[n] == ' ')
            return 1;
        at += n;
    }
    return 0;
}

static int is_wanted(const struct b_cell *cell, const char *wanted)
{
    unsigned k;

    for (k = 0; k < B_KEY_COUNT; k++)
        if (wanted[k] && reports(cell, b_key_info(k)->name))
            return 1;
    return 0;
}

static _Noreturn void run_cell(const struct b_cell *cell, int fd, pid_t parent)
{
    int rc;

    b_child_begin(parent);
    b_report_open(fd);
    rc = b_ours_init();
    if (rc == 0 && cell->cpus == 2 && b_machine_open(b_cpu_number(1)))
        rc = b_complain("no process on the second CPU");
    if (rc == 0) {
        rc = cell->run(cell);
        b_machine_close();
        (void)gpud_fini();
    }
    _exit(rc ? 1 : 0);
}

/* Waits for a cell; kills it when its time is over.  0, or -1 when it failed. */
static int await_cell(const struct b_cell *cell, pid_t pid)
{
    struct pollfd look = { .fd = (int)syscall(SYS_pidfd_open, pid, 0U), .events = POLLIN };
    int n, status = 0;

    do {
        n = poll(&look, 1, (int)cell->limit * 1000);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        (void)kill(pid, SIGKILL);
        (void)b_complain("cell %s: killed after %u s", cell->name, cell->limit);
    }
    (void)close(look.fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status) && n != 0)
        return b_complain("cell %s: ended by signal %d", cell->name, WTERMSIG(status));
    return b_complain("cell %s: failed", cell->name);
}

/* Runs one cell and takes in its figures.  0 or -1. */
static int do_cell(const struct b_cell *cell, struct b_figure *figures)
{
    struct b_figure f;
    pid_t pid, parent = getpid();
    struct pollfd look;
    int rc, ends[2];

    if (cell->cpus > b_cpu_count())
        return b_complain("cell %s needs %u CPUs", cell->name, cell->cpus);
    if (pipe(ends))
        return b_complain("no pipe");
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        run_cell(cell, ends[1], parent);
    (void)close(ends[1]);
    rc = pid < 0 ? b_complain("no process") : await_cell(cell, pid);
    /* What it wrote is there; a process it left behind may still hold the other end. */
    look = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    while (poll(&look, 1, 0) == 1 && (look.revents & POLLIN) &&
           read(ends[0], &f, sizeof(f)) == (ssize_t)sizeof(f))
        if (f.key < B_KEY_COUNT)
            figures[f.key] = f;
    (void)close(ends[0]);
    return rc;
}

static int usage(FILE *out, int code)
{
    (void)fputs("usage: gpudispatch-bench [--json] [--quick] [--only KEY]... [--list] [--help]\n"
                "Measures the library against bare loops; --only takes a key of --list.\n"
                "With --quick a look of 20 s: fewer rounds, and what takes long is left out.\n"
                "With --sched other figures: the scheduler's decisions (--sched --help).\n"
                "With --queue: the store of the durable queue (--queue --help).\n"
                "With --view: reports and traces of a night (--view --help).\n",
                out);
    return code;
}

static int list(void)
{
    unsigned k;

    for (k = 0; k < B_KEY_COUNT; k++)
        (void)printf("%-29s %s\n", b_key_info(k)->name, b_key_info(k)->text);
    return 0;
}

/* Marks a key by name.  0 or -1. */
static int want(const char *name, char *wanted)
{
    unsigned k;

    for (k = 0; k < B_KEY_COUNT; k++)
        if (strcmp(b_key_info(k)->name, name) == 0) {
            wanted[k] = 1;
            return 0;
        }
    return b_complain("no key is named %s", name);
}

static int is_asked(const char *option, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return 1;
    return 0;
}

static int run_queue(int argc, char **argv)
{
#ifdef BENCH_HAVE_QUEUE
    return bq_run(argc, argv);
#else
    (void)argc, (void)argv;
    (void)b_complain("this build has no durable queue: it needs SQLite 3.37 with"
                     " SQLITE_ENABLE_PREUPDATE_HOOK, and -Dqueue=enabled");
    return 1;
#endif
}

int main(int argc, char **argv)
{
    struct b_figure figures[B_KEY_COUNT];
    char wanted[B_KEY_COUNT] = { 0 };
    int i, json = 0, some = 0, failed = 0;
    uint64_t start;
    size_t c;

    if (argc > 1 && strcmp(argv[1], B_RAW_ARGUMENT) == 0)
        b_raw_fork_worker();
    if (argc > 1 && strcmp(argv[1], B_WORKER_ARGUMENT) == 0)
        /* returns only when nobody has started us as a worker */
        return b_ours_init_worker() ? 1 : 2;
    if (is_asked("--sched", argc, argv))
        return b_sched_run(argc, argv);
    if (is_asked("--queue", argc, argv))
        return run_queue(argc, argv);
    if (is_asked("--view", argc, argv))
        return bv_run(argc, argv);
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--quick") == 0) {
            b_effort_quick();
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            if (want(argv[++i], wanted))
                return 2;
            some = 1;
        } else if (strcmp(argv[i], "--list") == 0) {
            return list();
        } else if (strcmp(argv[i], "--help") == 0) {
            return usage(stdout, 0);
        } else {
            return usage(stderr, 2);
        }
    }
    if (!some)
        memset(wanted, 1, sizeof(wanted));
    for (i = 0; i < B_KEY_COUNT; i++)
        figures[i] = (struct b_figure){ .key = (unsigned)i, .value = NAN, .raw = NAN, .ours = NAN };
    b_want(wanted);
    b_place_init();
    start = b_now();
    for (c = 0; c < CELLS; c++)
        if (is_wanted(&cells[c], wanted) && do_cell(&cells[c], figures))
            failed = 1;
    if (json)
        b_print_json(stdout, figures, wanted, (double)(b_now() - start) / 1e9);
    else
        b_print_table(stdout, figures, wanted, (double)(b_now() - start) / 1e9);
    if (!json)
        b_print_states(stdout, figures, wanted);
    return failed;
}
