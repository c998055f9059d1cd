/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOWER_HALF 0
#else
#define LOWER_HALF 4
#endif

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(at))
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (n))
#define ANSWER(how) BPF_STMT(BPF_RET | BPF_K, (how))

/* By seccomp(2): an earlier filter may deny prctl. */
static int set(struct sock_filter *code, size_t n)
{
    const struct sock_fprog program = { .len = (unsigned short)n, .filter = code };
    static int may;

    may = may || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    return may && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -1;
}

int t_deny(int number, int err)
{
    struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        SKIP_UNLESS(number, 1),
        ANSWER(SECCOMP_RET_ERRNO | (uint32_t)err),
        ANSWER(SECCOMP_RET_ALLOW),
    };

    return set(code, sizeof(code) / sizeof(*code));
}

int t_deny_where(int number, unsigned index, uint32_t value, int err)
{
    struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        SKIP_UNLESS(number, 3),
        LOAD(offsetof(struct seccomp_data, args) + index * sizeof(uint64_t) + LOWER_HALF),
        SKIP_UNLESS(value, 1),
        ANSWER(SECCOMP_RET_ERRNO | (uint32_t)err),
        ANSWER(SECCOMP_RET_ALLOW),
    };

    return set(code, sizeof(code) / sizeof(*code));
}
