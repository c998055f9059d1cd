/* SPDX-License-Identifier: MIT */
/*
 * work.c - owns the three functions of the definition, all of which run in workers.
 */
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

/* The codes of tasks that end ERROR with a text; spectrum_gpu.cu has one more. */
enum { FAIL_READ = 1, FAIL_MEMORY = 2 };

/* The most frames that --compare computes: the definition costs size^2 for each. */
enum { FRAMES_COMPARED = 512 };

/* The level of black, in dB relative to full scale. */
static const float floor_db = -100;

static const double pi = 3.14159265358979323846;

struct work {
    struct work_order order;
    const struct spectrum_way *way;
    struct spectrum *spectrum;
};

int work_setup(gpud_worker *w, void **ret_state)
{
    size_t size;
    const struct work_order *order = gpud_worker_setup_data(w, &size);
    int on_gpu = strncmp(gpud_worker_device(w), "gpu:", 4) == 0;
    char text[TEXT_BYTES] = "";
    struct work *work = malloc(sizeof *work);
    if (work == NULL)
        return gpud_worker_fail(w, FAIL_MEMORY, "out of memory");
    *work = (struct work){ .order = *order, .way = on_gpu ? spectrum_gpu : &spectrum_cpu };
    if (work->way == NULL)
        (void)snprintf(text, sizeof text,
                       "this program was built without the CUDA toolkit: use --devices cpu:N");
    else if (work->way->open(&work->spectrum, &order->cut, text) == 0) {
        (void)gpud_cuda_last_error(w, work->way->last_error);
        *ret_state = work;
        return 0;
    }
    free(work);
    return gpud_worker_fail(w, 1, text);
}

/* Turns spectra into brightness, one column per frame. */
static void paint(uint8_t *picture, const float *power, size_t frames, size_t bins)
{
    for (size_t f = 0; f < frames; f++)
        for (size_t k = 0; k < bins; k++) {
            float db = 10 * log10f(power[f * bins + k] + 1e-20f);
            float light = (1 - db / floor_db) * 255;
            picture[(bins - 1 - k) * frames + f] = (uint8_t)(light < 0     ? 0
                                                             : light > 255 ? 255
                                                                           : lrintf(light));
        }
}

/* Compares one frame.  Updates the largest difference and the largest value. */
static void compare_frame(const double *right, const float *power, size_t bins, double *difference,
                          double *largest)
{
    for (size_t k = 0; k < bins; k++) {
        *difference = fmax(*difference, fabs((double)power[k] - right[k]));
        *largest = fmax(*largest, right[k]);
    }
}

static double *make_table(const struct cut *cut)
{
    double *table = malloc((2 * cut->size + cut_bins(cut)) * sizeof *table);
    for (size_t i = 0; table != NULL && i < cut->size; i++) {
        table[2 * i] = cos(2 * pi * (double)i / cut->size);
        table[2 * i + 1] = sin(2 * pi * (double)i / cut->size);
    }
    return table;
}

/* Computes frames of all parts of the recording by the definition.  Returns 0 or a code. */
static int compare(struct work_answer *a, const struct cut *cut, gpud_task *t,
                   const struct samples *s, const float *power)
{
    size_t frames = a->width, bins = a->height, step = frames / FRAMES_COMPARED + 1;
    double difference = 0, largest = 0;
    double *table = make_table(cut);
    if (table == NULL)
        return GPUD_ENOMEM;
    double *right = table + 2 * cut->size;
    int code = 0;
    for (size_t f = 0; f < frames && code == 0; f += step, a->compared++) {
        spectrum_reference(cut, table, s->at, s->n, f, right);
        compare_frame(right, power + f * bins, bins, &difference, &largest);
        code = gpud_task_expired(t) ? GPUD_ETIMEOUT : gpud_task_cancelled(t) ? GPUD_ECANCELLED : 0;
    }
    free(table);
    a->error = difference == 0 ? 0 : difference / largest;
    return code;
}

/* Computes, compares, and sets record and picture as the task's result.  Returns 0 or a code. */
static int answer(struct work *w, gpud_task *t, const struct samples *s, float *power,
                  struct work_answer *a, char *text)
{
    void *result;
    int code = w->way->power(w->spectrum, t, s->at, s->n, power, text);
    if (code == 0 && w->order.compare)
        code = compare(a, &w->order.cut, t, s, power);
    if (code == 0)
        code = gpud_task_result_alloc(t, sizeof *a + (size_t)a->width * a->height, &result);
    if (code != 0)
        return code;
    memcpy(result, a, sizeof *a);
    paint((uint8_t *)result + sizeof *a, power, a->width, a->height);
    return 0;
}

int work_process(gpud_task *t, void *state)
{
    struct work *w = state;
    struct samples s;
    char text[TEXT_BYTES] = "";
    const char *why = recording_read(&s, gpud_task_data(t));
    if (why != NULL)
        return gpud_task_fail(t, FAIL_READ, why);
    size_t frames = cut_frames(&w->order.cut, s.n), bins = cut_bins(&w->order.cut);
    struct work_answer a = {
        .width = (uint32_t)frames, .height = (uint32_t)bins, .rate = s.rate, .samples = s.n
    };
    (void)snprintf(a.way, sizeof a.way, "%s", w->way->name);
    float *power = malloc(frames * bins * sizeof *power);
    int code = power != NULL ? answer(w, t, &s, power, &a, text)
                             : gpud_task_fail(t, FAIL_MEMORY, "out of memory");
    free(power);
    recording_free(&s);
    if (code != 0 && text[0] != '\0')
        return gpud_task_fail(t, code, text);
    return code;
}

void work_cleanup(gpud_worker *w, void *state)
{
    struct work *work = state;
    (void)w;
    work->way->close(work->spectrum);
    free(work);
}
