/* SPDX-License-Identifier: MIT */
/* client_words.c - rows as texts for people. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue/client/reasons.h"
#include "queue/client/words.h"

#define SECOND UINT64_C(1000000000)

T_CASE(spans)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } spans[] = {
        { 0, "0 ms" },
        { SECOND - 1, "999 ms" },
        { SECOND, "1 s" },
        { 119 * SECOND, "119 s" },
        { 120 * SECOND, "2 min" },
        { 7199 * SECOND, "119 min" },
        { 7200 * SECOND, "2 h 0 min" },
        { 13260 * SECOND, "3 h 41 min" },
        { 36000 * SECOND, "10 h" },
        { 172800 * SECOND, "2 days" },
        { UINT64_MAX, "213503 days" },
    };
    char text[32];
    for (size_t i = 0; i < T_LENGTH(spans); i++)
        T_TEXT(gpq_span_text(spans[i].ns, text), spans[i].text);
}

T_CASE(times_left)
{
    static const struct {
        int64_t least, most;
        const char *text;
    } cases[] = { { -1, -1, "-" },
                  { 40, 40, "40 s" },
                  { 11000, 14400, "3 h 3 min-4 h 0 min" },
                  { 130, 600, "2-10 min" },
                  { 50, 130, "50 s-2 min" },
                  { 50, -1, "-" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[48];
        json_t *row = json_object();
        if (cases[i].least >= 0)
            json_object_set_new(row, "left_least", json_integer(cases[i].least * (int64_t)SECOND));
        if (cases[i].most >= 0)
            json_object_set_new(row, "left_most", json_integer(cases[i].most * (int64_t)SECOND));
        T_TEXT(gpq_left_text(row, text), cases[i].text);
        json_decref(row);
    }
}

T_CASE(ages)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } ages[] = {
        { 0, "0 s" },
        { 59 * SECOND, "59 s" },
        { 60 * SECOND, "1 min" },
        { 3599 * SECOND, "59 min" },
        { 3600 * SECOND, "1 h" },
        { 172799 * SECOND, "47 h" },
        { 172800 * SECOND, "2 days" },
    };
    char text[32];
    for (size_t i = 0; i < T_LENGTH(ages); i++)
        T_TEXT(gpq_age_text(ages[i].ns, text), ages[i].text);
}

T_CASE(options_in_place_of_members)
{
    static const struct {
        const char *text, *expected;
    } row[] = {
        { "needs.host_memory is 9T: the machine has 1 GiB",
          "--host-memory 9T: the machine has 1 GiB" },
        { "needs.or[0].gpus is 9: x is y", "--or: --gpus 9: x is y" },
        { "needs are --gpus 2, --on 0: each", "--gpus 2, --on 0: each" },
        { "needs has the member", "needs has the member" },
        { "class is \"x\"", "class is \"x\"" },
    };
    char room[64];
    for (size_t i = 0; i < T_LENGTH(row); i++)
        T_TEXT(gpq_options_text(row[i].text, room, sizeof(room)), row[i].expected);
}

T_CASE(names_of_gpus)
{
    static const struct {
        const char *names, *text;
    } row[] = {
        { "", "" },
        { "gpu:0", "gpu:0" },
        { "gpu:0,gpu:12,gpu:3", "gpu:0,12,3" },
        { "gpu:0:1,gpu:0:2", "gpu:0:1,0:2" },
        { "fake:0,gpu:1", "fake:0,gpu:1" },
        { "gpu:10,gpu:11,gpu:12,gpu:13,gpu:14,gpu:15,gpu:16,gpu:17",
          "gpu:10,11,12,13,14,15,16,..." },
    };
    char text[32];
    for (size_t i = 0; i < T_LENGTH(row); i++)
        T_TEXT(gpq_gpus_text(row[i].names, text), row[i].text);
}

T_CASE(numbers)
{
    char text[32];
    T_TEXT(gpq_number_text(0, text), "0");
    T_TEXT(gpq_number_text(999, text), "999");
    T_TEXT(gpq_number_text(1000, text), "1,000");
    T_TEXT(gpq_number_text(1234567, text), "1,234,567");
    T_TEXT(gpq_number_text(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

T_CASE(times)
{
    char text[32];
    setenv("TZ", "UTC", 1);
    tzset();
    T_TEXT(gpq_time_text(0, text), "1970-01-01 00:00");
    T_TEXT(gpq_time_text(UINT64_C(1769894043) * SECOND, text), "2026-01-31 21:14");
    (void)gpq_time_text(UINT64_MAX, text);
    (void)gpq_time_text((uint64_t)time(NULL) * SECOND, text);
    T_CHECK(text[2] == ':' || text[4] == '-'); /* today, but for midnight */
    unsetenv("TZ");
}

static const char *state(const char *row, char text[64])
{
    json_t *object = json_loads(row, 0, NULL);
    gpq_state_text_of(object, text);
    json_decref(object);
    return text;
}

