/* SPDX-License-Identifier: MIT */
/* monitor.h - the process that reads devices: forked by the spawner, asked by the host over one
 * SEQPACKET socket (wire/reading.h).  It may hang for ever without hurting anything. */
#ifndef GPI_MONITOR_MONITOR_H
#define GPI_MONITOR_MONITOR_H

/* Becomes the monitor that answers at `socket`; every signal is blocked, all other fds are closed by it. */
_Noreturn void gpi_monitor_run(int socket);

#endif
