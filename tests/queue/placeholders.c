/* SPDX-License-Identifier: MIT */
/* placeholders.c - names in braces, and texts that are none. */
#include "harness.h"

#include "draw.h"

#include <stdlib.h>
#include <string.h>

#include "queue/agent/placeholders.h"

static const struct gpq_placeholders values = { { "4,5", "2", "20007", "12.44",
                                                  "/s/work/12.44.1" } };

T_CASE(names_get_their_values)
{
    static const struct {
        const char *from, *to;
    } texts[] = {
        { "", "" },
        { "plain", "plain" },
        { "{gpu}", "4,5" },
        { "{gpus}", "2" },
        { "--port={port},{port}", "--port=20007,20007" },
        { "{task}{out}", "12.44/s/work/12.44.1" },
        { "{{gpu}}", "{gpu}" },
        { "{{{gpu}}}", "{{gpu}}" },
        { "{{gpu}", "{4,5" },
        { "{gpu}}", "4,5}" },
        { "{{gpus}}{gpus}", "{gpus}2" },
        /* a shell's */
        { "${gpu}", "${gpu}" },
        { "${{gpu}}", "${{gpu}}" },
        { "$${gpu}{gpu}", "$${gpu}4,5" },
        { "$ {gpu}", "$ 4,5" },
        { "$", "$" },
        { "$gpu", "$gpu" },
        /* no names */
        { "{}", "{}" },
        { "{", "{" },
        { "{gpu", "{gpu" },
        { "{gpu }", "{gpu }" },
        { "{gpuss}", "{gpuss}" },
        { "{GPU}", "{GPU}" },
        { "{a,b}{lr}{{lr}}", "{a,b}{lr}{{lr}}" },
        { "{print $1}", "{print $1}" },
        { "{\"gpu\":1}", "{\"gpu\":1}" },
        { "{{x}{gpu}", "{{x}4,5" },
    };

    for (size_t i = 0; i < T_LENGTH(texts); i++) {
        char from[64], *argv[] = { "prog", from, "{gpus}", NULL };
        strcpy(from, texts[i].from);
        char **to = gpq_placeholders_replace(argv, &values);
        T_CHECK(to);
        T_TEXT(to[0], "prog");
        T_TEXT(to[1], texts[i].to);
        T_TEXT(to[2], "2");
        T_CHECK(!to[3]);
        free(to);
    }
}

T_CASE(names_that_are_used)
{
    char *argv[] = { "a", "{{port}} ${port} {task}", NULL }, *none[] = { NULL };

    T_CHECK(gpq_placeholders_use(argv, GPQ_PLACEHOLDER_TASK));
    T_CHECK(!gpq_placeholders_use(argv, GPQ_PLACEHOLDER_PORT));
    T_CHECK(!gpq_placeholders_use(argv, GPQ_PLACEHOLDER_GPU));
    T_CHECK(!gpq_placeholders_use(none, GPQ_PLACEHOLDER_TASK));
    argv[0] = "{port}";
    T_CHECK(gpq_placeholders_use(argv, GPQ_PLACEHOLDER_PORT));
}

/* Doubling each brace pair around a name is undone, whatever is around it. */
T_CASE(doubled_names_are_texts)
{
    static const char *const parts[] = { "{gpu}", "{out}", "{", "}", "x", "{lr}", " " };
    uint64_t seed = 3;

    for (size_t round = 0; round < t_rounds(200000, 20000); round++) {
        char wanted[64] = "", doubled[128] = "", *argv[] = { doubled, NULL };
        for (uint64_t n = draw(&seed) % 6; n; n--) {
            size_t part = draw(&seed) % T_LENGTH(parts);
            /* A brace beside a group changes the group: it is a part of its own text. */
            if (parts[part][1] == 0 && parts[part][0] != 'x' && *wanted)
                continue;
            strcat(wanted, parts[part]);
            if (part < 2)
                strcat(doubled, "{");
            strcat(doubled, parts[part]);
            if (part < 2)
                strcat(doubled, "}");
        }
        char **to = gpq_placeholders_replace(argv, &values);
        T_CHECK(to);
        T_TEXT(to[0], wanted);
        free(to);
    }
}
