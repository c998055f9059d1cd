/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - the process that reads devices: forked by the spawner, asked by the host over one
 * SEQPACKET socket (wire/reading.h). Its calls into a driver may hang for ever without hurting
 * anybody.
 *
 * Three threads, none of which wakes up while nothing happens: the first waits for the end of the
 * socket, which ends the process whatever the others do; the second answers requests, one after the
 * other; the third waits for incidents.  An incident is never dropped: it waits until there is room
 * in the socket.                                                                       [C20]
 */
#ifndef GPI_MONITOR_MONITOR_H
#define GPI_MONITOR_MONITOR_H

/* Becomes the monitor that answers at `socket`; does not return. Every signal is blocked and stdio
 * is /dev/null already; all other fds are closed by it. */
_Noreturn void gpi_monitor_run(int socket);

#endif
