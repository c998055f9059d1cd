/* SPDX-License-Identifier: MIT */
/* gpudispatch - the program for people; which verbs there are is in verbs.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "tools/cli/out.h"
#include "tools/cli/verb.h"

static bool is(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || !strcmp(word, b);
}

static int run_call(struct call *call, int argc, char **argv)
{
    int status = call_read(call, argc, argv);

    if (status)
        return status;
    if (!call->given[OPTION_HELP])
        return call->verb->run(call);
    help_verb(call->verb);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct call call = { .argv = argv };
    int status;

    if (is(name, "--help", "-h"))
        name = "help";
    if (is(name, "--version", "-V"))
        name = "version";
    call.verb = verb_find(name);
    if (!call.verb)
        return *name ? verb_unknown(NULL, name) : usage(NULL, "a verb is missing");
    status = run_call(&call, argc - 1, argv + 1);
    call_free(&call);
    return status;
}

int main(int argc, char **argv)
{
    int status;

    out_guard();
    tasks_init();             /* in a worker it does not return */
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is seen as EPIPE, */
    signal(SIGXFSZ, SIG_IGN); /* and ulimit -f as EFBIG */
    status = run(argc, argv);
    return out_flush() ? EXIT_FAILED : status;
}
