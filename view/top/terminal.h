/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - a screen on the terminal of the program (ncursesw), and keys from it.
 *
 * There is one terminal, so that its signal handlers find it.  After gpv_terminal_close, and when
 * INT, TERM, HUP, TSTP or a crash ends or stops the program, it is as it was before.
 */
#ifndef GPV_TERMINAL_H
#define GPV_TERMINAL_H

#include "view/top/top.h"

/* Whether the terminal of standard output can show a screen; false: there is no entry for $TERM, or
 * it has no cursor that moves. */
bool gpv_terminal_is_known(void);

/* Takes the terminal over: -1 if that fails, which has changed nothing. */
int gpv_terminal_open(void);
void gpv_terminal_close(void);

/* Writes the cells that differ from the last screen. */
void gpv_terminal_show(const struct gpv_screen *s);
void gpv_terminal_size(int *ret_columns, int *ret_lines);
/* The next key, as gpv_top_key takes it; 0: there is none yet. */
uint32_t gpv_terminal_key(void);

/*
 * Waits until a key may be there, one of the other descriptors is ready, or `timeout_ns` have
 * passed (negative: without an end).  Signals that end the program are handled only here.  1; 0:
 * the time has passed; -1: a signal ends the program, or the terminal is gone.
 */
struct pollfd;
int gpv_terminal_wait(struct pollfd *other, size_t n, int64_t timeout_ns);
/* The signal that ends the program; 0: none.  After gpv_terminal_close the program ends by it. */
int gpv_terminal_signal(void);

#endif
