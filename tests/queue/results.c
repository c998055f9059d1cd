/* SPDX-License-Identifier: MIT */
/* results.c - results as files, and the sweep of those that nobody names. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/results.h"
#include "queue/files/save.h"

static const struct gpq_files *const f = &gpq_system_files;
static struct gpq_error e;
static char name[GPQ_RESULT_NAME];

static void save(uint32_t batch, uint32_t number, uint32_t attempt, const char *text)
{
    const struct gpq_bytes data = { text, strlen(text) };

    T_EQ(gpq_result_save(f, ".", GPQ_TASK(batch, number), attempt, data, name, &e), 0);
}

static int used(uint64_t task, uint32_t attempt, const char *of, void *user)
{
    (void)of;
    ++*(int *)user;
    return attempt == 9 ? GPQ_EDAMAGED : task == GPQ_TASK(12, 44) && attempt == 2;
}

T_CASE(saved_read_and_dropped)
{
    struct gpq_bytes data;

    T_EQ(mkdir("results", 0700), 0);
    save(12, 44, 2, "text");
    T_TEXT(name, "12/44.2");
    T_EQ(access("results/12/44.2", F_OK), 0);
    T_EQ(gpq_result_read(f, ".", name, &data, &e), 0);
    T_EQ(data.size, 4);
    T_CHECK(!memcmp(data.data, "text", 4));
    free((void *)(uintptr_t)data.data);
    save(UINT32_MAX, UINT32_MAX, UINT32_MAX, "");
    T_TEXT(name, "4294967295/4294967295.4294967295");
    T_EQ(gpq_result_drop(f, ".", name, &e), 0);
    T_EQ(gpq_result_drop(f, ".", name, &e), 0);
    T_EQ(gpq_result_read(f, ".", name, &data, &e), GPQ_ENOTFOUND);
    T_TEXT(e.text, "./results/4294967295/4294967295.4294967295: read: No such file or directory");
}

T_CASE(a_save_that_fails)
{
    const struct gpq_bytes data = { "x", 1 };

    name[0] = '?';
    T_EQ(gpq_result_save(f, ".", GPQ_TASK(1, 2), 3, data, name, &e), GPQ_ENOTFOUND);
    T_TEXT(e.text, "./results/1/2.3: write 1 bytes: No such file or directory");
    T_EQ(name[0], '?');
}

T_CASE(swept_at_open)
{
    int calls = 0;

    T_EQ(mkdir("results", 0700), 0);
    save(12, 44, 1, "of an older attempt");
    save(12, 44, 2, "used");
    save(12, 45, 1, "never committed");
    save(7, 1, 1, "the only one of its batch");
    T_EQ(gpq_save(f, "results/12", "46.1.tmp", "unfinished", 10), 0);
    T_EQ(gpq_save(f, "results/12", "notes.tmp", "of a person", 11), 0);
    T_EQ(gpq_save(f, "results", "notes", "of a person", 11), 0);
    for (int i = 0; i < 2; i++) {
        T_EQ(gpq_results_sweep(f, ".", used, &calls, &e), 0);
        T_EQ(calls, i ? 5 : 4);
        T_EQ(access("results/12/44.2", F_OK), 0);
        T_EQ(access("results/12/44.1", F_OK), -1);
        T_EQ(access("results/12/45.1", F_OK), -1);
        T_EQ(access("results/12/46.1.tmp", F_OK), -1);
        T_EQ(access("results/12/notes.tmp", F_OK), 0);
        T_EQ(access("results/notes", F_OK), 0);
        T_EQ(access("results/7", F_OK), -1);
    }
}

T_CASE(a_sweep_that_the_store_fails)
{
    int calls = 0;

    T_EQ(mkdir("results", 0700), 0);
    save(12, 44, 9, "x");
    T_EQ(gpq_results_sweep(f, ".", used, &calls, &e), GPQ_EDAMAGED);
    T_EQ(access("results/12/44.9", F_OK), 0);
    save(12, 45, 1, "never committed");
    T_EQ(gpq_results_sweep(f, ".", used, &calls, &e), GPQ_EDAMAGED);
    T_EQ(access("results/12/45.1", F_OK), -1);
    T_EQ(gpq_results_sweep(f, "none", used, &calls, &e), GPQ_ENOTFOUND);
}
