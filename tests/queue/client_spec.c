/* SPDX-License-Identifier: MIT */
/* client_spec.c - options of the command line as members of the protocol. */
#include "harness.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/client/spec.h"

#define NOW UINT64_C(1700000000000000000)

static const char config_text[] = "[needs big]\ngpus = 2\nmemory = 40G\nor = small\n"
                                  "[needs small]\ngpus = 0.5\ncpus = 3\n";

/* The members of one or two options, as JSON with sorted names; or the text of the error. */
struct row {
    struct {
        enum option_id option;
        const char *value;
    } said[2];
    const char *text;
};

static const struct row rows[] = {
    { { { OPTION_GPUS, "2" } }, "{\"needs\":{\"gpus\":2}}" },
    { { { OPTION_GPUS, "0.5" } }, "{\"needs\":{\"gpus\":1,\"share\":5000}}" },
    { { { OPTION_GPUS, "0.5" }, { OPTION_GPUS, "2" } }, "{\"needs\":{\"gpus\":2}}" },
    { { { OPTION_GPUS, "17" } }, "--gpus: '17'" },
    { { { OPTION_GPUS, "two" } }, "--gpus: 'two'" },
    { { { OPTION_MEMORY, "40G" } }, "{\"needs\":{\"memory\":42949672960}}" },
    { { { OPTION_MEMORY, "40" } }, "--memory: '40'" },
    { { { OPTION_HOST_MEMORY, "1GiB" } }, "{\"needs\":{\"host_memory\":1073741824}}" },
    { { { OPTION_HOST_MEMORY, "x" } }, "--host-memory: 'x'" },
    { { { OPTION_CPUS, "0" } }, "{\"needs\":{\"cpus\":0}}" },
    { { { OPTION_CPUS, "65537" } }, "--cpus: '65537'" },
    { { { OPTION_COMPUTE, "8.6" } }, "{\"needs\":{\"compute\":806}}" },
    { { { OPTION_COMPUTE, "eight" } }, "--compute: 'eight'" },
    { { { OPTION_ON, "gpu:0" }, { OPTION_NOT_ON, "gpu:1" } },
      "{\"needs\":{\"not_on\":\"gpu:1\",\"on\":\"gpu:0\"}}" },
    { { { OPTION_OR, "--gpus 4 --memory=1G" }, { OPTION_OR, "--cpus '2'" } },
      "{\"needs\":{\"or\":[{\"gpus\":4,\"memory\":1073741824},{\"cpus\":2}]}}" },
    { { { OPTION_OR, "--gpus" } }, "--or: '--gpus': expected needs" },
    { { { OPTION_OR, "-g 4" } }, "--or: '-g 4': expected needs" },
    { { { OPTION_OR, "--limit 4" } }, "--or: '--limit 4': expected needs" },
    { { { OPTION_OR, "--gpus 'x" } }, "--or: " },
    { { { OPTION_OR, "--gpus x" } }, "--or: 'x'" },
    { { { OPTION_NEEDS, "big" } },
      "{\"needs\":{\"gpus\":2,\"memory\":42949672960,"
      "\"or\":[{\"cpus\":3,\"gpus\":1,\"share\":5000}]}}" },
    { { { OPTION_NEEDS, "big" }, { OPTION_GPUS, "4" } },
      "{\"needs\":{\"gpus\":4,\"memory\":42949672960,"
      "\"or\":[{\"cpus\":3,\"gpus\":1,\"share\":5000}]}}" },
    { { { OPTION_NEEDS, "none" } }, "--needs: 'none': there is no section [needs none]" },
    { { { OPTION_PRIORITY, "-3" } }, "{\"priority\":-3}" },
    { { { OPTION_PRIORITY, "2147483648" } }, "--priority: '2147483648'" },
    { { { OPTION_PRIORITY, "1.5" } }, "--priority: '1.5': expected a whole number" },
    { { { OPTION_PRIORITY, "" } }, "--priority: ''" },
    { { { OPTION_LIMIT, "1m30s" } }, "{\"limit\":90000000000}" },
    { { { OPTION_LIMIT, "12x" } }, "--limit: '12x'" },
    { { { OPTION_EXPIRES, "+2s" } }, "{\"expires\":1700000002000000000}" },
    { { { OPTION_BEGIN, "2030-01-01T00:00:00Z" } }, "{\"begin\":1893456000000000000}" },
    { { { OPTION_BEGIN, "tomorrow" } }, "--begin: 'tomorrow'" },
    { { { OPTION_AFTER, "12" } }, "{\"after\":[{\"id\":\"12\",\"when\":\"ok\"}]}" },
    { { { OPTION_AFTER, "failed:12.1,13" }, { OPTION_AFTER, "ended:4" } },
      "{\"after\":[{\"id\":\"12.1\",\"when\":\"failed\"},{\"id\":\"13\",\"when\":\"failed\"},"
      "{\"id\":\"4\",\"when\":\"ended\"}]}" },
    { { { OPTION_AFTER, "2.3-5" } },
      "{\"after\":[{\"id\":\"2.3\",\"when\":\"ok\"},{\"id\":\"2.4\",\"when\":\"ok\"},"
      "{\"id\":\"2.5\",\"when\":\"ok\"}]}" },
    { { { OPTION_AFTER, "2.1-4000000000" } }, "--after: '2.1-4000000000': expected up to 1000" },
    { { { OPTION_AFTER, "night,4" } },
      "{\"after\":[{\"id\":\"night\",\"when\":\"ok\"},{\"id\":\"4\",\"when\":\"ok\"}]}" },
    { { { OPTION_AFTER, "\xff" } }, "--after: " },
    { { { OPTION_AFTER, "late:12" } }, "--after: 'late:12': expected ok, ended or failed" },
    { { { OPTION_AFTER, "12," } }, "--after: '12,': expected ids" },
    { { { OPTION_AFTER, "" } }, "--after: '': expected ids" },
    { { { OPTION_AFTER, "1.2-1" } }, "--after: '1.2-1': expected ids" },
    { { { OPTION_AFTER, "ended:99999999999999999999999999999999999999999999999" } }, "--after: " },
    { { { OPTION_HOLD, NULL }, { OPTION_AT_MOST_ONCE, NULL } },
      "{\"at_most_once\":true,\"hold\":true}" },
    { { { OPTION_RETRIES, "2:crash,1:oom" } }, "{\"retries\":{\"crash\":2,\"oom\":1}}" },
    { { { OPTION_RETRIES, "2" } }, "{\"retries\":{\"crash\":2,\"error\":2,\"timeout\":2}}" },
    { { { OPTION_RETRIES, "0" } }, "{\"retries\":{}}" },
    { { { OPTION_RETRIES, "2:rain" } }, "--retries: " },
    { { { OPTION_BACKOFF, "1s:10m" } }, "{\"backoff\":1000000000,\"backoff_cap\":600000000000}" },
    { { { OPTION_BACKOFF, "1s" } }, "{\"backoff\":1000000000}" },
    { { { OPTION_BACKOFF, "1s:" } }, "--backoff: ''" },
    { { { OPTION_BACKOFF, ":1s" } }, "--backoff: ''" },
    { { { OPTION_CWD, "/tmp" } }, "{\"cwd\":\"/tmp\"}" },
    { { { OPTION_CWD, "\xff" } }, "--cwd: " },
    { { { OPTION_CLASS, "whisper" } }, "{\"class\":\"whisper\"}" },
    { { { OPTION_ATTACHED, NULL } }, "{\"attached\":true}" },
    { { { OPTION_JSON, NULL } }, "{}" }, /* no property of tasks */
    { { { OPTION_NAME, "x" } }, "{}" },  /* of tasks, not of specs */
};

