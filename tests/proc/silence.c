/* SPDX-License-Identifier: MIT */
/*
 * silence.c - a spawner or a driver that does not reply: the host waits for T_REPLY_S seconds
 * (tests/patience.c; in suite slow the 10 s of lib/host/patience.c), then returns an error or ends
 * the tasks.
 */
#include "fixture.h"
#include "scripted.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The driver's silence is an error of create, and leaves no thread or process. */
T_LONG_CASE(driver_that_hangs, 60)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    uint64_t before = t_now();
    gpud_dispatcher *d = NULL;
    char text[64];

    t_init(NULL, t_no_work, NULL);
    t_write_script("hung", "driver hang open");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "fake:1,script=hung"), &error), EDEVICE);
    (void)snprintf(text, sizeof(text), "has not replied for %d s", T_REPLY_S);
    if (!strstr(error.text, text))
        T_FAIL("the text is \"%s\" and lacks \"%s\"", error.text, text);
    T_CMP(t_now() - before, >=, T_S(T_REPLY_S));
    T_CMP(t_now() - before, <, T_S(20));
    T_OK(gpud_fini());
}

/* C15: a program that is no spawner is refused, and killed: the runner checks that none is left. */
T_LONG_CASE(spawner_program_that_hangs, 60)
{
    static const char script[] = "#!/bin/sh\nexec sleep 1000\n";
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    char here[500], path[600];

    if (fd < 0)
        t_skip("a spawner that is executed needs pidfd_open");
    (void)close(fd);
    fd = open("sleeps", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    T_CMP(fd, >=, 0);
    T_EQ(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
    (void)close(fd);
    T_CHECK(getcwd(here, sizeof(here)));
    (void)snprintf(path, sizeof(path), "%s/sleeps", here);
    T_EQ(setenv("GPUD_WORKER_PROGRAM", path, 1), 0);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.argv = (const char *const[]){ "/bin/true", NULL }),
                                  &error),
           ENOANSWER);
    T_CHECK(!d);
    T_TEXT(error.field, "GPUD_WORKER_PROGRAM");
    T_CHECK(strstr(error.text, "started as spawner, sent no reply"));
    T_EQ(unsetenv("GPUD_WORKER_PROGRAM"), 0);
}

/* The host notices a stopped spawner, also when the slot that waits for its keeper was drained and
 * returned meanwhile. */
T_LONG_CASE(spawner_is_stopped_beside_a_drain, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, t_no_work, NULL);
    (void)t_stopped_spawner();
    d = T_CREATE(.devices = "cpu:1");
    T_OK(gpud_dispatcher_device_drain(d, "cpu:0"));
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    (void)T_RUN(d, &log, NO_WORKER, .tag = 1);
    t_end(&d, &log);
}

/* C9: a host that drives for the first time after the spawner's time has expired reads the
 * spawner's reply first. */
T_LONG_CASE(first_poll_is_late, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER);

    t_pass(T_S(T_REPLY_S) + T_MS(100));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(t_stats(d).slots_failed, 0);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), log.count);
    t_end(&d, &log);
}
