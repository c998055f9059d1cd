/* SPDX-License-Identifier: MIT */
/* night.c - reads the records of a night: from the queue, a recording, or a decision log. */
#include "night.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/line.h"
#include "view/read/log.h"

#ifdef GPQ_CLIENT
#include "queue/client/option.h"
#include "queue/client/records.h"
#include "queue/client/session.h"
#endif

int night_no_memory(const struct call *call)
{
    fprintf(stderr, "gpudispatch: %s: out of memory\n", call->verb->name);
    return EXIT_FAILED;
}

/* ---- A recording, or a decision log ---- */

enum { BLOCK = 4 * GPV_LINE_MOST }; /* holds any line that counts */

struct recording {
    const char *name;
    int fd;
    char *block;
    size_t used;
    bool begun;          /* its first line was there */
    struct gpv_log *log; /* NULL: it has the lines of records */
    bool skips; /* the rest of a line that is too long */
};

static int say(const struct call *call, const char *name, const char *why)
{
    fprintf(stderr, "gpudispatch: %s: %s: %s\n", call->verb->name, name, why);
    return EXIT_FAILED;
}

#define FIRST_OF_RECORDS "records\t"

static bool begins_with(const struct recording *r, const char *first)
{
    return r->used >= strlen(first) && memcmp(r->block, first, strlen(first)) == 0;
}

/* A file of another kind is noticed at its first bytes. */
static int begin(const struct call *call, struct recording *r, struct gpv_night *night)
{
    r->begun = true;
    if (begins_with(r, FIRST_OF_RECORDS))
        return 0;
    if (!begins_with(r, GPV_LOG_FIRST))
        return say(call, r->name,
                   "not a recording, which gpudispatch report --records writes, nor a "
                   "decision_log");
    r->log = gpv_log_new(night);
    return r->log ? 0 : night_no_memory(call);
}

static int take_text(struct recording *r, struct gpv_night *night, const char *text, size_t size)
{
    return r->log ? gpv_log_read(r->log, text, size) : gpv_lines_read(night, text, size);
}

/* Adds the whole lines of the block, and leaves the rest.  0, or -1 without memory. */
static int take_lines(struct recording *r, struct gpv_night *night)
{
    char *newline = memrchr(r->block, '\n', r->used);
    char *from = r->block, *to = newline ? newline + 1 : r->block;

    if (r->skips && newline) {
        from = (char *)memchr(r->block, '\n', r->used) + 1;
        r->skips = false;
    }
    if (!newline && r->used == BLOCK) {
        night->unknown += !r->skips;
        r->skips = true;
        r->used = 0;
        return 0;
    }
    if (take_text(r, night, from, (size_t)(to - from)))
        return -1;
    r->used -= (size_t)(to - r->block);
    memmove(r->block, to, r->used);
    return 0;
}

/* The last line may lack its newline. */
static int take_rest(struct recording *r, struct gpv_night *night)
{
    if (!r->skips && take_text(r, night, r->block, r->used))
        return -1;
    return r->log ? gpv_log_end(r->log) : 0;
}

static int read_block(struct recording *r, ssize_t *ret)
{
    do
        *ret = read(r->fd, r->block + r->used, BLOCK - r->used);
    while (*ret < 0 && errno == EINTR);
    r->used += *ret > 0 ? (size_t)*ret : 0;
    return *ret < 0 ? errno : 0;
}

static int read_lines(const struct call *call, struct recording *r, struct gpv_night *night)
{
    ssize_t n = 1;

    while (n > 0) {
        int error = read_block(r, &n), status;
        if (error)
            return say(call, r->name, strerror(error));
        if (!r->begun && n > 0 && r->used < sizeof GPV_LOG_FIRST)
            continue; /* a pipe may give a few bytes at a time */
        status = r->begun ? 0 : begin(call, r, night);
        if (status)
            return status;
        if (n > 0 ? take_lines(r, night) : take_rest(r, night))
            return night_no_memory(call);
    }
    return 0;
}

static int read_recording(const struct call *call, struct gpv_night *night)
{
    const char *name = call->value[OPTION_FROM];
    bool is_input = !strcmp(name, "-");
    struct recording r = { .name = is_input ? "standard input" : name };
    int status;

    r.fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (r.fd < 0)
        return say(call, r.name, strerror(errno));
    r.block = malloc(BLOCK);
    status = r.block ? read_lines(call, &r, night) : night_no_memory(call);
    free(r.block);
    if (status == 0 && !r.log && night->to == 0) /* the line `now` sets it */
        (void)say(call, r.name, "the recording is cut: its last line is missing");
    gpv_log_free(r.log);
    if (!is_input)
        (void)close(r.fd);
    if (status == 0 && gpv_night_end(night, 0))
        status = night_no_memory(call);
    return status;
}

/* ---- The queue ---- */

