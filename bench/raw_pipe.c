/* SPDX-License-Identifier: MIT */
#include "raw_pipe.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "measure.h"
#include "place.h"
#include "report.h"

#define BATCH 4096

static void echo(int in, int out)
{
    char frames[BATCH];
    ssize_t n;

    while ((n = read(in, frames, sizeof(frames))) > 0)
        if (write(out, frames, (size_t)n) != n)
            break;
    _exit(0);
}

static int open_worker(struct b_raw_pool *pool, unsigned i, int cpu)
{
    struct epoll_event want = { .events = EPOLLIN, .data.u32 = i };
    pid_t parent = getpid();
    int task[2], event[2];

    if (pipe(task))
        return -1;
    if (pipe(event)) {
        (void)close(task[0]);
        (void)close(task[1]);
        return -1;
    }
    pool->workers[i].pid = fork();
    if (pool->workers[i].pid == 0) {
        b_child_begin(parent);
        (void)b_pin(0, cpu);
        echo(task[0], event[1]);
    }
    (void)close(task[0]);
    (void)close(event[1]);
    pool->workers[i].task = task[1];
    pool->workers[i].event = event[0];
    pool->n = i + 1;
    if (pool->workers[i].pid < 0)
        return -1;
    return epoll_ctl(pool->epoll, EPOLL_CTL_ADD, event[0], &want);
}

int b_raw_pool_open(struct b_raw_pool *pool, unsigned n, int cpu)
{
    unsigned i;

    memset(pool, 0, sizeof(*pool));
    pool->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (pool->epoll < 0)
        return -1;
    for (i = 0; i < n; i++)
        if (open_worker(pool, i, cpu)) {
            b_raw_pool_close(pool);
            return -1;
        }
    return 0;
}

void b_raw_pool_close(struct b_raw_pool *pool)
{
    unsigned i;

    for (i = 0; i < pool->n; i++) {
        (void)close(pool->workers[i].task);
        (void)close(pool->workers[i].event);
        b_child_end(pool->workers[i].pid);
    }
    (void)close(pool->epoll);
    pool->n = 0;
}

int b_raw_trip(void *user)
{
    struct b_raw_pool *pool = user;
    struct pollfd look = { .fd = pool->workers[0].event, .events = POLLIN };
    char frame[B_FRAME] = { 0 };

    if (write(pool->workers[0].task, frame, sizeof(frame)) != (ssize_t)sizeof(frame))
        return -1;
    if (poll(&look, 1, -1) != 1)
        return -1;
    return read(look.fd, frame, sizeof(frame)) == (ssize_t)sizeof(frame) ? 0 : -1;
}

/* Waits, and fills the numbers of the workers whose event pipes are readable. */
static int look_for(struct b_raw_pool *pool, enum b_raw_look look, struct pollfd *fds,
                    unsigned *ready)
{
    struct epoll_event events[B_MOST_WORKERS];
    int i, n, found = 0;

    if (look == B_LOOK_EPOLL) {
        n = epoll_wait(pool->epoll, events, B_MOST_WORKERS, -1);
        for (i = 0; i < n; i++)
            ready[found++] = events[i].data.u32;
        return found;
    }
    (void)poll(fds, pool->n, -1);
    for (i = 0; i < (int)pool->n; i++)
        if (fds[i].revents & POLLIN)
            ready[found++] = (unsigned)i;
    return found;
}

/* Fills each worker's window, and what to poll for.  0 or -1. */
static int fill_windows(const struct b_raw_stream *s, const char *frames, struct pollfd *fds)
{
    size_t size = (size_t)s->window * B_FRAME;
    unsigned i;

    for (i = 0; i < s->pool->n; i++) {
        fds[i] = (struct pollfd){ .fd = s->pool->workers[i].event, .events = POLLIN };
        if (write(s->pool->workers[i].task, frames, size) != (ssize_t)size)
            return -1;
    }
    return 0;
}

static int flow(const struct b_raw_stream *s, uint64_t until, uint64_t *ret_ended)
{
    static char frames[BATCH], answers[BATCH];
    struct pollfd fds[B_MOST_WORKERS];
    uint64_t ended = 0, out = (uint64_t)s->pool->n * s->window;
    unsigned ready[B_MOST_WORKERS];
    int open = 1, k, n;

    if (s->window * B_FRAME > BATCH || fill_windows(s, frames, fds))
        return -1;
    while (out > 0) {
        n = look_for(s->pool, s->look, fds, ready);
        if (n <= 0)
            return -1;
        for (k = 0; k < n; k++) {
            ssize_t got = read(s->pool->workers[ready[k]].event, answers, sizeof(answers));

            if (got <= 0)
                return -1;
            ended += (uint64_t)got / B_FRAME;
            if (!open)
                out -= (uint64_t)got / B_FRAME;
            else if (write(s->pool->workers[ready[k]].task, frames, (size_t)got) != got)
                return -1;
        }
        if (open && b_now() >= until)
            open = 0;
    }
    *ret_ended = ended;
    return 0;
}

int b_raw_round(void *user, struct b_round *ret)
{
    struct b_raw_stream *s = user;
    uint64_t start = b_now(), cpu = b_cpu(), ended;

    if (flow(s, start + B_ROUND, &ended))
        return b_complain("a raw pipe failed");
    ret->value = (double)ended * 1e9 / (double)(b_now() - start);
    ret->cpu = (double)(b_cpu() - cpu) / (double)ended;
    return 0;
}

void b_raw_stream_init(struct b_raw_stream *stream, struct b_raw_pool *pool, unsigned window)
{
    struct b_raw_stream by_epoll = { .pool = pool, .window = window, .look = B_LOOK_EPOLL };
    struct b_side one = { b_raw_round, stream }, other = { b_raw_round, &by_epoll };
    struct b_pairs pairs = { .n = 0 };
    size_t i;

    *stream = (struct b_raw_stream){ .pool = pool, .window = window, .look = B_LOOK_POLL };
    for (i = 0; i < b_effort(4, 1); i++)
        if (b_pairs_take(&pairs, &one, &other))
            return;
    if (b_pairs_ratio(&pairs, B_VALUE).middle > 1)
        stream->look = B_LOOK_EPOLL;
}
