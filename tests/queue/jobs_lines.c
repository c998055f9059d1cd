/* SPDX-License-Identifier: MIT */
/* jobs_lines.c - plain lines and paths as jobs. */
#include "harness.h"

#include "jobs_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES GPQ_JOBS_LINES
#define FILES GPQ_JOBS_FILES

static const struct jobs_case lines[] = {
    { .format = LINES,
      .input = "a \\\\\n# b \\\nc \\\\\\\nd\n",
      .expected =
          "1 | /bin/sh | -c | a \\\\\nEINVAL: line 3: a task is one line: the backslash at its "
          "end would continue it\n" },
    { .format = LINES, .input = "", .expected = "0 jobs, 0 comments\n" },
    { .format = LINES,
      .input = "echo 1\n\n# a comment\n \t# too\n  \necho 2 # kept\n",
      .expected = "1 | /bin/sh | -c | echo 1\n6 | /bin/sh | -c | echo 2 # kept\n"
                  "2 jobs, 4 comments\n" },
    { .format = LINES,
      .input = "last",
      .expected = "1 | /bin/sh | -c | last\n1 jobs, 0 comments\n" },
    { .format = LINES,
      .input = "\xef\xbb\xbf"
               "a\r\nb\rc\r\n\r\nd\r",
      .expected = "1 | /bin/sh | -c | a\n2 | /bin/sh | -c | b\rc\n4 | /bin/sh | -c | d\n"
                  "3 jobs, 1 comments\n" },
    { .format = LINES, /* one mark only, and only at the beginning */
      .input = "\xef\xbb\xbf\xef\xbb\xbf"
               "a\n\xef\xbb\xbf"
               "b\n",
      .expected = "1 | /bin/sh | -c | \xef\xbb\xbf"
                  "a\n2 | /bin/sh | -c | \xef\xbb\xbf"
                  "b\n"
                  "2 jobs, 0 comments\n" },
    { .format = LINES,
      .input = "\xef\xbb",
      .expected = "EINVAL: line 1: byte 1 is 0xef, which is not UTF-8\n" },
    { .format = LINES,
      .input = "\xef\xbbx\n",
      .expected = "EINVAL: line 1: byte 1 is 0xef, which is not UTF-8\n" },
    { .format = LINES,
      .input = "a\nbc\xc0\xaf\nd\ne\xff\n\xed\xa0\x80\nf\n",
      .expected =
          "1 | /bin/sh | -c | a\n"
          "EINVAL: line 2: byte 3 is 0xc0, which is not UTF-8; 2 further lines are refused\n" },
    { .format = LINES,
      .input = "a\nb\0c\nd\0\n",
      .size = 9,
      .expected = "1 | /bin/sh | -c | a\n"
                  "EINVAL: line 2: byte 2 is NUL, which no command can have; 1 further line is "
                  "refused\n" },
    { .format = LINES,
      .input = "# \xff is refused in a comment\n",
      .expected = "EINVAL: line 1: byte 3 is 0xff, which is not UTF-8\n" },
    /* Names of the start. */
    { .format = LINES,
      .input = "run --gpus {gpus} {{gpu}}\nawk '{print $1}' {a,b} {} {lr} ${gpu}\n"
               "text {{gpu}}\n${{port}}\n",
      .expected = "1 | /bin/sh | -c | run --gpus {gpus} {{gpu}} | replace\n"
                  "2 | /bin/sh | -c | awk '{print $1}' {a,b} {} {lr} ${gpu}\n"
                  "3 | /bin/sh | -c | text {gpu}\n"
                  "4 | /bin/sh | -c | ${{port}} | replace\n4 jobs, 0 comments\n" },
    /* A template. */
    { .format = LINES,
      .command = "wc|-l|{}|x{}y{{}}",
      .texts = { "name", "n-{}" },
      .input = "a b\n# c\nd{gpu}\n",
      .expected = "1 | wc | -l | a b | xa by{} | name=n-a b\n"
                  "3 | wc | -l | d{gpu} | xd{gpu}y{} | name=n-d{gpu}\n2 jobs, 1 comments\n" },
    { .format = LINES,
      .command = "wc|{}|{gpu}",
      .input = "a{gpu}\n",
      .expected = "1 | wc | a{{gpu}} | {gpu} | replace\n1 jobs, 0 comments\n" },
    { .format = LINES,
      .command = "wc|{lr}{}",
      .input = "a\n",
      .expected =
          "EINVAL: {lr}: a file of lines has no names, only {}; {{lr}} is the text itself\n" },
    { .format = LINES,
      .command = "wc|{{}}",
      .input = "a\n",
      .expected = "EINVAL: the command has no {}: it would be the same for each line; put {} where "
                  "the line belongs\n" },
    { .format = LINES,
      .command = "wc|{}",
      .texts = { "name", "{}-{gpu}" },
      .input = "#\na\nb\n",
      .expected = "EINVAL: line 2: --name: {gpu} is known only when the task starts, and replaced "
                  "only in the command; {{gpu}} is the text itself; 1 further line is refused\n" },
    { .format = LINES,
      .command = "wc\xff|{}",
      .input = "a\n",
      .expected = "EINVAL: argument 0 of the command is not UTF-8\n" },
    { .format = LINES,
      .command = "wc|{}",
      .texts = { "name", "\xff" },
      .input = "a\n",
      .expected = "EINVAL: --name: the text is not UTF-8\n" },
    { .format = LINES,
      .command = "",
      .input = "a\n",
      .expected = "EINVAL: the command is empty\n" },
};

