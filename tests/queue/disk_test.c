/* SPDX-License-Identifier: MIT */
/* disk_test.c - the simulated disk: what a power cut may take, what it never takes, and faults. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "draw.h"

enum { CUTS = 400, SECTOR = 512 };

static int make(struct disk *d, const char *path)
{
    int fd = disk_open(d, path, O_RDWR | O_CREAT);

    T_CMP(fd, >=, 0);
    return fd;
}

static void sync_path(struct disk *d, const char *path)
{
    int fd = disk_open(d, path, O_RDONLY);

    T_CMP(fd, >=, 0);
    T_EQ(disk_sync(d, fd), 0);
    T_EQ(disk_close(d, fd), 0);
}

/* Writes a file of one letter; it is not synced. */
static void fill(struct disk *d, const char *path, char letter, size_t size)
{
    char *data = malloc(size);
    int fd = make(d, path);

    T_CHECK(data);
    memset(data, letter, size);
    T_EQ(disk_write(d, fd, data, size), size);
    T_EQ(disk_close(d, fd), 0);
    free(data);
}

/* Returns the letter of a file that has this size and no other letter, 0 if there is no file, and
 * '?' for any other content. */
static char letter_of(struct disk *d, const char *path, size_t size)
{
    int fd = disk_open(d, path, O_RDONLY);
    char *data = malloc(size + 1), letter;

    T_CHECK(data);
    if (fd < 0) {
        free(data);
        return 0;
    }
    letter = disk_read(d, fd, data, size + 1) == (ssize_t)size ? data[0] : '?';
    for (size_t i = 0; i < size && letter != '?'; i++)
        if (data[i] != letter || letter == 0)
            letter = '?';
    T_EQ(disk_close(d, fd), 0);
    free(data);
    return letter;
}

/* How often each answer was seen over many cuts of one disk. */
static void count_letters(const struct disk *d, const char *path, size_t size, unsigned seen[128])
{
    memset(seen, 0, 128 * sizeof(*seen));
    for (uint64_t seed = 1; seed <= CUTS; seed++) {
        struct disk *after = disk_cut(d, seed);
        seen[(unsigned char)letter_of(after, path, size)]++;
        disk_free(after);
    }
}

T_CASE(a_file_needs_its_sync_and_that_of_its_directory)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];

    fill(d, "/a", 'a', 3000);
    count_letters(d, "/a", 3000, seen);
    T_CMP(seen[0], >, 0);   /* the name was lost */
    T_CMP(seen['?'], >, 0); /* some bytes were lost */
    T_CMP(seen['a'], >, 0); /* it was written without a sync */
    sync_path(d, "/a");
    count_letters(d, "/a", 3000, seen);
    T_CMP(seen[0], >, 0);
    T_EQ(seen['?'], 0);
    sync_path(d, "/");
    count_letters(d, "/a", 3000, seen);
    T_EQ(seen['a'], CUTS);
    disk_free(d);
}

T_CASE(a_directory_alone_does_not_save_bytes)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];

    fill(d, "/a", 'a', 3000);
    sync_path(d, "/");
    count_letters(d, "/a", 3000, seen);
    T_EQ(seen[0], 0);
    T_CMP(seen['?'], >, 0);
    disk_free(d);
}

/* A later write to a sector may survive without an earlier one to another. */
T_CASE(sectors_survive_each_for_itself)
{
    struct disk *d = disk_make(1);
    unsigned first = 0, second = 0, both = 0, none = 0;
    int fd;

    fill(d, "/a", 'a', 2 * SECTOR);
    sync_path(d, "/a");
    sync_path(d, "/");
    fd = make(d, "/a");
    T_EQ(disk_write_at(d, fd, "1", 1, 0), 1);
    T_EQ(disk_write_at(d, fd, "2", 1, SECTOR), 1);
    for (uint64_t seed = 1; seed <= CUTS; seed++) {
        struct disk *after = disk_cut(d, seed);
        char data[2 * SECTOR];
        int opened = disk_open(after, "/a", O_RDONLY);
        T_EQ(disk_read(after, opened, data, sizeof(data)), sizeof(data));
        bool one = data[0] == '1', two = data[SECTOR] == '2';
        both += one && two;
        none += !one && !two;
        first += one && !two;
        second += !one && two;
        disk_free(after);
    }
    T_CMP(first, >, 0);
    T_CMP(second, >, 0);
    T_CMP(both, >, 0);
    T_CMP(none, >, 0);
    disk_free(d);
}

