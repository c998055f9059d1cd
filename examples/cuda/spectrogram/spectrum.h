/* SPDX-License-Identifier: MIT */
/*
 * spectrum.h - the computation: the strength of each frequency in each short piece of a recording.
 *
 * A recording is cut into frames of `size` samples, one every `hop` samples.  Each frame is
 * multiplied by a Hann window and transformed.  The squared magnitudes of the first size/2 + 1
 * coefficients are its spectrum.  Three ways compute it, and they must agree: cuFFT
 * (spectrum_gpu.cu), a radix-2 FFT (spectrum_cpu.c), and the definition itself in double precision
 * (spectrum_reference), which is slow and surely right.
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

/* Return the number of frames and the number of coefficients.  A recording that is shorter than a
 * frame makes one frame, filled up with silence. */
size_t cut_frames(const struct cut *c, size_t samples);
size_t cut_bins(const struct cut *c);

/* The means of one worker: buffers, plans, a device.  setup makes them. */
struct spectrum;

/*
 * A way to compute.
 * open returns 0 and *ret_s, or -1 with the reason in text (TEXT_BYTES).
 * power fills bins floats per frame.  It returns 0, or a code for process to return, with the
 * reason in text.  text stays "" for GPUD_ETIMEOUT and GPUD_ECANCELLED, which end the work and
 * leave no kernel running.
 */
struct spectrum_way {
    const char *name;
    int (*open)(struct spectrum **ret_s, const struct cut *cut, char *text);
    int (*power)(struct spectrum *s, gpud_task *t, const int16_t *samples, size_t n, float *power,
                 char *text);
    void (*close)(struct spectrum *s);
    int (*last_error)(void); /* for gpud_cuda_last_error; NULL without CUDA */
};

extern const struct spectrum_way spectrum_cpu;
extern const struct spectrum_way *const spectrum_gpu; /* NULL in a build without the CUDA toolkit */

/* Computes frame number `frame` by the definition.  `table` has `size` pairs: cos and sin of
 * 2 pi i / size. */
void spectrum_reference(const struct cut *cut, const double *table, const int16_t *samples,
                        size_t n, size_t frame, double *power);

#ifdef __cplusplus
}
#endif
#endif
