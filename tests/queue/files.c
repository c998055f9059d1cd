/* SPDX-License-Identifier: MIT */
/* files.c - the file calls of the system, saved files, errors and names. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "queue/files/fault.h"
#include "queue/files/numbers.h"
#include "queue/files/reserve.h"
#include "queue/files/save.h"

static const struct gpq_files *const f = &gpq_system_files;

static void expect_content(const char *path, const char *content)
{
    void *data;
    size_t size;

    T_EQ(gpq_read_whole(f, path, 1 << 20, &data, &size), 0);
    T_EQ(size, strlen(content));
    T_TEXT((const char *)data, content);
    free(data);
}

T_CASE(save_makes_and_replaces_a_file)
{
    struct stat st;

    T_EQ(mkdir("d", 0700), 0);
    T_EQ(gpq_save(f, "d", "name", "first", 5), 0);
    expect_content("d/name", "first");
    T_EQ(stat("d/name", &st), 0);
    T_EQ(st.st_mode & 07777, 0600);
    T_EQ(gpq_save(f, "d", "name", "", 0), 0);
    expect_content("d/name", "");
    T_EQ(count_names("d"), 1);
}

T_CASE(save_fails_and_leaves_the_file_of_before)
{
    char name[300];

    T_EQ(gpq_save(f, "nowhere", "name", "x", 1), -ENOENT);
    T_EQ(mkdir("d", 0700), 0);
    T_EQ(mkdir("d/name", 0700), 0);
    T_EQ(gpq_save(f, "d", "name", "x", 1), -EISDIR);
    T_EQ(count_names("d"), 1);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    T_EQ(gpq_save(f, "d", name, "x", 1), -ENAMETOOLONG);
    /* A link in the place of the temporary file is not followed. */
    T_EQ(symlink("../target", "d/linked.tmp"), 0);
    T_EQ(gpq_save(f, "d", "linked", "x", 1), -ELOOP);
    T_EQ(access("target", F_OK), -1);
}

/* The rest of a save that a crash has interrupted is no obstacle to the next one. */
T_CASE(save_over_an_unfinished_one)
{
    int fd = open("name.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    T_EQ(write(fd, "a longer text", 13), 13);
    T_EQ(close(fd), 0);
    T_EQ(gpq_save(f, ".", "name", "text", 4), 0);
    expect_content("name", "text");
    T_EQ(count_names("."), 1);
    T_CHECK(gpq_is_temporary("name.tmp"));
    T_CHECK(!gpq_is_temporary("name.tmp2"));
    T_CHECK(!gpq_is_temporary(".tmp"));
    T_CHECK(!gpq_is_temporary("p"));
}

T_CASE(read_whole)
{
    static char big[100000];
    void *data = big;
    size_t size = 7;

    memset(big, 'b', sizeof(big));
    T_EQ(gpq_save(f, ".", "big", big, sizeof(big)), 0);
    T_EQ(gpq_read_whole(f, "big", sizeof(big) - 1, &data, &size), -EFBIG);
    T_EQ(gpq_read_whole(f, "none", 10, &data, &size), -ENOENT);
    T_EQ(gpq_read_whole(f, ".", 10, &data, &size), -EISDIR);
    T_CHECK(data == big && size == 7);
    T_EQ(gpq_read_whole(f, "big", sizeof(big), &data, &size), 0);
    T_EQ(size, sizeof(big));
    T_CHECK(!memcmp(data, big, size) && !((char *)data)[size]);
    free(data);
}

T_CASE(sync_of_what_is_there)
{
    T_EQ(gpq_sync_directory(f, "."), 0);
    T_EQ(gpq_sync_directory(f, "none"), -ENOENT);
    T_EQ(gpq_save(f, ".", "file", "x", 1), 0);
    T_EQ(gpq_sync_directory(f, "file"), -ENOTDIR);
    T_EQ(gpq_sync_file(f, "file"), 0);
    /* A file system that has nothing to sync in a directory. */
    T_EQ(gpq_sync_directory(f, "/proc"), 0);
}

T_CASE(look_and_list_follow_no_link)
{
    off_t size = 0;

    T_EQ(mkdir("d", 0700), 0);
    T_EQ(gpq_save(f, "d", "file", "four", 4), 0);
    T_EQ(symlink("d", "link"), 0);
    T_EQ(mkfifo("fifo", 0600), 0);
    T_EQ(f->look(f->user, "d", &size), 1);
    T_EQ(f->look(f->user, "d/file", &size), 0);
    T_EQ(size, 4);
    T_EQ(f->look(f->user, "link", &size), 2);
    T_EQ(f->look(f->user, "fifo", &size), 2);
    T_EQ(f->look(f->user, "none", &size), -1);
    T_EQ(errno, ENOENT);
    struct gpq_names names;
    T_EQ(gpq_names_read(f, "link", &names), -ENOTDIR);
    T_EQ(gpq_names_read(f, "none", &names), -ENOENT);
}

static int stop_at_first(const char *name, void *user)
{
    (void)name;
    return ++*(int *)user == 1 ? 42 : 0;
}

T_CASE(list_ends_where_its_function_ends_it)
{
    int calls = 0;

    T_EQ(gpq_save(f, ".", "a", "", 0), 0);
    T_EQ(gpq_save(f, ".", "b", "", 0), 0);
    T_EQ(f->list(f->user, ".", stop_at_first, &calls), 42);
    T_EQ(calls, 1);
}

T_CASE(names_of_many_files)
{
    char name[32];

    T_EQ(mkdir("d", 0700), 0);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof(name), "d/a-name-of-a-file-%d", i);
        T_EQ(close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    }
    T_EQ(count_names("d"), 500);
}