#ifdef GPQ_CLIENT

#define DAY (UINT64_C(24) * 3600 * 1000000000)

static int add_lines(const char *lines, size_t size, void *user)
{
    return gpv_lines_read(user, lines, size) ? gpq_say(EXIT_FAILED, "no memory") : 0;
}

/* The batches that the operands name, and their time. */
struct asked {
    uint32_t *id;
    size_t n;
    uint64_t from, to; /* to 0: they go on */
    bool over;
};

/* From the first batch that was made to the last end. */
static void set_span(const struct gpv_night *night, struct asked *ret)
{
    ret->over = night->over;
    ret->to = night->over ? (uint64_t)night->to : 0;
    for (size_t i = 0; i < night->batches.n; i++) {
        const struct gpv_batch *b = &night->batches.row[i];
        uint64_t made = (uint64_t)b->made, ended = (uint64_t)b->ended;
        ret->id[ret->n++] = b->id;
        ret->from = i == 0 || made < ret->from ? made : ret->from;
        ret->to = night->over && ended > ret->to ? ended : ret->to;
    }
}

/* Lines of the batches and their attempts.  Without the others the last time is their last end. */
static int add_own(const char *lines, size_t size, void *user)
{
    static const char *const own[] = { "batch\t", "attempt\t" };
    const char *all = lines + size;

    for (const char *end; lines < all; lines = end) {
        const char *newline = memchr(lines, '\n', (size_t)(all - lines));
        end = newline ? newline + 1 : all;
        for (size_t i = 0; i < 2; i++)
            if ((size_t)(end - lines) > strlen(own[i]) && !memcmp(lines, own[i], strlen(own[i])) &&
                gpv_lines_read(user, lines, (size_t)(end - lines)))
                return gpq_say(EXIT_FAILED, "no memory");
    }
    return 0;
}

static int find_asked(const struct call *call, struct asked *ret)
{
    struct gpv_night *night = gpv_night_new();
    int status = night ? gpq_records_read(call, 0, false, add_own, night) : night_no_memory(call);

    if (status == 0) {
        ret->id = calloc(night->batches.n + 1, sizeof *ret->id);
        if (!ret->id || gpv_night_end(night, 0))
            status = night_no_memory(call);
        else
            set_span(night, ret);
    }
    gpv_night_free(night);
    return status;
}

/* All rows of the time, also those of other batches. */
static int read_span(const struct call *call, uint64_t from, uint64_t to, struct gpv_night *night)
{
    struct call all = *call;
    int status;

    all.operands = 0;
    gpv_night_limit(night, (int64_t)from, (int64_t)to);
    status = gpq_records_read(&all, from, gpv_wants_name(night, GPV_OK), add_lines, night);
    if (status == 0 && gpv_night_end(night, 0))
        return night_no_memory(call);
    return status;
}

static int read_batches(const struct call *call, uint64_t since, struct gpv_night *night)
{
    struct asked asked = { 0 };
    int status = find_asked(call, &asked);

    if (status == 0)
        status = read_span(call, since > asked.from ? since : asked.from, asked.to, night);
    for (size_t i = 0; status == 0 && i < asked.n; i++) {
        uint32_t at = gpv_find_batch(night, asked.id[i]);
        if (at != GPV_NONE)
            night->batches.row[at].asked = true;
        night->over = asked.over;
    }
    free(asked.id);
    return status;
}

static int read_queue(const struct call *call, struct gpv_night *night)
{
    uint64_t since = 0;
    int status = gpq_option_since(call, OPTION_SINCE, &since);

    if (status)
        return status;
    if (call->operands > 0)
        return read_batches(call, since, night);
    status = read_span(call, since ? since : gpq_now_wall() - DAY, 0, night);
    if (status == 0 && since == 0)
        gpv_night_fit(night);
    return status;
}

#else

static int read_queue(const struct call *call, struct gpv_night *night)
{
    (void)night;
    fprintf(stderr,
            "gpudispatch: %s: built without the queue (-Dqueue=enabled); --from reads a "
            "recording\n",
            call->verb->name);
    return EXIT_FAILED;
}

#endif

/* ---- Either ---- */

int night_read(const struct call *call, size_t names, struct gpv_night **ret)
{
    struct gpv_night *night;
    int status;

    *ret = NULL;
    if (call->given[OPTION_FROM] && (call->operands > 0 || call->given[OPTION_SINCE]))
        return usage(call->verb, "%s: --from takes no %s: a recording has its span",
                     call->verb->name, call->operands > 0 ? "BATCH" : "--since");
    night = gpv_night_new();
    if (!night)
        return night_no_memory(call);
    gpv_night_limit_names(night, names);
    status = call->given[OPTION_FROM] ? read_recording(call, night) : read_queue(call, night);
    if (status == 0)
        *ret = night;
    else
        gpv_night_free(night);
    return status;
}