/* Write, sync, rename, sync of the directory: at any moment the old or the new file, whole. */
T_CASE(a_rename_is_atomic)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];

    fill(d, "/a", 'a', 3000);
    sync_path(d, "/a");
    sync_path(d, "/");
    fill(d, "/b", 'b', 3000);
    T_EQ(disk_rename(d, "/b", "/a"), 0);
    count_letters(d, "/a", 3000, seen);
    T_CMP(seen['?'], >, 0); /* the new name before the bytes */
    sync_path(d, "/a");
    count_letters(d, "/a", 3000, seen);
    T_EQ(seen['?'] + seen[0], 0);
    T_CMP(seen['a'], >, 0);
    T_CMP(seen['b'], >, 0);
    sync_path(d, "/");
    count_letters(d, "/a", 3000, seen);
    T_EQ(seen['b'], CUTS);
    count_letters(d, "/b", 3000, seen);
    T_EQ(seen[0], CUTS);
    disk_free(d);
}

T_CASE(an_unlink_needs_a_sync)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];

    fill(d, "/a", 'a', 100);
    sync_path(d, "/a");
    sync_path(d, "/");
    T_EQ(disk_unlink(d, "/a"), 0);
    count_letters(d, "/a", 100, seen);
    T_CMP(seen[0], >, 0);
    T_CMP(seen['a'], >, 0);
    sync_path(d, "/");
    count_letters(d, "/a", 100, seen);
    T_EQ(seen[0], CUTS);
    disk_free(d);
}

/* What a rename brings from another directory is there after the sync of either of them. */
T_CASE(a_rename_between_directories)
{
    static const char *const synced[] = { "/x", "/y" };

    for (size_t i = 0; i < T_LENGTH(synced); i++) {
        struct disk *d = disk_make(1);
        unsigned seen[128];
        T_EQ(disk_mkdir(d, "/x"), 0);
        T_EQ(disk_mkdir(d, "/y"), 0);
        sync_path(d, "/");
        fill(d, "/x/a", 'a', 100);
        sync_path(d, "/x/a");
        T_EQ(disk_rename(d, "/x/a", "/y/b"), 0);
        count_letters(d, "/y/b", 100, seen);
        T_CMP(seen[0], >, 0);
        sync_path(d, synced[i]);
        count_letters(d, "/y/b", 100, seen);
        T_EQ(seen['a'], CUTS);
        count_letters(d, "/x/a", 100, seen);
        T_EQ(seen[0], CUTS);
        disk_free(d);
    }
}

/* A directory whose own name was not synced takes its synced files with it. */
T_CASE(a_new_directory_needs_the_sync_of_its_parent)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];

    T_EQ(disk_mkdir(d, "/x"), 0);
    fill(d, "/x/a", 'a', 100);
    sync_path(d, "/x/a");
    sync_path(d, "/x");
    count_letters(d, "/x/a", 100, seen);
    T_CMP(seen[0], >, 0);
    sync_path(d, "/");
    count_letters(d, "/x/a", 100, seen);
    T_EQ(seen['a'], CUTS);
    disk_free(d);
}

struct model {
    uint8_t now[8 * SECTOR], synced[8 * SECTOR];
    size_t size;
};

static void change(struct disk *d, int fd, struct model *m, uint64_t *seed)
{
    size_t offset = draw_below(seed, sizeof(m->now)), size = draw_below(seed, 3 * SECTOR);
    uint8_t data[3 * SECTOR];

    if (draw_chance(seed, 15)) {
        T_EQ(disk_truncate(d, fd, offset), 0);
        if (offset < m->size)
            memset(m->now + offset, 0, m->size - offset);
        m->size = offset;
        return;
    }
    if (size > sizeof(m->now) - offset)
        size = sizeof(m->now) - offset;
    memset(data, (int)draw_below(seed, 256), sizeof(data));
    T_EQ(disk_write_at(d, fd, data, size, offset), size);
    memcpy(m->now + offset, data, size);
    if (size > 0 && offset + size > m->size)
        m->size = offset + size;
}

