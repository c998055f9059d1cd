/* SPDX-License-Identifier: MIT */
/*
 * work.h - the workers' side: the data of a task is the path of a file, its result a picture.
 */
#ifndef SPECTROGRAM_WORK_H
#define SPECTROGRAM_WORK_H

#include <gpudispatch/gpudispatch.h>

#include "spectrum.h"

/* The setup data. */
struct work_order {
    struct cut cut;
    uint32_t compare;
};

/* A result: this record, then width x height bytes, the highest frequency first. */
struct work_answer {
    uint32_t width, height;
    uint32_t rate;     /* samples per second */
    uint32_t compared; /* number of frames, 0 without --compare */
    uint64_t samples;
    double error;      /* the largest relative error */
    char way[16];      /* the name of the way that computed it */
};

int work_setup(gpud_worker *w, void **ret_state);
int work_process(gpud_task *t, void *state);
void work_cleanup(gpud_worker *w, void *state);

#endif
