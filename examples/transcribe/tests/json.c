/* SPDX-License-Identifier: MIT */
/*
 * json.c - tests ../json.c: which bytes it escapes, and which it replaces.
 */
#include "json.h"

#include <stdlib.h>
#include <string.h>

static int check(const char *bytes, size_t n, const char *expected)
{
    char *got = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&got, &size);
    if (f == NULL)
        return 1;
    json_string(f, bytes, n);
    fclose(f);
    int wrong = strcmp(got, expected) != 0;
    if (wrong)
        fprintf(stderr, "expected %s, got %s\n", expected, got);
    free(got);
    return wrong;
}

#define CHECK(bytes, expected) check(bytes, sizeof(bytes) - 1, expected)

int main(void)
{
    int wrong = 0;
    wrong += CHECK("", "\"\"");
    wrong += CHECK("n.'s", "\"n.'s\"");
    wrong += CHECK("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
    wrong += CHECK("\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"");
    wrong += CHECK("a\0b", "\"a\\u0000b\"");
    wrong += CHECK("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\xA4",
                   "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\xA4\"");
    /* Latin-1, cut off, overlong, surrogate, past U+10FFFF */
    wrong += CHECK("\xFC.", "\"\\ufffd.\"");
    wrong += CHECK("\xE2\x82", "\"\\ufffd\\ufffd\"");
    wrong += CHECK("\xC0\xAF", "\"\\ufffd\\ufffd\"");
    wrong += CHECK("\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
    wrong += CHECK("\xF4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    return wrong != 0;
}
