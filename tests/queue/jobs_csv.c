/* SPDX-License-Identifier: MIT */
/* jobs_csv.c - rows of a CSV file as jobs. */
#include "harness.h"

#include "jobs_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CSV .format = GPQ_JOBS_CSV

static const struct jobs_case commands[] = {
    { CSV, .input = "command,gpus,name\necho 1,2,a\necho 2,,\n",
      .expected = "2 | /bin/sh | -c | echo 1 | gpus=2 name=a\n3 | /bin/sh | -c | echo 2\n"
                  "2 jobs, 0 comments\n" },
    { CSV, .input = "\xef\xbb\xbf\"command\"\r\n\r\n\"a \"\"b\"\",\r\nc\"\r\n\r\n# no comment",
      .expected = "3 | /bin/sh | -c | a \"b\",\r\nc\n6 | /bin/sh | -c | # no comment\n"
                  "2 jobs, 2 comments\n" },
    { CSV, .input = "\n\nname,command\n,\"run {gpu}\"\nx,{{gpu}}\n\"\",a\r",
      .expected = "4 | /bin/sh | -c | run {gpu} | replace\n"
                  "5 | /bin/sh | -c | {gpu} | name=x\n6 | /bin/sh | -c | a\n3 jobs, 2 comments\n" },
    { CSV, .input = "command", .expected = "0 jobs, 0 comments\n" },
    { CSV, .input = "",
      .expected = "EINVAL: the file has no header; its first line names the columns\n" },
    { CSV, .input = "\r\n\n",
      .expected = "EINVAL: the file has no header; its first line names the columns\n" },
    { CSV, .input = "gpus\n2\n",
      .expected = "EINVAL: line 1: the header has no column command; with --each FILE -- COMMAND "
                  "columns replace {NAME}\n" },
    { CSV, .input = "command,lr\na,1\n",
      .expected =
          "EINVAL: line 1: column 'lr' is no option; beside command there may be gpus, "
          "memory, name, env, limit; with --each FILE -- COMMAND columns replace {NAME}\n" },
    { CSV, .input = "command,gpus\na\n\nb,2,\nc,2\n \t,2\n",
      .expected = "EINVAL: line 2: the row has 1 field, the header 2; 2 further lines are "
                  "refused\n" },
    { CSV, .input = "command\n\" \n\"\n", .expected = "EINVAL: line 2: command is empty\n" },
    { CSV, .input = "command\na\nb\n\n\xff\n",
      .expected = "2 | /bin/sh | -c | a\n3 | /bin/sh | -c | b\n"
                  "EINVAL: line 5: byte 1 of field 1 is 0xff, which is not UTF-8\n" },
    { CSV, .input = "command,gpus\n\"a\nb\",2\n\"c\nd\",\xc3\n",
      .expected = "2 | /bin/sh | -c | a\nb | gpus=2\n"
                  "EINVAL: line 4: byte 1 of field 2 is 0xc3, which is not UTF-8\n" },
    { CSV, .input = "comm\xc3,gpus\na,1\n",
      .expected = "EINVAL: line 1: byte 5 of field 1 is 0xc3, which is not UTF-8\n" },
    { CSV, .input = "command,,gpus\n",
      .expected = "EINVAL: line 1: field 2: a column of the header has no name\n" },
    { CSV, .input = "command,\n",
      .expected = "EINVAL: line 1: field 2: a column of the header has no name\n" },
    { CSV, .input = "command,gpus,name,gpus\n",
      .expected = "EINVAL: line 1: columns 2 and 4 have the same name, gpus\n" },
    /* Quotes. */
    { CSV, .input = "command\n\"a\nb\n",
      .expected = "EINVAL: line 2: field 1: the quote at its beginning is not closed\n" },
    { CSV, .input = "command,gpus\na,\"1\n\nb,\"2\"\n",
      .expected = "EINVAL: line 4: field 2: text behind the closing quote; double a quote that is "
                  "part of the field\n" },
    { CSV, .input = "command\n\"a\" \nb\n",
      .expected = "EINVAL: line 2: field 1: text behind the closing quote; double a quote that is "
                  "part of the field\n" },
    { CSV, .input = "command\na\n x\"b\"\n",
      .expected = "2 | /bin/sh | -c | a\n"
                  "EINVAL: line 3: field 1: a quote in a field that has none at its beginning; put "
                  "the whole field in quotes, and double this one\n" },
    { CSV, .input = "command\na\rb\n",
      .expected = "EINVAL: line 2: field 1: a carriage return without a newline; put the field in "
                  "quotes\n" },
    { CSV, .input = "command\n\r\r\n",
      .expected = "EINVAL: line 2: field 1: a carriage return without a newline; put the field in "
                  "quotes\n" },
    { CSV, .input = "command\n\"a\n\nb\0\"\n", .size = 16,
      .expected = "EINVAL: line 4: field 1: it has a NUL, which no command can have\n" },
};

T_CASE(commands)
{
    jobs_check(commands, T_LENGTH(commands));
}

