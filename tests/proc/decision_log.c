/* SPDX-License-Identifier: MIT */
/*
 * decision_log.c - option decision_log: a live dispatcher's log replays to the same actions, and no
 * fault of its file harms the dispatcher.                                                     [S6]
 */
#include "replayed.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG T_DECISIONS
#define END "\n# end\n"

/* ---- the file ---- */

static unsigned count(const char *text, const char *words)
{
    const size_t size = strlen(words);
    unsigned n = 0;

    /* Not strstr or memmem: a sanitizer's goes through the rest of the text in each call. */
    for (; *text; text++)
        n += *text == *words && !strncmp(text, words, size);
    return n;
}

static int ends_in(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* Checks a whole log with this number of submitted tasks, and removes it. */
static void check_log(const char *path, unsigned tasks)
{
    struct gpi_replay r;
    char *text = t_replayed(path, &r);

    T_EQ(count(text, " submit t="), tasks);
    T_CHECK(ends_in(text, END));
    T_CHECK(!r.was_cut && !r.torn);
    free(text);
    T_EQ(unlink(path), 0);
}

static long long size_of(const char *path)
{
    struct stat st;

    T_EQ(stat(path, &st), 0);
    return (long long)st.st_size;
}

/* Returns the descriptor of the log, which the library holds. */
static int descriptor(void)
{
    struct stat log, st;

    T_EQ(stat(LOG, &log), 0);
    for (int fd = 3; fd < 4096; fd++)
        if (fstat(fd, &st) == 0 && st.st_ino == log.st_ino && st.st_dev == log.st_dev)
            return fd;
    T_FAIL("no descriptor of %s", LOG);
}

static void limit_file_size(rlim_t bytes)
{
    T_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ bytes, RLIM_INFINITY }), 0);
}

/* ---- logs that replay ---- */

T_CASE(plain)
{
    T_EACH_DRIVE(drive)
    {
        struct t_log log = { 0 };
        struct stat st;
        gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:2", .drive = drive,
                                     .decision_log = LOG, .max_attempts = 2);

        T_EQ(stat(LOG, &st), 0);
        T_EQ(st.st_mode & 07777, 0600);
        t_submit_tags(d, 0, 50);
        T_SUBMIT(d, .tag = T_TAG(T_KILL, 1));
        t_collect(d, &log, 51);
        (void)T_OUTCOME(&log, T_TAG(T_KILL, 1), CRASHED);
        t_end(&d, &log);
        check_log(LOG, 51);
    }
}

static void add(gpud_dispatcher *d, const char *name)
{
    const struct gpud_class c = { .struct_size = sizeof(c), .name = name,
                                  .options = T_OPTIONS(.definition = "test") };

    T_OK(gpud_dispatcher_class_add(d, &c, NULL));
}

T_CASE(pooled)
{
    struct t_log log = { 0 };
    struct gpi_replay r;
    gpud_dispatcher *d;
    char *text;

    t_init(NULL, t_process, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .decision_log = LOG);
    add(d, "a");
    add(d, "b");
    for (uint64_t tag = 0; tag < 40; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = tag % 3 ? "a" : "b");
    t_collect(d, &log, 40);
    t_end(&d, &log);
    text = t_replayed(LOG, &r);
    T_EQ(count(text, "\nfact class "), 2);
    T_EQ(count(text, "\nfact device "), 2);
    free(text);
    check_log(LOG, 40);
}

/* Each dispatcher has a file of its own.  "" is no file. */
T_CASE(two_dispatchers)
{
    struct t_log log = { 0 }, other_log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .decision_log = LOG), *other, *none;
    struct gpud_error e = GPUD_ERROR_INIT;

    other = T_CREATE(.decision_log = "other");
    none = T_CREATE(.decision_log = "");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.decision_log = LOG), &e), ESYSTEM);
    T_EQ(e.sys_errno, EEXIST);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    for (uint64_t tag = 0; tag < 3; tag++)
        (void)T_RUN(other, &other_log, SUCCESS, .tag = tag);
    t_destroy(&d, &log);
    t_destroy(&other, &other_log);
    t_destroy(&none, NULL);
    T_OK(gpud_fini());
    check_log(LOG, 1);
    check_log("other", 3);
}

