/* SPDX-License-Identifier: MIT */
/*
 * spectrum_cpu.c - owns the two ways without a GPU: a radix-2 FFT in single precision, and the
 * definition in double precision.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "spectrum.h"

/* The frames between two checks of the task's limit, which take about 1 ms. */
enum { FRAMES_A_LOOK = 64 };

static const double pi = 3.14159265358979323846;

struct complex {
    float re, im;
};

struct spectrum {
    struct cut cut;
    float *window;         /* size, scaled so that a full-scale sine has a power of about 1 */
    struct complex *factor; /* size / 2 roots of unity */
    struct complex *work;  /* size */
};

size_t cut_frames(const struct cut *c, size_t samples)
{
    return samples <= c->size ? 1 : 1 + (samples - c->size) / c->hop;
}

size_t cut_bins(const struct cut *c)
{
    return c->size / 2 + 1;
}

static double window_at(const struct cut *c, size_t i)
{
    return (0.5 - 0.5 * cos(2 * pi * (double)i / c->size)) * 4 / c->size / 32768;
}

static void cpu_close(struct spectrum *s)
{
    if (s == NULL)
        return;
    free(s->window);
    free(s->factor);
    free(s->work);
    free(s);
}

static int cpu_open(struct spectrum **ret_s, const struct cut *cut, char *text)
{
    struct spectrum *s = calloc(1, sizeof *s);
    if (s == NULL)
        goto fail;
    s->cut = *cut;
    s->window = malloc(cut->size * sizeof *s->window);
    s->factor = malloc(cut->size / 2 * sizeof *s->factor);
    s->work = malloc(cut->size * sizeof *s->work);
    if (s->window == NULL || s->factor == NULL || s->work == NULL)
        goto fail;
    for (size_t i = 0; i < cut->size; i++)
        s->window[i] = (float)window_at(cut, i);
    for (size_t i = 0; i < cut->size / 2; i++)
        s->factor[i] = (struct complex){ (float)cos(2 * pi * (double)i / cut->size),
                                         (float)-sin(2 * pi * (double)i / cut->size) };
    *ret_s = s;
    return 0;
fail:
    cpu_close(s);
    (void)snprintf(text, TEXT_BYTES, "out of memory");
    return -1;
}

/* Moves element i to the index that has the bits of i in reverse order. */
static void reverse_bits(struct complex *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            struct complex y = x[i];
            x[i] = x[j];
            x[j] = y;
        }
    }
}

/* The radix-2 FFT, in place. */
static void transform(const struct spectrum *s)
{
    size_t n = s->cut.size;
    struct complex *x = s->work;
    reverse_bits(x, n);
    for (size_t half = 1; half < n; half *= 2)
        for (size_t start = 0; start < n; start += 2 * half)
            for (size_t k = 0; k < half; k++) {
                struct complex a = x[start + k], b = x[start + k + half],
                               w = s->factor[k * (n / 2 / half)];
                struct complex c = { b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re };
                x[start + k] = (struct complex){ a.re + c.re, a.im + c.im };
                x[start + k + half] = (struct complex){ a.re - c.re, a.im - c.im };
            }
}

static void one_frame(struct spectrum *s, const int16_t *samples, size_t n, float *power)
{
    for (size_t i = 0; i < s->cut.size; i++)
        s->work[i] = (struct complex){ i < n ? (float)samples[i] * s->window[i] : 0, 0 };
    transform(s);
    for (size_t k = 0; k < cut_bins(&s->cut); k++) {
        power[k] = s->work[k].re * s->work[k].re + s->work[k].im * s->work[k].im;
    }
}

static int cpu_power(struct spectrum *s, gpud_task *t, const int16_t *samples, size_t n,
                     float *power, char *text)
{
    size_t frames = cut_frames(&s->cut, n), bins = cut_bins(&s->cut);
    (void)text;
    for (size_t f = 0; f < frames; f++) {
        if (f % FRAMES_A_LOOK == 0) {
            if (gpud_task_cancelled(t))
                return GPUD_ECANCELLED;
            if (gpud_task_expired(t))
                return GPUD_ETIMEOUT;
            (void)gpud_task_progress(t, (double)f / (double)frames, NULL);
        }
        one_frame(s, samples + f * s->cut.hop, n - f * s->cut.hop, power + f * bins);
    }
    return 0;
}

const struct spectrum_way spectrum_cpu = { "cpu", cpu_open, cpu_power, cpu_close, NULL };

void spectrum_reference(const struct cut *cut, const double *table, const int16_t *samples,
                        size_t n, size_t frame, double *power)
{
    size_t from = frame * cut->hop, size = cut->size;
    double x[1 << SIZE_MAX_LOG];
    for (size_t i = 0; i < size; i++)
        x[i] = from + i < n ? samples[from + i] * window_at(cut, i) : 0;
    for (size_t k = 0; k < cut_bins(cut); k++) {
        double re = 0, im = 0;
        for (size_t i = 0; i < size; i++) {
            const double *root = table + 2 * ((i * k) & (size - 1));
            re += x[i] * root[0];
            im -= x[i] * root[1];
        }
        power[k] = re * re + im * im;
    }
}
