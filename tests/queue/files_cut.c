/* SPDX-License-Identifier: MIT */
/*
 * files_cut.c - saved files, results and outputs on a disk whose power is cut, or whose calls fail.
 *
 * A night of a few tasks runs on the disk.  What a commit would have made durable is kept beside
 * it.  After a cut at any change, and one more in the middle of the recovery, a reader must find
 * what was committed, whole, and nothing else.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diskfiles.h"
#include "draw.h"
#include "queue/files/names.h"
#include "queue/files/out.h"
#include "queue/files/publish.h"
#include "queue/files/reserve.h"
#include "queue/files/results.h"
#include "queue/files/save.h"

enum { TASKS = 3, STEPS = 24, BIGGEST = 1800, MEBIBYTE = 1 << 20 };

/* What the store knows of a task, in a commit. */
struct fact {
    uint32_t attempts; /* claimed */
    uint32_t success;  /* the attempt whose outputs count; 0 = none */
    uint32_t before;   /* that of the round before */
    uint32_t result;   /* the attempt whose result file is named; 0 = none */
    bool forgotten;
};

struct night {
    struct disk *disk;
    struct diskfiles calls;
    struct gpq_files f;
    struct fact facts[TASKS];
    uint32_t saved; /* version of /saved/file that a save has acknowledged */
    bool killed;    /* from its first fault on, all calls fail: the process is gone */
    char harm[200]; /* the first one that a reader finds */
};

static struct gpq_error e;

static uint64_t task_of(unsigned i)
{
    return GPQ_TASK(i + 1, 7);
}

static void use(struct night *n, struct disk *d)
{
    n->disk = n->calls.disk = d;
    n->f = diskfiles(&n->calls);
}

/* ---- Content that tells from which task and attempt it is ---- */

static size_t fill(uint8_t data[BIGGEST], unsigned task, uint32_t attempt, unsigned file)
{
    uint64_t seed = task * 1000003 + attempt * 1009 + file;
    const size_t size = draw_below(&seed, BIGGEST);

    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(draw(&seed) | 1); /* never the zeros of a lost sector */
    return size;
}

static bool is_whole(const void *found, size_t size, unsigned task, uint32_t attempt, unsigned file)
{
    uint8_t data[BIGGEST];

    return fill(data, task, attempt, file) == size && !memcmp(data, found, size);
}

static unsigned files_of(unsigned task, uint32_t attempt)
{
    return 1 + (task + attempt) % 4;
}

static bool file_is_whole(const struct gpq_files *f, const char *path, unsigned task,
                          uint32_t attempt, unsigned file)
{
    void *data;
    size_t size;
    bool whole;

    if (gpq_read_whole(f, path, MEBIBYTE, &data, &size))
        return false;
    whole = is_whole(data, size, task, attempt, file);
    free(data);
    return whole;
}

/* ---- The night ---- */

