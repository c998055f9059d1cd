/* SPDX-License-Identifier: MIT */
/*
 * recording.h - owns the way from a file to samples.  The file is RIFF WAVE or, in a build with
 * SpanDSP, raw G.722 like the prompts of the demo.
 */
#ifndef SPECTROGRAM_RECORDING_H
#define SPECTROGRAM_RECORDING_H

#include <stddef.h>
#include <stdint.h>

/* One channel of 16 bits. */
struct samples {
    int16_t *at;
    size_t n;
    uint32_t rate; /* samples per second */
};

/*
 * Reads a file.  A file that begins with "RIFF" is WAVE: PCM of 16 bits, of whose channels it takes
 * the mean.  Any other file is raw G.722 if its name ends in ".g722".
 * Returns: NULL and *ret_samples, which the caller frees with recording_free; else the reason, a
 * constant string, and nothing has changed.
 */
const char *recording_read(struct samples *ret_samples, const char *path);

void recording_free(struct samples *s);

#endif
