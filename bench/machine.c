/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "place.h"

#define SAMPLES 40
#define TRIPS 8     /* of a sample: one clock reading costs a third of a trip */
#define STEPS 2048u /* of the fixed loop: about 4 us */
#define PATIENCE (5 * B_MS)
#define EDGE 0.1           /* the tenth of the looks on each side that is left out */
#define SHARED_OFTEN 0.1   /* a figure is shared when more of its looks than this were */
#define LINE_CHANGED 1.5   /* states of the way between two CPUs lie further apart than this */
#define LOOP_CHANGED 1.15

/* The ball is at the partner while it is odd; each side only ever adds 1. */
struct court {
    _Alignas(64) _Atomic unsigned ball;
    _Alignas(64) _Atomic unsigned open;
};

static struct {
    struct court *court;
    pid_t pid;
    int wake;
} partner = { .wake = -1 };

/* Waits until the ball is odd (1) or even (0).  0, or -1 when it took too long or the court was
 * closed. */
static int await_ball(struct court *c, unsigned odd, uint64_t until)
{
    unsigned i = 0;

    while ((atomic_load_explicit(&c->ball, memory_order_acquire) & 1) != odd) {
        if (++i % 256 == 0 &&
            (b_now() > until || !atomic_load_explicit(&c->open, memory_order_relaxed)))
            return -1;
    }
    return 0;
}

static void hit_ball(struct court *c)
{
    (void)atomic_fetch_add_explicit(&c->ball, 1, memory_order_release);
}

static _Noreturn void play(struct court *c, int gate)
{
    char bytes[64];

    while (read(gate, bytes, sizeof(bytes)) > 0) {
        uint64_t until = b_now() + PATIENCE;

        while (await_ball(c, 1, until) == 0)
            hit_ball(c);
    }
    _exit(0);
}

int b_machine_open(int cpu)
{
    pid_t parent = getpid();
    int gate[2];

    partner.court = mmap(NULL, sizeof(*partner.court), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (partner.court == MAP_FAILED)
        return -1;
    if (pipe(gate))
        return -1;
    partner.pid = fork();
    if (partner.pid == 0) {
        b_child_begin(parent);
        (void)close(gate[1]);
        (void)b_pin(0, cpu);
        play(partner.court, gate[0]);
    }
    (void)close(gate[0]);
    partner.wake = gate[1];
    return partner.pid < 0 ? -1 : 0;
}

void b_machine_close(void)
{
    if (partner.wake < 0)
        return;
    (void)close(partner.wake);
    partner.wake = -1;
    b_child_end(partner.pid);
}

/* Gives the shortest trip of the ball in nanoseconds, 0 when the partner did not play. */
static double time_line(struct court *c)
{
    uint64_t until = b_now() + PATIENCE, best = UINT64_MAX, start, took;
    int i, k, rc;

    atomic_store(&c->open, 1);
    rc = write(partner.wake, "", 1) == 1 ? await_ball(c, 0, until) : -1;
    for (i = 0; rc == 0 && i <= SAMPLES; i++) {
        start = b_now();
        for (k = 0; rc == 0 && k < TRIPS; k++) {
            hit_ball(c);
            rc = await_ball(c, 0, until);
        }
        took = b_now() - start;
        if (i > 0 && took < best) /* the first one waits for the partner to wake */
            best = took;
    }
    atomic_store(&c->open, 0);
    return rc ? 0 : (double)best / TRIPS;
}

/* Gives the shortest time of the fixed loop in microseconds. */
static double time_loop(void)
{
    static volatile unsigned sink;
    uint64_t best = UINT64_MAX, start, took;
    unsigned x, i, k;

    for (k = 0; k < 10; k++) {
        start = b_now();
        for (x = k + 1, i = 0; i < STEPS; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
        sink = x;
        took = b_now() - start;
        if (took < best)
            best = took;
    }
    (void)sink;
    return (double)best / 1e3;
}

/* Gives how many threads of the machine want a CPU now: 1 when it is this one alone. */
static int running(void)
{
    FILE *f = fopen("/proc/loadavg", "re");
    int n = 1;

    if (!f)
        return 1;
    if (fscanf(f, "%*s %*s %*s %d/", &n) != 1)
        n = 1;
    (void)fclose(f);
    return n;
}

void b_machine_look(struct b_states *s)
{
    double line;

    if (partner.wake < 0 || s->n == B_MOST_LOOKS)
        return;
    line = time_line(partner.court);
    if (line <= 0)
        return;
    s->line_ns[s->n] = line;
    s->loop_us[s->n] = time_loop();
    s->n++;
    if (running() > 1)
        s->shared++;
}

static struct b_spread spread_of(const double *looks, size_t n)
{
    double values[B_MOST_LOOKS];

    memcpy(values, looks, n * sizeof(*looks));
    return b_spread(values, n, EDGE);
}

struct b_spread b_states_line(const struct b_states *s)
{
    return spread_of(s->line_ns, s->n);
}

struct b_spread b_states_loop(const struct b_states *s)
{
    return spread_of(s->loop_us, s->n);
}

int b_machine_changed(const struct b_spread *line, const struct b_spread *loop)
{
    return line->high > LINE_CHANGED * line->low || loop->high > LOOP_CHANGED * loop->low;
}

int b_machine_shared(const struct b_states *s)
{
    return (double)s->shared > SHARED_OFTEN * (double)s->n;
}
