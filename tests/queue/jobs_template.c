/* SPDX-License-Identifier: MIT */
/* jobs_template.c - names in braces: the grammar, and texts that come through submit and start. */
#include "harness.h"

#include "draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/template.h"
#include "queue/store.h"

static const char *const values[GPQ_STARTS] = { "0,3", "2", "20001", "12.44", "/out/{gpu}" };

/* ---- The start ---- */

static const struct {
    const char *text, *expected;
} starts[] = {
    { "", "" },
    { "{gpu} {gpus} {port} {task} {out}", "0,3 2 20001 12.44 /out/{gpu}" },
    { "{{gpu}}", "{gpu}" },
    { "{{{gpu}}}", "{0,3}" },
    { "{{{{gpu}}}}", "{{gpu}}" },
    { "{{{{{gpu}}}}}", "{{0,3}}" },
    { "{\"gpu\":{gpu}}", "{\"gpu\":0,3}" },
    { "{{gpu}", "{0,3" },
    { "{{{gpu}} {{gpu}}}", "{{gpu} {gpu}}" },
    { "${gpu} $${gpu}}", "${gpu} $${gpu}}" },
    { "${{gpu}} ${{gpu}}}", "$0,3 $0,3}" },
    { "${{{gpu}}}", "${0,3}" },
    { "${{{{gpu}}}}", "${{gpu}}" },
    { "${{gpu}", "${0,3" },
    { "${X:-{gpu}}", "${X:-0,3}" },
    { "{gpu}{gpus}{{gpu}}{gpu}", "0,32{gpu}0,3" },
    { "{} {a,b} {print $1} {\"x\":1} {lr} {{lr}} {Gpu} {gpu-x} {gpu0} {gpu }",
      "{} {a,b} {print $1} {\"x\":1} {lr} {{lr}} {Gpu} {gpu-x} {gpu0} {gpu }" },
    { "{gpu", "{gpu" },
    { "gpu}", "gpu}" },
    { "{gpu{gpu}", "{gpu0,3" },
    { "{{{", "{{{" },
    { "{", "{" },
    { "}}{gpu", "}}{gpu" },
};

T_CASE(start)
{
    for (size_t i = 0; i < T_LENGTH(starts); i++) {
        char *text = gpq_template_start(starts[i].text, values);
        T_TEXT(text, starts[i].expected);
        free(text);
    }
}

T_CASE(names_of_the_start)
{
    char *text;

    T_EQ(gpq_template_starts("{gpu} {{port}} ${out} {task}"),
         1 << GPQ_START_GPU | 1 << GPQ_START_TASK);
    T_EQ(gpq_template_starts("${{out}} {{{port}}}"), 1 << GPQ_START_OUT | 1 << GPQ_START_PORT);
    T_EQ(gpq_template_starts("{{gpu}} {} {lr}"), 0);
    T_EQ(gpq_start_named("gpus", 4), GPQ_START_GPUS);
    T_EQ(gpq_start_named("gpus", 3), GPQ_START_GPU);
    T_EQ(gpq_start_named("", 0), GPQ_STARTS);
    /* One without a value stays as it is. */
    text = gpq_template_start("{gpu} {port} {{port}}", (const char *const[GPQ_STARTS]){ "7" });
    T_TEXT(text, "7 {port} {port}");
    free(text);
}

/* ---- The submit ---- */

/* Reads a template with all names, and fills it: names of one letter have a value. */
static char *filled(const char *text, const char *const *letters, bool *ret_starts)
{
    struct gpq_texts parts = { 0 }, out = { 0 };
    const char *slots[64];

    T_CHECK(gpq_template_read(text, true, &parts));
    T_CMP(parts.n / 2, <, T_LENGTH(slots));
    for (size_t i = 0; i < parts.n / 2; i++) {
        const char *name = gpq_texts_get(&parts, 2 * i + 1);
        slots[i] = gpq_start_named(name, strlen(name)) != GPQ_STARTS ? NULL
                   : *name                                           ? letters[*name - 'a']
                                                                     : letters[0];
    }
    *ret_starts = false;
    T_EQ(gpq_template_fill(&parts, slots, 100000, &out, ret_starts), 0);
    T_EQ(out.n, 1);
    gpq_texts_free(&parts);
    free(out.at);
    return out.data;
}

/* The text that the submit sends. */
static char *sent(const char *text, const char *const *letters, bool *ret_starts)
{
    char *raw = filled(text, letters, ret_starts);
    struct gpq_texts out = { 0 };

    T_CHECK(gpq_template_write(raw, &out));
    free(raw);
    free(out.at);
    return out.data;
}

static const char *const letters[] = { "{gpu}", "$", "{", "}", "gpu" };

