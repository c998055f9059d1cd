/* SPDX-License-Identifier: MIT */
#include "raw_ring.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure.h"
#include "place.h"
#include "report.h"

#define PATIENCE (10 * B_S)
#define LOOK_EVERY 64 /* the host reads the clock once in so many walks over the rings */

/* Number n lies in cell n % B_RING_CELLS; its claim word is n * 2 when sent, n * 2 + 1 when
 * claimed. */
struct cell {
    _Alignas(64) _Atomic uint64_t claim; /* the first line is the host's ... */
    uint64_t task[7];
    _Alignas(64) _Atomic uint64_t end; /* ... the second one the worker's */
    uint64_t started_at, ended_at;
    uint64_t rest[5];
};

struct b_ring {
    _Alignas(64) _Atomic uint64_t sent; /* the number of the last task */
    _Alignas(64) _Atomic unsigned open; /* 0: sleep when there is no task */
    struct cell cells[B_RING_CELLS];
};

/* ---- in the worker ---- */

/* Does what is there.  Gives how many that were. */
static unsigned work(struct b_ring *r, uint64_t *number)
{
    uint64_t last = atomic_load_explicit(&r->sent, memory_order_acquire), start = b_now();
    unsigned n = 0;

    for (; *number < last; n++) {
        struct cell *c = &r->cells[++*number % B_RING_CELLS];
        uint64_t claim = *number * 2;

        if (!atomic_compare_exchange_strong(&c->claim, &claim, claim + 1))
            _exit(1);
        c->started_at = start;
        c->rest[0] = c->task[0];
        c->ended_at = start = b_now();
        atomic_store_explicit(&c->end, *number, memory_order_release);
    }
    return n;
}

static _Noreturn void serve(struct b_ring *r, int gate)
{
    uint64_t number = 0;
    char byte;

    while (read(gate, &byte, 1) == 1) {
        while (atomic_load_explicit(&r->open, memory_order_acquire))
            if (work(r, &number) == 0)
                (void)sched_yield();
    }
    _exit(0);
}

/* ---- in the host ---- */

static int open_worker(struct b_ring_pool *pool, unsigned i, int cpu)
{
    pid_t parent = getpid();
    int gate[2];

    if (pipe(gate))
        return -1;
    pool->workers[i].pid = fork();
    if (pool->workers[i].pid == 0) {
        b_child_begin(parent);
        (void)close(gate[1]);
        (void)b_pin(0, cpu);
        serve(&pool->rings[i], gate[0]);
    }
    (void)close(gate[0]);
    pool->workers[i].gate = gate[1];
    pool->n = i + 1;
    return pool->workers[i].pid < 0 ? -1 : 0;
}

int b_ring_pool_open(struct b_ring_pool *pool, unsigned n, int cpu)
{
    unsigned i;

    memset(pool, 0, sizeof(*pool));
    pool->rings = mmap(NULL, B_WORKERS * sizeof(*pool->rings), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pool->rings == MAP_FAILED)
        return -1;
    for (i = 0; i < n; i++)
        if (open_worker(pool, i, cpu)) {
            b_ring_pool_close(pool);
            return -1;
        }
    return 0;
}

void b_ring_pool_close(struct b_ring_pool *pool)
{
    unsigned i;

    for (i = 0; i < pool->n; i++) {
        (void)close(pool->workers[i].gate);
        b_child_end(pool->workers[i].pid);
    }
    (void)munmap(pool->rings, B_WORKERS * sizeof(*pool->rings));
    pool->n = 0;
}

/* Takes what has ended, from *ended on, and fills what is free while `more`.  Gives how many have
 * ended. */
static uint64_t walk(struct b_ring *r, uint64_t *ended, int more)
{
    uint64_t sent = atomic_load_explicit(&r->sent, memory_order_relaxed);
    uint64_t before = *ended, last = sent;

    while (*ended < sent && atomic_load_explicit(&r->cells[(*ended + 1) % B_RING_CELLS].end,
                                                 memory_order_acquire) == *ended + 1)
        ++*ended;
    while (more && last - *ended < B_RING_CELLS) {
        struct cell *c = &r->cells[++last % B_RING_CELLS];

        memset(c->task, (int)last, sizeof(c->task));
        atomic_store_explicit(&c->claim, last * 2, memory_order_release);
    }
    if (last != sent)
        atomic_store_explicit(&r->sent, last, memory_order_release);
    return *ended - before;
}

/* Gives how many tasks have ended, 0 when the workers do not answer. */
static uint64_t flow(struct b_ring_pool *pool, uint64_t *ended, uint64_t until)
{
    uint64_t sum = 0, sent = 0, found, now = 0;
    unsigned i, turns = 0;

    do {
        found = 0;
        for (i = 0; i < pool->n; i++)
            found += walk(&pool->rings[i], &ended[i], now < until);
        sum += found;
        if (found == 0)
            (void)sched_yield();
        if (found == 0 || ++turns % LOOK_EVERY == 0)
            now = b_now();
        for (i = 0, sent = 0; now >= until && i < pool->n; i++)
            sent += atomic_load_explicit(&pool->rings[i].sent, memory_order_relaxed) - ended[i];
    } while (now < until || (sent > 0 && now < until + PATIENCE));
    return sent > 0 ? 0 : sum;
}

int b_ring_round(void *user, struct b_round *ret)
{
    struct b_ring_pool *pool = user;
    uint64_t ended[B_WORKERS], start = b_now(), cpu = b_cpu(), sum;
    unsigned i;

    for (i = 0; i < pool->n; i++) {
        ended[i] = atomic_load(&pool->rings[i].sent);
        atomic_store(&pool->rings[i].open, 1);
        if (write(pool->workers[i].gate, "", 1) != 1)
            return b_complain("a worker of the ring is gone");
    }
    sum = flow(pool, ended, start + B_ROUND);
    if (sum == 0)
        return b_complain("the ring stands still");
    ret->value = (double)sum * 1e9 / (double)(b_now() - start);
    ret->cpu = (double)(b_cpu() - cpu) / (double)sum;
    for (i = 0; i < pool->n; i++)
        atomic_store(&pool->rings[i].open, 0);
    return 0;
}
