/* SPDX-License-Identifier: MIT */
/* out.c - outputs of attempts, and how they become those of the task.  Power cuts: files_cut.c. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "queue/files/out.h"
#include "queue/files/publish.h"
#include "queue/files/save.h"
#include "queue/files/tree.h"

static const struct gpq_files *const f = &gpq_system_files;
static const uint64_t task = GPQ_TASK(12, 44);
static struct gpq_error e;

static void begin(void)
{
    T_EQ(mkdir("work", 0700), 0);
    T_EQ(mkdir("out", 0700), 0);
}

static int exists(const char *path)
{
    struct stat st;
    return !lstat(path, &st);
}

static void put(const char *directory, const char *name, const char *text)
{
    T_EQ(gpq_save(f, directory, name, text, strlen(text)), 0);
}

static void expect_content(const char *path, const char *text)
{
    void *data;
    size_t size;

    T_EQ(gpq_read_whole(f, path, 1000, &data, &size), 0);
    T_TEXT((const char *)data, text);
    free(data);
}

/* An attempt that leaves one file with this text. */
static void attempt(uint32_t number, const char *text)
{
    char path[GPQ_PATH];

    T_EQ(gpq_out_make(f, ".", task, number, &e), 0);
    T_EQ(gpq_out_work_path(path, ".", task, number), 0);
    put(path, "result", text);
    T_EQ(gpq_out_sync(f, ".", task, number, &e), 0);
}

/* ---- One attempt ---- */

/* Q5 */
T_CASE(published_outputs)
{
    begin();
    attempt(2, "two");
    T_CHECK(exists("work/12.44.2/result") && !exists("out/12.44"));
    for (int i = 0; i < 2; i++) {
        T_EQ(gpq_out_publish(f, ".", task, 2, &e), 0);
        expect_content("out/12.44/result", "two");
        T_EQ(count_names("work"), 0);
    }
    T_EQ(count_names("out"), 1);
    T_EQ(gpq_out_publish(f, ".", GPQ_TASK(12, 45), 1, &e), GPQ_ENOTFOUND);
    T_TEXT(e.text, "./work/12.45.1: No such file or directory");
}

T_CASE(fresh_for_each_attempt)
{
    struct stat st;

    begin();
    T_EQ(gpq_out_make(f, ".", task, 1, &e), 0);
    T_EQ(stat("work/12.44.1", &st), 0);
    T_EQ(st.st_mode & 07777, 0700);
    put("work/12.44.1", "rest", "of one that was never started");
    T_EQ(gpq_out_make(f, ".", task, 1, &e), 0);
    T_EQ(count_names("work/12.44.1"), 0);
    T_EQ(gpq_out_make(f, ".", task, 2, &e), 0);
    T_EQ(count_names("work"), 2);
    T_EQ(gpq_out_make(f, "none", task, 1, &e), GPQ_ENOTFOUND);
    T_TEXT(e.text, "none/work/12.44.1: mkdir: No such file or directory");
}

/* Q5: no file of the older round remains. */
T_CASE(a_newer_round_takes_the_place)
{
    begin();
    attempt(1, "one");
    put("work/12.44.1", "more", "only of one");
    T_EQ(gpq_out_publish(f, ".", task, 1, &e), 0);
    attempt(3, "three");
    /* A rest of an earlier replacement. */
    T_EQ(mkdir("work/12.44.old", 0700), 0);
    put("work/12.44.old", "rest", "");
    T_EQ(gpq_out_publish(f, ".", task, 3, &e), 0);
    expect_content("out/12.44/result", "three");
    T_EQ(count_names("out/12.44"), 1);
    T_EQ(count_names("work"), 0);
}

/* A command that has made a file or a symbolic link of its directory. */
T_CASE(no_directory)
{
    begin();
    put("work", "12.44.1", "");
    T_EQ(gpq_out_sync(f, ".", task, 1, &e), GPQ_EREFUSED);
    T_TEXT(e.text, "./work/12.44.1: sync: Not a directory");
    T_EQ(gpq_out_publish(f, ".", task, 1, &e), 0);
    T_EQ(gpq_out_sync(f, ".", task, 1, &e), GPQ_ENOTFOUND);
    T_EQ(symlink("/etc", "work/12.44.2"), 0);
    T_EQ(gpq_out_sync(f, ".", task, 2, &e), GPQ_EREFUSED);
    T_EQ(gpq_out_publish(f, ".", task, 2, &e), 0);
    T_EQ(count_names("work") + count_names("out"), 0);
    T_CHECK(exists("/etc"));
}

