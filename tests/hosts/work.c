/* SPDX-License-Identifier: MIT */
#include "work.h"

#include "snapshot.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 200 };

static const char *last_words;

void h_last_words(const char *text)
{
    last_words = text;
}

/* ---- in the worker ---- */

/* Leaves a process behind that no signal but SIGKILL ends. */
static void leave_daemon(void)
{
    pid_t pid = fork();

    if (pid) {
        (void)waitpid(pid, NULL, 0);
        t_word_wait(H_DAEMONS, 1);
        return;
    }
    (void)setsid();
    if (fork())
        _exit(0);
    t_block_signals();
    atomic_store(&t_page->numbers[H_DAEMON_PID], (uint64_t)getpid());
    (void)t_word_add(H_DAEMONS);
    t_rest();
}

static int power(gpud_task *t, unsigned exponent)
{
    uint64_t n, result = 1;

    if (gpud_task_size(t) != sizeof(n))
        return -1;
    memcpy(&n, gpud_task_data(t), sizeof(n));
    while (exponent--)
        result *= n;
    return gpud_task_result_set(t, &result, sizeof(result));
}

static int run(gpud_task *t, unsigned exponent)
{
    switch (gpud_task_tag(t) >> 32) {
    case H_CRASH:
        if (last_words) {
            (void)puts(last_words);
            (void)fprintf(stderr, "%s\n", last_words);
        }
        (void)kill(getpid(), SIGKILL);
        return -1;
    case H_LATE:
        while (!gpud_task_expired(t))
            (void)poll(NULL, 0, 1000); /* SIGALRM ends it */
        return 0;
    case H_GATE:
        (void)t_word_add(H_STARTED);
        t_word_wait(H_OPEN, 1);
        return 0;
    case H_DAEMON:
        leave_daemon();
        (void)kill(getpid(), SIGKILL);
        return -1;
    case H_ECHO:
        return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
    default:
        return power(t, exponent);
    }
}

int h_process(gpud_task *t, void *state)
{
    (void)state;
    return run(t, 2);
}

static int cube(gpud_task *t, void *state)
{
    (void)state;
    return run(t, 3);
}

/* ---- in the host ---- */

void h_init(void)
{
    const struct gpud_definition definitions[] = {
        GPUD_DEFINITION("square", NULL, h_process, NULL),
        GPUD_DEFINITION("cube", NULL, cube, NULL),
    };
    struct gpud_error error = GPUD_ERROR_INIT;

    if (gpud_init(definitions, 2, &error))
        T_FAIL("gpud_init: %s: %s: %s", gpud_error_name(error.code), error.field, error.text);
}

static void check_results(const struct t_log *log)
{
    const struct gpud_event *crash = T_OUTCOME(log, H_TAG(H_CRASH, 0), CRASHED);
    unsigned exponent = 0;

    for (uint64_t n = 0; n < TASKS; n++) {
        const struct gpud_event *e = T_OUTCOME(log, H_TAG(H_SQUARE, n), SUCCESS);
        uint64_t result;

        T_EQ(e->result_size, sizeof(result));
        memcpy(&result, e->result, sizeof(result));
        if (n == 2)
            exponent = result == 4 ? 2 : 3;
        if (n >= 2)
            T_EQ(result, exponent == 2 ? n * n : n * n * n);
    }
    T_EQ(crash->exit_status, SIGKILL);
    if (last_words) /* and nothing else, in all the worker's life */
        T_EQ(crash->output_before_size + crash->output_size, 2 * strlen(last_words) + 2);
    (void)T_OUTCOME(log, H_TAG(H_LATE, 0), TIMEOUT);
}

void h_work(gpud_dispatcher *d)
{
    struct t_log log = { 0 };

    for (uint64_t n = 0; n < TASKS; n++) {
        T_SUBMIT(d, .tag = H_TAG(H_SQUARE, n), .data = &n, .size = sizeof(n));
        if (n == TASKS / 2)
            T_SUBMIT(d, .tag = H_TAG(H_CRASH, 0));
        if (n == TASKS / 3)
            T_SUBMIT(d, .tag = H_TAG(H_LATE, 0), .limit = T_MS(20));
    }
    t_collect(d, &log, TASKS + 2);
    check_results(&log);
    t_log_free(&log);
}

void h_host(void)
{
    gpud_dispatcher *d;

    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    h_work(d);
    t_end(&d, NULL);
}

static void *nothing(void *arg)
{
    return arg;
}

void h_host_untouched(void)
{
    struct t_snapshot before;
    pthread_t thread;

    /* A sanitizer's own thread appears with the first thread. */
    if (T_SANITIZED && !pthread_create(&thread, NULL, nothing, NULL))
        (void)pthread_join(thread, NULL);
    t_snapshot_take(&before);
    h_host();
    t_snapshot_compare(&before);
}

void h_in_child(void (*host)(void *user), void *user)
{
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid) {
        host(user);
        (void)fflush(NULL);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        T_FAIL("the host was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 77)
        _exit(77); /* a skip, with its reason printed */
    T_EQ(WEXITSTATUS(status), 0);
}

/* ---- families ---- */

struct h_family h_family_start(const char *program, const char *argument)
{
    struct h_family f;

    t_word_set(H_READY, 0);
    (void)snprintf(f.mark, sizeof(f.mark), "T_FAMILY=%d.%llx", (int)getpid(),
                   (unsigned long long)t_now());
    f.host = t_program_start(program, argument, f.mark);
    return f;
}

int h_family_reap(const struct h_family *f)
{
    int status = 0;

    T_EQ(waitpid(f->host, &status, 0), f->host);
    return status;
}

void h_family_gone(const struct h_family *f, pid_t except)
{
    uint64_t start = t_now();
    size_t count;

    do {
        struct t_procs left = t_procs_with_env(f->mark);
        int late = t_now() - start > T_S(1);

        count = 0;
        for (size_t i = 0; i < left.count; i++) {
            if (left.list[i].pid == except)
                continue;
            if (late)
                (void)fprintf(stderr, "still there: %d %s\n", (int)left.list[i].pid,
                              left.list[i].comm);
            count++;
        }
        t_procs_free(&left);
        if (count && late)
            T_FAIL("%zu processes live 1 s after their host", count);
        if (count)
            (void)poll(NULL, 0, 1);
    } while (count);
}