T_CASE(lines)
{
    jobs_check(lines, T_LENGTH(lines));
}

static const struct jobs_case paths[] = {
    { .format = FILES,
      .input = "# a path\r\n\n  b \n{gpu} {{gpu}}\n",
      .expected = "1 | # a path\n3 |   b \n4 | {gpu} {{gpu}}\n3 jobs, 1 comments\n" },
    { .format = FILES,
      .input = "a\0b\0",
      .size = 4,
      .expected = "EINVAL: line 1: byte 2 is NUL, which no command can have\n" },
    { .format = FILES,
      .command = "wc|{}",
      .input = "# a\n",
      .expected = "1 | wc | # a\n1 jobs, 0 comments\n" },
};

T_CASE(paths)
{
    jobs_check(paths, T_LENGTH(paths));
}

/* ---- Long lines ---- */

struct seen {
    size_t jobs, longest;
};

static int see(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    struct seen *seen = user;
    size_t size = strlen(job->argv[job->n_argv - 1]);

    (void)e;
    seen->jobs++;
    seen->longest = size > seen->longest ? size : seen->longest;
    return 0;
}

static int read_long(const struct gpq_jobs_how *how, size_t size, const char *end,
                     struct seen *seen, struct gpq_error *e)
{
    *seen = (struct seen){ 0 };
    return jobs_read_long(how, "", 'x', size, end, see, seen, e);
}

