/* SPDX-License-Identifier: MIT */
/*
 * newer.c - scenarios around what is built upon sending and collecting: waiting, keeping, the fd,
 * batches and further attempts, surroundings, executed workers.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "giving.h"
#include "inject.h"

/* ---- wait, keep, release ---- */

#define WAITED 6u

struct waiter {
    struct host *h;
    uint64_t id[WAITED / 2];
    struct gpud_event event[WAITED / 2];
    uint64_t tag;
    uint32_t n;
};

static void wait_one(struct waiter *w, uint32_t i)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    uint64_t until = now() + 20 * MS(1000);
    int r, short_of_memory = 0;

    do
        r = w->id[i] ? gpud_dispatcher_wait(w->h->d, w->id[i], &e, MS(100), NULL) : GPUD_ENOTFOUND;
    while ((r == GPUD_ETIMEOUT || (r == GPUD_ENOMEM && !w->h->strict && short_of_memory++ < 100)) &&
           now() < until);
    if (r == 0) {
        on_outcome(w->h, &e);
        w->event[w->n++] = e;
    } else if (w->id[i]) {
        unheard(w->h, w->tag + i, r);
    }
}

static void *wait_all(void *arg)
{
    struct waiter *w = arg;

    for (uint32_t i = 0; i < WAITED / 2; i++)
        wait_one(w, i);
    return NULL;
}

void work_wait(struct host *h)
{
    struct waiter w[2] = { { .h = h }, { .h = h, .tag = WAITED / 2 } };
    struct gpud_task_desc t = GPUD_TASK_DESC_INIT;
    pthread_t thread[2];
    bool runs[2];

    for (uint64_t tag = 0; tag < WAITED; tag++) {
        struct order o = { .tag = tag,
                           .what = tag == 2 ? CRASH : ECHO,
                           .size = tag % 2 ? 6000 : 8 };
        t.data = &o;
        t.size = sizeof o;
        t.tag = tag;
        t.awaited = 1;
        w[tag / (WAITED / 2)].id[tag % (WAITED / 2)] =
            give(h, &t, 0, tag == 2 ? BIT(CRASHED) : BIT(SUCCESS));
    }
    h->keep = true;
    for (uint64_t tag = WAITED; tag < WAITED + 4; tag++)
        (void)submit(h, tag, ECHO, tag % 2 ? 6000 : 8, 0, BIT(SUCCESS));
    for (int i = 0; i < 2; i++)
        runs[i] = pthread_create(&thread[i], NULL, wait_all, &w[i]) == 0;
    for (int i = 0; i < 50; i++)
        (void)look(h, MS(1));
    for (int i = 0; i < 2; i++)
        if (runs[i])
            pthread_join(thread[i], NULL);
        else
            (void)wait_all(&w[i]);
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < w[i].n; k++) {
            if (w[i].event[k].outcome == GPUD_OUTCOME_SUCCESS)
                check_result(h, &w[i].event[k]);
            if (gpud_event_release(&w[i].event[k]))
                wrong(h->r, "release of a waited-for event fails");
        }
}

/* ---- the fd ---- */

void work_fd(struct host *h)
{
    struct pollfd p = { .events = POLLIN };
    uint32_t asked = 0;

    for (uint64_t tag = 0; tag < 6; tag++)
        (void)submit(h, tag, tag == 3 ? CRASH_ONCE : ECHO, 8, 0, BIT(SUCCESS));
    while ((p.fd = gpud_dispatcher_fd(h->d)) < 0 && asked++ < 2)
        check_refusal(h, "fd", p.fd, NULL);
    if (p.fd < 0)
        return;
    while (h->outcomes < atomic_load(&h->r->accepted)) {
        int n = poll(&p, 1, 15000);
        if (n == 0) {
            wrong(h->r, "the fd is not readable any more");
            atomic_fetch_add(&h->r->hung, 1);
            _exit(3);
        }
        if (!look(h, 0))
            break;
    }
}

/* ---- batches, attempts, expiry, stalls ---- */

void tune_batch(struct host *h, struct gpud_options *o)
{
    (void)h;
    o->definition = "batch";
    o->max_batch = 4;
    o->batch_wait = MS(1);
    o->retry_backoff = MS(2);
    o->retry_causes = GPUD_RETRY_CRASH | GPUD_RETRY_ERROR;
}