T_CASE(paths_have_a_limit)
{
    char path[GPQ_PATH];

    T_EQ(gpq_path(path, "%s/%d", "a", 7), 0);
    T_TEXT(path, "a/7");
    T_EQ(gpq_path(path, "%*s", GPQ_PATH - 1, ""), 0);
    T_EQ(gpq_path(path, "%*s", GPQ_PATH, ""), -ENAMETOOLONG);
}

T_CASE(numbers)
{
    static const char *const wrong[] = {
        "",        "12",     "12.",  ".44",  "12.044", "0.1",          "12.44x",
        "12.44.2", "12 .44", "+1.2", "1.-2", "12,44",  "1.4294967296", "1.99999999999999999999"
    };
    const char *rest;
    uint32_t n[3];

    T_CHECK(gpq_numbers_read("12.44", ".", n, 2, NULL));
    T_CHECK(n[0] == 12 && n[1] == 44);
    T_CHECK(gpq_numbers_read("1/4294967295.2.old", "/.", n, 3, &rest));
    T_CHECK(n[0] == 1 && n[1] == UINT32_MAX && n[2] == 2);
    T_TEXT(rest, ".old");
    for (size_t i = 0; i < T_LENGTH(wrong); i++)
        T_CHECK(!gpq_numbers_read(wrong[i], ".", n, 2, NULL));
}

T_CASE(errors_of_calls)
{
    struct gpq_error e;

    T_EQ(gpq_fault(&e, -ENOSPC, "results/%d: write", 7), GPQ_EFULL);
    T_EQ(e.code, GPQ_EFULL);
    T_TEXT(e.text, "results/7: write: No space left on device");
    T_EQ(gpq_code_of_errno(EDQUOT), GPQ_EFULL);
    T_EQ(gpq_code_of_errno(-EIO), GPQ_EIO);
    T_EQ(gpq_code_of_errno(EMFILE), GPQ_ENOMEM);
    T_EQ(gpq_code_of_errno(EACCES), GPQ_EREFUSED);
    T_EQ(gpq_code_of_errno(ENOENT), GPQ_ENOTFOUND);
    T_EQ(gpq_code_of_errno(0), 0);
    T_EQ(gpq_fail(&e, GPQ_EKEY, "%0600d", 1), GPQ_EKEY); /* longer than the text */
    T_EQ(strlen(e.text), sizeof(e.text) - 1);
}

/* ---- The reserve ---- */

static long long blocks(const char *path)
{
    struct stat st;

    T_EQ(stat(path, &st), 0);
    return (long long)st.st_blocks;
}

/* Q9: the file holds blocks, not only a size, and is away after it was given up. */
T_CASE(reserve_is_kept_given_up_and_made_again)
{
    T_EQ(gpq_reserve_there(f, ".", 1 << 20), 0);
    T_EQ(gpq_reserve_give_up(f, "."), 0);
    for (int i = 0; i < 2; i++) {
        T_EQ(gpq_reserve_make(f, ".", 1 << 20), 0);
        T_EQ(gpq_reserve_there(f, ".", 1 << 20), 1);
        T_EQ(gpq_reserve_there(f, ".", 1 << 21), 0);
        T_CMP(blocks("reserve"), >=, (1 << 20) / 512);
        T_EQ(gpq_reserve_give_up(f, "."), 1);
        T_EQ(count_names("."), 0);
    }
    T_EQ(gpq_reserve_make(f, "none", 4096), -ENOENT);
}
