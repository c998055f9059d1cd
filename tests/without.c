/* SPDX-License-Identifier: MIT */
/*
 * without.c - runs a program as on a system that lacks a system call.
 *
 *     without pidfd_open PROGRAM [ARGUMENT]...
 *
 * The call answers ENOSYS there and in everything it starts.  Exit status 77 (skipped) where the
 * system refuses such a filter.
 */
#include "seccomp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int number;
} calls[] = {
    { "pidfd_open", SYS_pidfd_open },
    { "close_range", SYS_close_range },
};

/* Says why, here and to tools/test.sh. */
static void skip(const char *call, const char *program)
{
    const char *path = getenv("GPUD_TEST_RESULTS"), *name = strrchr(program, '/'),
               *why = strerror(errno);
    FILE *out = path && *path ? fopen(path, "ae") : NULL;

    fprintf(stderr, "without: no filter can be set here: %s\n", why);
    if (!out)
        return;
    fprintf(out, "skip %s/without %s: no filter can be set here: %s\n", name ? name + 1 : program,
            call, why);
    (void)fclose(out);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(argv[1], calls[i].name))
            continue;
        if (t_deny(calls[i].number, ENOSYS)) {
            skip(argv[1], argv[argc - 1]);
            return 77;
        }
        execv(argv[2], argv + 2);
        fprintf(stderr, "without: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    fprintf(stderr, "usage: without CALL PROGRAM [ARGUMENT]...\n");
    return 2;
}