static void expect(struct disk *d, const struct model *m)
{
    uint8_t data[sizeof(m->now)];
    int fd = disk_open(d, "/a", O_RDONLY);

    T_CMP(fd, >=, 0);
    T_EQ(disk_size(d, fd), m->size);
    T_EQ(disk_read(d, fd, data, sizeof(data)), m->size);
    T_CHECK(memcmp(data, m->now, m->size) == 0);
    T_EQ(disk_close(d, fd), 0);
}

/* Random writes and truncations against a plain array: what is read, and what is synced. */
T_CASE(a_sync_saves_everything)
{
    for (uint64_t s = 1; s <= t_rounds(1000, 300); s++) {
        struct disk *d = disk_make(s), *after;
        struct model m = { 0 };
        uint64_t seed = s;
        int fd = make(d, "/a");
        for (uint32_t n = draw_below(&seed, 20); n > 0; n--) {
            change(d, fd, &m, &seed);
            if (draw_chance(&seed, 20))
                T_EQ(disk_sync(d, fd), 0);
        }
        expect(d, &m);
        T_EQ(disk_sync(d, fd), 0);
        sync_path(d, "/");
        after = disk_cut(d, s);
        expect(after, &m);
        disk_free(after);
        disk_free(d);
    }
}

T_CASE(the_power_is_cut_in_the_middle_of_a_change)
{
    struct disk *d = disk_make(1);
    unsigned seen[128];
    size_t size;
    int fd;

    fill(d, "/a", 'a', 3000);
    sync_path(d, "/a");
    sync_path(d, "/");
    T_EQ(disk_changes(d), 4);
    disk_cut_at(d, 6);
    fill(d, "/a", 'b', 3000);
    T_CHECK(!disk_dead(d));
    fd = disk_open(d, "/a", O_RDWR);
    T_EQ(disk_sync(d, fd), -1);
    T_EQ(errno, EIO);
    T_CHECK(disk_dead(d));
    T_EQ(disk_write(d, fd, "c", 1), -1);
    T_EQ(disk_look(d, "/a", &size), -1);
    T_EQ(disk_unlink(d, "/a"), -1);
    T_EQ(errno, EIO);
    count_letters(d, "/a", 3000, seen);
    T_CMP(seen['a'], >, 0); /* the sync had not begun */
    T_CMP(seen['b'], >, 0); /* it was over */
    T_CMP(seen['?'], >, 0);
    disk_free(d);
}

T_CASE(the_power_is_cut_in_the_next_sync)
{
    struct disk *d = disk_make(1);

    disk_cut_in(d, 2, DISK_SYNC | DISK_SYNC_DIRECTORY);
    fill(d, "/a", 'a', 100);
    fill(d, "/b", 'b', 100);
    T_CHECK(!disk_dead(d));
    int fd = disk_open(d, "/", O_RDONLY);
    T_EQ(disk_sync(d, fd), -1);
    T_CHECK(disk_dead(d));
    disk_free(d);
}

T_CASE(the_nth_call_fails)
{
    struct disk *d = disk_make(1);
    int fd = make(d, "/a");

    disk_fail(d, &(struct disk_fault){ .kinds = DISK_WRITE | DISK_SYNC, .nth = 2, .error = EIO });
    T_EQ(disk_write(d, fd, "a", 1), 1);
    T_EQ(disk_sync(d, fd), -1);
    T_EQ(errno, EIO);
    T_EQ(disk_write(d, fd, "b", 1), 1);
    T_EQ(disk_failed(d), 1);
    disk_fail(d, &(struct disk_fault){
                     .kinds = DISK_UNLINK, .nth = 1, .error = ENOSPC, .forever = true });
    T_EQ(disk_unlink(d, "/a"), -1);
    T_EQ(disk_unlink(d, "/a"), -1);
    T_EQ(errno, ENOSPC);
    T_EQ(disk_failed(d), 2);
    disk_fail(d, &(struct disk_fault){ .kinds = DISK_WRITE, .nth = 1 });
    T_EQ(disk_write(d, fd, "0123456789", 10), 5);
    disk_fail(d, NULL);
    T_EQ(disk_write(d, fd, "56789", 5), 5);
    T_EQ(disk_size(d, fd), 12);
    T_EQ(disk_calls(d, DISK_WRITE), 4);
    T_EQ(disk_calls(d, DISK_WRITE | DISK_SYNC), 5);
    disk_free(d);
}

