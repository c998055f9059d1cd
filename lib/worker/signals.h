/* SPDX-License-Identifier: MIT */
/*
 * signals.h - the handlers of a worker, and the default actions of its forked children.
 *
 * Workers end at the host's request: after a TERM to all processes of a service the host can drain.
 * A child that user code forks has the default actions from its first instruction on, so that user
 * code can end it.  A signal that arrives during the fork waits.
 */
#ifndef GPI_WORKER_SIGNALS_H
#define GPI_WORKER_SIGNALS_H

/* Makes INT, TERM and HUP do nothing here.  Once, in a worker.  Returns 0, or -1 with errno. */
int gpi_signals_init(void);

/* Installs `handler` for `signo`, with these flags of sigaction; forked children drop it if it is
 * still in place. */
void gpi_signals_handle(int signo, void (*handler)(int), int flags);

#endif
