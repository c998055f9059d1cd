/* SPDX-License-Identifier: MIT */
/* faults.c - cases that misbehave, one each way; check_runner.py expects the runner to catch each.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

T_CASE(pass)
{
    FILE *out = fopen("scratch-file", "we");

    T_CHECK(out);
    (void)fclose(out);
}

T_CASE(skip)
{
    t_skip("no such device here");
}

T_CASE(fail_check)
{
    T_EQ(1 + 1, 3);
}

T_CASE(fail_file)
{
    (void)open("/dev/null", O_RDONLY);
}

/* No core orders END for a slot without a worker. */
T_CASE(fail_log)
{
    char path[600];
    FILE *out;

    (void)snprintf(path, sizeof(path), "%s/1-1.log", getenv("GPI_SCHED_LOG"));
    out = fopen(path, "we");
    T_CHECK(out);
    T_CHECK(fputs("device 0\nslot 0 devices=0\n\n@1ms decide\n----\nEND s=0\n", out) >= 0);
    (void)fclose(out);
}

static void *rest(void *arg)
{
    (void)arg;
    t_rest();
}

T_CASE(fail_thread)
{
    pthread_t thread;

    (void)pthread_create(&thread, NULL, rest, NULL);
}

T_CASE(fail_child)
{
    if (!fork())
        t_rest();
}

T_CASE(fail_zombie)
{
    if (!fork())
        _exit(0);
}

/* Nothing of it is left in this process: only the runner can see it. */
T_CASE(fail_daemon)
{
    pid_t pid = fork();

    if (!pid) {
        if (!fork()) {
            (void)setsid();
            t_block_signals();
            (void)t_word_add(0);
            t_rest();
        }
        _exit(0);
    }
    T_EQ(waitpid(pid, NULL, 0), pid);
    t_word_wait(0, 1);
}

T_CASE(fail_mapping)
{
    int fd = memfd_create("gpud-test", MFD_CLOEXEC);

    (void)ftruncate(fd, 4096);
    (void)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
}

T_CASE(fail_disposition)
{
    (void)signal(SIGPIPE, SIG_IGN);
}

T_CASE(fail_mask)
{
    t_block_signals();
}

T_CASE(fail_directory)
{
    (void)chdir("/");
}

T_CASE(fail_umask)
{
    (void)umask(0123);
}

T_CASE(fail_environment)
{
    (void)setenv("GPUD_X", "1", 1);
}

T_CASE(fail_crash)
{
    abort();
}

T_LONG_CASE(fail_deadline, 1)
{
    if (!fork())
        t_rest();
    t_rest();
}

/* The runner's own --deadline ends it. */
T_LONG_CASE(fail_deadline_of_all, 600)
{
    t_rest();
}
