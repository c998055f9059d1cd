/* SPDX-License-Identifier: MIT */
/* lock.c - a locked file proves that a process lives. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/files/lock.h"

enum { HELD, CLOSED }; /* words of the page */

static void expect_end(pid_t pid, int status)
{
    int ended;

    T_EQ(waitpid(pid, &ended, 0), pid);
    T_EQ(ended, status);
}

T_CASE(one_holder_at_a_time)
{
    struct stat st;
    int first, second = -7;

    T_EQ(gpq_lock_check("lock"), 0);
    T_EQ(gpq_lock_take("lock", &first), 0);
    T_EQ(gpq_lock_take("lock", &second), -EBUSY);
    T_EQ(second, -7);
    T_EQ(gpq_lock_check("lock"), -EBUSY);
    T_EQ(fstat(first, &st), 0);
    T_EQ(st.st_mode & 07777, 0600);
    T_EQ(fcntl(first, F_GETFD), FD_CLOEXEC);
    gpq_lock_close(first);
    T_EQ(gpq_lock_check("lock"), 0);
    T_EQ(gpq_lock_take("lock", &second), 0);
    gpq_lock_close(second);
    gpq_lock_close(-1); /* harmless */
    T_EQ(gpq_lock_take("none/lock", &first), -ENOENT);
    T_EQ(symlink("lock", "link"), 0);
    T_EQ(gpq_lock_take("link", &first), -ELOOP);
}

/* A child that closes its copy, or ends, frees nothing. */
T_CASE(a_child_does_not_free_it)
{
    int fd;

    T_EQ(gpq_lock_take("lock", &fd), 0);
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (!pid) {
            if (how == 0)
                gpq_lock_close(fd);
            if (how == 1)
                (void)raise(SIGKILL);
            _exit(0);
        }
        expect_end(pid, how == 1 ? SIGKILL : 0);
        T_EQ(gpq_lock_check("lock"), -EBUSY);
    }
    gpq_lock_close(fd);
    T_EQ(gpq_lock_check("lock"), 0);
}

/* The agent takes the lock of a run, forks the runner and goes away: the runner holds it. */
T_CASE(a_child_keeps_it_until_it_is_killed)
{
    pid_t pid;
    int fd;

    T_EQ(gpq_lock_take("lock", &fd), 0);
    pid = fork();
    if (!pid) {
        t_word_set(HELD, 1);
        t_rest();
    }
    t_word_wait(HELD, 1);
    gpq_lock_close(fd);
    T_EQ(gpq_lock_check("lock"), -EBUSY);
    t_kill(pid, SIGKILL);
    expect_end(pid, SIGKILL);
    T_EQ(gpq_lock_check("lock"), 0);
}

T_CASE(a_killed_holder_frees_it)
{
    pid_t pid = fork();
    int fd;

    if (!pid) {
        T_EQ(gpq_lock_take("lock", &fd), 0);
        t_word_set(HELD, 1);
        t_rest();
    }
    t_word_wait(HELD, 1);
    T_EQ(gpq_lock_take("lock", &fd), -EBUSY);
    t_kill(pid, SIGKILL);
    expect_end(pid, SIGKILL);
    T_EQ(gpq_lock_take("lock", &fd), 0);
    gpq_lock_close(fd);
}

T_PROGRAM(sleeper)
{
    (void)argc;
    (void)argv;
    t_word_set(HELD, 1);
    t_rest();
}

/* A command that goes on after its runner keeps no lock. */
T_CASE(an_executed_program_has_none)
{
    pid_t pid;
    int fd;

    T_EQ(gpq_lock_take("lock", &fd), 0);
    pid = t_program_start("sleeper", NULL, NULL);
    t_word_wait(HELD, 1);
    gpq_lock_close(fd);
    T_EQ(gpq_lock_check("lock"), 0);
    t_kill(pid, SIGKILL);
    expect_end(pid, SIGKILL);
}

/* A holder that removes its file does not leave two holders: the file is made anew. */
T_CASE(a_removed_file)
{
    int first, second;

    T_EQ(gpq_lock_take("lock", &first), 0);
    T_EQ(unlink("lock"), 0);
    T_EQ(gpq_lock_take("lock", &second), 0);
    gpq_lock_close(first);
    T_EQ(gpq_lock_check("lock"), -EBUSY);
    gpq_lock_close(second);
}