static const struct {
    const char *text, *sent, *started;
} submits[] = {
    { "x{a}y", "x{{gpu}}y", "x{gpu}y" },
    { "{a} {gpu}", "{{gpu}} {gpu}", "{gpu} 0,3" },
    { "{{a}} {{{a}}}", "{a} {{{{gpu}}}}", "{a} {{gpu}}" },
    { "{{gpu}} {gpu}", "{{gpu}} {gpu}", "{gpu} 0,3" },
    { "{}", "{{gpu}}", "{gpu}" },
    { "{{}}", "{}", "{}" },
    { "{b}{gpu}", "${{gpu}}", "$0,3" },      /* a dollar of a value is no shell's */
    { "{b}{a}", "${gpu}", "${gpu}" },        /* and may be directly before a brace */
    { "{c}{gpu}{d}", "{{{gpu}}}", "{0,3}" }, /* nor are braces of values those of a name */
    { "{c}{e}{d}", "{{gpu}}", "{gpu}" },
    { "{b}{c}{gpu}{d}", "${{{gpu}}}", "${0,3}" },
    { "{c}{gpu}", "{{gpu}", "{0,3" },
    { "${a} ${HOME}", "${a} ${HOME}", "${a} ${HOME}" },
    { "${{a}}", "${gpu}", "${gpu}" },
    { "${{{a}}}", "${{{{gpu}}}}", "${{gpu}}" },
    { "{print $1} {a,b} {\"x\":{gpu}}", "{print $1} {a,b} {\"x\":{gpu}}",
      "{print $1} {a,b} {\"x\":0,3}" },
};

T_CASE(submit_and_start)
{
    for (size_t i = 0; i < T_LENGTH(submits); i++) {
        bool has;
        char *text = sent(submits[i].text, letters, &has);
        T_TEXT(text, submits[i].sent);
        T_EQ(has, gpq_template_starts(text) != 0);
        char *started = gpq_template_start(text, values);
        T_TEXT(started, submits[i].started);
        free(started);
        free(text);
    }
}

T_CASE(too_long)
{
    struct gpq_texts parts = { 0 }, out = { 0 };
    bool has = false;

    T_CHECK(gpq_template_read("a{b}c", true, &parts));
    T_EQ(gpq_template_fill(&parts, (const char *[]){ "123" }, 5, &out, &has), 0);
    T_EQ(gpq_template_fill(&parts, (const char *[]){ "1234" }, 5, &out, &has), GPQ_EINVAL);
    T_EQ(gpq_template_fill(&parts, (const char *[]){ "" }, 2, &out, &has), 0);
    T_EQ(out.n, 2); /* nothing remains of the refused one */
    T_TEXT(gpq_texts_get(&out, 0), "a123c");
    T_TEXT(gpq_texts_get(&out, 1), "ac");
    gpq_texts_free(&parts);
    gpq_texts_free(&out);
}

/* ---- Random texts ---- */

static void draw_text(uint64_t *seed, char *ret, size_t pieces, bool names)
{
    static const char *const some[] = { "{",    "}",   "{{",    "}}",      "$", "gpu",
                                        "gpus", "out", "-",     " ",       "x", "\xc3\xa9",
                                        "{a}",  "{b}", "{gpu}", "{{gpu}}", "{}" };
    size_t n = names ? T_LENGTH(some) : 12;

    *ret = 0;
    while (pieces-- > 0)
        strcat(ret, some[draw_below(seed, (uint32_t)n)]);
}

/* Any text without names is sent so that the start makes exactly it. */
T_LONG_CASE(values_come_through, 60)
{
    uint64_t seed = 7;

    for (size_t round = 0; round < t_rounds(200000, 20000); round++) {
        char text[3][64];
        const char *const drawn[] = { text[0], text[1], text[2], "", "" };
        bool has;
        for (int i = 0; i < 3; i++)
            draw_text(&seed, text[i], draw_below(&seed, 8), false);
        /* Values with and without a name of the start between them. */
        const char *template = draw_chance(&seed, 50) ? "{a}{gpu}{b}{port}{c}" : "{a}{b}{c}";
        char expected[256], *send = sent(template, drawn, &has);
        (void)snprintf(expected, sizeof(expected), "%s%s%s%s%s", text[0], has ? values[0] : "",
                       text[1], has ? values[2] : "", text[2]);
        char *started = gpq_template_start(send, values);
        T_TEXT(started, expected);
        free(started);
        free(send);
    }
}

/* A text that has no columns is sent as it is: each meaning has one spelling. */
T_LONG_CASE(one_spelling, 60)
{
    uint64_t seed = 9;

    for (size_t round = 0; round < t_rounds(200000, 20000); round++) {
        struct gpq_texts parts = { 0 }, raw = { 0 }, out = { 0 };
        const char *slots[64] = { 0 };
        char text[256];
        bool has = false;
        draw_text(&seed, text, draw_below(&seed, 12), true);
        T_CHECK(gpq_template_read(text, false, &parts));
        T_EQ(gpq_template_fill(&parts, slots, sizeof(text), &raw, &has), 0);
        T_CHECK(gpq_template_write(gpq_texts_get(&raw, 0), &out));
        T_TEXT(gpq_texts_get(&out, 0), text);
        T_EQ(has, gpq_template_starts(text) != 0);
        gpq_texts_free(&parts);
        gpq_texts_free(&raw);
        gpq_texts_free(&out);
    }
}