/* ---- What commands leave ---- */

/* A tree with all kinds of files, some of which lead outside. */
static void make_a_forest(const char *top)
{
    char path[GPQ_PATH];

    T_EQ(gpq_path(path, "%s/deep/er", top), 0);
    *strrchr(path, '/') = 0;
    T_EQ(mkdir(path, 0700), 0);
    put(path, "read-only", "x");
    T_EQ(gpq_path(path, "%s/deep/read-only", top), 0);
    T_EQ(chmod(path, 0444), 0);
    T_EQ(gpq_path(path, "%s/deep/write-only", top), 0);
    T_EQ(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0200)), 0);
    T_EQ(gpq_path(path, "%s/deep/fifo", top), 0);
    T_EQ(mkfifo(path, 0600), 0);
    T_EQ(gpq_path(path, "%s/deep/dangling", top), 0);
    T_EQ(symlink("/nowhere", path), 0);
    T_EQ(gpq_path(path, "%s/deep/outside", top), 0);
    T_EQ(symlink("../../../outside", path), 0);
    T_EQ(gpq_path(path, "%s/deep/up", top), 0);
    T_EQ(symlink("..", path), 0);
}

T_CASE(links_are_not_followed)
{
    begin();
    T_EQ(mkdir("outside", 0700), 0);
    put("outside", "kept", "kept");
    T_EQ(gpq_out_make(f, ".", task, 1, &e), 0);
    make_a_forest("work/12.44.1");
    T_EQ(gpq_out_sync(f, ".", task, 1, &e), 0);
    T_EQ(gpq_out_publish(f, ".", task, 1, &e), 0);
    T_CHECK(exists("out/12.44/deep/outside"));
    T_EQ(gpq_out_forget(f, ".", task, &e), 0);
    T_EQ(count_names("out") + count_names("work"), 0);
    expect_content("outside/kept", "kept");
}

static void go_through_locked_directories(void)
{
    begin();
    T_EQ(gpq_out_make(f, ".", task, 1, &e), 0);
    make_a_forest("work/12.44.1");
    T_EQ(chmod("work/12.44.1/deep", 0555), 0);
    T_EQ(chmod("work/12.44.1", 0555), 0);
    T_EQ(gpq_out_sync(f, ".", task, 1, &e), 0);
    T_EQ(gpq_out_publish(f, ".", task, 1, &e), 0);
    T_CHECK(exists("out/12.44/deep/read-only"));
    T_EQ(chmod("out/12.44/deep", 0), 0);
    T_EQ(gpq_out_forget(f, ".", task, &e), 0);
    T_EQ(count_names("out") + count_names("work"), 0);
    /* A file that even its owner cannot open cannot be made durable: the error names it. */
    T_EQ(gpq_out_make(f, ".", task, 2, &e), 0);
    put("work/12.44.2", "closed", "x");
    T_EQ(chmod("work/12.44.2/closed", 0), 0);
    T_EQ(gpq_out_sync(f, ".", task, 2, &e), GPQ_EREFUSED);
    T_TEXT(e.text, "./work/12.44.2/closed: sync: Permission denied");
}

/* Caches of packages are read-only; root would not notice. */
T_CASE(read_only_directories)
{
    int status;
    pid_t pid;

    T_EQ(chmod(".", 01777), 0);
    pid = fork();
    if (!pid) {
        if (!geteuid() && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
                           setresuid(65534, 65534, 65534)))
            _exit(77);
        go_through_locked_directories();
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        t_skip("this machine does not let root become another user");
    T_EQ(status, 0);
}

/* Deeper than a path can name: made by changing the directory. */
T_CASE(a_tree_that_is_too_deep)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static char name[201];

    begin();
    T_EQ(gpq_out_make(f, ".", task, 1, &e), 0);
    memset(name, 'd', sizeof(name) - 1);
    T_EQ(chdir("work/12.44.1"), 0);
    for (int i = 0; i < 25; i++) {
        T_EQ(mkdir(name, 0700), 0);
        T_EQ(chdir(name), 0);
    }
    T_EQ(fchdir(here), 0);
    T_EQ(close(here), 0);
    T_EQ(gpq_out_sync(f, ".", task, 1, &e), GPQ_EREFUSED);
    T_CHECK(strstr(e.text, "./work/12.44.1/ddd"));
    /* A name that the removal would use. */
    T_EQ(mkdir("work/12.44.1/deep.0", 0700), 0);
    T_EQ(gpq_out_drop(f, ".", task, 1, &e), 0);
    T_EQ(count_names("work"), 0);
}

