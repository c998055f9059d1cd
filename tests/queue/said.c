/* SPDX-License-Identifier: MIT */
/* said.c - the last line of an output. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/said.h"
#include "queue/utf8.h"

#define TEXT(text) text, sizeof(text) - 1

static void said(const char *output, size_t size, const char *expected)
{
    char *copy = malloc(size + 1); /* with nothing behind it */
    T_CHECK(copy);
    memcpy(copy, output, size);
    char *line = gpq_said(copy, size);
    if (strcmp(line ? line : "(none)", expected) != 0)
        T_FAIL("\"%.*s\": \"%s\", not \"%s\"", (int)size, output, line ? line : "(none)", expected);
    free(line);
    free(copy);
}

T_CASE(lines)
{
    said(TEXT("Traceback:\n  x\nKeyError: 'x5'\n"), "KeyError: 'x5'");
    said(TEXT("one\ntwo"), "two");
    said(TEXT("one\n\n \t\r\n\n"), "one");
    said(TEXT("10 %\r20 %\r30 %"), "30 %");
    said(TEXT("done\r\n"), "done");
    said(TEXT("  a\tb  \n"), "a b");
    said(TEXT(""), "(none)");
    said(TEXT("\n\n"), "(none)");
    said(TEXT("\n"), "(none)");
    said(TEXT("x"), "x");
}

T_CASE(control_characters)
{
    said(TEXT("\x1b[1;31mError:\x1b[0m no\x07 file\x7f\n"), "Error: no file");
    said(TEXT("\x1b]0;title\x07text\n"), "text");
    said(TEXT("\x1b]0;title\x1b\\text\n"), "text");
    said(TEXT("\x1b(Bplain"), "Bplain"); /* of two bytes, and no more */
    said(TEXT("text\x1b["), "text");
    said(TEXT("text\x1b]never ends"), "text");
    said(TEXT("text\x1b"), "text");
    said(TEXT("line\n\x1b[2K\x1b[0m\n"), "line");
    said(TEXT("a\0b"), "ab");
    said(TEXT("a\xc2\x9b"
              "31mb"),
         "a31mb");
}

T_CASE(characters)
{
    said(TEXT("Stra\xc3\x9f"
              "e \xe2\x9c\x95"),
         "Stra\xc3\x9f"
         "e \xe2\x9c\x95");
    said(TEXT("\xff\xfe text \xc3"), "text");
    said(TEXT("\xc3(\xe2\x9cx"), "(x");
}

/* A long line is cut behind a whole character. */
T_CASE(long_line)
{
    char output[1000];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(output, 'x', sizeof(output));
        for (size_t i = shift; i + 3 <= sizeof(output); i += 3)
            memcpy(output + i, "\xe2\x9c\x95", 3);
        char *line = gpq_said(output, sizeof(output));
        T_CHECK(line);
        T_CMP(strlen(line), <=, GPQ_SAID);
        T_CMP(strlen(line), >, GPQ_SAID - 3);
        T_EQ(gpq_utf8_fault(line, strlen(line)), strlen(line));
        free(line);
    }
}

/* Any bytes give a line that a view can show. */
T_CASE(any_bytes)
{
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char output[64];
        size_t size = (size_t)round % sizeof(output);
        for (size_t i = 0; i < size; i++) {
            static const unsigned char often[] = { 0x1b, '[',  ']',  '\\', 7,
                                                   '\n', '\r', 0xc2, 0x80, 0xe2 };
            state = state * 6364136223846793005u + 1442695040888963407u;
            output[i] =
                state >> 63 ? often[(state >> 40) % sizeof(often)] : (unsigned char)(state >> 50);
        }
        char *line = gpq_said((const char *)output, size);
        for (char *at = line; at && *at; at++)
            T_CHECK((unsigned char)*at >= ' ' && *at != 0x7f);
        if (line)
            T_EQ(gpq_utf8_fault(line, strlen(line)), strlen(line));
        T_CHECK(!line || *line);
        free(line);
    }
}