static void read_row(const struct row *r, const struct gpq_config *config, char *text, size_t size)
{
    json_t *spec = json_object();
    struct gpq_members m = { config, NOW, spec, NULL };
    struct gpq_error e = { 0 };
    int code = 0;
    for (size_t i = 0; code == 0 && i < 2 && r->said[i].option != OPTION_END; i++)
        code = gpq_member_set(&m, r->said[i].option, r->said[i].value, &e);
    char *all = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(text, size, "%s", code < 0 ? e.text : all);
    free(all);
    json_decref(spec);
}

T_CASE(members)
{
    struct gpq_config config;
    struct gpq_error e = { 0 };
    char text[512];
    T_EQ(gpq_config_parse("c", config_text, strlen(config_text), &config, &e), 0);
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        read_row(&rows[i], &config, text, sizeof(text));
        if (*rows[i].text == '{')
            T_TEXT(text, rows[i].text);
        else if (strncmp(text, rows[i].text, strlen(rows[i].text)) != 0)
            T_FAIL("%s, not %s...", text, rows[i].text);
    }
    gpq_config_free(&config);
}

T_CASE(a_relative_directory_is_below_the_present_one)
{
    char here[PATH_MAX], whole[PATH_MAX + 8];
    json_t *spec = json_object();
    struct gpq_members m = { NULL, NOW, spec, NULL };
    struct gpq_error e = { 0 };
    T_CHECK(getcwd(here, sizeof(here)));
    snprintf(whole, sizeof(whole), "%s/a/b", here);
    T_EQ(gpq_member_set(&m, OPTION_CWD, "a/b", &e), 0);
    T_TEXT(json_string_value(json_object_get(spec, "cwd")), whole);
    json_decref(spec);
}

T_CASE(names_and_keys_are_of_tasks)
{
    json_t *task = json_object();
    struct gpq_members m = { NULL, NOW, NULL, task };
    struct gpq_error e = { 0 };
    T_EQ(gpq_member_set(&m, OPTION_NAME, "n", &e), 0);
    T_EQ(gpq_member_set(&m, OPTION_KEY, "k", &e), 0);
    T_EQ(gpq_member_set(&m, OPTION_GPUS, "x", &e), 0); /* of its spec */
    T_EQ(json_object_size(task), 2);
    T_CHECK(gpq_member_set(&m, OPTION_KEY, "\xff", &e) < 0);
    json_decref(task);
}
