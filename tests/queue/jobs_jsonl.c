/* SPDX-License-Identifier: MIT */
/* jobs_jsonl.c - JSON objects as jobs. */
#include "harness.h"

#include "jobs_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSONL .format = GPQ_JOBS_JSONL
#define ONE "1 jobs, 0 comments\n"

static const struct jobs_case objects[] = {
    { JSONL,
      .input = "{\"argv\":[\"a\",\"\",\"b c\"],\"gpus\":2,\"name\":\"n\"}\r\n\n \t\n"
               "{\"command\":\"echo 1\"}",
      .expected = "1 | a |  | b c | gpus=2 name=n\n4 | /bin/sh | -c | echo 1\n"
                  "2 jobs, 2 comments\n" },
    { JSONL,
      .input = "{\"limit\":null,\"env\":[\"A=1\",\"B=\"],\"gpus\":0.5,\"name\":true,"
               "\"command\":\"a\",\"memory\":\"\"}\n",
      .expected = "1 | /bin/sh | -c | a | env=A=1 env=B= gpus=0.5 name=true memory=\n" ONE },
    { JSONL,
      .input = "{\"argv\":[\"a\",\"{gpu}\",\"{{gpu}}\"]}\n{\"argv\":[\"a\",\"{{gpu}}\"]}\n"
               "{\"command\":\"a {out}\"}\n",
      .expected = "1 | a | {gpu} | {{gpu}} | replace\n2 | a | {gpu}\n"
                  "3 | /bin/sh | -c | a {out} | replace\n3 jobs, 0 comments\n" },
    { JSONL, .input = "{\"argv\":[\"a\"]}\n[1]\n{}\nx\n",
      .expected =
          "1 | a\nEINVAL: line 2: expected a JSON object, this is a list; 2 further lines are "
          "refused\n" },
    { JSONL, .input = "{\"argv\":[\"a\"]} x\n",
      .expected = "EINVAL: line 1: expected a JSON object: end of file expected near 'x' "
                  "(byte 16)\n" },
    { JSONL, .input = "{\"command\":\"a\",\n\"gpus\":1}\n",
      .expected = "EINVAL: line 1: expected a JSON object: string or '}' expected near end of file "
                  "(byte 15); 1 further line is refused\n" },
    { JSONL, .input = "{\"command\":\"a\",\"command\":\"b\"}\n",
      .expected = "EINVAL: line 1: expected a JSON object: duplicate object key near '\"command\"' "
                  "(byte 24)\n" },
    { JSONL, .input = "{\"command\":\"a\\u0000\"}\n",
      .expected = "EINVAL: line 1: byte 20: \\u0000 is NUL, which no command can have\n" },
    { JSONL, .input = "# no comment\n",
      .expected =
          "EINVAL: line 1: expected a JSON object: '[' or '{' expected near '#' (byte 1)\n" },
    { JSONL, .input = "{\"command\":\"\xc3\"}\n",
      .expected = "EINVAL: line 1: byte 13 is 0xc3, which is not UTF-8\n" },
    { JSONL, .input = "{\"gpus\":1}\n",
      .expected = "EINVAL: line 1: the object has no argv and no command; with --each FILE -- "
                  "COMMAND members replace {NAME}\n" },
    { JSONL, .input = "{\"command\":\"a\",\"argv\":[\"b\"]}\n",
      .expected = "EINVAL: line 1: the object has both argv and command\n" },
    { JSONL, .input = "{\"command\":\"a\",\"lr\":1}\n",
      .expected =
          "EINVAL: line 1: unknown member 'lr'; an object has argv or command, and options: "
          "gpus, memory, name, env, limit\n" },
    { JSONL, .input = "{\"argv\":\"a\"}\n",
      .expected = "EINVAL: line 1: argv is a text, expected a list of texts\n" },
    { JSONL, .input = "{\"argv\":[\"a\",3]}\n",
      .expected = "EINVAL: line 1: argv[1] is a number, expected a text\n" },
    { JSONL, .input = "{\"argv\":[]}\n", .expected = "EINVAL: line 1: the command is empty\n" },
    { JSONL, .input = "{\"argv\":[\"\"]}\n", .expected = "EINVAL: line 1: the command is empty\n" },
    { JSONL, .input = "{\"command\":[\"a\"]}\n",
      .expected = "EINVAL: line 1: command is a list, expected a text; argv is a list of texts\n" },
    { JSONL, .input = "{\"command\":\" \"}\n", .expected = "EINVAL: line 1: command is empty\n" },
    { JSONL, .input = "{\"command\":\"a\",\"name\":{\"x\":1}}\n",
      .expected = "EINVAL: line 1: name is an object, expected a text, a number or a boolean\n" },
    { JSONL, .input = "{\"command\":\"a\",\"env\":[\"A=1\",null]}\n",
      .expected = "EINVAL: line 1: env is null, expected a text, a number or a boolean\n" },
    { JSONL, .input = "{\"command\":\"a\",\"gpus\":123456789012345678901234567890}\n",
      .expected = "EINVAL: line 1: byte 52: the number is too large; write it as a text\n" },
    { JSONL, .input = "{\"command\":\"a\",\"gpus\":-1e999}\n",
      .expected = "EINVAL: line 1: byte 28: the number is too large; write it as a text\n" },
};

