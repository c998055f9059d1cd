/* SPDX-License-Identifier: MIT */
/*
 * spectrum.h - what is computed: how strong each frequency is in each short piece of a recording.
 *
 * A recording is cut into frames of `size` samples, one every `hop` samples; each is multiplied by
 * a Hann window and transformed; the squared magnitudes of the first size/2 + 1 coefficients are
 * its spectrum. Three ways to compute it, which must agree: cuFFT (spectrum_gpu.cu), a radix-2 FFT
 * (spectrum_cpu.c), and the definition itself in double precision (spectrum_reference), slow and
 * surely right.
 */
#ifndef SPECTROGRAM_SPECTRUM_H
#define SPECTROGRAM_SPECTRUM_H

#include <gpudispatch/gpudispatch.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SIZE_MIN = 64, SIZE_MAX_LOG = 13, TEXT_BYTES = 160 };

/* How a recording is cut. */
struct cut {
    uint32_t size; /* samples in a frame: a power of two */
    uint32_t hop;  /* from one frame's start to the next */
};

/* Gives how many frames and how many coefficients there are; a recording shorter than a frame is
 * one frame, filled up with silence. */
size_t cut_frames(const struct cut *c, size_t samples);
size_t cut_bins(const struct cut *c);

/* What one worker computes with: buffers, plans, a device.  Made in setup. */
struct spectrum;

/*
 * A way to compute. open: 0 and *ret_s, or -1 and why in text (TEXT_BYTES). power: fills bins
 * floats per frame; 0, or a code that process returns: text says why, and stays "" for
 * GPUD_ETIMEOUT and GPUD_ECANCELLED, which end the work and leave nothing running.
 */
struct spectrum_way {
    const char *name;
    int (*open)(struct spectrum **ret_s, const struct cut *cut, char *text);
    int (*power)(struct spectrum *s, gpud_task *t, const int16_t *samples, size_t n, float *power,
                 char *text);
    void (*close)(struct spectrum *s);
    int (*last_error)(void); /* for gpud_cuda_last_error; NULL where there is no CUDA */
};

extern const struct spectrum_way spectrum_cpu;
extern const struct spectrum_way *const spectrum_gpu; /* NULL in a build without the CUDA toolkit */

/* Computes frame number `frame` by the definition. `table` holds cos and sin of 2 pi i / size, size
 * pairs. */
void spectrum_reference(const struct cut *cut, const double *table, const int16_t *samples,
                        size_t n, size_t frame, double *power);

#ifdef __cplusplus
}
#endif
#endif
