/* SPDX-License-Identifier: MIT */
/*
 * scripted.h - dispatchers on fake devices to which things happen when the case says so: lines
 * "when NAME ..." of a script hold from when t_trigger(NAME) was called.
 */
#ifndef T_SCRIPTED_H
#define T_SCRIPTED_H

#include "fixture.h"

/* Creates "fake:N,script=..." with these lines; `options` may say more, but for its devices. */
gpud_dispatcher *t_fakes(unsigned n, const char *script, const struct gpud_options *options);
/* Writes a script for a list that the case itself gives: the name for script=. */
void t_write_script(const char *name, const char *text);
void t_trigger(const char *name);

/* The row of a device; it must be there. */
struct gpud_device_info t_device(gpud_dispatcher *d, const char *name);

/* Polls until a DEVICE event says this health of the device, beginning with event number *at of the
 * log; *at is one beyond it then. Events that the log holds already count. */
const struct gpud_event *t_told_health(gpud_dispatcher *d, struct t_log *log, size_t *at,
                                       const char *device, uint32_t health);
/* The same for one whose text begins with these words. */
const struct gpud_event *t_told(gpud_dispatcher *d, struct t_log *log, size_t *at,
                                const char *device, const char *words);

/* The fake libraries note from now on which process opens a GPU, and when a monitor has asked for
 * its events (tests/fakes/open_gpu.h). */
void t_note_openings(void);
/* How often a process has opened it so far, or a monitor has asked for its events: what was before
 * is not heard. */
unsigned t_openings(gpud_dispatcher *d, const char *name);
unsigned t_ears(gpud_dispatcher *d, const char *name);
void t_wait_for_openings(gpud_dispatcher *d, const char *name, unsigned n);
void t_wait_for_ears(gpud_dispatcher *d, const char *name, unsigned n);

#endif
