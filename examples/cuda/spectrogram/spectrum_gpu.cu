/* SPDX-License-Identifier: MIT */
/*
 * spectrum_gpu.cu - owns all calls of CUDA and cuFFT.  They run only in workers, after the library
 * has made the worker's device current.
 *
 * A recording passes through the GPU in pieces of PIECE frames.  One stream does the work of a
 * piece: copy the samples to the GPU, apply the window, transform with cuFFT, square the
 * magnitudes, copy the spectra back.  The wait is gpud_cuda_stream_sync, which returns at the
 * task's limit.
 */
#include <cuda_runtime.h>
#include <cufft.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spectrum.h"

enum { PIECE = 512, THREADS = 256, FAIL_CUDA = 3 };

struct spectrum {
    struct cut cut;
    size_t bins;
    cudaStream_t stream;
    cufftHandle plan;
    int planned;
    size_t samples_max;  /* of a piece */
    int16_t *samples;    /* pinned, and on the device */
    int16_t *d_samples;
    float *d_frames;     /* PIECE x size */
    cufftComplex *d_coefficients; /* PIECE x bins */
    float *power;        /* PIECE x bins: pinned, and on the device */
    float *d_power;
};

/* blockIdx.x is the frame; each thread applies the window to some samples of it. */
__global__ void window_frames(const int16_t *samples, size_t n, uint32_t size, uint32_t hop,
                              float *frames)
{
    size_t from = (size_t)blockIdx.x * hop;
    for (uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
        float w =
            (0.5f - 0.5f * cospif(2.0f * (float)i / (float)size)) * (4.0f / (float)size / 32768.0f);
        frames[(size_t)blockIdx.x * size + i] = from + i < n ? (float)samples[from + i] * w : 0.0f;
    }
}

__global__ void square(const cufftComplex *coefficients, size_t n, float *power)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        power[i] = coefficients[i].x * coefficients[i].x + coefficients[i].y * coefficients[i].y;
}

/* Writes the failed call and CUDA's error text.  Returns FAIL_CUDA. */
static int failed(char *text, const char *what, cudaError_t error)
{
    (void)snprintf(text, TEXT_BYTES, "%s: %s (%d): %s", what, cudaGetErrorName(error), (int)error,
                   cudaGetErrorString(error));
    return FAIL_CUDA;
}

static int cufft_failed(char *text, const char *what, cufftResult result)
{
    (void)snprintf(text, TEXT_BYTES, "%s: cuFFT error %d", what, (int)result);
    return FAIL_CUDA;
}

static void gpu_close(struct spectrum *s)
{
    if (s == NULL)
        return;
    if (s->planned)
        (void)cufftDestroy(s->plan);
    (void)cudaFree(s->d_samples);
    (void)cudaFree(s->d_frames);
    (void)cudaFree(s->d_coefficients);
    (void)cudaFree(s->d_power);
    (void)cudaFreeHost(s->samples);
    (void)cudaFreeHost(s->power);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    free(s);
}

static int make_buffers(struct spectrum *s, char *text)
{
    size_t frames = (size_t)PIECE * s->cut.size * sizeof(float), spectra = (size_t)PIECE * s->bins;
    cudaError_t e;
    if ((e = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking)) != cudaSuccess)
        return failed(text, "cudaStreamCreate", e);
    if ((e = cudaMallocHost((void **)&s->samples, s->samples_max * sizeof(int16_t))) !=
            cudaSuccess ||
        (e = cudaMallocHost((void **)&s->power, spectra * sizeof(float))) != cudaSuccess)
        return failed(text, "cudaMallocHost", e);
    if ((e = cudaMalloc((void **)&s->d_samples, s->samples_max * sizeof(int16_t))) != cudaSuccess ||
        (e = cudaMalloc((void **)&s->d_frames, frames)) != cudaSuccess ||
        (e = cudaMalloc((void **)&s->d_coefficients, spectra * sizeof(cufftComplex))) !=
            cudaSuccess ||
        (e = cudaMalloc((void **)&s->d_power, spectra * sizeof(float))) != cudaSuccess)
        return failed(text, "cudaMalloc", e);
    return 0;
}

