/* SPDX-License-Identifier: MIT */
/* message.c - records with fds beside them: whole, or told to be not; no fd is left behind. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/fds.h"
#include "os/message.h"

static int pair[2];

static void send_two(size_t size)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[2] = { null, null };

    T_CMP(null, >=, 0);
    T_EQ(gpi_message_send(pair[0], "record", size, fds, 2), 0);
    T_EQ(close(null), 0);
}

static void begin(void)
{
    T_EQ(gpi_message_pair(pair), 0);
}

static void end(void)
{
    gpi_fd_close(&pair[0]);
    gpi_fd_close(&pair[1]);
}

T_CASE(there_and_back)
{
    char record[8];
    size_t n = 7;
    int fds[2];

    begin();
    send_two(6);
    T_EQ(gpi_message_receive(pair[1], record, sizeof(record), fds, 2, &n), 6);
    T_EQ(n, 2);
    for (unsigned i = 0; i < 2; i++) {
        T_CMP(fds[i], >=, GPI_FD_FLOOR);
        T_EQ(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        gpi_fd_close(&fds[i]);
    }
    T_EQ(gpi_message_receive(pair[1], record, sizeof(record), fds, 2, &n), -1);
    T_EQ(errno, EAGAIN);
    gpi_message_hang_up(pair[0]);
    T_EQ(gpi_message_receive(pair[1], record, sizeof(record), fds, 2, &n), 0);
    end();
}

/* One that is longer is told of by its size, fds beyond the room are closed; the leak check around
 * the case looks for them. */
T_CASE(too_much)
{
    char record[4];
    size_t n = 7;
    int fd;

    begin();
    send_two(6);
    T_EQ(gpi_message_receive(pair[1], record, sizeof(record), &fd, 1, &n), 5);
    T_EQ(n, 1);
    gpi_fd_close(&fd);
    end();
}

/* Fds that can be taken, but not lifted, are lost on the way: all of them, never one amid others.
 */
T_CASE(no_number_is_left)
{
    struct rlimit old, tight;
    char record[8];
    size_t n = 7;
    int fds[2], low[2];

    begin();
    send_two(6);
    low[0] = dup(pair[0]); /* the lowest that are free, which the record's will get */
    low[1] = dup(pair[0]);
    T_CMP(low[0], <, low[1]);
    T_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)low[1] + 1;
    T_EQ(close(low[0]), 0);
    T_EQ(close(low[1]), 0);
    T_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    T_EQ(gpi_message_receive(pair[1], record, sizeof(record), fds, 2, &n), 6);
    T_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    T_EQ(n, 0);
    end();
}
