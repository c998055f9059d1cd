/* SPDX-License-Identifier: MIT */
/* plain.c - characters of UTF-8, and those that steer a terminal. */
#include "view/plain.h"

#include <string.h>

size_t gpv_character(const char *text, uint32_t *ret)
{
    /* of each length: no smaller character has it */
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *s = (const unsigned char *)text;
    size_t n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return n;
}

bool gpv_steers(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

char *gpv_escape(uint32_t c, char ret[GPV_ESCAPE])
{
    static const char letters[] = "\n\r\t", names[] = "nrt";
    const char *letter = c ? strchr(letters, (int)c) : NULL;

    if (letter)
        snprintf(ret, GPV_ESCAPE, "\\%c", names[letter - letters]);
    else
        snprintf(ret, GPV_ESCAPE, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
    return ret;
}

void gpv_put_plain(FILE *f, const char *text, char twice)
{
    char escape[GPV_ESCAPE];

    while (*text) {
        uint32_t c;
        size_t n = gpv_character(text, &c);
        if (*text == twice)
            fputc(twice, f);
        if (n == 0)
            fputs("\xef\xbf\xbd", f);
        else if (gpv_steers(c))
            fputs(gpv_escape(c, escape), f);
        else
            fwrite(text, 1, n, f);
        text += n ? n : 1;
    }
}
