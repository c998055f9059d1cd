/* SPDX-License-Identifier: MIT */
/*
 * epoll.c - a dispatcher in your own event loop: one thread, no library thread, no callback.
 *
 * cc -std=c11 -Wall -Wextra epoll.c -o epoll $(pkg-config --cflags --libs gpudispatch)
 *
 * Each line of stdin (a pipe or a terminal) is a task.  When the task ends, the program prints the
 * line's length and text.  It reads no stdin while the queue is full.  After the end of stdin it
 * waits for the tasks that are left.  Try: (echo one; sleep 1; echo three) | ./epoll
 */
#define _GNU_SOURCE
#include <errno.h>
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int process(gpud_task *t, void *state) /* runs in a worker */
{
    size_t size = gpud_task_size(t);
    char text[600];
    int n = snprintf(text, sizeof text, "%zu %.*s", size, (int)size, (char *)gpud_task_data(t));
    (void)state;
    return gpud_task_result_set(t, text, (size_t)n + 1);
}

struct loop {
    gpud_dispatcher *d;
    int epoll, ended, full; /* stdin has ended; the last submit returned GPUD_EFULL */
    char in[512];           /* bytes of stdin that are not submitted yet */
    size_t used;
};

static int watch(int epoll, int op, int fd, uint32_t events)
{
    return epoll_ctl(epoll, op, fd, &(struct epoll_event){ .events = events, .data.fd = fd });
}

/* Submits the complete lines, then watches stdin again.  Returns 0 or the code of a failure. */
static int submit_lines(struct loop *l)
{
    struct gpud_task_desc task = { .struct_size = sizeof task, .data = l->in };
    char *end;
    int r = 0;
    while (r == 0 && l->used &&
           ((end = memchr(l->in, '\n', l->used)) || l->ended || l->used == sizeof l->in)) {
        task.size = end ? (size_t)(end - l->in) : l->used;
        if ((r = gpud_dispatcher_submit(l->d, &task, 0, NULL, NULL)) == 0)
            memmove(l->in, end ? end + 1 : l->in, l->used -= task.size + (end != NULL));
    }
    l->full = r == GPUD_EFULL;
    if (r == 0)
        r = l->ended ? gpud_dispatcher_close(l->d, GPUD_FINISH_ALL, GPUD_NEVER)
                     : watch(l->epoll, EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLONESHOT);
    return l->full ? 0 : r;
}

static int read_lines(struct loop *l)
{
    ssize_t n = read(0, l->in + l->used, sizeof l->in - l->used);
    l->ended = n <= 0;
    l->used += n > 0 ? (size_t)n : 0;
    return submit_lines(l);
}

/* Polls until no event is left.  With drive CALLER, poll also sends tasks, enforces limits and
 * replaces workers: call this function whenever the dispatcher's descriptor is readable. */
static int drive(struct loop *l)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    int r;
    while ((r = gpud_dispatcher_poll(l->d, &e, 1, 0)) > 0)
        if (e.kind == GPUD_EVENT_OUTCOME)
            (void)puts(e.outcome == GPUD_OUTCOME_SUCCESS ? e.result : e.text);
    return r == 0 && l->full ? submit_lines(l) : r;
}

int main(void)
{
    struct gpud_definition definition = GPUD_DEFINITION("length", NULL, process, NULL);
    struct gpud_options options = { .struct_size = sizeof options, .devices = "cpu:2",
                                    .drive = GPUD_DRIVE_CALLER, .queue_size = 8 };
    struct gpud_error error = GPUD_ERROR_INIT;
    struct loop l = { .epoll = epoll_create1(EPOLL_CLOEXEC) };
    struct epoll_event event;
    int r = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&l.d, &options, &error))
        return fprintf(stderr, "epoll: %s\n", error.text), 1;
    if (watch(l.epoll, EPOLL_CTL_ADD, gpud_dispatcher_fd(l.d), EPOLLIN) ||
        watch(l.epoll, EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT))
        return perror("epoll: stdin must be a pipe or a terminal"), 1;
    while (r >= 0 && epoll_wait(l.epoll, &event, 1, -1) == 1)
        r = event.data.fd == 0 ? read_lines(&l) : drive(&l);
    if (r != GPUD_EEND)
        fprintf(stderr, "epoll: %s\n", r < 0 ? gpud_error_text(r) : strerror(errno));
    return gpud_dispatcher_destroy(&l.d, NULL) || gpud_fini() || r != GPUD_EEND;
}
