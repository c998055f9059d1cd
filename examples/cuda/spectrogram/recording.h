/* SPDX-License-Identifier: MIT */
/*
 * recording.h - owns what a recording file holds: samples, read from RIFF WAVE or, where SpanDSP
 * was found, from raw G.722 as the demo's prompts are.
 */
#ifndef SPECTROGRAM_RECORDING_H
#define SPECTROGRAM_RECORDING_H

#include <stddef.h>
#include <stdint.h>

/* One channel of 16 bits. */
struct samples {
    int16_t *at;
    size_t n;
    uint32_t rate; /* a second */
};

/*
 * Reads the file, by what it begins with: "RIFF" is WAVE (PCM of 16 bits; channels are averaged),
 * all else is raw G.722 if its name ends in ".g722". Returns: NULL and *ret_samples, freed with
 * recording_free; else why not, a constant string, and nothing has changed.
 */
const char *recording_read(struct samples *ret_samples, const char *path);

void recording_free(struct samples *s);

#endif
