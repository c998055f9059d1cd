/* SPDX-License-Identifier: MIT */
#include "os/alarm.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

int gpi_alarm_init(struct gpi_alarm *a)
{
    struct sigevent e;

    memset(&e, 0, sizeof e);
    e.sigev_notify = SIGEV_THREAD_ID;
    e.sigev_signo = SIGALRM;
    e.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &e, &a->timer) ? gpi_refused(GPI_SYS_TIMER_CREATE) : 0;
}

void gpi_alarm_at(const struct gpi_alarm *a, uint64_t when)
{
    struct itimerspec t = { .it_value = { .tv_sec = (time_t)(when / GPI_S),
                                          .tv_nsec = (long)(when % GPI_S) } };

    if (when == 0)
        t.it_value.tv_nsec = 1; /* zero would disarm */
    (void)timer_settime(a->timer, TIMER_ABSTIME, &t, NULL);
}

void gpi_alarm_off(const struct gpi_alarm *a)
{
    const struct itimerspec never = { .it_value = { .tv_sec = 0 } };

    (void)timer_settime(a->timer, 0, &never, NULL);
}
