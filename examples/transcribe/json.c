/* SPDX-License-Identifier: MIT */
/*
 * json.c - owns the escapes of JSON strings (RFC 8259), and the check for UTF-8 (RFC 3629).
 */
#include "json.h"

#include <string.h>

static int is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* Returns the length of the UTF-8 sequence that starts at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        return n >= 2 && is_tail(s[1]) ? 2 : 0;
    if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        if (n < 3 || !is_tail(s[1]) || !is_tail(s[2]))
            return 0;
        int overlong = s[0] == 0xE0 && s[1] < 0xA0;
        int surrogate = s[0] == 0xED && s[1] > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        if (n < 4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
            return 0;
        int overlong = s[0] == 0xF0 && s[1] < 0x90;
        int too_large = s[0] == 0xF4 && s[1] > 0x8F;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

static void put_ascii(FILE *f, unsigned char c)
{
    if (c == '"' || c == '\\')
        fprintf(f, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", f);
    else if (c == '\t')
        fputs("\\t", f);
    else if (c < 0x20 || c == 0x7F)
        fprintf(f, "\\u%04x", c);
    else
        fputc(c, f);
}

void json_string(FILE *f, const char *bytes, size_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;
    fputc('"', f);
    for (size_t i = 0; i < n;) {
        size_t length = utf8_length(s + i, n - i);
        if (length == 0)
            fputs("\\ufffd", f);
        else if (length == 1)
            put_ascii(f, s[i]);
        else
            fwrite(s + i, 1, length, f);
        i += length == 0 ? 1 : length;
    }
    fputc('"', f);
}

void json_field(FILE *f, const char *key, const char *text)
{
    fprintf(f, ", \"%s\": ", key);
    json_string(f, text, strlen(text));
}