/* The dispatcher holds the file: its name and the host's directory may change. */
T_CASE(renamed)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .decision_log = LOG);

    T_EQ(fcntl(descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    T_CMP(descriptor(), >=, 10); /* low numbers get stray writes */
    T_EQ(rename(LOG, "renamed"), 0);
    T_EQ(mkdir("elsewhere", 0700), 0);
    T_EQ(chdir("elsewhere"), 0);
    for (uint64_t tag = 0; tag < 3; tag++)
        (void)T_RUN(d, &log, SUCCESS, .tag = tag);
    t_end(&d, &log);
    T_EQ(chdir(".."), 0);
    check_log("renamed", 3);
}

/* ---- files that cannot be created ---- */

static void check_refused(const char *path, int sys_errno)
{
    for (uint32_t pooled = 0; pooled < 2; pooled++) {
        struct gpud_error e = GPUD_ERROR_INIT;
        gpud_dispatcher *d = NULL;
        char text[128];

        T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.decision_log = path, .pooled = pooled), &e),
               ESYSTEM);
        T_CHECK(!d);
        T_EQ(e.sys_errno, sys_errno);
        T_TEXT(e.field, "decision_log");
        if (strlen(path) > sizeof(text) / 2)
            continue;
        (void)snprintf(text, sizeof(text), "decision_log %s cannot be created: %s", path,
                       strerror(sys_errno));
        T_TEXT(e.text, text);
    }
}

T_CASE(refused)
{
    static const char kept[] = "of an earlier run";
    char text[sizeof(kept)] = "", too_long[PATH_MAX + 10];
    int fd = open(LOG, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    T_EQ(write(fd, kept, sizeof(kept)), sizeof(kept));
    T_EQ(symlink("nothing", "link"), 0);
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = 0;
    t_init(NULL, t_process, NULL);
    check_refused(LOG, EEXIST);
    check_refused("link", EEXIST);
    check_refused(".", EEXIST);
    check_refused("nowhere/" LOG, ENOENT);
    check_refused(LOG "/" LOG, ENOTDIR);
    check_refused(too_long, ENAMETOOLONG);
    T_OK(gpud_fini());
    T_EQ(pread(fd, text, sizeof(text), 0), sizeof(text));
    T_TEXT(text, kept);
    T_EQ(close(fd), 0);
    T_EQ(access("nothing", F_OK), -1);
}

/* A create that fails for another reason leaves no file. */
T_CASE(nothing_left)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;

    t_init(NULL, t_process, NULL);
    for (uint32_t pooled = 0; pooled < 2; pooled++) {
        T_CODE(gpud_dispatcher_create(&d,
                                      T_OPTIONS(.decision_log = LOG, .pooled = pooled,
                                                .payload_budget = 1),
                                      &e),
               EINVAL);
        T_TEXT(e.field, "payload_budget");
        T_EQ(access(LOG, F_OK), -1);
        T_CODE(gpud_dispatcher_create(
                   &d, T_OPTIONS(.decision_log = LOG, .pooled = pooled, .devices = "tpu:1"), &e),
               EDEVICE);
        T_EQ(access(LOG, F_OK), -1);
    }
    T_OK(gpud_fini());
}

T_CASE(not_of_a_class)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    struct gpud_class c = { .struct_size = sizeof(c), .name = "a",
                            .options = T_OPTIONS(.definition = "test", .decision_log = LOG) };

    t_init(NULL, t_process, NULL);
    d = T_CREATE(.pooled = 1);
    T_CODE(gpud_dispatcher_class_add(d, &c, &e), EINVAL);
    T_TEXT(e.field, "decision_log");
    T_EQ(access(LOG, F_OK), -1);
    t_end(&d, NULL);
}

/* ---- logs that end early ---- */

static void run_some(gpud_dispatcher *d, struct t_log *log, uint64_t from, uint64_t to)
{
    for (uint64_t tag = from; tag < to; tag++)
        (void)T_RUN(d, log, SUCCESS, .tag = tag);
}

