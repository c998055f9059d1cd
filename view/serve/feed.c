/* SPDX-License-Identifier: MIT */
/* feed.c - lines of standard input as snapshots, and snapshots as frames. */
#include "view/serve/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINUTE INT64_C(60000000000)

enum { BLOCK = 64 * 1024, BLOCKS = 64, LINE_MOST = 4 * 1024 * 1024 };

/* ---- Frames ---- */

void gpv_frame_drop(struct gpv_frame *frame)
{
    if (!frame || --frame->users > 0)
        return;
    free(frame->text);
    free(frame);
}

static struct gpv_frame *make_frame(const struct gpv_snapshot *s)
{
    struct gpv_frame *frame = calloc(1, sizeof(*frame));
    FILE *f = frame ? open_memstream(&frame->text, &frame->size) : NULL;
    if (!f) {
        free(frame);
        return NULL;
    }
    frame->users = 1;
    fputs("data: ", f);
    gpv_snapshot_write(s, f);
    fputs("\n\n", f);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) {
        gpv_frame_drop(frame);
        return NULL;
    }
    return frame;
}

struct gpv_frame *gpv_feed_frame(struct gpv_feed *f, bool full)
{
    struct gpv_frame **frame = full ? &f->full : &f->small;
    if (!*frame) {
        struct gpv_snapshot shown = f->newest; /* borrowed */
        if (!full)
            shown.history = NULL;
        *frame = make_frame(&shown);
    }
    if (*frame)
        (*frame)->users++;
    return *frame;
}

static void drop_frames(struct gpv_feed *f)
{
    gpv_frame_drop(f->small);
    gpv_frame_drop(f->full);
    f->small = f->full = NULL;
}

/* ---- Lines ---- */

/* A line that is no snapshot, such as one of a much later version, is left out. */
static void take_snapshot(struct gpv_feed *f, const char *line, size_t size)
{
    struct gpv_snapshot next;
    if (gpv_snapshot_read(&next, line, size) < 0)
        return;
    gpv_now_carry(&f->newest, &next);
    gpv_snapshot_free(&f->newest);
    f->newest = next;
    f->number++;
    f->minute = (uint64_t)(next.time / MINUTE);
    drop_frames(f);
}

static void take_line(struct gpv_feed *f, const char *line, size_t size)
{
    if (f->begun)
        take_snapshot(f, line, size);
    else
        snprintf(f->token, sizeof(f->token), "%.*s", (int)(size < 63 ? size : 63), line);
    f->begun = true;
}

static void take_lines(struct gpv_feed *f)
{
    size_t from = 0;
    for (;;) {
        char *newline = memchr(f->line + from, '\n', f->used - from);
        if (!newline)
            break;
        size_t to = (size_t)(newline - f->line);
        if (!f->skips)
            take_line(f, f->line + from, to - from);
        f->skips = false;
        from = to + 1;
    }
    f->used -= from;
    memmove(f->line, f->line + from, f->used);
    if (f->used < LINE_MOST)
        return;
    f->skips = true;
    f->used = 0;
}

/* As gpv_feed_read, at most a block of it; 2: there is no more at present. */
static int read_block(struct gpv_feed *f, int fd)
{
    if (f->room - f->used < BLOCK) {
        size_t room = f->room ? f->room * 2 : 2 * (size_t)BLOCK;
        char *larger = realloc(f->line, room);
        if (!larger)
            return -1;
        f->line = larger;
        f->room = room;
    }
    ssize_t n = read(fd, f->line + f->used, f->room - f->used);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 2 : 0;
    f->used += (size_t)n;
    take_lines(f);
    return 1;
}

int gpv_feed_read(struct gpv_feed *f, int fd)
{
    int code = 1;
    for (int i = 0; i < BLOCKS && code == 1; i++)
        code = read_block(f, fd);
    return code < 1 ? code : 1;
}

void gpv_feed_free(struct gpv_feed *f)
{
    drop_frames(f);
    gpv_snapshot_free(&f->newest);
    free(f->line);
}