T_CASE(a_tree_that_is_not_there)
{
    struct gpq_tree t = { .files = f, .path = "none" };

    T_EQ(gpq_tree_remove(&t), 0);
    T_EQ(gpq_tree_sync(&t), -ENOENT);
    T_TEXT(t.path, "none");
}

/* ---- Recovery ---- */

static struct {
    enum gpq_out_fate fate[8]; /* by attempt */
    unsigned calls;
} plan;

static enum gpq_out_fate planned(uint64_t of, uint32_t number, void *user)
{
    T_CHECK(of == task && user == &plan && number < 8);
    plan.calls++;
    return plan.fate[number];
}

static void recover(int ret)
{
    plan.calls = 0;
    T_EQ(gpq_out_recover(f, ".", planned, &plan, &e), ret);
}

/* Q5: what was committed is published, what was not is kept or dropped. */
T_CASE(recovery_asks_for_each_attempt)
{
    begin();
    attempt(1, "one");
    attempt(2, "two");
    attempt(3, "three");
    put("work", "notes", "of a person");
    put("work", "12.44", "of a person");
    put("work", "12.44.old.bak", "of a person");
    plan.fate[1] = GPQ_OUT_DROP;
    plan.fate[2] = GPQ_OUT_PUBLISH;
    plan.fate[3] = GPQ_OUT_KEEP;
    recover(0);
    T_EQ(plan.calls, 3);
    T_CHECK(!exists("work/12.44.1") && exists("work/12.44.3/result"));
    expect_content("out/12.44/result", "two");
    recover(0);
    T_EQ(plan.calls, 1);
    T_EQ(count_names("work"), 4);
}

/* Q5: stopped between the two renames. */
T_CASE(recovery_between_the_renames)
{
    begin();
    attempt(1, "one");
    T_EQ(gpq_out_publish(f, ".", task, 1, &e), 0);
    attempt(2, "two");
    T_EQ(rename("out/12.44", "work/12.44.old"), 0);
    plan.fate[2] = GPQ_OUT_PUBLISH;
    recover(0);
    expect_content("out/12.44/result", "two");
    T_EQ(count_names("work"), 0);
    /* The same, but the store does not want the newer ones any more: the older ones go back. */
    attempt(3, "three");
    T_EQ(rename("out/12.44", "work/12.44.old"), 0);
    plan.fate[3] = GPQ_OUT_DROP;
    recover(0);
    expect_content("out/12.44/result", "two");
    T_EQ(count_names("work"), 0);
    /* After the second one. */
    T_EQ(mkdir("work/12.44.old", 0700), 0);
    put("work/12.44.old", "result", "one");
    recover(0);
    expect_content("out/12.44/result", "two");
    T_EQ(count_names("work"), 0);
    /* While the store forgets the task. */
    T_EQ(rename("out/12.44", "work/12.44.gone"), 0);
    recover(0);
    T_EQ(count_names("out") + count_names("work"), 0);
    T_EQ(gpq_out_forget(f, ".", task, &e), 0);
}

static int fail_to_remove(void *user, const char *path)
{
    if (!strcmp(path, user)) {
        errno = EBUSY; /* a mount */
        return -1;
    }
    return rmdir(path);
}

static int fail_to_sync(void *user, int fd)
{
    (void)user;
    (void)fd;
    errno = EIO;
    return -1;
}

/* One that fails does not keep the rest waiting, and is not the disk. */
T_CASE(recovery_goes_on_after_a_failure)
{
    static char busy[] = "./work/12.44.1/mount";
    struct gpq_files some = *f;

    begin();
    attempt(1, "one");
    T_EQ(mkdir("work/12.44.1/mount", 0700), 0);
    attempt(2, "two");
    plan.fate[1] = GPQ_OUT_DROP;
    plan.fate[2] = GPQ_OUT_PUBLISH;
    some.user = busy;
    some.rmdir = fail_to_remove;
    T_EQ(gpq_out_recover(&some, ".", planned, &plan, &e), GPQ_EREFUSED);
    T_TEXT(e.text, "./work/12.44.1/mount: remove: Device or resource busy");
    expect_content("out/12.44/result", "two");
    some.fsync = fail_to_sync;
    T_EQ(gpq_out_recover(&some, ".", planned, &plan, &e), GPQ_EIO);
    T_EQ(gpq_out_recover(f, "none", planned, &plan, &e), GPQ_ENOTFOUND);
}