static const struct jobs_case templates[] = {
    { CSV, .command = "train|--lr|{lr}|-s{seed}|{{lr}}", .texts = { "name", "lr{lr}-s{seed}" },
      .input = "lr,seed,note\n3e-4,1,\n\"1,5\",2,x\n",
      .expected = "2 | train | --lr | 3e-4 | -s1 | {lr} | name=lr3e-4-s1\n"
                  "3 | train | --lr | 1,5 | -s2 | {lr} | name=lr1,5-s2\n2 jobs, 0 comments\n" },
    { CSV, /* a column of an option's name is both */
      .command = "train|{gpus}|{port}", .texts = { "name", "n" }, .input = "gpus,name\n2,a\n,\n",
      .expected = "2 | train | 2 | {port} | name=n gpus=2 name=a replace\n"
                  "3 | train | {gpus} | {port} | name=n replace\n2 jobs, 0 comments\n" },
    { CSV, /* a column wins over the name of the start, also empty */
      .command = "train|{out}x", .input = "out\n1\n\"\"\n",
      .expected = "2 | train | 1x\n3 | train | x\n2 jobs, 0 comments\n" },
    { CSV, /* values are text, whatever they have */
      .command = "train|{a}|{gpu}", .input = "a,command\n{gpu},\n${gpu},\n{a},\n\"{{gpu}}\",\n",
      .expected = "2 | train | {{gpu}} | {gpu} | replace\n3 | train | ${gpu} | {gpu} | replace\n"
                  "4 | train | {a} | {gpu} | replace\n5 | train | {{{{gpu}}}} | {gpu} | replace\n"
                  "4 jobs, 0 comments\n" },
    { CSV, .command = "train|${HOME}|{print $1}|{a,b}|{a}", .input = "a\n1\n",
      .expected = "2 | train | ${HOME} | {print $1} | {a,b} | 1\n1 jobs, 0 comments\n" },
    { CSV, .command = "train|{lrr}", .input = "lr,seed\n1,2\n",
      .expected =
          "EINVAL: line 1: {lrr}: no such column; the file has lr, seed; {{lrr}} is the text "
          "itself\n" },
    { CSV, .command = "train|{}", .input = "lr,seed\n1,2\n",
      .expected =
          "EINVAL: line 1: {}: no such column; the file has lr, seed; {{}} is the text itself\n" },
    { CSV, .command = "train", .texts = { "name", "{x}" }, .input = "lr\n1\n",
      .expected =
          "EINVAL: line 1: {x}: no such column; the file has lr; {{x}} is the text itself\n" },
    { CSV, .command = "{a}", .input = "a,b\n\"\",1\nls,1\n",
      .expected = "EINVAL: line 2: the command is empty\n" },
};

T_CASE(templates)
{
    jobs_check(templates, T_LENGTH(templates));
}

/* ---- Large files ---- */

static int count(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    (void)e;
    T_TEXT(job->argv[1], user);
    return 0;
}

/* Reads a header and a row of n columns c0, c1, ...; the value of each is its number. */
static int read_wide(size_t n, const char *last, struct gpq_error *e)
{
    const struct gpq_jobs_how how = { .format = GPQ_JOBS_CSV,
                                      .command = (const char *[]){ "echo", "{c77777}", NULL } };
    size_t size;
    char *text;
    FILE *out = open_memstream(&text, &size);
    struct gpq_jobs *r;

    for (size_t i = 0; i + 1 < n; i++)
        (void)fprintf(out, "c%zu,", i);
    (void)fprintf(out, "%s\n", last);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "%zu%s", i, i + 1 < n ? "," : "\n");
    (void)fclose(out);
    T_EQ(gpq_jobs_open(&how, count, "77777", &r, e), 0);
    (void)gpq_jobs_feed(r, text, size, e);
    int code = gpq_jobs_end(r, NULL, e);
    gpq_jobs_close(r);
    free(text);
    return code;
}

T_LONG_CASE(a_million_columns, 60)
{
    struct gpq_error e;

    T_EQ(read_wide(1000000, "z", &e), 0);
    T_EQ(read_wide(1000000, "c77777", &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 1: columns 77778 and 1000000 have the same name, c77777");
    T_EQ(read_wide(1000001, "z", &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 1: the header has more than 1000000 columns, the maximum");
}

static int read_long(const char *begin, char c, size_t size, struct gpq_error *e)
{
    const struct gpq_jobs_how how = { .format = GPQ_JOBS_CSV,
                                      .command = (const char *[]){ "echo", "", NULL } };

    return jobs_read_long(&how, begin, c, size, "", count, "", e);
}

T_CASE(long_rows)
{
    struct gpq_error e;

    T_EQ(read_long("a,b\n1,", 'x', GPQ_JOBS_LINE_MOST, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 2: the row has more than 16 MiB, the maximum");
    T_EQ(read_long("a\n1\n\"", '\n', GPQ_JOBS_LINE_MOST, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 3: the row has more than 16 MiB, the maximum; a quote in it may not be "
                   "closed");
    T_EQ(read_long("a\n1", ',', 1000000, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 2: the row has 1000001 fields, the header 1");
}
