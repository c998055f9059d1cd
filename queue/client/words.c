/* SPDX-License-Identifier: MIT */
/* words.c - rows of the agent, as people read them. */
#include "queue/client/words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/cli/out.h"

#define SECOND UINT64_C(1000000000)

const char *gpq_text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

int64_t gpq_number_of(const json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

uint64_t gpq_count_of(const json_t *row, const char *counts, const char *name)
{
    return (uint64_t)gpq_number_of(json_object_get(row, counts), name);
}

char *gpq_span_text(uint64_t ns, char ret[32])
{
    uint64_t s = ns / SECOND;
    if (s < 1)
        snprintf(ret, 32, "%" PRIu64 " ms", ns / 1000000);
    else if (s < 120)
        snprintf(ret, 32, "%" PRIu64 " s", s);
    else if (s < 7200)
        snprintf(ret, 32, "%" PRIu64 " min", s / 60);
    else if (s < 36000)
        snprintf(ret, 32, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
    else if (s < 172800)
        snprintf(ret, 32, "%" PRIu64 " h", s / 3600);
    else
        snprintf(ret, 32, "%" PRIu64 " days", s / 86400);
    return ret;
}

char *gpq_left_text(const json_t *row, char ret[48])
{
    char a[32], b[32];
    strcpy(ret, "-");
    if (!json_object_get(row, "left_least") || !json_object_get(row, "left_most"))
        return ret;
    gpq_span_text((uint64_t)gpq_number_of(row, "left_least"), a);
    gpq_span_text((uint64_t)gpq_number_of(row, "left_most"), b);
    const char *unit_a = strchr(a, ' '), *unit_b = strchr(b, ' ');
    if (!strcmp(a, b))
        snprintf(ret, 48, "%.20s", a);
    else if (unit_a && unit_b && !strcmp(unit_a, unit_b))
        snprintf(ret, 48, "%.*s-%.20s", (int)(unit_a - a), a, b);
    else
        snprintf(ret, 48, "%.20s-%.20s", a, b);
    return ret;
}

char *gpq_age_text(uint64_t ns, char ret[32])
{
    uint64_t s = ns / SECOND;
    if (s < 60)
        snprintf(ret, 32, "%" PRIu64 " s", s);
    else if (s < 3600)
        snprintf(ret, 32, "%" PRIu64 " min", s / 60);
    else if (s < 172800)
        snprintf(ret, 32, "%" PRIu64 " h", s / 3600);
    else
        snprintf(ret, 32, "%" PRIu64 " days", s / 86400);
    return ret;
}

char *gpq_time_text(uint64_t ns, char ret[32])
{
    struct tm then, today;
    time_t t = (time_t)(ns / SECOND), now = time(NULL);
    if (!localtime_r(&t, &then) || !localtime_r(&now, &today))
        snprintf(ret, 32, "%" PRIu64, ns / SECOND);
    else if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday)
        strftime(ret, 32, "%H:%M:%S", &then);
    else
        strftime(ret, 32, "%Y-%m-%d %H:%M", &then);
    return ret;
}

char *gpq_gpus_text(const char *names, char ret[32])
{
    size_t kind = strcspn(names, ":"), used = 0;
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, ","), skip = 0;
        if (at != names && kind < n && strncmp(at, names, kind + 1) == 0)
            skip = kind + 1;
        if (used + n - skip > 24) {
            (void)snprintf(ret + used, 32 - used, "%s...", used > 0 ? "," : "");
            return ret;
        }
        used += (size_t)snprintf(ret + used, 32 - used, "%s%.*s", used > 0 ? "," : "",
                                 (int)(n - skip), at + skip);
        at += n + (at[n] == ',');
    }
    ret[used] = '\0';
    return ret;
}

const char *gpq_options_text(const char *text, char *room, size_t size)
{
    static const char needs[] = "needs.", is[] = " is ";
    const char *value = strstr(text, is);
    size_t before = strlen(needs);
    if (strncmp(text, needs, before) != 0 || !value || size < 3)
        return strncmp(text, "needs are --", 12) == 0 ? text + 10 : text;
    const char *member = text + before, *of = strncmp(member, "or[", 3) == 0 ? "--or: " : "";
    if (*of && (member = strstr(member, "].")) != NULL)
        member += 2;
    if (!member || member >= value)
        return text;
    int length = (int)(value - member);
    (void)snprintf(room, size, "%s--%.*s %s", of, length, member, value + strlen(is));
    for (int i = 0; i < length + (int)strlen(of) + 2 && room[i]; i++)
        if (room[i] == '_')
            room[i] = '-';
    return room;
}

/* ---- Text that is built piece by piece, and cut at its end ---- */

struct built {
    char *text;
    size_t size, used;
};

static void put(struct built *b, const char *text, size_t length)
{
    for (size_t i = 0; i < length && b->used + 1 < b->size; i++)
        b->text[b->used++] = text[i];
    b->text[b->used] = '\0';
}

static void put_text(struct built *b, const char *text)
{
    put(b, text, strlen(text));
}

static bool is_plain(const char *text)
{
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_./:=@%+,-")];
}

static void put_quoted(struct built *b, const char *text)
{
    if (is_plain(text)) {
        put_text(b, text);
        return;
    }
    put_text(b, "'");
    for (; *text; text++)
        if (*text == '\'')
            put_text(b, "'\\''");
        else
            put(b, text, 1);
    put_text(b, "'");
}

