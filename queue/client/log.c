/* SPDX-License-Identifier: MIT */
/* log.c - the output of a command. */
#include "queue/client/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 65536, TAIL = 4096, LINE_MOST = 1 << 20 };

void gpq_log_open(struct gpq_log *l, const char *state, const char *task, int64_t attempt)
{
    *l = (struct gpq_log){ .fd = -1, .raw = isatty(STDOUT_FILENO) };
    if (gpq_path(l->path, "%s/logs/%s.%" PRIi64, state, task, attempt) < 0)
        l->path[0] = '\0';
}

/* ---- Lines without what was overwritten ---- */

static void put_line(struct gpq_log *l, bool end)
{
    if (l->used > 0)
        fwrite(l->line, 1, l->used, stdout);
    if (end)
        putchar('\n');
    l->used = 0;
    l->returned = false;
}

/* A line that is too long for memory is printed in parts. */
static void keep(struct gpq_log *l, char c)
{
    if (l->used == l->room) {
        size_t room = l->room ? 2 * l->room : TAIL;
        char *line = room <= LINE_MOST ? realloc(l->line, room) : NULL;
        if (line) {
            l->line = line;
            l->room = room;
        } else if (l->room == 0) {
            putchar(c);
            return;
        } else {
            put_line(l, false);
        }
    }
    l->line[l->used++] = c;
}

static void put_byte(struct gpq_log *l, char c)
{
    if (c == '\n') {
        put_line(l, true);
    } else if (c == '\r') {
        l->returned = true;
    } else {
        if (l->returned)
            l->used = 0;
        l->returned = false;
        keep(l, c);
    }
}

static void put_bytes(struct gpq_log *l, const char *data, size_t size)
{
    if (l->raw)
        fwrite(data, 1, size, stdout);
    for (size_t i = 0; !l->raw && i < size; i++)
        put_byte(l, data[i]);
}

/* ---- The file ---- */

/* Skips blocks that the runner has freed.  How many bytes lie behind and before the next ones, at
 * most a piece. */
static size_t skip_hole(struct gpq_log *l)
{
    off_t data = lseek(l->fd, (off_t)l->read, SEEK_DATA);
    if (data < 0)
        return errno == EINVAL ? PIECE : 0; /* the file system knows no holes; the end */
    if ((uint64_t)data > l->read) {
        if (!l->raw && l->used > 0)
            put_line(l, true);
        printf("[%" PRIu64 " bytes were dropped here]\n", (uint64_t)data - l->read);
        l->read = (uint64_t)data;
    }
    off_t hole = lseek(l->fd, data, SEEK_HOLE);
    return hole > data && hole - data < PIECE ? (size_t)(hole - data) : PIECE;
}

int gpq_log_print(struct gpq_log *l)
{
    char data[PIECE];
    if (l->fd < 0)
        l->fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (l->fd < 0)
        return -errno;
    for (;;) {
        size_t size = skip_hole(l); /* moves l->read */
        ssize_t n = pread(l->fd, data, size, (off_t)l->read);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        put_bytes(l, data, (size_t)n);
        l->read += (uint64_t)n;
    }
    fflush(stdout);
    return 0;
}

void gpq_log_close(struct gpq_log *l)
{
    if (l->used > 0)
        put_line(l, true);
    free(l->line);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->line = NULL;
}

/* ---- The last line ---- */

void gpq_log_last_line(const char *state, const char *task, int64_t attempt, char *ret, size_t size)
{
    struct gpq_log l;
    char tail[TAIL + 1];
    size_t used = 0;
    ret[0] = '\0';
    gpq_log_open(&l, state, task, attempt);
    l.fd = open(l.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (l.fd < 0)
        return;
    off_t end = lseek(l.fd, 0, SEEK_END);
    ssize_t n = pread(l.fd, tail, TAIL, end > TAIL ? end - TAIL : 0);
    close(l.fd);
    while (n > 0 && strchr("\r\n \t", tail[n - 1]))
        n--;
    if (n <= 0)
        return;
    tail[n] = '\0';
    const char *line = tail + n;
    while (line > tail && line[-1] != '\n' && line[-1] != '\r')
        line--;
    for (; *line && used + 1 < size; line++)
        ret[used++] = *line;
    ret[used] = '\0';
}
