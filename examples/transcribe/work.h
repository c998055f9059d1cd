/* SPDX-License-Identifier: MIT */
/*
 * work.h - the workers' side: each worker loads one engine once, and a task is one recording.
 *
 * The setup data is the folder of the model, with its final NUL; the data of a task is the path of
 * a recording, with or without it; and its result is the text.
 */
#ifndef TRANSCRIBE_WORK_H
#define TRANSCRIBE_WORK_H

#include <gpudispatch/gpudispatch.h>

int work_setup(gpud_worker *w, void **ret_state);
int work_process(gpud_task *t, void *state);
void work_cleanup(gpud_worker *w, void *state);

#endif