/* Waits for the one event that reports the end of the log. */
static void expect_end(gpud_dispatcher *d, struct t_log *log, const char *reason)
{
    t_collect_log(d, log, "decision_log ended after ");
    for (size_t i = 0; i < t_log_count(log, GPUD_EVENT_LOG); i++) {
        const struct gpud_event *e = t_log_at(log, GPUD_EVENT_LOG, i);

        if (strncmp(e->text, "decision_log", 12) != 0)
            continue;
        T_EQ(e->level, GPUD_LEVEL_WARNING);
        T_CHECK(ends_in(e->text, reason));
    }
}

static unsigned count_ends(const struct t_log *log)
{
    unsigned n = 0;

    for (size_t i = 0; i < t_log_count(log, GPUD_EVENT_LOG); i++)
        n += !strncmp(t_log_at(log, GPUD_EVENT_LOG, i)->text, "decision_log", 12);
    return n;
}

/* The last line is "cut".  An event reports the end, once, and all tasks run. */
T_CASE(file_size_limit)
{
    T_EACH_DRIVE(drive)
    {
        struct t_log log = { 0 };
        struct gpi_replay r;
        gpud_dispatcher *d =
            T_BEGIN(NULL, t_process, .devices = "cpu:1", .drive = drive, .decision_log = LOG);
        char *text;

        run_some(d, &log, 0, 10);
        limit_file_size((rlim_t)size_of(LOG) + 2000);
        run_some(d, &log, 10, 100);
        expect_end(d, &log, " bytes: the maximum is 1 GiB, or RLIMIT_FSIZE");
        run_some(d, &log, 100, 110);
        limit_file_size(RLIM_INFINITY);
        run_some(d, &log, 110, 120);
        T_EQ(count_ends(&log), 1);
        t_check_exactly_once(&log, 120);
        t_end(&d, &log);
        text = t_replayed(LOG, &r);
        T_CHECK(ends_in(text, "\ncut\n"));
        T_CHECK(r.was_cut);
        T_CMP(count(text, " submit t="), >=, 1);
        T_CMP(count(text, " submit t="), <, 100);
        free(text);
        T_EQ(unlink(LOG), 0);
    }
}

/* A limit below the present size: not even "cut" has room. */
T_CASE(no_room_at_all)
{
    struct t_log log = { 0 };
    struct gpi_replay r;
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .decision_log = LOG);
    long long size;

    run_some(d, &log, 0, 10);
    limit_file_size(1);
    run_some(d, &log, 10, 20);
    expect_end(d, &log, " bytes: the maximum is 1 GiB, or RLIMIT_FSIZE");
    size = size_of(LOG);
    run_some(d, &log, 20, 40);
    limit_file_size(RLIM_INFINITY);
    t_end(&d, &log);
    T_EQ(size_of(LOG), size);
    free(t_replayed(LOG, &r));
    T_CHECK(!r.was_cut);
}

/* As on a full disk: each write fails with ENOSPC. */
T_CASE(no_space)
{
    const int full = open("/dev/full", O_WRONLY | O_APPEND | O_CLOEXEC);
    struct t_log log = { 0 };
    struct gpi_replay r;
    gpud_dispatcher *d =
        T_BEGIN(NULL, t_process, .drive = GPUD_DRIVE_CALLER, .decision_log = LOG);

    T_CMP(full, >=, 0);
    run_some(d, &log, 0, 10);
    T_CMP(dup3(full, descriptor(), O_CLOEXEC), >=, 0); /* no thread of the library writes now */
    T_EQ(close(full), 0);
    run_some(d, &log, 10, 20);
    expect_end(d, &log, strerror(ENOSPC));
    run_some(d, &log, 20, 40);
    T_EQ(count_ends(&log), 1);
    t_check_exactly_once(&log, 40);
    t_end(&d, &log);
    free(t_replayed(LOG, &r)); /* up to there */
}

static void write_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);

    T_EQ(write(fd, text, strlen(text)), strlen(text));
    T_EQ(close(fd), 0);
}