T_CASE(states)
{
    static const struct {
        const char *row, *text;
    } states[] = {
        { "{}", "" },
        { "{\"state\":\"running\"}", "running" },
        { "{\"state\":\"running\",\"cancel\":true}", "running, to be cancelled" },
        { "{\"state\":\"held\",\"holds\":[\"after\",\"time\"]}", "held: after, time" },
        { "{\"state\":\"held\",\"holds\":[\"user\",7]}", "held: by you, ?" },
        { "{\"state\":\"done\",\"outcome\":\"no worker\",\"cancel\":true}", "no worker" },
        { "{\"state\":7,\"holds\":{},\"outcome\":[]}", "" },
    };
    char text[64];
    for (size_t i = 0; i < T_LENGTH(states); i++)
        T_TEXT(state(states[i].row, text), states[i].text);
}

T_CASE(commands)
{
    static const struct {
        const char *argv, *text;
    } commands[] = {
        { "[]", "" },
        { "[\"true\"]", "true" },
        { "[\"/bin/sh\",\"-c\",\"a | b 'c'\"]", "a | b 'c'" },
        { "[\"a b\",\"\",\"it's\",\"x=1\"]", "'a b' '' 'it'\\''s' x=1" },
        { "[\"0123456789012345678901234567890123456789\"]", "0123456789012345678901234567890" },
    };
    char text[32];
    for (size_t i = 0; i < T_LENGTH(commands); i++) {
        json_t *argv = json_loads(commands[i].argv, 0, NULL);
        T_TEXT(gpq_command_text(argv, text, sizeof(text)), commands[i].text);
        json_decref(argv);
    }
    T_TEXT(gpq_command_text(NULL, text, sizeof(text)), "");
}

/* What an agent must not send: a list of other things than texts. */
T_CASE(rows_of_any_shape)
{
    static const char *const rows[] = { "{\"argv\":[1,null,{}]}", "{\"argv\":{}}", "{\"name\":1}",
                                        "{\"argv\":[\"sh\",\"-c\",7]}", "{\"payload\":[]}" };
    char text[64];
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        json_t *row = json_loads(rows[i], 0, NULL);
        (void)gpq_task_text(row, text, sizeof(text));
        (void)gpq_state_text_of(row, text);
        json_decref(row);
    }
}

T_CASE(outcomes)
{
    json_t *outcomes = json_loads("{\"ok\":12345,\"error\":2}", 0, NULL);
    char text[64];
    T_TEXT(gpq_outcomes_text(outcomes, text, sizeof(text)), "12,345 ok, 2 error");
    T_EQ(gpq_ended(outcomes), 12347);
    T_EQ(gpq_bad(outcomes), 2);
    T_TEXT(gpq_outcomes_text(outcomes, text, 10), "12,345 ok");
    json_decref(outcomes);
    T_TEXT(gpq_outcomes_text(NULL, text, sizeof(text)), "");
    T_EQ(gpq_ended(NULL), 0);
}

static void add_line(const char *text, void *user)
{
    char *all = user;
    T_CHECK(strlen(all) + strlen(text) + 2 < 2048);
    strcat(strcat(all, text), "\n");
}

T_CASE(reasons)
{
    static const struct {
        const char *reasons, *text;
    } rows[] = {
        { "[]", "" },
        { "[{\"reason\":\"SHARE\",\"device\":\"gpu:0\",\"task\":\"1.1\"},"
          "{\"reason\":\"SHARE\",\"device\":\"gpu:1\",\"task\":\"1.2\"},"
          "{\"reason\":\"DRAINED\",\"device\":\"gpu:2\"},"
          "{\"reason\":\"SHARE\",\"device\":\"gpu:3\",\"task\":\"1.1\"}]",
          "gpu:0, gpu:3: busy with 1.1\ngpu:1: busy with 1.2\ngpu:2: drained\n" },
        { "[{\"reason\":\"MEMORY\",\"device\":\"gpu:0\",\"unit\":\"bytes\",\"has\":1073741824,"
          "\"needs\":3221225472}]",
          "gpu:0: memory is in use: 1.0 GiB free, 3.0 GiB needed\n" },
        { "[{\"reason\":\"SHARE\",\"device\":\"g\",\"unit\":\"share\",\"has\":5000,"
          "\"needs\":10000}]",
          "g: busy: 0.5 of it free, 1 needed\n" },
        { "[{\"reason\":\"CPUS\",\"unit\":\"cpus\",\"needs\":3},"
          "{\"reason\":\"CPUS\",\"unit\":\"cpus\",\"needs\":3}]",
          "the CPU slots are in use: 0 free, 3 needed\nthe CPU slots are in use: 0 free, 3 "
          "needed\n" },
        { "[{\"reason\":\"FOREIGN\",\"device\":\"g\",\"pid\":7}]",
          "g: used by other programs, process 7\n" },
        { "[{\"reason\":\"BOOTING\",\"device\":\"g\",\"class\":\"c\"}]",
          "g: a worker of class c starts\n" },
        { "[{\"reason\":\"HEAD_HOLDS\",\"device\":\"g\",\"text\":\"held\"}]", "held\n" },
        { "[{\"reason\":\"NEW\",\"text\":\"a later agent's\"},7,{\"device\":[]}]",
          "a later agent's\n\n\n" },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        char all[2048] = "";
        json_t *list = json_loads(rows[i].reasons, 0, NULL);
        gpq_reasons(list, add_line, all);
        T_TEXT(all, rows[i].text);
        json_decref(list);
    }
}
