/* SPDX-License-Identifier: MIT */
/*
 * sound.c - owns all calls of SpanDSP.  No file can include its headers together with those of
 * PocketSphinx, since both define int64.
 */
#include "sound.h"

#include <errno.h>
#include <spandsp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Reads the whole file.  The caller frees *ret_bytes. */
static int read_all(const char *path, uint8_t **ret_bytes, size_t *ret_n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return errno;
    int error = 0;
    struct stat st;
    uint8_t *bytes = NULL;
    if (fstat(fileno(f), &st) != 0) {
        error = errno;
    } else if (!S_ISREG(st.st_mode)) {
        error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    } else if (st.st_size > RECORDING_BYTES_MAX) {
        error = EFBIG;
    } else if (st.st_size == 0) {
        error = ENODATA;
    } else if ((bytes = malloc((size_t)st.st_size)) == NULL) {
        error = ENOMEM;
    } else {
        *ret_n = fread(bytes, 1, (size_t)st.st_size, f);
        error = ferror(f) || *ret_n == 0 ? EIO : 0;
    }
    fclose(f);
    if (error == 0)
        *ret_bytes = bytes;
    else
        free(bytes);
    return error;
}

static int decode_g722(const uint8_t *bytes, size_t n, struct sound *ret_sound)
{
    g722_decode_state_t *decoder = g722_decode_init(NULL, 64000, 0);
    int16_t *samples = malloc(n * 2 * sizeof *samples);
    if (decoder == NULL || samples == NULL) {
        if (decoder != NULL)
            g722_decode_free(decoder);
        free(samples);
        return ENOMEM;
    }
    int decoded = g722_decode(decoder, samples, bytes, (int)n);
    g722_decode_free(decoder);
    ret_sound->samples = samples;
    ret_sound->n = decoded > 0 ? (size_t)decoded : 0;
    return 0;
}

int sound_read_g722(struct sound *ret_sound, const char *path)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    int error = read_all(path, &bytes, &n);
    if (error == 0)
        error = decode_g722(bytes, n, ret_sound);
    free(bytes);
    return error;
}

void sound_free(struct sound *s)
{
    free(s->samples);
    s->samples = NULL;
    s->n = 0;
}