/* Mounts a file system of 256 KiB at "disk", which no other process sees. */
static void mount_disk(void)
{
    char uids[64], gids[64];

    (void)snprintf(uids, sizeof(uids), "0 %u 1", (unsigned)getuid());
    (void)snprintf(gids, sizeof(gids), "0 %u 1", (unsigned)getgid());
    if (unshare(CLONE_NEWNS)) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
            t_skip("no file system can be mounted here: %s", strerror(errno));
        write_text("/proc/self/uid_map", uids);
        write_text("/proc/self/setgroups", "deny");
        write_text("/proc/self/gid_map", gids);
    }
    T_EQ(mkdir("disk", 0700), 0);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "disk", "tmpfs", 0, "size=256k"))
        t_skip("no file system can be mounted here: %s", strerror(errno));
}

/* On a disk that is really full "cut" replaces the part that had room. */
T_CASE(disk_full)
{
    struct t_log log = { 0 };
    struct gpi_replay r;
    gpud_dispatcher *d;
    char *text;

    mount_disk();
    d = T_BEGIN(NULL, t_process, .queue_size = 5000, .decision_log = "disk/" LOG);
    t_submit_tags(d, 0, 5000);
    t_collect(d, &log, 5000);
    expect_end(d, &log, strerror(ENOSPC));
    t_check_exactly_once(&log, 5000);
    t_end(&d, &log);
    text = t_replayed("disk/" LOG, &r);
    T_CHECK(r.was_cut && ends_in(text, "\ncut\n"));
    T_CMP(count(text, " submit t="), >, 100);
    free(text);
    T_EQ(umount("disk"), 0);
}

/* ---- ends of the host ---- */

static void expect_exit_0(pid_t pid)
{
    int status;

    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
}

/* A child of the host has the file and the lines that are not written yet, and writes nothing. */
T_CASE(child_writes_nothing)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, t_process, .drive = GPUD_DRIVE_CALLER, .decision_log = LOG);
    long long size;
    pid_t pid;

    run_some(d, &log, 0, 10);
    size = size_of(LOG);
    t_submit_tags(d, 10, 20); /* these lines are in the buffer */
    T_EQ(size_of(LOG), size);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid) {
        T_CODE(gpud_dispatcher_submit(d, T_TASK(0), 0, NULL, NULL), EFORKED);
        T_OK(gpud_dispatcher_destroy(&d, NULL));
        _exit(0);
    }
    expect_exit_0(pid);
    T_EQ(size_of(LOG), size);
    t_collect(d, &log, 20);
    t_end(&d, &log);
    check_log(LOG, 20);
}

/* Ends without destroy, as the argument says, while the library thread drives. */
T_PROGRAM(host)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:2", .decision_log = LOG);

    run_some(d, &log, 0, 20);
    t_submit_tags(d, 20, 1000);
    if (!strcmp(argv[argc - 1], "exit"))
        exit(0);
    (void)raise(SIGKILL);
    return 1;
}

static void check_unended(const char *how, int status)
{
    const pid_t pid = t_program_start("host", how, "T_OF=log");
    struct gpi_replay r;
    char *text;
    int got;

    T_EQ(waitpid(pid, &got, 0), pid);
    T_EQ(got, status);
    text = t_replayed(LOG, &r);
    T_CMP(count(text, " submit t="), >=, 1); /* the host has slept until the worker was ready */
    T_CHECK(!ends_in(text, END) && !r.was_cut);
    free(text);
    T_EQ(unlink(LOG), 0);
}

/* What was written replays: the host has exited with the library thread at work. */
T_CASE(host_exits)
{
    check_unended("exit", 0);
}

T_CASE(host_is_killed)
{
    check_unended("kill", SIGKILL);
}

/* ---- large logs ---- */

/* The buffer is written when it is full, also inside submit. */
T_CASE(full_buffer)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .drive = GPUD_DRIVE_CALLER,
                                 .queue_size = 20000, .decision_log = LOG);
    const long long size = size_of(LOG);

    t_submit_tags(d, 0, 20000);
    T_CMP(size_of(LOG), >, size);
    t_collect(d, &log, 20000);
    t_end(&d, &log);
    check_log(LOG, 20000);
}
