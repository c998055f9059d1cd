/* SPDX-License-Identifier: MIT */
/* reasons.c - the reasons why a task does not start. */
#include "queue/client/reasons.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/words.h"
#include "tools/cli/out.h"

enum { DEVICES = 400, TEXT = 1024 };

/* In a text %t is the task in the way, %c its class, %a the amounts that are free and needed, %p
 * the process.  With `of_task`, the reason has a task. */
static const struct {
    const char *reason;
    bool of_task;
    const char *text;
} texts[] = {
    { "PASSED_OVER_BY", true, "%t comes first" },
    { "MEMORY", true, "%t has the memory%a" },
    { "MEMORY", false, "memory is in use%a" },
    { "SHARE", true, "busy with %t" },
    { "SHARE", false, "busy%a" },
    { "CPUS", false, "the CPU slots are in use%a" },
    { "HEAD_HOLDS", true, "held for %t, which comes first" },
    { "DRAINED", false, "drained" },
    { "PAUSED", false, "paused" },
    { "FAULT", false, "out of use" },
    { "FOREIGN", false, "used by other programs%p" },
    { "MIN_RESIDENCE", false, "a worker of class %c stays for its min-residence" },
    { "MAX_WAIT", false, "a worker of class %c has work" },
    { "PINNED", false, "a worker of class %c stays" },
    { "BOOTING", false, "a worker of class %c starts" },
    { "UNLOADING", false, "a worker of class %c leaves" },
};

static void put_amount(FILE *f, const json_t *reason)
{
    char has[24], needs[24];
    const char *unit = gpq_text_of(reason, "unit");
    uint64_t have = (uint64_t)gpq_number_of(reason, "has"),
             need = (uint64_t)gpq_number_of(reason, "needs");
    if (strcmp(unit, "bytes") == 0)
        fprintf(f, ": %s free, %s needed", bytes_text(have, has), bytes_text(need, needs));
    else if (strcmp(unit, "share") == 0)
        fprintf(f, ": %g of it free, %g needed", (double)have / 10000, (double)need / 10000);
    else if (*unit)
        fprintf(f, ": %" PRIu64 " free, %" PRIu64 " needed", have, need);
}

static void put_text(FILE *f, const json_t *reason, const char *text)
{
    int64_t pid = gpq_number_of(reason, "pid");
    for (; *text; text++) {
        if (*text != '%') {
            fputc(*text, f);
            continue;
        }
        switch (*++text) {
        case 't':
            fputs(gpq_text_of(reason, "task"), f);
            break;
        case 'c':
            fputs(gpq_text_of(reason, "class"), f);
            break;
        case 'a':
            put_amount(f, reason);
            break;
        default:
            if (pid > 0)
                fprintf(f, ", process %" PRIi64, pid);
        }
    }
}

char *gpq_reason_text(const json_t *reason, const char *devices, char *ret, size_t size)
{
    const char *name = gpq_text_of(reason, "reason"), *text = NULL;
    bool of_task = *gpq_text_of(reason, "task") != '\0';
    char until[32];
    for (size_t i = 0; !text && i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].reason, name) == 0 && (of_task || !texts[i].of_task))
            text = texts[i].text;
    FILE *f = fmemopen(ret, size, "w");
    ret[0] = '\0';
    if (!f)
        return ret;
    if (text) {
        fprintf(f, "%s%s", devices, *devices ? ": " : "");
        put_text(f, reason, text);
    } else {
        fputs(gpq_text_of(reason, "text"), f);
    }
    if (gpq_number_of(reason, "until") > 0)
        fprintf(f,
                json_is_true(json_object_get(reason, "limit")) ? ", until %s at the latest"
                                                               : ", until about %s",
                gpq_time_text((uint64_t)gpq_number_of(reason, "until"), until));
    fclose(f);
    ret[size - 1] = '\0';
    return ret;
}

static bool is_same(const json_t *a, const json_t *b)
{
    static const char *const members[] = {
        "reason", "task", "class", "has", "needs", "pid", "until"
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const json_t *x = json_object_get(a, members[i]), *y = json_object_get(b, members[i]);
        if ((x || y) && !json_equal(x, y))
            return false;
    }
    return *gpq_text_of(a, "device") && *gpq_text_of(b, "device");
}

void gpq_reasons(const json_t *reasons, void (*fn)(const char *text, void *user), void *user)
{
    size_t n = json_array_size(reasons);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(reasons, i);
        char devices[DEVICES], text[TEXT];
        size_t used;
        bool said = false;
        for (size_t k = 0; k < i && !said; k++)
            said = is_same(json_array_get(reasons, k), one);
        if (said)
            continue;
        used = (size_t)snprintf(devices, sizeof(devices), "%.31s", gpq_text_of(one, "device"));
        for (size_t k = i + 1; k < n && used + 40 < sizeof(devices); k++)
            if (is_same(one, json_array_get(reasons, k)))
                used += (size_t)snprintf(devices + used, sizeof(devices) - used, ", %.31s",
                                         gpq_text_of(json_array_get(reasons, k), "device"));
        fn(gpq_reason_text(one, devices, text, sizeof(text)), user);
    }
}

struct first {
    char *text;
    size_t size;
};

static void keep_first(const char *text, void *user)
{
    const struct first *f = user;
    if (!*f->text)
        snprintf(f->text, f->size, "%s", text);
}

char *gpq_first_reason(const json_t *reply, char *ret, size_t size)
{
    char state[64];
    struct first first = { ret, size };
    const json_t *pause = json_array_get(json_object_get(reply, "pauses"), 0);
    const char *reason = gpq_text_of(pause, "reason");
    ret[0] = '\0';
    if (pause)
        snprintf(ret, size, "paused%s%s", *reason ? ": " : "", reason);
    else
        gpq_reasons(json_object_get(reply, "reasons"), keep_first, &first);
    if (!*ret)
        snprintf(ret, size, "%s", gpq_state_text_of(json_object_get(reply, "task"), state));
    return ret;
}
