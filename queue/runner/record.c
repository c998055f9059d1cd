/* SPDX-License-Identifier: MIT */
/* record.c - the record of one run. */
#include "queue/runner/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "queue/files/numbers.h"

enum { VERSION = 1, SUM = 8 };

#define HEAD "gpudispatch-run"

#define TEXT(name, text) text,
static const char *const hows[] = { GPQ_RUN_HOW_MAP(TEXT) };
static const char *const steps[] = { GPQ_RUN_STEP_MAP(TEXT) };
static const char *const outputs[] = { GPQ_RUN_OUTPUTS_MAP(TEXT) };
#undef TEXT

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
#define NUMBER(name) { #name, offsetof(struct gpq_run_end, name) },
    GPQ_RUN_END_MAP(NUMBER)
#undef NUMBER
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const char *gpq_run_how_text(uint32_t how)
{
    return how < GPQ_RUN_HOWS ? hows[how] : "?";
}

const char *gpq_run_step_text(uint32_t step)
{
    return step < GPQ_RUN_STEPS ? steps[step] : "?";
}

static uint64_t *number_at(struct gpq_run_end *end, size_t i)
{
    return (uint64_t *)(void *)((char *)end + numbers[i].offset);
}

/* CRC-32 as in zlib, bit by bit: a line has some hundred bytes. */
static uint32_t checksum(const char *data, size_t size)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        sum ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ UINT32_C(0xedb88320) : sum >> 1;
    }
    return ~sum;
}

/* ---- Writing ---- */

__attribute__((format(printf, 3, 4))) static size_t add(char *line, size_t used, const char *format,
                                                        ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(line + used, GPQ_RECORD_LINE - used, format, list);
    va_end(list);
    return used + (size_t)n; /* GPQ_RECORD_LINE has room for the longest of all lines */
}

static size_t finish(char *line, size_t used)
{
    return add(line, used, " sum=%08" PRIx32 "\n", checksum(line, used));
}

size_t gpq_record_head(char ret[GPQ_RECORD_LINE], const struct gpq_run_id *id, const char *boot,
                       uint32_t port)
{
    char tag[GPQ_RUN_TAG];
    size_t used;

    gpq_run_tag(tag, id);
    used = add(ret, 0, HEAD " version=%d run=%s boot=%.*s", VERSION, tag, GPQ_BOOT, boot);
    if (port)
        used = add(ret, used, " port=%" PRIu32, port);
    return finish(ret, used);
}

static size_t add_process(char *line, const char *part, const struct gpq_run_process *p)
{
    return add(line, 0, "%s pid=%" PRIu64 " ticks=%" PRIu64, part, (uint64_t)p->pid, p->ticks);
}

size_t gpq_record_runner(char ret[GPQ_RECORD_LINE], const struct gpq_run_process *runner)
{
    return finish(ret, add_process(ret, "runner", runner));
}

size_t gpq_record_start(char ret[GPQ_RECORD_LINE], const struct gpq_run_process *command,
                        uint64_t monotonic, uint64_t wall)
{
    size_t used = add_process(ret, "start", command);

    return finish(ret, add(ret, used, " monotonic=%" PRIu64 " wall=%" PRIu64, monotonic, wall));
}

size_t gpq_record_stop(char ret[GPQ_RECORD_LINE], uint32_t by)
{
    return finish(ret, add(ret, 0, "stop by=%" PRIu32, by));
}

size_t gpq_record_end(char ret[GPQ_RECORD_LINE], const struct gpq_run_end *end)
{
    struct gpq_run_end copy = *end;
    size_t used = add(ret, 0, "end how=%s step=%s outputs=%s", gpq_run_how_text(end->how),
                      gpq_run_step_text(end->step),
                      end->outputs < GPQ_RUN_OUTPUT_KINDS ? outputs[end->outputs] : "?");

    for (size_t i = 0; i < LENGTH(numbers); i++)
        used = add(ret, used, " %s=%" PRIu64, numbers[i].name, *number_at(&copy, i));
    return finish(ret, used);
}

/* ---- Reading ---- */

/* Takes a text off the line, if the line goes on with it. */
static bool take(const char **at, const char *text)
{
    size_t n = strlen(text);

    if (strncmp(*at, text, n))
        return false;
    *at += n;
    return true;
}

/* Takes " KEY=", and returns the length of the value, at which *at then is. */
static bool take_key(const char **at, const char *key)
{
    return take(at, " ") && take(at, key) && take(at, "=");
}

static bool take_number(const char **at, const char *key, uint64_t most, uint64_t *ret)
{
    uint64_t n = 0;
    const char *rest = take_key(at, key) ? gpq_decimal_read(*at, &n) : NULL;

    if (!rest || n > most)
        return false;
    *at = rest;
    *ret = n;
    return true;
}

/* Takes the value of a key into a text of this room. */
static bool take_value(const char **at, const char *key, char *ret, size_t room)
{
    size_t n;

    if (!take_key(at, key))
        return false;
    n = strcspn(*at, " ");
    if (n >= room)
        return false;
    memcpy(ret, *at, n);
    ret[n] = 0;
    *at += n;
    return true;
}

