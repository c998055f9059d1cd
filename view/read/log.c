/* SPDX-License-Identifier: MIT */
/* log.c - reads a decision log: its lines, times and comments. */
#include "view/read/log.h"

#include <stdlib.h>
#include <string.h>

#include "view/line.h"
#include "view/read/parts.h"

#define FIRST_TIME_MOST (INT64_MAX / 4) /* sums of two times are times */

/* ---- Fields ---- */

bool gpv_log_number(struct gpv_log *l, const char *key, uint64_t most, uint32_t *ret)
{
    struct gpv_word word;
    uint64_t number;

    if (!gpv_word_of(&l->rest, key, &word) || !gpv_word_number(word, most, &number)) {
        l->strange = true;
        return false;
    }
    *ret = (uint32_t)number;
    return true;
}

/* A time of the log as time of day, which none precedes. */
static int64_t time_of_day(const struct gpv_log *l, int64_t time)
{
    return time + l->offset > 0 ? time + l->offset : 1;
}

int64_t gpv_log_time(struct gpv_log *l, const char *key)
{
    struct gpv_word word;
    int64_t time;

    if (!gpv_word_of(&l->rest, key, &word) || gpv_word_is(word, "never"))
        return 0;
    if (gpv_word_time(word, &time))
        return time_of_day(l, time) < l->now ? time_of_day(l, time) : l->now;
    l->strange = true;
    return 0;
}

bool gpv_log_says(const struct gpv_log *l, const char *key, const char *value)
{
    struct gpv_word word;

    return gpv_word_of(&l->rest, key, &word) && gpv_word_is(word, value);
}

uint32_t gpv_log_keep(struct gpv_log *l, const char *text)
{
    uint32_t kept = gpv_keep(l->night, text, strlen(text));

    l->no_memory = l->no_memory || kept == GPV_NONE;
    return kept == GPV_NONE ? 0 : kept;
}

void gpv_log_added(struct gpv_log *l, int code)
{
    l->no_memory = l->no_memory || code < 0;
    l->strange = l->strange || code > 0;
}

bool gpv_log_room(struct gpv_log *l, void *rows, size_t *there, size_t n, size_t size)
{
    void **row = rows, *more;
    size_t room = 16;

    if (n <= *there)
        return true;
    while (room < n)
        room *= 2;
    more = realloc(*row, room * size);
    if (!more) {
        l->no_memory = true;
        return false;
    }
    memset((char *)more + *there * size, 0, (room - *there) * size);
    *row = more;
    *there = room;
    return true;
}

/* ---- Comments ---- */

static void read_clock(struct gpv_log *l, uint64_t log, struct gpv_word text)
{
    uint64_t wall;

    l->strange =
        l->first != 0 || log > FIRST_TIME_MOST || !gpv_word_number(text, FIRST_TIME_MOST, &wall);
    if (!l->strange)
        l->offset = (int64_t)wall - (int64_t)log;
}

static void read_host(struct gpv_log *l, struct gpv_word text)
{
    uint32_t kept = gpv_line_keep(l->night, text.at, text.size);

    l->no_memory = kept == GPV_NONE;
    l->night->host = l->no_memory ? 0 : kept;
}

/* Any other comment is for people. */
static void read_comment(struct gpv_log *l)
{
    struct gpv_word noun = gpv_word_next(&l->rest), digits = gpv_word_next(&l->rest);
    struct gpv_word word = gpv_word_next(&l->rest), text;
    uint64_t number;

    l->is_over = l->is_over || (gpv_word_is(noun, "end") && digits.size == 0);
    if (word.size == 0 || !gpv_word_number(digits, INT64_MAX, &number))
        return;
    if (l->rest.at < l->rest.end)
        l->rest.at++; /* further blanks are the text's */
    text = (struct gpv_word){ l->rest.at, (size_t)(l->rest.end - l->rest.at) };
    if (gpv_word_is(noun, "clock") && gpv_word_is(word, "wall"))
        read_clock(l, number, text);
    else if (gpv_word_is(noun, "host") && gpv_word_is(word, "name"))
        read_host(l, text);
    else if (gpv_word_is(noun, "device"))
        gpv_log_device_fact(l, number < GPV_NONE ? (uint32_t)number : GPV_NONE, word, text);
    else if (gpv_word_is(noun, "class"))
        gpv_log_class_fact(l, number < GPV_NONE ? (uint32_t)number : GPV_NONE, word, text);
    else if (gpv_word_is(noun, "task"))
        gpv_log_task_fact(l, number < GPV_NONE ? (uint32_t)number : GPV_NONE, word, text);
}

/* ---- Lines ---- */

static void read_fact(struct gpv_log *l)
{
    struct gpv_word word = gpv_word_next(&l->rest), text;

    if (gpv_word_is(word, "class")) {
        gpv_log_needs(l);
    } else if (gpv_word_is(word, "foreign")) {
        gpv_log_foreign(l);
    } else if (gpv_word_is(word, "adopt")) {
        gpv_log_adopt(l);
    } else if (gpv_word_is(word, "plan")) {
        if (gpv_word_of(&l->rest, "foreign_memory", &text))
            l->strange = !gpv_word_bytes(text, &l->foreign_memory);
        if (gpv_word_of(&l->rest, "foreign_load", &text))
            l->strange = l->strange || !gpv_word_number(text, UINT32_MAX, &l->foreign_load);
    } else {
        l->strange = !gpv_word_is(word, "device") && !gpv_word_is(word, "places") &&
                     !gpv_word_is(word, "observed") && !gpv_word_is(word, "observed_of") &&
                     !gpv_word_is(word, "class_set");
    }
}

