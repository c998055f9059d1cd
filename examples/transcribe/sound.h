/* SPDX-License-Identifier: MIT */
/*
 * sound.h - owns recordings: a raw G.722 file is read and decoded to samples.
 */
#ifndef TRANSCRIBE_SOUND_H
#define TRANSCRIBE_SOUND_H

#include <stddef.h>
#include <stdint.h>

/* One second of G.722 at 64 kbit/s, and of what it decodes to. */
enum { G722_BYTES_PER_SECOND = 8000, SAMPLES_PER_SECOND = 16000 };

/* Recordings are prompts of seconds: an hour is certainly a mistake. */
enum { RECORDING_BYTES_MAX = 3600 * G722_BYTES_PER_SECOND };

/* A piece of speech: SAMPLES_PER_SECOND, one channel. */
struct sound {
    int16_t *samples;
    size_t n;
};

/*
 * Reads and decodes a raw G.722 file.
 * Returns: 0 and *ret_sound, freed with sound_free; else an errno value, and nothing
 * has changed.
 */
int sound_read_g722(struct sound *ret_sound, const char *path);

/* Frees the samples. */
void sound_free(struct sound *s);

#endif