void work_batch(struct host *h)
{
    static const enum what what[] = { ECHO, FAIL_ONCE, ECHO, CRASH_ONCE, FAIL_ONCE,
                                      SOFT, ECHO,      NAP,  FAIL_ONCE,  ECHO };
    struct gpud_task_desc t = GPUD_TASK_DESC_INIT;

    for (t.tag = 0; t.tag < sizeof what / sizeof *what; t.tag++) {
        struct order o = { .tag = t.tag, .what = what[t.tag], .size = 8 };
        t.data = &o;
        t.size = sizeof o;
        t.priority = (int32_t)(t.tag % 7); /* more bands than any fixed handful */
        t.max_attempts = 4;
        t.stall_limit = o.what == SOFT ? MS(5) : 0;
        t.expires = o.what == NAP ? MS(1) : 0;
        (void)give(h, &t, 0,
                   o.what == SOFT
                       ? BIT(TIMEOUT)
                       : BIT(SUCCESS) | BIT(CRASHED) | (o.what == NAP ? BIT(TIMEOUT) : 0));
    }
}

/* ---- shared setup data, environment, directory, file, sets ---- */

void tune_surroundings(struct host *h, struct gpud_options *o)
{
    static const char *const env[] = { "FAULT_WORD=7", "FAULT_NO_WORD", NULL };
    struct gpud_error e = GPUD_ERROR_INIT;
    int r = gpud_shared_create(sizeof h->info, &h->shared, &e);

    h->info.surroundings = 1;
    if (r) {
        check_refusal(h, "shared_create", r, &e);
    } else {
        memcpy(gpud_shared_data(h->shared), &h->info, sizeof h->info);
        o->setup_data = NULL;
        o->setup_size = 0;
        o->setup_shared = h->shared;
    }
    o->env = env;
    o->cwd = "/";
    o->stdio = GPUD_STDIO_FILE;
    o->stdio_path = "dev/null";
    o->devices = "cpu:4";
    o->devices_per_worker = 2;
}

/* NULL, or what is not as tune_surroundings wants it. */
const char *bad_surroundings(const gpud_worker *w)
{
    const char *word = getenv("FAULT_WORD");
    char cwd[64] = "";

    if (!word || strcmp(word, "7"))
        return "FAULT_WORD is not 7";
    if (!getcwd(cwd, sizeof cwd) || strcmp(cwd, "/"))
        return "the directory is another";
    return gpud_worker_device_count(w) == 2 ? NULL : "not two devices";
}

/* ---- a monitor beside the dispatcher ---- */

/* What it answers may be less than all, when something fails; it answers in time, and nothing is
 * left of it. */
void work_monitor(struct host *h)
{
    struct gpud_device_info rows[2] = { GPUD_DEVICE_INFO_INIT };
    struct gpud_driver_info driver = GPUD_DRIVER_INFO_INIT;
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m = NULL;
    uint64_t start = now();
    int r = gpud_monitor_open(&m, "fake:2", &e);

    if (r) {
        check_refusal(h, "gpud_monitor_open", r, &e);
    } else {
        r = gpud_monitor_read(m, rows, 2, 0, MS(h->strict ? 10000 : 1000));
        if (h->strict ? r != 2 || !rows[1].sampled_at : r != 0 && r != 2 && r != GPUD_ESPAWNER)
            wrong(h->r, "gpud_monitor_read answers %d", r);
        r = gpud_monitor_driver(m, &driver, MS(1000));
        if (r || (h->strict && driver.state != GPUD_DRIVER_OK))
            wrong(h->r, "gpud_monitor_driver answers %d, %s", r, gpud_driver_name(driver.state));
        r = gpud_monitor_close(&m);
        if (r || m)
            wrong(h->r, "gpud_monitor_close answers %d", r);
    }
    if (now() - start > MS(15000)) /* a spawner of its own has ten seconds to answer */
        wrong(h->r, "a monitor took %u ms", (unsigned)((now() - start) / 1000000));
    work_exec(h);
}

/* ---- executed workers ---- */

void tune_exec(struct host *h, struct gpud_options *o)
{
    (void)h;
    o->start = GPUD_START_EXEC;
}

/* The same program, but as if it were another: with the spawner beside it. */
void tune_own(struct host *h, struct gpud_options *o)
{
    static char program[400], spawner[440];
    static const char *const argv[] = { program, NULL };
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

    (void)h;
    program[n > 0 ? n : 0] = 0;
    (void)snprintf(spawner, sizeof spawner, "%s-worker", program);
    (void)putenv(
        (snprintf(h->spawner, sizeof h->spawner, "GPUD_WORKER_PROGRAM=%s", spawner), h->spawner));
    o->argv = argv;
}

void work_exec(struct host *h)
{
    (void)submit(h, 0, ECHO, 8, 0, BIT(SUCCESS));
    (void)submit(h, 1, CRASH_ONCE, 600, 0, BIT(SUCCESS));
    for (uint64_t tag = 2; tag < 5; tag++)
        (void)submit(h, tag, ECHO, 8, 0, BIT(SUCCESS));
}
