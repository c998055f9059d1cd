/* SPDX-License-Identifier: MIT */
/* client_log.c - the output of a command, as a file or a pipe gets it. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/client/log.h"

#define NAME "logs/1.1.1"

/* Standard output in a file, until `shown` reads it. */
static int begin(void)
{
    fflush(stdout);
    int before = dup(STDOUT_FILENO), fd = open("shown", O_RDWR | O_CREAT | O_TRUNC, 0600);
    T_CHECK(before >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
    close(fd);
    return before;
}

static size_t shown(int before, char *text, size_t size)
{
    fflush(stdout);
    T_CHECK(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    int fd = open("shown", O_RDONLY);
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    T_CHECK(n >= 0);
    text[n] = '\0';
    return (size_t)n;
}

static void append(const char *data, size_t size)
{
    (void)mkdir("logs", 0700);
    int fd = open(NAME, O_WRONLY | O_CREAT | O_APPEND, 0600);
    T_EQ(write(fd, data, size), (ssize_t)size);
    close(fd);
}

/* What is printed of a log that grows in these pieces. */
static size_t print(const char *data, size_t size, size_t piece, char *text, size_t room)
{
    struct gpq_log l;
    (void)unlink(NAME);
    int before = begin();
    gpq_log_open(&l, ".", "1.1", 1);
    T_EQ(gpq_log_print(&l), -ENOENT); /* there is none yet */
    for (size_t at = 0; at < size; at += piece) {
        append(data + at, size - at < piece ? size - at : piece);
        T_EQ(gpq_log_print(&l), 0);
    }
    gpq_log_close(&l);
    return shown(before, text, room);
}

T_CASE(lines)
{
    static const struct {
        const char *log, *text;
    } logs[] = {
        { "", "" },
        { "a\nb\n", "a\nb\n" },
        { "a", "a\n" },
        { "a\n\n", "a\n\n" },
        { "10 %\r20 %\rdone\n", "done\n" },
        { "long\rx\n", "x\n" },
        { "a\r\nb\r\n", "a\nb\n" },
        { "a\r\r\nb", "a\nb\n" },
        { "50 %\r", "50 %\n" },
        { "\r\n\rz", "\nz\n" },
        { "\x1b[31mred\x1b[0m \xff\n", "\x1b[31mred\x1b[0m \xff\n" },
    };
    char text[256];
    for (size_t i = 0; i < T_LENGTH(logs); i++)
        for (size_t piece = 1; piece < 4; piece++) {
            (void)print(logs[i].log, strlen(logs[i].log), piece, text, sizeof(text));
            T_TEXT(text, logs[i].text);
        }
}

T_CASE(long_lines_are_printed_in_parts)
{
    size_t size = 3 << 20;
    char *log = malloc(size), *text = malloc(size + 2);
    T_CHECK(log && text);
    memset(log, 'x', size);
    T_EQ(print(log, size, size, text, size + 2), size + 1);
    T_CHECK(memcmp(log, text, size) == 0 && text[size] == '\n');
    free(log);
    free(text);
}

/* The runner frees whole blocks. */
T_CASE(freed_blocks_are_said)
{
    enum { BLOCK = 65536 };
    char *text = calloc(1, 2 * BLOCK), *data = malloc(BLOCK);
    struct gpq_log l;
    T_CHECK(text && data);
    memset(data, 'x', BLOCK);
    append(data, BLOCK);
    int fd = open(NAME, O_WRONLY);
    T_EQ(pwrite(fd, "end\n", 4, 16 << 20), 4);
    close(fd);
    int before = begin();
    gpq_log_open(&l, ".", "1.1", 1);
    T_EQ(gpq_log_print(&l), 0);
    gpq_log_close(&l);
    (void)shown(before, text, 2 * BLOCK);
    T_CHECK(memcmp(text, data, BLOCK) == 0);
    T_TEXT(text + BLOCK, "\n[16711680 bytes were dropped here]\nend\n");
    free(text);
    free(data);
}

T_CASE(last_lines)
{
    static const struct {
        const char *log, *text;
    } logs[] = {
        { "", "" },
        { "\n \t\r\n", "" },
        { "one", "one" },
        { "one\ntwo\n\n", "two" },
        { "one\r50 %\r100 %\n", "100 %" },
        { "KeyError: '\x1bx'\n", "KeyError: '\x1bx'" }, /* printed as \x1b */
    };
    char text[32], *tail = malloc(10000);
    for (size_t i = 0; i < T_LENGTH(logs); i++) {
        (void)unlink(NAME);
        append(logs[i].log, strlen(logs[i].log));
        gpq_log_last_line(".", "1.1", 1, text, sizeof(text));
        T_TEXT(text, logs[i].text);
    }
    gpq_log_last_line(".", "1.1", 2, text, sizeof(text)); /* none there */
    T_TEXT(text, "");
    T_CHECK(tail);
    memset(tail, 'y', 10000);
    append(tail, 10000);
    gpq_log_last_line(".", "1.1", 1, text, sizeof(text));
    T_EQ(strlen(text), sizeof(text) - 1);
    free(tail);
}
