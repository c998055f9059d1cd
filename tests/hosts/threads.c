/* SPDX-License-Identifier: MIT */
/* threads.c - hosts with threads, and with several dispatchers.           [C13] [C16] [C19] */
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8 };

static _Atomic int stop_working;
static _Atomic unsigned working;

/* Holds malloc's locks most of the time, as a busy host does. */
static void *allocate(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    void *held[16] = { NULL };

    atomic_fetch_add(&working, 1);
    while (!atomic_load_explicit(&stop_working, memory_order_relaxed)) {
        unsigned i = (unsigned)rand_r(&seed) % 16;

        free(held[i]);
        held[i] = malloc((size_t)rand_r(&seed) % 100000 + 1);
        if (held[i])
            *(char *)held[i] = 1;
    }
    for (int i = 0; i < 16; i++)
        free(held[i]);
    return NULL;
}

static int all_work(void *user)
{
    (void)user;
    return atomic_load(&working) == THREADS;
}

/* Eight threads are inside malloc before gpud_init and all the time. */
T_LONG_CASE(eight_threads, 60)
{
    pthread_t threads[THREADS];
    gpud_dispatcher *d;

    if (T_SANITIZED) /* whose allocator stays locked in a child, where malloc does not */
        h_init();
    for (uintptr_t i = 0; i < THREADS; i++)
        t_thread(&threads[i], allocate, (void *)i);
    t_wait_until("all threads work", all_work, NULL);
    for (int round = 0; round < 5 && !T_SANITIZED; round++)
        h_host();
    if (!T_SANITIZED)
        h_init();
    for (int round = 0; round < 2; round++) {
        d = T_CREATE(.definition = "cube", .devices = "cpu:2");
        h_work(d);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
    atomic_store(&stop_working, 1);
    for (int i = 0; i < THREADS; i++)
        t_join(threads[i]);
}

/* ---- each call from a thread that exits at once ---- */

struct call {
    gpud_dispatcher *d;
    void (*run)(struct call *c);
    uint64_t tag;
};

static void *call_and_leave(void *arg)
{
    struct call *c = arg;

    c->run(c);
    return NULL;
}

static void in_a_thread(struct call *c, void (*run)(struct call *c))
{
    pthread_t thread;

    c->run = run;
    t_thread(&thread, call_and_leave, c);
    t_join(thread);
}

static void call_init(struct call *c)
{
    (void)c;
    h_init();
}

static void call_create(struct call *c)
{
    c->d = T_CREATE(.definition = "square", .devices = "cpu:2");
}

static void call_submit(struct call *c)
{
    T_SUBMIT(c->d, .tag = H_TAG(H_SQUARE, c->tag), .data = &c->tag, .size = sizeof(c->tag));
}

static void call_poll(struct call *c)
{
    struct t_log log = { 0 };

    t_collect(c->d, &log, 1);
    T_EQ(T_OUTCOME(&log, H_TAG(H_SQUARE, c->tag), SUCCESS)->incarnation, 1);
    t_log_free(&log);
}

static void call_destroy(struct call *c)
{
    t_end(&c->d, NULL);
}

/* F11: the threads that called gpud_init and create are gone; for 3 s of tasks, one after the
 * other, each given and collected by further threads that exit, no worker ends. (PR_SET_PDEATHSIG
 * in a child of such a thread would end it.) [T11] */
T_LONG_CASE(calling_threads_exit, 60)
{
    struct call c = { .d = NULL };
    uint64_t until = t_now() + T_S(3);

    in_a_thread(&c, call_init);
    in_a_thread(&c, call_create);
    for (c.tag = 2; c.tag < 22 || t_now() < until; c.tag++) {
        in_a_thread(&c, call_submit);
        in_a_thread(&c, call_poll);
    }
    T_EQ(t_stats(c.d).deaths, 0);
    h_work(c.d);
    in_a_thread(&c, call_destroy);
}

/* ---- several dispatchers ---- */

static void *work_with(void *name)
{
    for (int round = 0; round < 3; round++) {
        gpud_dispatcher *d = T_CREATE(.definition = name, .devices = "cpu:2");

        h_work(d);
        h_work(d);
        t_destroy(&d, NULL);
    }
    return NULL;
}

/* C16: two dispatchers with different definitions live at the same time, made, used and ended by
 * different threads. */
T_CASE(two_dispatchers)
{
    static char square[] = "square", cube[] = "cube";
    pthread_t threads[2];

    h_init();
    t_thread(&threads[0], work_with, square);
    t_thread(&threads[1], work_with, cube);
    for (int i = 0; i < 2; i++)
        t_join(threads[i]);
    T_OK(gpud_fini());
}

static unsigned mapped_places(void)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[1024];
    unsigned count = 0;

    T_CHECK(in);
    while (fgets(line, sizeof(line), in))
        count++;
    (void)fclose(in);
    return count;
}

/* C19: 50 dispatchers after each other, every tenth with a gpud_init of its own, leave no mapping
 * of any kind behind. */
T_LONG_CASE(fifty_cycles, 90)
{
    unsigned places = 0;
    gpud_dispatcher *d;

    h_init();
    for (int round = 0; round < 50; round++) {
        d = T_CREATE(.definition = round % 2 ? "square" : "cube", .devices = "cpu:2");
        h_work(d);
        t_destroy(&d, NULL);
        if (round % 10 == 9) {
            T_OK(gpud_fini());
            h_init();
        }
        if (round == 9)
            places = mapped_places();
    }
    T_OK(gpud_fini());
    if (!T_SANITIZED)
        T_CMP(mapped_places(), <=, places + 4); /* malloc's own come and go */
}
