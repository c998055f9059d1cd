/* SPDX-License-Identifier: MIT */
/*
 * signals.h - the handlers of a worker, and what its forked children have instead.
 *
 * Workers end by command: a TERM to all processes of a service lets the host drain. A child that
 * user code forks has the default actions from its first instruction on, so that whoever forked it
 * can end it; a signal that comes during the fork waits.
 */
#ifndef GPI_WORKER_SIGNALS_H
#define GPI_WORKER_SIGNALS_H

/* INT, TERM and HUP do nothing here from now on.  Once, in a worker.  0, or -1 with errno. */
int gpi_signals_init(void);

/* `handler` for `signo`, with these flags of sigaction; forked children lose it if it is still
 * there. */
void gpi_signals_handle(int signo, void (*handler)(int), int flags);

#endif
