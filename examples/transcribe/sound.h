/* SPDX-License-Identifier: MIT */
/*
 * sound.h - owns the way from a raw G.722 file to samples.
 */
#ifndef TRANSCRIBE_SOUND_H
#define TRANSCRIBE_SOUND_H

#include <stddef.h>
#include <stdint.h>

/* One second of G.722 at 64 kbit/s, and of its samples. */
enum { G722_BYTES_PER_SECOND = 8000, SAMPLES_PER_SECOND = 16000 };

/* A prompt lasts seconds, so a file of more than one hour is a mistake. */
enum { RECORDING_BYTES_MAX = 3600 * G722_BYTES_PER_SECOND };

/* A piece of speech: one channel with SAMPLES_PER_SECOND. */
struct sound {
    int16_t *samples;
    size_t n;
};

/*
 * Reads and decodes a raw G.722 file.
 * Returns: 0 and *ret_sound, which the caller frees with sound_free; else an errno value, and
 * nothing has changed.
 */
int sound_read_g722(struct sound *ret_sound, const char *path);

/* Frees the samples. */
void sound_free(struct sound *s);

#endif
