/* SPDX-License-Identifier: MIT */
/* client_environment.c - the environment of commands, from that of a submit and its options. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/client/environment.h"

enum { MOST = 4 };

/* Options, each with its value: "e" is --env, "u" is --unset. */
struct row {
    const char *said[MOST];
    bool clean;
    const char *text; /* the variables, each with a newline; or the error */
    int code;
};

static int read_row(const struct row *r, char *text, size_t size)
{
    struct said said[MOST];
    struct call call = { .said = said };
    struct gpq_error e = { 0 };
    json_t *list;
    for (; call.n_said < MOST && r->said[call.n_said]; call.n_said++)
        said[call.n_said] = (struct said){ *r->said[call.n_said] == 'e' ? OPTION_ENV : OPTION_UNSET,
                                           r->said[call.n_said] + 1 };
    int code = gpq_environment(&call, r->clean, &list, &e);
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        strncat(text, json_string_value(json_array_get(list, i)), size - strlen(text) - 1);
        strncat(text, "\n", size - strlen(text) - 1);
    }
    if (code < 0)
        snprintf(text, size, "%s", e.text);
    json_decref(list);
    return code;
}

T_CASE(variables)
{
    static const struct row rows[] = {
        { { NULL }, false, "A=1\nB=\nPATH=/bin\n", 0 },
        { { NULL }, true, "PATH=/bin\n", 0 },
        { { "eC=x=y", "uA" }, false, "B=\nC=x=y\nPATH=/bin\n", 0 },
        { { "uA", "eA=2" }, false, "A=2\nB=\nPATH=/bin\n", 0 },
        { { "eA=2", "uA" }, true, "PATH=/bin\n", 0 },
        { { "eA", "ePATH=" }, true, "A=1\nPATH=\n", 0 },
        { { "uNONE" }, true, "PATH=/bin\n", 0 },
        { { "eNONE" }, false, "--env: 'NONE' is not set here; NAME=VALUE sets it", GPQ_EINVAL },
        { { "e=x" }, false, "--env: '=x': expected NAME or NAME=VALUE", GPQ_EINVAL },
        { { "e" }, false, "--env: '': expected NAME or NAME=VALUE", GPQ_EINVAL },
        { { "eA=\xff" }, false, "--env: 'A': expected UTF-8", GPQ_EINVAL },
        { { "u" }, false, "--unset: '': expected a name", GPQ_EINVAL },
        { { "uA=1" }, false, "--unset: 'A=1': expected a name", GPQ_EINVAL },
    };
    static char *here[] = { "PATH=/bin",
                            "B=",
                            "GPUDISPATCH_OUT=/x",
                            "GPUDISPATCH_RUN=1.1.a",
                            "NOTIFY_SOCKET=@x",
                            "A=1",
                            "BAD=\xff",
                            "=odd",
                            NULL };
    char text[512], **before = environ;
    environ = here;
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        T_EQ(read_row(&rows[i], text, sizeof(text)), rows[i].code);
        T_TEXT(text, rows[i].text);
    }
    environ = before;
}

T_CASE(values)
{
    json_t *list = json_pack("[s, s, s]", "A=1", "AB=2", "C=");
    T_TEXT(gpq_environment_value(list, "A"), "1");
    T_TEXT(gpq_environment_value(list, "AB"), "2");
    T_TEXT(gpq_environment_value(list, "C"), "");
    T_CHECK(!gpq_environment_value(list, "B"));
    T_CHECK(!gpq_environment_value(NULL, "A"));
    json_decref(list);
}

T_CASE(one_variable_of_a_list)
{
    static const struct {
        const char *text, *list;
    } rows[] = {
        { "B=2", "[\"A=1\",\"AB=2\",\"B=2\",\"C=\"]" },
        { "AB=", "[\"A=1\",\"AB=\",\"B=2\",\"C=\"]" },
        { "D=x=y", "[\"A=1\",\"AB=\",\"B=2\",\"C=\",\"D=x=y\"]" },
        { "0=0", "[\"0=0\",\"A=1\",\"AB=\",\"B=2\",\"C=\",\"D=x=y\"]" },
    };
    json_t *list = json_pack("[s, s, s]", "A=1", "AB=2", "C=");
    struct gpq_error e = { 0 };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        T_EQ(gpq_environment_set(list, rows[i].text, &e), 0);
        char *all = json_dumps(list, JSON_COMPACT);
        T_TEXT(all, rows[i].list);
        free(all);
    }
    T_EQ(gpq_environment_set(list, "NONE_SUCH", &e), GPQ_EINVAL);
    T_EQ(json_array_size(list), 6);
    json_decref(list);
}
