/* SPDX-License-Identifier: MIT */
/*
 * recording.c - owns the reading of WAVE.  It checks every length in a file against the bytes that
 * the file has.
 */
#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef SPECTROGRAM_G722
#include "../../transcribe/sound.h"
#endif

/* An hour of stereo at 48 kHz is smaller; a larger file is no recording of speech. */
enum { FILE_BYTES_MAX = 1 << 30 };

/* Parts of a RIFF file, all little-endian. */
enum { RIFF_BYTES = 12, CHUNK_BYTES = 8, FORMAT_BYTES = 16, SAMPLE_BYTES = 2 };
enum { FORMAT_PCM = 1, FORMAT_EXTENSIBLE = 0xFFFE, CHANNELS_MAX = 64 };

struct format {
    uint32_t tag, channels, rate, align, bits;
};

struct bytes {
    uint8_t *at;
    size_t n;
};

static uint32_t u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

/* Reads all of a regular file. */
static const char *read_all(struct bytes *ret_bytes, const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL)
        return strerror(errno);
    const char *why = NULL;
    struct stat st;
    struct bytes b = { 0 };
    if (fstat(fileno(f), &st) != 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "not a regular file";
    else if (st.st_size == 0)
        why = "the file is empty";
    else if (st.st_size > FILE_BYTES_MAX)
        why = "the file is larger than 1 GiB";
    else if ((b.at = malloc((size_t)st.st_size)) == NULL)
        why = "out of memory";
    else if ((b.n = fread(b.at, 1, (size_t)st.st_size, f)) == 0 || ferror(f))
        why = "it cannot be read";
    fclose(f);
    if (why == NULL)
        *ret_bytes = b;
    else
        free(b.at);
    return why;
}

/* Finds a chunk by its name.  Returns its bytes, cut at the end of the file; NULL for none. */
static const uint8_t *find_chunk(const struct bytes *b, const char *name, size_t *ret_n)
{
    size_t at = RIFF_BYTES;
    while (b->n - at >= CHUNK_BYTES) {
        const uint8_t *head = b->at + at;
        size_t left = b->n - at - CHUNK_BYTES, n = u32(head + 4);
        if (memcmp(head, name, 4) == 0) {
            *ret_n = n < left ? n : left;
            return head + CHUNK_BYTES;
        }
        n += n & 1; /* padded to an even length */
        if (n >= left)
            return NULL;
        at += CHUNK_BYTES + n;
    }
    return NULL;
}

static const char *read_format(struct format *ret_format, const struct bytes *b)
{
    size_t n = 0;
    const uint8_t *p = find_chunk(b, "fmt ", &n);
    if (p == NULL || n < FORMAT_BYTES)
        return "WAVE without a format";
    struct format f = { u16(p), u16(p + 2), u32(p + 4), u16(p + 12), u16(p + 14) };
    if (f.tag == FORMAT_EXTENSIBLE && n >= 26)
        f.tag = u16(p + 24); /* the first bytes of its GUID */
    if (f.tag != FORMAT_PCM || f.bits != 8 * SAMPLE_BYTES)
        return "WAVE that is not PCM of 16 bits";
    if (f.channels < 1 || f.channels > CHANNELS_MAX || f.align != f.channels * SAMPLE_BYTES ||
        f.rate == 0)
        return "WAVE with a format that contradicts itself";
    *ret_format = f;
    return NULL;
}

/* Returns the mean of one frame's channels. */
static int16_t mix(const uint8_t *frame, uint32_t channels)
{
    int32_t sum = 0;
    for (uint32_t c = 0; c < channels; c++)
        sum += (int16_t)u16(frame + (size_t)c * SAMPLE_BYTES);
    return (int16_t)(sum / (int32_t)channels);
}

static const char *read_wave(struct samples *ret_samples, const struct bytes *b)
{
    struct format f;
    const char *why = read_format(&f, b);
    if (why != NULL)
        return why;
    size_t bytes = 0;
    const uint8_t *data = find_chunk(b, "data", &bytes);
    if (data == NULL || bytes < f.align)
        return "WAVE without samples";
    struct samples s = { .n = bytes / f.align, .rate = f.rate };
    s.at = malloc(s.n * sizeof *s.at);
    if (s.at == NULL)
        return "out of memory";
    for (size_t i = 0; i < s.n; i++)
        s.at[i] = mix(data + i * f.align, f.channels);
    *ret_samples = s;
    return NULL;
}

#ifdef SPECTROGRAM_G722
static const char *read_g722(struct samples *ret_samples, const char *path)
{
    struct sound sound;
    int error = sound_read_g722(&sound, path);
    if (error != 0)
        return strerror(error);
    *ret_samples = (struct samples){ sound.samples, sound.n, SAMPLES_PER_SECOND };
    return NULL;
}
#else
static const char *read_g722(struct samples *ret_samples, const char *path)
{
    (void)ret_samples, (void)path;
    return "G.722, which this program was built without: it needs SpanDSP";
}
#endif

static int is_g722(const char *path)
{
    static const char suffix[] = ".g722";
    size_t n = strlen(path), k = sizeof suffix - 1;
    return n > k && strcmp(path + n - k, suffix) == 0;
}

const char *recording_read(struct samples *ret_samples, const char *path)
{
    struct bytes b = { 0 };
    const char *why = read_all(&b, path);
    if (why != NULL)
        return why;
    if (b.n >= RIFF_BYTES && memcmp(b.at, "RIFF", 4) == 0 && memcmp(b.at + 8, "WAVE", 4) == 0)
        why = read_wave(ret_samples, &b);
    else if (is_g722(path))
        why = read_g722(ret_samples, path);
    else
        why = "neither WAVE nor a .g722 file";
    free(b.at);
    return why;
}

void recording_free(struct samples *s)
{
    free(s->at);
    *s = (struct samples){ 0 };
}
