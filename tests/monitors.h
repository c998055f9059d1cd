/* SPDX-License-Identifier: MIT */
/* monitors.h - the steps that tests of gpud_monitor share: open one on fakes, ask it, find its
 * process, end it in time. */
#ifndef T_MONITORS_H
#define T_MONITORS_H

#include "fixture.h"

#define T_AT_ONCE (T_SANITIZED ? T_S(3) : T_S(1)) /* far below any patience of ours */

/* Opens "fake:N,script=..." with these lines; NULL = nothing happens to them. */
gpud_monitor *t_monitor_open(unsigned n, const char *script);
/* Reads so many rows, as gpud_monitor_read does; lent until the next call. */
struct gpud_device_info *t_monitor_rows(gpud_monitor *m, int wanted, uint64_t max_age,
                                        uint64_t wait);
struct gpud_driver_info t_monitor_driver(gpud_monitor *m, uint64_t wait);
/* Asks for readings that will not come. */
void t_monitor_ask_in_vain(gpud_monitor *m, int rows);
/* Ends it, and gpud_init's spawner, at once: whatever hangs. */
void t_monitor_close_quickly(gpud_monitor **m);
void t_fini_quickly(void);

/* Counts the monitor processes of this case, wherever they descend from; gives one of them (may be
 * NULL). */
size_t t_monitors(struct t_proc *ret_first);
/* Gives the only one. It may have been asked for only, so far, and have its name later: that is
 * waited for. */
struct t_proc t_the_monitor(void);
/* For t_wait_until. */
int t_no_monitor(void *unused);

#endif