/* A line of a file is shown as it was written; the command sh -c LINE is another one. */
static bool is_line(const json_t *argv)
{
    const char *shell = json_string_value(json_array_get(argv, 0)),
               *flag = json_string_value(json_array_get(argv, 1));
    return json_array_size(argv) == 3 && shell && !strcmp(shell, "/bin/sh") && flag &&
           !strcmp(flag, "-c") && json_is_string(json_array_get(argv, 2));
}

char *gpq_command_text(const json_t *argv, char *ret, size_t size)
{
    struct built b = { ret, size, 0 };
    ret[0] = '\0';
    if (is_line(argv)) {
        put_text(&b, json_string_value(json_array_get(argv, 2)));
        return ret;
    }
    for (size_t i = 0; i < json_array_size(argv); i++) {
        if (i > 0)
            put_text(&b, " ");
        const char *text = json_string_value(json_array_get(argv, i));
        put_quoted(&b, text ? text : "?");
    }
    return ret;
}

char *gpq_task_text(const json_t *row, char *ret, size_t size)
{
    const json_t *argv = json_object_get(row, "argv");
    const char *name = gpq_text_of(row, "name");
    if (*name || !argv)
        snprintf(ret, size, "%s", *name ? name : gpq_text_of(row, "payload"));
    else
        gpq_command_text(argv, ret, size);
    return ret;
}

char *gpq_state_text_of(const json_t *row, char ret[64])
{
    const json_t *holds = json_object_get(row, "holds");
    const char *outcome = gpq_text_of(row, "outcome");
    struct built b = { ret, 64, 0 };
    ret[0] = '\0';
    put_text(&b, *outcome ? outcome : gpq_text_of(row, "state"));
    for (size_t i = 0; i < json_array_size(holds); i++) {
        const char *hold = json_string_value(json_array_get(holds, i));
        put_text(&b, i == 0 ? ": " : ", ");
        put_text(&b, hold && strcmp(hold, "user") == 0 ? "by you" : hold ? hold : "?");
    }
    if (!*outcome && json_is_true(json_object_get(row, "cancel")))
        put_text(&b, ", to be cancelled");
    return ret;
}

/* What the text of an attempt adds to its status; of a limit, not the signal that enforced it. */
static const char *reason_of(const char *text, size_t *ret_length)
{
    const char *killed = strstr(text, ": killed by signal "), *rest = strstr(text, ": ");
    if (strncmp(text, "exited with status ", 19) == 0 ||
        strncmp(text, "killed by signal ", 17) == 0) {
        text = rest ? rest + 2 : "";
        killed = NULL;
    }
    *ret_length = killed ? (size_t)(killed - text) : strlen(text);
    return text;
}

char *gpq_end_text(const char *outcome, const json_t *attempt, char *ret, size_t size)
{
    char number[32] = "";
    size_t length;
    const char *reason = reason_of(gpq_text_of(attempt, "text"), &length);
    int64_t status = gpq_number_of(attempt, "status");
    bool ok = strcmp(outcome, "ok") == 0; /* of a worker the text is its device */
    if (status != 0 && strcmp(outcome, "timeout") != 0)
        snprintf(number, sizeof(number), status < 0 ? ", signal %" PRIi64 : " %" PRIi64,
                 status < 0 ? -status : status);
    struct built b = { ret, size, 0 };
    ret[0] = '\0';
    put_text(&b, outcome);
    put_text(&b, number);
    if (length > 0 && !ok) {
        put_text(&b, ": ");
        put(&b, reason, length);
    }
    return ret;
}

char *gpq_because(const json_t *row, char ret[96])
{
    const char *cause = gpq_text_of(row, "cause");
    bool skipped = strcmp(gpq_text_of(row, "outcome"), "skipped") == 0;
    ret[0] = '\0';
    if (*cause && skipped)
        snprintf(ret, 96, "%.30s did not end as --after requires", cause);
    else if (*cause)
        snprintf(ret, 96, "batch %.30s had too many failures", cause);
    return ret;
}

char *gpq_number_text(uint64_t n, char ret[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);
    char *to = ret;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return ret;
}

const char *gpq_tasks(uint64_t n)
{
    return n == 1 ? "task" : "tasks";
}

void gpq_print_json(const json_t *row)
{
    (void)json_dumpf(row, stdout, JSON_COMPACT);
    putchar('\n');
}

char *gpq_outcomes_text(const json_t *outcomes, char *ret, size_t size)
{
    struct built b = { ret, size, 0 };
    const char *name;
    json_t *count;
    char number[32];
    ret[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)outcomes, name, count)
    {
        if (b.used > 0)
            put_text(&b, ", ");
        put_text(&b, gpq_number_text((uint64_t)json_integer_value(count), number));
        put_text(&b, " ");
        put_text(&b, name);
    }
    return ret;
}

uint64_t gpq_ended(const json_t *outcomes)
{
    uint64_t n = 0;
    const char *name;
    json_t *count;
    json_object_foreach((json_t *)(uintptr_t)outcomes, name, count) n +=
        (uint64_t)json_integer_value(count);
    return n;
}

uint64_t gpq_bad(const json_t *outcomes)
{
    return gpq_ended(outcomes) - (uint64_t)gpq_number_of(outcomes, "ok");
}

size_t gpq_width(void)
{
    size_t width = out_width();
    return width ? width : 80;
}