static bool take_word(const char **at, const char *key, const char *const *words, size_t count,
                      uint32_t *ret)
{
    char word[16];

    if (!take_value(at, key, word, sizeof(word)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(word, words[i])) {
            *ret = i;
            return true;
        }
    return false;
}

static bool take_process(const char **at, struct gpq_run_process *ret)
{
    uint64_t pid;

    if (!take_number(at, "pid", INT_MAX, &pid) || !pid ||
        !take_number(at, "ticks", UINT64_MAX, &ret->ticks))
        return false;
    ret->pid = (pid_t)pid;
    return true;
}

static int read_head(const char **at, struct gpq_record *r)
{
    char tag[GPQ_RUN_TAG];
    uint64_t version, port = 0;

    if (!take_number(at, "version", UINT64_MAX, &version))
        return -EBADMSG;
    if (version != VERSION)
        return -EPROTONOSUPPORT;
    r->has_head = take_value(at, "run", tag, sizeof(tag)) && gpq_run_tag_read(tag, &r->id) &&
                  take_value(at, "boot", r->boot, sizeof(r->boot)) && gpq_boot_valid(r->boot);
    if (r->has_head && !strncmp(*at, " port=", strlen(" port=")))
        r->has_head = take_number(at, "port", UINT16_MAX, &port);
    r->port = (uint32_t)port;
    return r->has_head ? 0 : -EBADMSG;
}

/* Ends of an older runner lack this number. */
static bool is_absent(const char *at, const char *name)
{
    static const char key[] = " oom_kills=";

    return !strncmp(key + 1, name, strlen(name)) && strncmp(at, key, sizeof(key) - 1);
}

static bool read_end(const char **at, struct gpq_run_end *end)
{
    if (!take_word(at, "how", hows, LENGTH(hows), &end->how) ||
        !take_word(at, "step", steps, LENGTH(steps), &end->step) ||
        !take_word(at, "outputs", outputs, LENGTH(outputs), &end->outputs))
        return false;
    for (size_t i = 0; i < LENGTH(numbers); i++)
        if (!is_absent(*at, numbers[i].name) &&
            !take_number(at, numbers[i].name, UINT64_MAX, number_at(end, i)))
            return false;
    return true;
}

static bool read_start(const char **at, struct gpq_record *r)
{
    return take_process(at, &r->command) &&
           take_number(at, "monotonic", UINT64_MAX, &r->monotonic) &&
           take_number(at, "wall", UINT64_MAX, &r->wall);
}

static bool read_stop(const char **at, struct gpq_record *r)
{
    uint64_t by;

    if (!take_number(at, "by", INT_MAX, &by))
        return false;
    r->stop_by = (uint32_t)by;
    return true;
}

/* Reads the next line into *r, whose flags say which that is. */
static int read_part(const char **at, struct gpq_record *r)
{
    bool ok = false;

    if (!r->has_head)
        return take(at, HEAD) ? read_head(at, r) : -EBADMSG;
    if (!r->has_runner)
        ok = r->has_runner = take(at, "runner") && take_process(at, &r->runner);
    else if (!r->has_end && take(at, "end"))
        ok = r->has_end = read_end(at, &r->end);
    else if (!r->has_end && !r->has_start && take(at, "start"))
        ok = r->has_start = read_start(at, r);
    else if (!r->has_end && r->has_start && !r->has_stop && take(at, "stop"))
        ok = r->has_stop = read_stop(at, r);
    return ok ? 0 : -EBADMSG;
}

/* Reads a line, which ends with a NUL byte.  A later version may add fields behind those of
 * today. */
static int read_line(const char *line, struct gpq_record *r)
{
    struct gpq_record next = *r;
    int ret = read_part(&line, &next);

    if (!ret && *line && *line != ' ')
        ret = -EBADMSG;
    if (!ret)
        *r = next;
    return ret;
}

/* Copies the text of a line whose sum is right. */
static bool copy_line(const char *data, size_t size, char ret[GPQ_RECORD_LINE])
{
    enum { TAIL = 5 + SUM }; /* " sum=" and its digits */
    char tail[TAIL + 1];

    if (size < TAIL || size >= GPQ_RECORD_LINE || memchr(data, 0, size))
        return false;
    size -= TAIL;
    (void)snprintf(tail, sizeof(tail), " sum=%08" PRIx32, checksum(data, size));
    if (memcmp(data + size, tail, TAIL))
        return false;
    memcpy(ret, data, size);
    ret[size] = 0;
    return true;
}

int gpq_record_read(const void *data, size_t size, struct gpq_record *ret)
{
    const char *at = data, *end = at + size, *line_end;
    char line[GPQ_RECORD_LINE];

    *ret = (struct gpq_record){ 0 };
    for (; at < end && (line_end = memchr(at, '\n', (size_t)(end - at))); at = line_end + 1) {
        int fault = copy_line(at, (size_t)(line_end - at), line) ? read_line(line, ret) : -EBADMSG;
        if (fault)
            return fault;
    }
    ret->torn = at < end;
    return ret->has_head ? 0 : -ENODATA;
}