static void read_close(struct gpv_log *l)
{
    l->is_closing = true;
}

static void read_cut(struct gpv_log *l)
{
    l->was_cut = true;
}

/* The frequent ones first. */
static const struct {
    const char *name;
    void (*read)(struct gpv_log *l); /* NULL: nothing of a night */
} lines[] = {
    { "decide", NULL },
    { "send", NULL },
    { "submit", gpv_log_submit },
    { "sent", gpv_log_sent },
    { "end", gpv_log_run },
    { "task", gpv_log_task },
    { "----", NULL },
    { "time", NULL },
    { "fact", read_fact },
    { "running", gpv_log_running },
    { "looked", NULL },
    { "LOOK", NULL },
    { "GRANT", gpv_log_grant },
    { "GRANT_ON", gpv_log_grant_on },
    { "started", gpv_log_started },
    { "ended", gpv_log_ended },
    { "progress", NULL },
    { "slot", gpv_log_slot },
    { "SEAT", gpv_log_seat },
    { "SEAT_ON", gpv_log_seat_on },
    { "came_back", gpv_log_came_back },
    { "declined", gpv_log_declined },
    { "REVOKE", gpv_log_revoke },
    { "device", gpv_log_device },
    { "pause", gpv_log_pause },
    { "drain", gpv_log_drain },
    { "return", gpv_log_return },
    { "remove", gpv_log_remove },
    { "class", gpv_log_class },
    { "close", read_close },
    { "cut", read_cut },
    { "set", NULL },
    { "begun", NULL },
    { "still", NULL },
    { "held", NULL },
    { "memory", NULL },
    { "keeper_up", NULL },
    { "setup_ok", NULL },
    { "sweeping", NULL },
    { "exited", NULL },
    { "keeper_gone", NULL },
    { "want", NULL },
    { "keeper_no", NULL },
    { "keeper_lost", NULL },
    { "spawner_gone", NULL },
    { "start_no", NULL },
    { "answered", NULL },
    { "spared", NULL },
    { "overdue", NULL },
    { "broke", NULL },
    { "room", NULL },
    { "claimed", NULL },
    { "cancel", NULL },
    { "survived", NULL },
    { "unsent", NULL },
    { "try", NULL },
    { "source", NULL },
    { "NOTE", NULL },
    { "START", NULL },
    { "HOLD", NULL },
    { "RECALL", NULL },
    { "READ_MEMORY", NULL },
    { "END", NULL },
    { "MAKE", NULL },
    { "DISMISS", NULL },
    { "ALARM", NULL },
    { "KILL", NULL },
    { "KILL_AT", NULL },
    { "GIVE_UP", NULL },
    { "JUDGE", NULL },
    { "DROP_SPAWNER", NULL },
    { "PROMISE", NULL },
};

/* Time does not go back. */
static void read_stamp(struct gpv_log *l, struct gpv_word stamp)
{
    struct gpv_word word = { stamp.at + 1, stamp.size - 1 };
    int64_t time;

    if (!gpv_word_time(word, &time) || time_of_day(l, time) < l->now) {
        l->strange = true;
        return;
    }
    l->now = time_of_day(l, time);
    l->first = l->first != 0 ? l->first : l->now;
}

static void read_words(struct gpv_log *l)
{
    struct gpv_word name = gpv_word_next(&l->rest);

    if (name.size && *name.at == '@') {
        read_stamp(l, name);
        name = gpv_word_next(&l->rest);
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        if (gpv_word_is(name, lines[i].name)) {
            if (lines[i].read && !l->strange)
                lines[i].read(l);
            return;
        }
    l->strange = true;
}

static void read_line(struct gpv_log *l, const char *line, size_t size)
{
    l->rest = (struct gpv_words){ line, line + size };
    l->strange = false;
    if (size == 0)
        return;
    if (*line == '#') {
        l->rest.at++;
        read_comment(l);
    } else {
        read_words(l);
    }
    l->night->unknown += l->strange;
}

int gpv_log_read(struct gpv_log *l, const char *text, size_t size)
{
    for (size_t at = 0; at < size && !l->no_memory;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        read_line(l, text + at, length);
        at += length + 1;
    }
    return l->no_memory ? -1 : 0;
}

/* ---- The whole log ---- */

struct gpv_log *gpv_log_new(struct gpv_night *n)
{
    struct gpv_log *l = calloc(1, sizeof(*l));

    if (l) {
        l->night = n;
        n->no_queue = true;
        l->foreign_memory = UINT64_C(1) << 30;
    }
    return l;
}

void gpv_log_free(struct gpv_log *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < GPV_LOG_CHUNKS; i++)
        free(l->chunk[i]);
    free(l->devices.row);
    free(l->slots.row);
    free(l->known.row);
    free(l->shapes.row);
    free(l->batches.row);
    free(l);
}

static void add_life(struct gpv_log *l)
{
    const char *text = l->is_over   ? ""
                       : l->was_cut ? "the log was cut here"
                                    : "the log has no end: its program was killed, or goes on";
    const struct gpv_life row = { l->first, l->now, gpv_log_keep(l, text), GPV_LIFE_OPENED };

    if (l->first != 0 && !l->no_memory)
        gpv_log_added(l, gpv_add_life(l->night, &row));
}

int gpv_log_end(struct gpv_log *l)
{
    gpv_log_end_tasks(l);
    gpv_log_end_places(l);
    add_life(l);
    l->night->to = l->now;
    return l->no_memory ? -1 : 0;
}