T_CASE(objects)
{
    jobs_check(objects, T_LENGTH(objects));
}

static const struct jobs_case templates[] = {
    { JSONL, .command = "train|{lr}|{n}|{b}|{{lr}}", .texts = { "name", "s{n}" },
      .input = "{\"lr\":3e-4,\"n\":-7,\"b\":false,\"more\":[1]}\n"
               "{\"b\":\"x{gpu}\",\"n\":\"\",\"lr\":1.0}\n",
      .expected = "1 | train | 0.0003 | -7 | false | {lr} | name=s-7\n"
                  "2 | train | 1.0 |  | x{gpu} | {lr} | name=s\n2 jobs, 0 comments\n" },
    { JSONL, .command = "train|{x}",
      .input = "{\"x\":0.1}\n{\"x\":1e300}\n{\"x\":1e-7}\n{\"x\":0.30000000000000004}\n"
               "{\"x\":123456.789}\n{\"x\":-0.0}\n{\"x\":9223372036854775807}\n",
      .expected = "1 | train | 0.1\n2 | train | 1e+300\n3 | train | 1e-07\n"
                  "4 | train | 0.30000000000000004\n5 | train | 123456.789\n6 | train | -0.0\n"
                  "7 | train | 9223372036854775807\n7 jobs, 0 comments\n" },
    { JSONL, /* a member wins over the name of the start; null is none */
      .command = "train|{gpus}|{task}",
      .input =
          "{\"gpus\":2,\"task\":\"t\"}\n{\"gpus\":null,\"task\":\"{gpus}\"}\n{\"name\":\"x\"}\n",
      .expected = "1 | train | 2 | t | gpus=2\n2 | train | {gpus} | {{gpus}} | replace\n"
                  "3 | train | {gpus} | {task} | name=x replace\n3 jobs, 0 comments\n" },
    { JSONL, .command = "train|{lr}", .input = "{\"lr\":1}\n{\"seed\":1,\"rate\":2}\n",
      .expected = "1 | train | 1\nEINVAL: line 2: {lr}: no such member; the object has seed, rate; "
                  "{{lr}} is the text itself\n" },
    { JSONL, .command = "train|{lr}", .input = "{}\n",
      .expected = "EINVAL: line 1: {lr}: no such member; the object has none; {{lr}} is the text "
                  "itself\n" },
    { JSONL, .command = "train|{lr}", .input = "{\"lr\":[1]}\n",
      .expected = "EINVAL: line 1: {lr}: the member is a list; {{lr}} is the text itself\n" },
    { JSONL, .command = "train|{}", .input = "{\"lr\":1}\n",
      .expected =
          "EINVAL: line 1: {}: no such member; the object has lr; {{}} is the text itself\n" },
};

T_CASE(templates)
{
    jobs_check(templates, T_LENGTH(templates));
}

/* ---- Long arguments ---- */

T_CASE(long_arguments)
{
    static const struct {
        size_t size;
        const char *member, *expected;
    } rows[] = {
        { GPQ_JOBS_ARGUMENT_MOST, "{\"argv\":[\"a\",\"%s\"]}", ONE },
        { GPQ_JOBS_ARGUMENT_MOST + 1, "{\"argv\":[\"a\",\"%s\"]}",
          "EINVAL: line 1: argument 1 of the command has more than 131071 bytes, the maximum; put "
          "a "
          "long value into a file that the command reads\n" },
        { GPQ_JOBS_ARGUMENT_MOST + 1, "{\"command\":\"%s\"}", "\n" ONE },
    };

    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        char *value = malloc(rows[i].size + 1), *text = malloc(rows[i].size + 100);
        T_CHECK(value && text);
        memset(value, 'v', rows[i].size);
        value[rows[i].size] = 0;
        (void)snprintf(text, rows[i].size + 100, rows[i].member, value);
        const struct jobs_case c = { JSONL, .input = text };
        char *got = jobs_transcript(&c, 1000, 1000);
        size_t length = strlen(got), end = strlen(rows[i].expected);
        T_CMP(length, >=, end);
        T_TEXT(got + length - end, rows[i].expected);
        free(got);
        free(value);
        free(text);
    }
}