T_CASE(long_lines)
{
    static const char *const each[] = { "echo", "{}", NULL };
    const struct gpq_jobs_how how = { 0 }, with = { .command = each };
    struct gpq_error e;
    struct seen seen;

    T_EQ(read_long(&how, GPQ_JOBS_ARGUMENT_MOST, "\na\n", &seen, &e), 0);
    T_EQ(read_long(&how, GPQ_JOBS_ARGUMENT_MOST + 1, "\r\na\n", &seen, &e), 0);
    T_EQ(seen.jobs, 2);
    T_EQ(seen.longest, GPQ_JOBS_ARGUMENT_MOST + 1);
    T_EQ(read_long(&with, GPQ_JOBS_ARGUMENT_MOST, "\n", &seen, &e), 0);
    T_EQ(read_long(&with, GPQ_JOBS_ARGUMENT_MOST + 1, "\n", &seen, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 1: argument 1 of the command has more than 131071 bytes, the maximum; "
                   "put a long value into a file that the command reads");
    T_EQ(read_long(&how, GPQ_JOBS_LINE_MOST, "\r\na\n", &seen, &e), 0);
    T_EQ(seen.longest, GPQ_JOBS_LINE_MOST);
    T_EQ(read_long(&how, GPQ_JOBS_LINE_MOST + 1, "\na\n\xff\n", &seen, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 1: the line has more than 16 MiB, the maximum; 1 further line is refused");
    T_EQ(read_long(&how, GPQ_JOBS_LINE_MOST + 100000, "", &seen, &e), GPQ_EINVAL);
    T_TEXT(e.text, "line 1: the line has more than 16 MiB, the maximum");
}

/* ---- What the caller refuses, and files ---- */

static int refuse(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    unsigned *calls = user;

    ++*calls;
    return job->line == 2 ? gpq_fail(e, GPQ_EREFUSED, "%s: no such\ngpu \xc3", job->argv[2]) : 0;
}

T_CASE(the_caller_refuses_a_line)
{
    const struct gpq_jobs_how how = { 0 };
    struct gpq_jobs_counts counts;
    struct gpq_jobs *r;
    struct gpq_error e;
    unsigned calls = 0;

    T_EQ(gpq_jobs_open(&how, refuse, &calls, &r, &e), 0);
    T_EQ(gpq_jobs_feed(r, "a\n", 2, &e), 0);
    T_EQ(gpq_jobs_feed(r, "b\nc\n", 4, &e), GPQ_EREFUSED);
    T_TEXT(e.text, "line 2: b: no such?gpu ?");
    T_EQ(gpq_jobs_feed(r, "\xff\n", 2, &e), GPQ_EREFUSED); /* that of the first bad line */
    T_EQ(gpq_jobs_end(r, &counts, &e), GPQ_EREFUSED);
    T_EQ(calls, 2); /* from the bad line on there are no jobs */
    T_EQ(counts.bad, 2);
    T_TEXT(e.text, "line 2: b: no such?gpu ?; 1 further line is refused");
    gpq_jobs_close(r);
}

T_CASE(a_growing_file)
{
    const struct gpq_jobs_how how = { 0 };
    struct seen seen = { 0 };
    struct gpq_jobs *r;
    struct gpq_error e;

    T_EQ(gpq_jobs_open(&how, see, &seen, &r, &e), 0);
    T_EQ(gpq_jobs_feed(r, "a\nb", 3, &e), 0);
    T_EQ(seen.jobs, 1); /* the second waits for its newline */
    T_EQ(gpq_jobs_unended(r), 2);
    T_EQ(gpq_jobs_feed(r, "b", 1, &e), 0);
    T_EQ(seen.jobs, 1);
    T_EQ(gpq_jobs_feed(r, "\n", 1, &e), 0);
    T_EQ(seen.jobs, 2);
    T_EQ(seen.longest, 2);
    T_EQ(gpq_jobs_unended(r), 0);
    T_EQ(gpq_jobs_end(r, NULL, &e), 0);
    T_EQ(seen.jobs, 2);
    gpq_jobs_close(r);
}

T_CASE(a_file)
{
    const struct gpq_jobs_how how = { 0 };
    struct gpq_jobs_counts counts;
    struct seen seen = { 0 };
    struct gpq_error e;
    FILE *out = fopen("night.txt", "we");

    T_CHECK(out);
    for (int i = 0; i < 100000; i++)
        (void)fprintf(out, "%s echo %d\n", i % 10 ? "" : "#", i);
    (void)fclose(out);
    T_EQ(gpq_jobs_file("night.txt", &how, see, &seen, &counts, &e), 0);
    T_EQ(counts.jobs, 90000);
    T_EQ(counts.comments, 10000);
    T_EQ(seen.jobs, 90000);
    T_EQ(gpq_jobs_file("night.csv", &how, see, &seen, NULL, &e), GPQ_EINVAL);
    T_TEXT(e.text, "cannot read night.csv: No such file or directory");
    T_EQ(gpq_jobs_file(".", &how, see, &seen, NULL, &e), GPQ_EINVAL);
    T_TEXT(e.text, "cannot read .: Is a directory");
}

T_CASE(formats_by_name)
{
    T_EQ(gpq_jobs_format_of("a.csv"), GPQ_JOBS_CSV);
    T_EQ(gpq_jobs_format_of("a/B.CSV"), GPQ_JOBS_CSV);
    T_EQ(gpq_jobs_format_of("a.jsonl"), GPQ_JOBS_JSONL);
    T_EQ(gpq_jobs_format_of("a.ndjson"), GPQ_JOBS_JSONL);
    T_EQ(gpq_jobs_format_of("a.csv/b"), GPQ_JOBS_LINES);
    T_EQ(gpq_jobs_format_of("csv"), GPQ_JOBS_LINES);
    T_EQ(gpq_jobs_format_of("-"), GPQ_JOBS_LINES);
}

/* ---- One command ---- */

static int one(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    char *ret = user;

    (void)e;
    T_EQ(job->line, 0);
    (void)sprintf(ret, "%s|%s|%s|%d", job->argv[0], job->argv[1], job->argv[2], job->replace);
    return 0;
}

T_CASE(a_command_of_the_command_line)
{
    static const char *const plain[] = { "a", "{{gpu}}", "{b} {}", NULL },
                             *const start[] = { "a", "{{gpu}}", "{gpu}", NULL },
                             *const none[] = { NULL }, *const no_text[] = { "a", "\xff", NULL };
    struct gpq_error e;
    char text[100];

    T_EQ(gpq_jobs_command(plain, one, text, &e), 0);
    T_TEXT(text, "a|{gpu}|{b} {}|0");
    T_EQ(gpq_jobs_command(start, one, text, &e), 0);
    T_TEXT(text, "a|{{gpu}}|{gpu}|1");
    T_EQ(gpq_jobs_command(none, one, text, &e), GPQ_EINVAL);
    T_TEXT(e.text, "the command is empty");
    T_EQ(gpq_jobs_command(no_text, one, text, &e), GPQ_EINVAL);
    T_TEXT(e.text, "argument 1 of the command is not UTF-8");
}
