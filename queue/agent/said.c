/* SPDX-License-Identifier: MIT */
/* said.c - finds the last line of an output, and cleans it. */
#include "queue/agent/said.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/utf8.h"

#define TAIL ((size_t)64 << 10)
enum { ESCAPE = 0x1b, BELL = 7, DELETE = 0x7f };

struct gpq_tail gpq_tail_read(const struct gpq_agent *a, const struct gpq_run_id *run)
{
    char path[GPQ_PATH], name[GPQ_RUN_NAME];
    struct gpq_tail tail = { NULL, 0 };
    gpq_run_name(name, run);
    int fd =
        gpq_path(path, "%s/logs/%s", a->state, name) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    tail.data = size > 0 ? malloc(TAIL) : NULL;
    ssize_t n =
        tail.data ? pread(fd, tail.data, TAIL, size > (off_t)TAIL ? size - (off_t)TAIL : 0) : 0;
    tail.size = n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        (void)close(fd);
    return tail;
}

/* Behind an escape sequence (ECMA-48): of colours and the cursor, of a title, or of two bytes. */
static const char *behind_escape(const char *at, const char *end)
{
    char kind = ++at < end ? *at++ : '\0';
    if (kind == '[') {
        while (at < end && *at >= 0x20 && *at < 0x40)
            at++;
        return at < end ? at + 1 : end;
    }
    if (kind != ']')
        return at;
    while (at < end && *at != BELL && *at != ESCAPE)
        at++;
    if (at < end && *at == ESCAPE) /* ESC \ ends a title */
        at++;
    return at < end ? at + 1 : end;
}

/* The bytes of the character at a place, if it is shown; else 0. */
static size_t shown(const char *at, const char *end)
{
    size_t n = 1;
    unsigned char first = (unsigned char)*at;
    if (first < 0x80)
        return first >= ' ' && first != DELETE;
    while (at + n < end && n < 4 && ((unsigned char)at[n] & 0xc0) == 0x80)
        n++;
    bool control = first == 0xc2 && n == 2 && (unsigned char)at[1] < 0xa0; /* C1 */
    return control || gpq_utf8_fault(at, n) < n ? 0 : n;
}

/* Writes the characters that a line shows, and returns their size. */
static size_t clean(const char *at, const char *end, char ret[GPQ_SAID])
{
    size_t used = 0;
    while (at < end) {
        if (*at == ESCAPE) {
            at = behind_escape(at, end);
            continue;
        }
        bool blank = *at == ' ' || *at == '\t';
        size_t n = blank ? 1 : shown(at, end);
        if (used + n > GPQ_SAID)
            break;
        if (n != 0 && (used != 0 || !blank)) {
            memcpy(ret + used, blank ? " " : at, n);
            used += n;
        }
        at += n != 0 ? n : 1;
    }
    while (used != 0 && ret[used - 1] == ' ')
        used--;
    return used;
}

char *gpq_said(const char *output, size_t size)
{
    char line[GPQ_SAID];
    while (size != 0) {
        size_t begin = --size; /* the end of a line, or the last byte of an output without one */
        size_t end = output[size] == '\n' || output[size] == '\r' ? size : size + 1;
        while (begin > 0 && output[begin - 1] != '\n' && output[begin - 1] != '\r')
            begin--;
        size_t used = clean(output + begin, output + end, line);
        if (used != 0)
            return strndup(line, used);
        size = begin;
    }
    return NULL;
}

char *gpq_said_by(const struct gpq_agent *a, const struct gpq_run_id *run)
{
    struct gpq_tail tail = gpq_tail_read(a, run);
    char *said = gpq_said(tail.data, tail.size);
    free(tail.data);
    return said;
}
