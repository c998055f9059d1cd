/* SPDX-License-Identifier: MIT */
/* gpudispatch - looks at devices as the library sees them; which verbs there are is in verbs.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "out.h"
#include "verbs.h"

static bool is(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || !strcmp(word, b);
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct call call = { .argv = argv };

    if (is(name, "--help", "-h"))
        name = "help";
    if (is(name, "--version", "-V"))
        name = "version";
    call.verb = verb_find(name);
    if (!call.verb)
        return *name ? usage(NULL, "unknown verb '%s'", name) : usage(NULL, "a verb is missing");
    if (verb_parse(&call, argc - 1, argv + 1))
        return EXIT_USAGE;
    if (!call.given[OPTION_HELP])
        return call.verb->run(&call);
    help_verb(call.verb);
    return EXIT_OK;
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