/* As in Linux: the pages of a failed sync count as clean. */
T_CASE(a_sync_after_a_failed_one_saves_nothing_older)
{
    unsigned whole = 0;

    for (uint64_t seed = 1; seed <= CUTS; seed++) {
        struct disk *d = disk_make(seed), *after;
        fill(d, "/a", 'a', 3000);
        sync_path(d, "/");
        disk_fail(d, &(struct disk_fault){ .kinds = DISK_SYNC, .nth = 1, .error = EIO });
        int fd = disk_open(d, "/a", O_RDWR);
        T_EQ(disk_sync(d, fd), -1);
        T_EQ(disk_sync(d, fd), 0);
        T_EQ(letter_of(d, "/a", 3000), 'a');
        after = disk_cut(d, seed);
        whole += letter_of(after, "/a", 3000) == 'a';
        disk_free(after);
        disk_free(d);
    }
    T_CMP(whole, >, 0);
    T_CMP(whole, <, CUTS);
}

T_CASE(a_full_disk)
{
    struct disk *d = disk_make(1);
    int fd = make(d, "/a");
    char data[100] = { 0 };

    disk_limit(d, 150);
    T_EQ(disk_write(d, fd, data, 100), 100);
    T_EQ(disk_write(d, fd, data, 100), 50);
    T_EQ(disk_write(d, fd, data, 100), -1);
    T_EQ(errno, ENOSPC);
    T_EQ(disk_write_at(d, fd, data, 100, 0), 100);
    T_EQ(disk_unlink(d, "/a"), 0);
    T_EQ(disk_used(d), 150); /* it is open */
    T_EQ(disk_close(d, fd), 0);
    T_EQ(disk_used(d), 0);
    fd = make(d, "/b");
    T_EQ(disk_write(d, fd, data, 100), 100);
    disk_free(d);
}

static int count_names(const char *name, void *user)
{
    T_CHECK(name[0] != '\0');
    ++*(unsigned *)user;
    return 0;
}

T_CASE(names)
{
    struct disk *d = disk_make(1);
    unsigned names = 0;
    size_t size;
    int fd;

    T_EQ(disk_mkdir(d, "/x"), 0);
    T_EQ(disk_mkdir(d, "/x"), -1);
    T_EQ(errno, EEXIST);
    fill(d, "/x/a", 'a', 10);
    fill(d, "/x//b", 'b', 10);
    T_EQ(disk_list(d, "/x/", count_names, &names), 0);
    T_EQ(names, 2);
    T_EQ(disk_look(d, "/x", &size), 1);
    T_EQ(disk_look(d, "/x/a", &size), 0);
    T_EQ(size, 10);
    T_EQ(disk_look(d, "/x/c", &size), -1);
    T_EQ(errno, ENOENT);
    T_EQ(disk_look(d, "/x/a/c", &size), -1);
    T_EQ(errno, ENOTDIR);
    T_EQ(disk_open(d, "/x/a", O_RDWR | O_CREAT | O_EXCL), -1);
    T_EQ(errno, EEXIST);
    T_EQ(disk_open(d, "/x/c", O_RDWR), -1);
    T_EQ(errno, ENOENT);
    T_EQ(disk_unlink(d, "/x"), -1);
    T_EQ(errno, EISDIR);
    T_EQ(disk_rmdir(d, "/x"), -1);
    T_EQ(errno, ENOTEMPTY);
    T_EQ(disk_rename(d, "/x/a", "/x/b"), 0);
    fd = disk_open(d, "/x/b", O_RDWR | O_APPEND);
    T_EQ(disk_write(d, fd, "a", 1), 1);
    T_EQ(disk_close(d, fd), 0);
    T_EQ(letter_of(d, "/x/b", 11), 'a');
    T_EQ(disk_unlink(d, "/x/b"), 0);
    T_EQ(disk_rmdir(d, "/x"), 0);
    T_EQ(disk_look(d, "/x", &size), -1);
    disk_free(d);
}
