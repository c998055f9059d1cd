/* SPDX-License-Identifier: MIT */
/* uv.c - the dispatcher in a program that is built around libuv. */
#include "fixture.h"

#include <uv.h>

static int process(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

/* A server: requests come by a timer of the loop, answers by the dispatcher's fd. */
struct server {
    gpud_dispatcher *d;
    struct t_log log;
    uv_loop_t loop;
    uv_poll_t answers;
    uv_timer_t requests;
    uint64_t given, all;
    int over;
};

static void on_answers(uv_poll_t *handle, int status, int events)
{
    struct server *s = handle->data;
    int r;

    T_EQ(status, 0);
    T_EQ(events, UV_READABLE);
    while ((r = t_poll(s->d, &s->log, 0)) > 0)
        ;
    if (r != GPUD_EEND)
        return;
    s->over = 1;
    T_EQ(uv_poll_stop(handle), 0);
    uv_close((uv_handle_t *)handle, NULL);
}

static void on_request(uv_timer_t *timer)
{
    struct server *s = timer->data;

    for (int i = 0; i < 20 && s->given < s->all; i++)
        T_SUBMIT(s->d, .tag = s->given++);
    if (s->given < s->all)
        return;
    T_OK(gpud_dispatcher_close(s->d, GPUD_FINISH_ALL, 0));
    uv_close((uv_handle_t *)timer, NULL);
}

static void serve(uint32_t drive)
{
    struct server s = { .all = 500 };

    s.d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);
    s.answers.data = s.requests.data = &s;
    T_EQ(uv_loop_init(&s.loop), 0);
    T_EQ(uv_poll_init(&s.loop, &s.answers, gpud_dispatcher_fd(s.d)), 0);
    T_EQ(uv_poll_start(&s.answers, UV_READABLE, on_answers), 0);
    T_EQ(uv_timer_init(&s.loop, &s.requests), 0);
    T_EQ(uv_timer_start(&s.requests, on_request, 1, 1), 0);
    T_EQ(uv_run(&s.loop, UV_RUN_DEFAULT), 0);
    T_EQ(s.over, 1);
    t_check_exactly_once(&s.log, s.all);
    T_EQ(uv_loop_close(&s.loop), 0);
    t_end(&s.d, &s.log);
}

T_CASE(libuv)
{
    serve(GPUD_DRIVE_THREAD);
    serve(GPUD_DRIVE_CALLER);
    uv_library_shutdown();
}