/* Makes one plan of PIECE transforms; for the last piece it transforms more frames than needed. */
static int make_plan(struct spectrum *s, char *text)
{
    int size = (int)s->cut.size;
    cufftResult r =
        cufftPlanMany(&s->plan, 1, &size, NULL, 1, size, NULL, 1, (int)s->bins, CUFFT_R2C, PIECE);
    if (r != CUFFT_SUCCESS)
        return cufft_failed(text, "cufftPlanMany", r);
    s->planned = 1;
    r = cufftSetStream(s->plan, s->stream);
    return r == CUFFT_SUCCESS ? 0 : cufft_failed(text, "cufftSetStream", r);
}

static int gpu_open(struct spectrum **ret_s, const struct cut *cut, char *text)
{
    struct spectrum *s = (struct spectrum *)calloc(1, sizeof *s);
    if (s == NULL) {
        (void)snprintf(text, TEXT_BYTES, "out of memory");
        return -1;
    }
    s->cut = *cut;
    s->bins = cut_bins(cut);
    s->samples_max = (size_t)(PIECE - 1) * cut->hop + cut->size;
    if (make_buffers(s, text) != 0 || make_plan(s, text) != 0) {
        gpu_close(s);
        return -1;
    }
    *ret_s = s;
    return 0;
}

/* Enqueues the work for one piece in the stream: `frames` frames, n samples. */
static int enqueue(struct spectrum *s, size_t n, size_t frames, char *text)
{
    size_t values = frames * s->bins;
    cudaError_t e = cudaMemcpyAsync(s->d_samples, s->samples, n * sizeof(int16_t),
                                    cudaMemcpyHostToDevice, s->stream);
    if (e != cudaSuccess)
        return failed(text, "copy to the GPU", e);
    window_frames<<<PIECE, THREADS, 0, s->stream>>>(s->d_samples, n, s->cut.size, s->cut.hop,
                                                    s->d_frames);
    if ((e = cudaGetLastError()) != cudaSuccess)
        return failed(text, "window_frames", e);
    cufftResult r = cufftExecR2C(s->plan, s->d_frames, s->d_coefficients);
    if (r != CUFFT_SUCCESS)
        return cufft_failed(text, "cufftExecR2C", r);
    square<<<(unsigned)((values + THREADS - 1) / THREADS), THREADS, 0, s->stream>>>(
        s->d_coefficients, values, s->d_power);
    if ((e = cudaGetLastError()) != cudaSuccess)
        return failed(text, "square", e);
    e = cudaMemcpyAsync(s->power, s->d_power, values * sizeof(float), cudaMemcpyDeviceToHost,
                        s->stream);
    return e == cudaSuccess ? 0 : failed(text, "copy from the GPU", e);
}

/* Waits for the stream.  After the limit it waits once more, without limit, since the buffers must
 * be free again; these kernels are short. */
static int wait_for(struct spectrum *s, gpud_task *t, char *text)
{
    int code = gpud_cuda_stream_sync(t, s->stream);
    if (code == GPUD_ETIMEOUT || code == GPUD_ECANCELLED)
        (void)cudaStreamSynchronize(s->stream);
    else if (code != 0)
        (void)failed(text, "the stream", cudaPeekAtLastError());
    return code;
}

static int gpu_power(struct spectrum *s, gpud_task *t, const int16_t *samples, size_t n,
                     float *power, char *text)
{
    size_t frames = cut_frames(&s->cut, n);
    for (size_t f = 0; f < frames; f += PIECE) {
        size_t count = frames - f < PIECE ? frames - f : (size_t)PIECE, at = f * s->cut.hop;
        size_t have = n - at < s->samples_max ? n - at : s->samples_max;
        memcpy(s->samples, samples + at, have * sizeof *samples);
        int code = enqueue(s, have, count, text);
        if (code == 0)
            code = wait_for(s, t, text);
        if (code != 0)
            return code;
        memcpy(power + f * s->bins, s->power, count * s->bins * sizeof *power);
        (void)gpud_task_progress(t, (double)(f + count) / (double)frames, NULL);
    }
    return 0;
}

static int last_error(void)
{
    return (int)cudaGetLastError();
}

static const struct spectrum_way way = { "cuFFT", gpu_open, gpu_power, gpu_close, last_error };
extern "C" const struct spectrum_way *const spectrum_gpu = &way;
