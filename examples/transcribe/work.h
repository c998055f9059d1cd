/* SPDX-License-Identifier: MIT */
/*
 * work.h - what runs inside a worker process: one engine, loaded once, one recording
 * per task.
 *
 * The setup data is the folder of the model, a task's data the path of a recording (both
 * with the final NUL), its result the text.
 */
#ifndef TRANSCRIBE_WORK_H
#define TRANSCRIBE_WORK_H

#include <gpudispatch/gpudispatch.h>

int work_setup(gpud_worker *w, void **ret_state);
int work_process(gpud_task *t, void *state);
void work_cleanup(gpud_worker *w, void *state);

#endif
