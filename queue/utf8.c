/* SPDX-License-Identifier: MIT */
/* utf8.c - whether bytes are UTF-8. */
#include "queue/utf8.h"

#include <stdint.h>
#include <string.h>

/* Returns the size of the character, or 0. */
static size_t character(const unsigned char *at, size_t left)
{
    unsigned char first = at[0], least = 0x80, most = 0xbf; /* of the second byte */
    size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (size == 1)
        return 1;
    if (first < 0xc2 || first > 0xf4 || size > left)
        return 0;
    if (first == 0xe0)
        least = 0xa0; /* a shorter form would do */
    else if (first == 0xed)
        most = 0x9f; /* surrogates */
    else if (first == 0xf0)
        least = 0x90; /* a shorter form would do */
    else if (first == 0xf4)
        most = 0x8f; /* above U+10FFFF */
    if (at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

size_t gpq_utf8_fault(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        uint64_t eight;
        if (size - at >= sizeof(eight)) {
            memcpy(&eight, text + at, sizeof(eight));
            if (!(eight & UINT64_C(0x8080808080808080))) {
                at += sizeof(eight);
                continue;
            }
        }
        size_t n = character((const unsigned char *)text + at, size - at);
        if (n == 0)
            break;
        at += n;
    }
    return at;
}

void gpq_utf8_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        size_t n = character(at, strlen((const char *)at));
        if (n == 0 || *at < ' ' || *at == 0x7f)
            *at = '?';
        at += n ? n : 1;
    }
}
