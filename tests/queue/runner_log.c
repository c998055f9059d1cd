/* SPDX-License-Identifier: MIT */
/* runner_log.c - the log of a command: its limit, and a disk that is full. */
#include "harness.h"

#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* Writes this many lines of 16 bytes that hold their number. */
T_PROGRAM(writer)
{
    static char lines[16 * 4096 + 1];

    for (unsigned i = 0, n = (unsigned)atoi(argv[1]); i < n; i += 4096) {
        for (unsigned k = 0; k < 4096; k++)
            (void)snprintf(lines + 16 * k, 17, "line %10u", i + k), lines[16 * k + 15] = '\n';
        for (size_t done = 0; done < sizeof(lines) - 1;) {
            ssize_t w = write(1, lines + done, sizeof(lines) - 1 - done);
            if (w <= 0)
                return 9;
            done += (size_t)w;
        }
    }
    (void)argc;
    return 0;
}

static void write_mib(struct rig *r, unsigned mib)
{
    char lines[16];

    (void)snprintf(lines, sizeof(lines), "%u", mib * 65536);
    rig_program(r, "writer", lines);
}

/* Checks that bytes [from, to) of the log are those that were written, or, where `holes`, zeros. */
static void expect_lines(const char *path, uint64_t from, uint64_t to, bool hole)
{
    FILE *in = fopen(path, "re");
    char expected[17], line[17] = "";

    T_CHECK(in);
    T_EQ(fseek(in, (long)from, SEEK_SET), 0);
    for (uint64_t at = from; at < to; at += 16) {
        (void)snprintf(expected, sizeof(expected), "line %10u\n", (unsigned)(at / 16));
        T_EQ(fread(line, 1, 16, in), 16);
        if (hole)
            T_CHECK(!line[0] && !line[15]);
        else
            T_TEXT(line, expected);
    }
    (void)fclose(in);
}

T_CASE(big_output)
{
    struct rig r;
    struct stat st;

    rig_open(&r, "");
    write_mib(&r, 32);
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    T_EQ(stat("s/log", &st), 0);
    T_EQ(st.st_size, 32 * MIB);
    T_EQ(st.st_mode & 07777, 0600);
    expect_lines("s/log", 0, 32 * MIB, false);
    T_EQ(r.found.record.end.log_bytes, 32 * MIB);
    T_EQ(r.found.record.end.log_lost + r.found.record.end.log_freed, 0);
    rig_close(&r);
}

T_CASE(log_limit)
{
    struct gpq_run_end *end;
    struct rig r;
    struct stat st;

    rig_open(&r, "");
    write_mib(&r, 32);
    r.plan.log_limit = 2 * MIB;
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    end = &r.found.record.end;
    if (end->log_error == EOPNOTSUPP)
        t_skip("this file system frees no blocks");
    T_EQ(stat("s/log", &st), 0);
    T_EQ(st.st_size, 32 * MIB);
    T_CMP(st.st_blocks * 512, <=, 3 * MIB + MIB / 2);
    T_EQ(end->log_bytes, 32 * MIB);
    T_EQ(end->log_lost, 0);
    T_CMP(end->log_freed, >=, 28 * MIB);
    T_CMP(end->log_freed, <=, 29 * MIB);
    expect_lines("s/log", 0, MIB, false);
    expect_lines("s/log", MIB, 30 * MIB - MIB / 2, true);
    expect_lines("s/log", 30 * MIB, 32 * MIB, false);
    rig_close(&r);
}

/* Just at the limit nothing is freed. */
T_CASE(log_within_its_limit)
{
    struct rig r;

    rig_open(&r, "");
    write_mib(&r, 3);
    r.plan.log_limit = 2 * MIB;
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    T_EQ(r.found.record.end.log_freed, 0);
    expect_lines("s/log", 0, 3 * MIB, false);
    rig_close(&r);
}

/* ---- No space ---- */

/* The end of the record needs none, since its head has the block. */
static void expect_a_success_with_losses(struct rig *r, uint64_t bytes, int error)
{
    struct gpq_run_end *end = &r->found.record.end;

    RIG_END(r, EXITED, 0);
    T_EQ(end->log_bytes, bytes);
    T_EQ(end->log_error, error);
    T_CMP(end->log_lost, >, 0);
}

T_CASE(log_over_a_limit_of_files)
{
    const struct rlimit small = { 1 * MIB, RLIM_INFINITY };
    struct rlimit before;
    struct rig r;

    rig_open(&r, "");
    write_mib(&r, 4);
    T_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    T_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    rig_start(&r, NULL);
    T_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_a_success_with_losses(&r, 4 * MIB, EFBIG);
    T_EQ(r.found.record.end.log_lost, 3 * MIB);
    expect_lines("s/log", 0, MIB, false);
    rig_close(&r);
}

/* A file system of this size, for this process alone. */
static void mount_small(const char *path, const char *type, const char *options)
{
    T_EQ(mkdir(path, 0700), 0);
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        t_skip("no mount namespace: %s", strerror(errno));
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("small", path, type, 0, options))
        t_skip("no %s: %s", type, strerror(errno));
}

/* Q9: the command goes on, and its end is recorded, although nothing else can be written. */
T_CASE(full_disk)
{
    struct rig r;

    mount_small("s", "tmpfs", "size=1m,mode=0700");
    rig_open(&r, "");
    write_mib(&r, 4);
    rig_start(&r, NULL);
    expect_a_success_with_losses(&r, 4 * MIB, ENOSPC);
    rig_close(&r);
    T_EQ(umount2("s", MNT_DETACH), 0);
}

/* Where no blocks can be freed, the log ends at its limit. */
T_CASE(log_limit_without_holes)
{
    struct rig r;
    struct stat st;

    mount_small("s", "ramfs", "mode=0700");
    rig_open(&r, "");
    write_mib(&r, 8);
    r.plan.log_limit = 2 * MIB;
    rig_start(&r, NULL);
    expect_a_success_with_losses(&r, 8 * MIB, EOPNOTSUPP);
    T_EQ(stat("s/log", &st), 0);
    T_CMP(st.st_size, >=, 3 * MIB);
    T_CMP(st.st_size, <=, 3 * MIB + MIB / 2);
    T_EQ((uint64_t)st.st_size + r.found.record.end.log_lost, 8 * MIB);
    T_EQ(r.found.record.end.log_freed, 0);
    expect_lines("s/log", 0, (uint64_t)st.st_size, false);
    rig_close(&r);
    T_EQ(umount2("s", MNT_DETACH), 0);
}

/* The log cannot even be made. */
T_CASE(no_log)
{
    struct rig r;

    rig_open(&r, "echo text");
    r.plan.log = "no/directory";
    rig_start(&r, NULL);
    expect_a_success_with_losses(&r, 5, ENOENT);
    rig_close(&r);
}
