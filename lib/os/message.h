/* SPDX-License-Identifier: MIT */
/* message.h - whole records with fds beside them, over SEQPACKET sockets. */
#ifndef GPI_OS_MESSAGE_H
#define GPI_OS_MESSAGE_H

#include <stddef.h>

#define GPI_MESSAGE_FDS 12

/* Two connected ends, lifted and close-on-exec.  0, or -1 with errno. */
int gpi_message_pair(int ret_fd[2]);

/* Sends one record whole.  Never raises SIGPIPE.  0, or -1 with errno. */
int gpi_message_send(int fd, const void *record, size_t size, const int *fds, size_t n);

/* Takes one record without waiting. Returns its size, size + 1 when it is longer (its fds, lifted,
 * in fds[0..*ret_n)); 0 at the end; -1 with errno, EAGAIN when there is none. Fds beyond `max` are
 * closed; where there is no number for one of them all are, as if they were lost on the way. */
int gpi_message_receive(int fd, void *record, size_t size, int *fds, size_t max, size_t *ret_n);

/* Says no more: the other end reads the end after what was sent; what it says still comes. */
void gpi_message_hang_up(int fd);

#endif
