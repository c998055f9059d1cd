/* SPDX-License-Identifier: MIT */
/* program.c - where the programs of the queue are found, also in a prefix that was moved. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/program.h"

static const char name[] = "gpudispatch-runner";
static char here[1024], own[2048], path[GPQ_PATH], wanted[2048];
static struct gpq_error e;

/* A prefix, whose programs lie in bin, and libexec as BINDIR sees it. */
static struct gpq_program_places begin(void)
{
    T_CHECK(getcwd(here, sizeof(here)));
    (void)snprintf(own, sizeof(own), "%s/bin", here);
    T_EQ(mkdir("bin", 0700), 0);
    T_EQ(mkdir("libexec", 0700), 0);
    return (struct gpq_program_places){ "GPUD_RUNNER_PROGRAM", NULL, own, "../libexec" };
}

static void make(const char *file, mode_t mode)
{
    FILE *f = fopen(file, "w");

    T_CHECK(f && !fclose(f));
    T_EQ(chmod(file, mode), 0);
}

static void expect(const struct gpq_program_places *p, const char *relative)
{
    (void)snprintf(wanted, sizeof(wanted), "%s/%s", here, relative);
    e = (struct gpq_error){ 0 };
    if (gpq_program_search(p, name, path, &e))
        T_FAIL("%s: %s", relative, e.text);
    T_TEXT(path, wanted);
}

static void expect_none(const struct gpq_program_places *p, const char *part)
{
    e = (struct gpq_error){ 0 };
    T_EQ(gpq_program_search(p, name, path, &e), GPQ_ENOTFOUND);
    if (!strstr(e.text, part) || !strstr(e.text, "GPUD_RUNNER_PROGRAM"))
        T_FAIL("no \"%s\" or no variable in: %s", part, e.text);
}

/* The variable, then beside the calling program, then as configured. */
T_CASE(the_first_place_that_has_it)
{
    struct gpq_program_places p = begin();

    expect_none(&p, "bin/../libexec/gpudispatch-runner: No such file");
    make("libexec/gpudispatch-runner", 0700);
    expect(&p, "libexec/gpudispatch-runner");
    make("bin/gpudispatch-runner", 0700);
    expect(&p, "bin/gpudispatch-runner");
    make("mine", 0700);
    p.given = "mine";
    expect(&p, "mine");
    p.given = "";
    expect(&p, "bin/gpudispatch-runner");
}

/* Nothing knows the first place of the prefix. */
T_CASE(a_moved_prefix)
{
    struct gpq_program_places p = begin();

    make("libexec/gpudispatch-runner", 0700);
    T_EQ(mkdir("there", 0700), 0);
    T_EQ(rename("bin", "there/bin"), 0);
    T_EQ(rename("libexec", "there/libexec"), 0);
    expect_none(&p, "No such file");
    (void)snprintf(own, sizeof(own), "%s/there/bin", here);
    expect(&p, "there/libexec/gpudispatch-runner");
}

T_CASE(an_absolute_configured_directory)
{
    struct gpq_program_places p = begin();
    char configured[2048];

    make("libexec/gpudispatch-runner", 0700);
    (void)snprintf(configured, sizeof(configured), "%s/libexec", here);
    p.from_bin = configured;
    expect(&p, "libexec/gpudispatch-runner");
    p.own = NULL;
    expect(&p, "libexec/gpudispatch-runner");
    p.from_bin = "../libexec";
    expect_none(&p, "No such file");
}

/* A wrong variable is an error, even where another place has the program. */
T_CASE(what_is_no_program)
{
    struct gpq_program_places p = begin();
    char longest[GPQ_PATH + 8];

    make("bin/gpudispatch-runner", 0700);
    p.given = "none";
    expect_none(&p, "none: No such file");
    p.given = "libexec";
    expect_none(&p, "libexec: Is a directory");
    make("text", 0600);
    p.given = "text";
    expect_none(&p, "text: Permission denied");
    p.given = "/dev/null";
    expect_none(&p, "/dev/null: Permission denied");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    p.given = longest;
    expect_none(&p, "File name too long");
    p.given = NULL;
    /* Without the right to execute it is no program, and the next place is searched. */
    T_EQ(chmod("bin/gpudispatch-runner", 0600), 0);
    make("libexec/gpudispatch-runner", 0700);
    expect(&p, "libexec/gpudispatch-runner");
    T_EQ(unlink("libexec/gpudispatch-runner"), 0);
    T_EQ(mkdir("libexec/gpudispatch-runner", 0700), 0);
    expect_none(&p, "Is a directory");
}

T_CASE(each_program_has_its_variable)
{
    (void)begin();
    make("agent", 0700);
    T_EQ(setenv("GPUD_AGENT_PROGRAM", "agent", 1), 0);
    T_EQ(setenv("GPUD_RUNNER_PROGRAM", "/no/runner", 1), 0);
    (void)snprintf(wanted, sizeof(wanted), "%s/agent", here);
    T_EQ(gpq_program_find("gpudispatch-agent", path, &e), 0);
    T_TEXT(path, wanted);
    T_EQ(gpq_program_find("gpudispatch-runner", path, &e), GPQ_ENOTFOUND);
    T_CHECK(strstr(e.text, "GPUD_RUNNER_PROGRAM /no/runner: No such file"));
    T_EQ(unsetenv("GPUD_AGENT_PROGRAM"), 0);
    T_EQ(unsetenv("GPUD_RUNNER_PROGRAM"), 0);
}
