/* SPDX-License-Identifier: MIT */
/*
 * without.c - runs a program as on a system that lacks a system call.
 *
 *     without pidfd_open PROGRAM [ARGUMENT]...
 *
 * The call answers ENOSYS there and in everything it starts.  Exit status 77 (skipped) where the
 * system refuses such a filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    { "pidfd_open", SYS_pidfd_open },
    { "close_range", SYS_close_range },
};

static int forbid(unsigned number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -1 : 0;
}

/* Says why, here and to tools/test.sh. */
static void skip(const char *call, const char *program)
{
    const char *path = getenv("GPUD_TEST_RESULTS"), *name = strrchr(program, '/'), *why = strerror(errno);
    FILE *out = path && *path ? fopen(path, "ae") : NULL;

    fprintf(stderr, "without: no filter can be set here: %s\n", why);
    if (!out)
        return;
    fprintf(out, "skip %s/without %s: no filter can be set here: %s\n", name ? name + 1 : program, call, why);
    (void)fclose(out);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(argv[1], calls[i].name))
            continue;
        if (forbid(calls[i].number)) {
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
