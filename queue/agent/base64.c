/* SPDX-License-Identifier: MIT */
/* base64.c - four digits for three bytes. */
#include "queue/agent/base64.h"

#include <stdlib.h>
#include <string.h>

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

json_t *gpq_bytes_text(struct gpq_bytes bytes)
{
    if (bytes.size != 0 && memchr(bytes.data, 0, bytes.size))
        return NULL;
    return json_stringn(bytes.size != 0 ? bytes.data : "", bytes.size);
}

json_t *gpq_base64_json(struct gpq_bytes bytes)
{
    const unsigned char *in = bytes.data;
    char *text = malloc((bytes.size + 2) / 3 * 4 + 1), *out = text;
    if (!text)
        return NULL;
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t three = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                         (left > 2 ? in[i + 2] : 0U);
        for (int k = 0; k < 4; k++)
            *out++ = digit[three >> (18 - 6 * k) & 63];
        if (left < 3)
            out[-1] = '=';
        if (left < 2)
            out[-2] = '=';
    }
    json_t *json = json_stringn(text, (size_t)(out - text));
    free(text);
    return json;
}

/* The value of four digits, of which the last `pads` are '='.  False: they are none. */
static bool read_four(const char *text, int pads, uint32_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        const char *at = text[i] != '\0' ? strchr(digit, text[i]) : NULL;
        if (i >= 4 - pads ? text[i] != '=' : !at)
            return false;
        *ret = *ret << 6 | (i >= 4 - pads ? 0 : (uint32_t)(at - digit));
    }
    return true;
}

bool gpq_base64_read(const char *text, size_t length, void *ret, size_t *ret_size)
{
    unsigned char *to = ret;
    if (length % 4 != 0)
        return false;
    for (size_t i = 0; i < length; i += 4) {
        bool last = i + 4 == length;
        int pads = !last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        uint32_t three;
        if (!read_four(text + i, pads, &three) || (three & ((1U << 8 * pads) - 1)) != 0)
            return false;
        for (int k = 0; k < 3 - pads; k++)
            *to++ = (unsigned char)(three >> (16 - 8 * k));
    }
    *ret_size = (size_t)(to - (unsigned char *)ret);
    return true;
}