/* A command writes its files, and syncs nothing. */
static bool run_command(struct night *n, const char *directory, unsigned task, uint32_t attempt)
{
    uint8_t data[BIGGEST];
    char path[GPQ_PATH];

    (void)gpq_path(path, "%s/deep", directory);
    if (n->f.mkdir(n->f.user, path, 0700))
        return false;
    for (unsigned i = 0; i < files_of(task, attempt); i++) {
        const size_t size = fill(data, task, attempt, i);
        (void)gpq_path(path, i % 2 ? "%s/deep/%u" : "%s/%u", directory, i);
        int fd = n->f.open(n->f.user, path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            return false;
        ssize_t written = n->f.write(n->f.user, fd, data, size);
        (void)n->f.close(n->f.user, fd);
        if (written != (ssize_t)size)
            return false;
    }
    return true;
}

/* An attempt from its claim to its published outputs.  Each commit is made whole, or not at all. */
static void run_attempt(struct night *n, unsigned task, bool succeeds)
{
    struct fact *fact = &n->facts[task];
    const uint32_t attempt = ++fact->attempts;
    const uint64_t id = task_of(task);
    char path[GPQ_PATH];

    (void)gpq_out_work_path(path, "", id, attempt);
    if (!gpq_out_make(&n->f, "", id, attempt, &e) && run_command(n, path, task, attempt) &&
        succeeds && !gpq_out_sync(&n->f, "", id, attempt, &e)) {
        fact->before = fact->success;
        fact->success = attempt;
        fact->forgotten = false;
        (void)gpq_out_publish(&n->f, "", id, attempt, &e);
    } else {
        (void)gpq_out_drop(&n->f, "", id, attempt, &e);
    }
}

static void run_result(struct night *n, unsigned task)
{
    struct fact *fact = &n->facts[task];
    const uint32_t attempt = ++fact->attempts;
    char name[GPQ_RESULT_NAME];
    uint8_t data[BIGGEST];
    const struct gpq_bytes bytes = { data, fill(data, task, attempt, 99) };

    if (!gpq_result_save(&n->f, "", task_of(task), attempt, bytes, name, &e))
        fact->result = attempt;
}

static void run_save(struct night *n)
{
    uint8_t data[BIGGEST];
    const size_t size = fill(data, 77, n->saved + 1, 0);

    if (!gpq_save(&n->f, "/saved", "file", data, size))
        n->saved++;
}

static void forget(struct night *n, unsigned task)
{
    n->facts[task].forgotten = true;
    (void)gpq_out_forget(&n->f, "", task_of(task), &e);
}

/* Commits nothing once the power is cut. */
static void run_step(struct night *n, uint64_t *seed)
{
    const unsigned task = draw_below(seed, TASKS);

    switch (draw_below(seed, 8)) {
    case 0:
    case 1:
    case 2:
        run_attempt(n, task, true);
        break;
    case 3:
        run_attempt(n, task, false);
        break;
    case 4:
    case 5:
        run_result(n, task);
        break;
    case 6:
        run_save(n);
        break;
    default:
        forget(n, task);
    }
}

static void begin(struct night *n, uint64_t seed)
{
    static const char *const folders[] = { "/work", "/out", "/results", "/saved" };

    memset(n, 0, sizeof(*n));
    use(n, disk_make(seed));
    for (size_t i = 0; i < T_LENGTH(folders); i++)
        T_EQ(n->f.mkdir(n->f.user, folders[i], 0700), 0);
    T_EQ(gpq_sync_directory(&n->f, "/"), 0);
}

/* Until the morning, the cut, or a fault that ends the process. */
static void run(struct night *n, uint64_t seed)
{
    for (unsigned i = 0; i < STEPS && !disk_dead(n->disk); i++) {
        if (n->killed && disk_failed(n->disk))
            return;
        run_step(n, &seed);
    }
}

/* ---- The recovery ---- */

static enum gpq_out_fate fate_of(uint64_t task, uint32_t attempt, void *user)
{
    const struct night *n = user;
    const struct fact *fact = &n->facts[GPQ_BATCH_OF(task) - 1];

    return attempt == fact->success && !fact->forgotten ? GPQ_OUT_PUBLISH : GPQ_OUT_DROP;
}

static int is_used(uint64_t task, uint32_t attempt, const char *name, void *user)
{
    const struct night *n = user;

    (void)name;
    return n->facts[GPQ_BATCH_OF(task) - 1].result == attempt;
}

static int recover(struct night *n)
{
    int ret = gpq_out_recover(&n->f, "", fate_of, n, &e);
    return ret ? ret : gpq_results_sweep(&n->f, "", is_used, n, &e);
}

/* ---- What a reader finds ---- */

__attribute__((format(printf, 2, 3))) static void harmed(struct night *n, const char *format, ...)
{
    va_list arguments;

    if (n->harm[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(n->harm, sizeof(n->harm), format, arguments);
    va_end(arguments);
}

static unsigned count_names(const struct gpq_files *f, const char *path)
{
    struct gpq_names names;
    unsigned count = 0;

    if (gpq_names_read(f, path, &names))
        return 0;
    GPQ_EACH_NAME (&names, name)
        count += name[0] != 0;
    gpq_names_free(&names);
    return count;
}

/* Whether a directory has exactly the files of this attempt. */
static bool has_attempt(const struct night *n, const char *directory, unsigned task,
                        uint32_t attempt)
{
    char path[GPQ_PATH];
    const unsigned files = files_of(task, attempt);

    for (unsigned i = 0; i < files; i++) {
        (void)gpq_path(path, i % 2 ? "%s/deep/%u" : "%s/%u", directory, i);
        if (!file_is_whole(&n->f, path, task, attempt, i))
            return false;
    }
    (void)gpq_path(path, "%s/deep", directory);
    return count_names(&n->f, directory) == (files + 1) / 2 + 1 &&
           count_names(&n->f, path) == files / 2;
}

/* At any time: one committed attempt's files, or nothing.  After the recovery: those of the last
 * one, unless it was forgotten. */
static void check_outputs(struct night *n, unsigned task, bool recovered)
{
    const struct fact *fact = &n->facts[task];
    char out[GPQ_PATH];
    off_t size;

    (void)gpq_out_path(out, "", task_of(task));
    if (n->f.look(n->f.user, out, &size) < 0) {
        if (recovered && fact->success && !fact->forgotten)
            harmed(n, "%s: the outputs of attempt %u are lost", out, fact->success);
        return;
    }
    if (fact->success && has_attempt(n, out, task, fact->success))
        return;
    if (!recovered && fact->before && has_attempt(n, out, task, fact->before))
        return;
    harmed(n, "%s: neither the files of attempt %u nor of %u", out, fact->success, fact->before);
}

static void check_result(struct night *n, unsigned task, bool recovered)
{
    const struct fact *fact = &n->facts[task];
    char path[GPQ_PATH];

    (void)gpq_path(path, "/results/%u/7.%" PRIu32, task + 1, fact->result);
    if (fact->result && !file_is_whole(&n->f, path, task, fact->result, 99))
        harmed(n, "%s: a named result is not whole", path);
    (void)gpq_path(path, "/results/%u", task + 1);
    if (recovered && count_names(&n->f, path) > (fact->result ? 1 : 0))
        harmed(n, "%s: results that nobody names", path);
}

static void check(struct night *n, bool recovered)
{
    off_t size;

    for (unsigned i = 0; i < TASKS; i++) {
        check_outputs(n, i, recovered);
        check_result(n, i, recovered);
    }
    if (n->f.look(n->f.user, "/saved/file", &size) < 0) {
        if (n->saved)
            harmed(n, "/saved/file: version %u is lost", n->saved);
    } else if (!file_is_whole(&n->f, "/saved/file", 77, n->saved, 0) &&
               !file_is_whole(&n->f, "/saved/file", 77, n->saved + 1, 0)) {
        harmed(n, "/saved/file: neither version %u nor %u", n->saved, n->saved + 1);
    }
}

/* ---- Cuts ---- */

/* Cuts the power and starts again. */
static void cut(struct night *n, uint64_t seed)
{
    struct disk *before = n->disk;

    use(n, disk_cut(before, seed));
    disk_free(before);
}

/* The process dies at a call, and what it has not synced stays in memory. */
static void kill_process(struct night *n, uint64_t plan, uint64_t nth)
{
    n->killed = true;
    disk_fail(n->disk,
              &(struct disk_fault){ .kinds = DISK_ANY, .nth = nth, .error = EIO, .forever = true });
    run(n, plan);
    disk_fail(n->disk, NULL);
    n->killed = false;
}

/* One night, with a cut or a killed process in it, and a cut in the recovery.  Returns whether a
 * reader finds harm. */
static bool night_with_cuts(struct night *n, uint64_t seed, bool no_file_sync,
                            bool no_directory_sync)
{
    const uint64_t plan = seed;
    uint64_t changes, calls;

    begin(n, seed);
    run(n, plan);
    changes = disk_changes(n->disk);
    calls = disk_calls(n->disk, DISK_ANY);
    disk_free(n->disk);

    begin(n, seed);
    n->calls.no_file_sync = no_file_sync;
    n->calls.no_directory_sync = no_directory_sync;
    if (draw_chance(&seed, 30)) {
        kill_process(n, plan, 1 + draw(&seed) % calls);
    } else {
        disk_cut_at(n->disk, 5 + draw(&seed) % changes);
        run(n, plan);
        cut(n, draw(&seed));
    }
    check(n, false);
    if (draw_chance(&seed, 50)) {
        disk_cut_at(n->disk, disk_changes(n->disk) + 1 + draw_below(&seed, 20));
        (void)recover(n);
        cut(n, draw(&seed));
        check(n, false);
    }
    if (recover(n))
        harmed(n, "the recovery fails: %s", e.text);
    check(n, true);
    disk_free(n->disk);
    return n->harm[0] != 0;
}

static unsigned count_harm(size_t rounds, bool no_file_sync, bool no_directory_sync, bool expected)
{
    static struct night n;
    unsigned harm = 0;

    for (size_t i = 1; i <= rounds; i++)
        if (night_with_cuts(&n, i, no_file_sync, no_directory_sync)) {
            if (!expected)
                T_FAIL("seed %zu: %s", i, n.harm);
            harm++;
        }
    return harm;
}

/* Q5: after a cut at any change, and the recovery, a reader finds one attempt's files whole. */
T_LONG_CASE(cuts, 120)
{
    T_EQ(count_harm(t_rounds(4000, 600), false, false, false), 0);
}

/* Q5: the controls.  A cut finds what is not synced. */
T_LONG_CASE(without_syncs_of_directories, 60)
{
    const size_t rounds = t_rounds(1000, 500);
    const unsigned harm = count_harm(rounds, false, true, true);

    printf("harm in %u of %zu nights\n", harm, rounds);
    T_CMP(harm, >, rounds / 20);
}

T_LONG_CASE(without_syncs_of_files, 60)
{
    const size_t rounds = t_rounds(1000, 500);
    const unsigned harm = count_harm(rounds, true, false, true);

    printf("harm in %u of %zu nights\n", harm, rounds);
    T_CMP(harm, >, rounds / 20);
}

/* ---- Faults ---- */

static const uint32_t kinds[] = { DISK_OPEN,   DISK_READ,           DISK_WRITE,
                                  DISK_SYNC,   DISK_SYNC_DIRECTORY, DISK_RENAME,
                                  DISK_UNLINK, DISK_MKDIR,          DISK_RMDIR };

/* A night in which the nth call of a kind fails.  Returns false when there is no such call. */
static bool night_with_fault(struct night *n, const struct disk_fault *fault, uint64_t seed)
{
    bool met;

    begin(n, seed);
    disk_fail(n->disk, fault);
    run(n, seed);
    met = disk_failed(n->disk) > 0;
    disk_fail(n->disk, NULL);
    check(n, false);
    if (recover(n))
        harmed(n, "the recovery fails: %s", e.text);
    check(n, true);
    if (n->harm[0])
        T_FAIL("seed %" PRIu64 ", kind %u, call %" PRIu64 ", errno %d: %s", seed, fault->kinds,
               fault->nth, fault->error, n->harm);
    disk_free(n->disk);
    return met;
}

/* Each call fails once.  Whatever was committed is whole after the recovery. */
T_LONG_CASE(each_call_fails_once, 120)
{
    static const int errors[] = { EIO, ENOSPC, EINTR, 0 };
    static struct night n;

    for (size_t i = 0; i < T_LENGTH(errors); i++)
        for (size_t k = 0; k < T_LENGTH(kinds); k++) {
            struct disk_fault fault = { .kinds = kinds[k], .error = errors[i] };
            uint64_t failed = 0;
            /* Recovery alone reads. */
            for (fault.nth = 1; night_with_fault(&n, &fault, 5); fault.nth++)
                failed++;
            if (kinds[k] != DISK_READ && errors[i])
                T_CMP(failed, >, 0);
        }
}

/* Of the two renames the second fails: a reader still finds the older outputs. */
T_CASE(a_replacement_that_fails)
{
    static struct night n;

    begin(&n, 1);
    run_attempt(&n, 0, true);
    disk_fail(n.disk, &(struct disk_fault){ .kinds = DISK_RENAME, .nth = 2, .error = ENOSPC });
    run_attempt(&n, 0, true);
    T_EQ(disk_failed(n.disk), 1);
    T_EQ(e.code, GPQ_EFULL);
    T_TEXT(e.text, "/work/1.7.2: rename: No space left on device");
    T_CHECK(has_attempt(&n, "/out/1.7", 0, 1));
    T_EQ(recover(&n), 0);
    T_CHECK(has_attempt(&n, "/out/1.7", 0, 2));
    disk_free(n.disk);
}

/* The directory of a batch that could not be made durable is not taken for durable later. */
T_CASE(a_directory_that_was_not_synced)
{
    static struct night n;

    for (uint64_t seed = 1; seed < 50; seed++) {
        begin(&n, 1);
        disk_fail(n.disk,
                  &(struct disk_fault){ .kinds = DISK_SYNC_DIRECTORY, .nth = 1, .error = ENOSPC });
        run_result(&n, 0);
        T_EQ(n.facts[0].result, 0);
        T_EQ(e.code, GPQ_EFULL);
        run_result(&n, 0);
        T_EQ(n.facts[0].result, 2);
        cut(&n, seed);
        check(&n, false);
        T_TEXT(n.harm, "");
        disk_free(n.disk);
    }
}

/* A write that is interrupted, or writes a part, is no failure. */
T_CASE(writes_go_on)
{
    static struct night n;

    begin(&n, 1);
    disk_fail(n.disk,
              &(struct disk_fault){ .kinds = DISK_WRITE, .nth = 1, .error = 0, .forever = true });
    run_save(&n);
    T_EQ(n.saved, 1);
    T_CMP(disk_failed(n.disk), >, 1);
    disk_fail(n.disk, &(struct disk_fault){ .kinds = DISK_ANY, .nth = 2, .error = EINTR });
    run_save(&n);
    T_EQ(n.saved, 2);
    check(&n, true);
    T_TEXT(n.harm, "");
    disk_free(n.disk);
}

/* ---- A full disk ---- */

/* Q9: an outcome does not fit; with the reserve given up it does. */
T_CASE(the_reserve_makes_room)
{
    static uint8_t data[65536];
    const struct gpq_bytes bytes = { data, sizeof(data) };
    static struct night n;
    char name[GPQ_RESULT_NAME];

    begin(&n, 1);
    disk_limit(n.disk, 300000);
    T_EQ(gpq_reserve_make(&n.f, "/saved", 200000), 0);
    for (uint32_t i = 1; i < 3; i++)
        T_EQ(gpq_result_save(&n.f, "", GPQ_TASK(1, 7), i, bytes, name, &e), i == 1 ? 0 : GPQ_EFULL);
    T_TEXT(e.text, "/results/1/7.2: write 65536 bytes: No space left on device");
    T_EQ(count_names(&n.f, "/results/1"), 1);
    T_EQ(gpq_reserve_give_up(&n.f, "/saved"), 1);
    for (uint32_t i = 2; i < 5; i++)
        T_EQ(gpq_result_save(&n.f, "", GPQ_TASK(1, 7), i, bytes, name, &e), 0);
    /* There is no space to make it again; then there is. */
    T_EQ(gpq_reserve_make(&n.f, "/saved", 200000), -ENOSPC);
    T_EQ(count_names(&n.f, "/saved"), 0);
    disk_limit(n.disk, 0);
    T_EQ(gpq_reserve_make(&n.f, "/saved", 200000), 0);
    disk_free(n.disk);
}
