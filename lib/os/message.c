/* SPDX-License-Identifier: MIT */
#include "os/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fds.h"

int gpi_message_pair(int ret_fd[2])
{
    int p[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p))
        return gpi_refused(GPI_SYS_SOCKETPAIR);
    if (gpi_fd_lift_both(p))
        return -1;
    ret_fd[0] = p[0];
    ret_fd[1] = p[1];
    return 0;
}

union fd_space {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * GPI_MESSAGE_FDS)];
};

int gpi_message_send(int fd, const void *record, size_t size, const int *fds, size_t n)
{
    union fd_space space = { .bytes = { 0 } };
    struct iovec iov = { .iov_base = (void *)(size_t)record, .iov_len = size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t r;

    if (n > 0) {
        struct cmsghdr *c;
        m.msg_control = space.bytes;
        m.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * n);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * n);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    do
        r = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    return r < 0 ? gpi_refused(GPI_SYS_SENDMSG) : 0;
}

static void take_fds(struct msghdr *m, int *fds, size_t max, size_t *n)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t count;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int one;
            memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof one);
            if (*n < max)
                fds[(*n)++] = one;
            else
                close(one);
        }
    }
}

/* All or none: who counts them must not meet a -1 amid others. */
static size_t lift_all(int *fds, size_t n, bool lost)
{
    for (size_t i = 0; i < n; i++) {
        fds[i] = gpi_fd_lift(fds[i]);
        lost |= fds[i] < 0;
    }
    for (size_t i = 0; lost && i < n; i++)
        gpi_fd_close(&fds[i]);
    return lost ? 0 : n;
}

int gpi_message_receive(int fd, void *record, size_t size, int *fds, size_t max, size_t *ret_n)
{
    union fd_space space;
    struct iovec iov = { .iov_base = record, .iov_len = size };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space
    };
    size_t n = 0;
    ssize_t r;

    /* ECONNRESET comes once, before what waits: the other side left without reading all of ours. */
    do
        r = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (r < 0 && (errno == EINTR || errno == ECONNRESET));
    if (r < 0)
        return errno == EAGAIN ? -1 : gpi_refused(GPI_SYS_RECVMSG);
    take_fds(&m, fds, max, &n);
    /* the kernel had no number for the rest */
    n = lift_all(fds, n, (m.msg_flags & MSG_CTRUNC) != 0);
    if (ret_n)
        *ret_n = n;
    return m.msg_flags & MSG_TRUNC ? (int)size + 1 : (int)r;
}

void gpi_message_hang_up(int fd)
{
    (void)shutdown(fd, SHUT_WR);
}
