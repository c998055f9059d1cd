/* SPDX-License-Identifier: MIT */
/* payload.c - bytes of every size travel whole in both directions. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t sizes[] = { 0,    1,     63,        64,         65,      1000,
                                  4095, 4096,  4097,      65536,      1048575, 1048576,
                                  1048577, 2097152, 16777216 };
enum { SIZES = T_LENGTH(sizes), BUDGET_MIB = 192 };

/* What byte `i` of payload `tag` is; no period that divides a page. */
static unsigned char byte_at(uint64_t tag, uint64_t i)
{
    return (unsigned char)(i * 131 + (i >> 8) * 31 + (i >> 16) * 7 + tag * 17);
}

/* ThreadSanitizer would check each byte, which takes most of the time of this program. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

UNWATCHED static void fill(unsigned char *bytes, uint64_t size, uint64_t tag)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = byte_at(tag, i);
}

UNWATCHED static int64_t first_wrong(const unsigned char *bytes, uint64_t size, uint64_t tag)
{
    for (uint64_t i = 0; i < size; i++)
        if (bytes[i] != byte_at(tag, i))
            return (int64_t)i;
    return -1;
}

/* Checks the data, answers with as many other bytes; even tags in place, odd ones by copy. */
static int transform(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t), size = gpud_task_size(t);
    const unsigned char *data = gpud_task_data(t);
    unsigned char *bytes;
    void *room = NULL;
    int code;

    (void)state;
    if (!data || (uintptr_t)data % 64)
        return gpud_task_fail(t, 1, "data is NULL or not aligned to 64");
    if (first_wrong(data, size, tag) >= 0)
        return gpud_task_fail(t, 2, "the data is wrong");
    if (tag % 2 == 0) {
        code = gpud_task_result_alloc(t, size, &room);
        if (code)
            return code;
        fill(room, size, tag + 1);
        return 0;
    }
    bytes = malloc(size + 1);
    if (!bytes)
        return 3;
    fill(bytes, size, tag + 1);
    /* The last result set is the one that counts. */
    code = gpud_task_result_set(t, "something else", 14);
    if (!code)
        code = gpud_task_result_set(t, bytes, size);
    free(bytes);
    return code;
}

static void check_result(const struct t_log *log, uint64_t tag, uint64_t size)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);

    T_EQ(e->result_size, size);
    T_EQ(first_wrong(e->result, size, tag + 1), -1);
}

static gpud_dispatcher *create(const char *devices)
{
    return T_CREATE(.devices = devices, .payload_budget = (uint64_t)BUDGET_MIB << 20);
}

/* Copied in, result of the same size back; one at a time, then all together. */
T_CASE(copied_sizes)
{
    gpud_dispatcher *d;

    t_init(NULL, transform, NULL);
    d = create("cpu:1");
    for (int round = 0; round < 3; round++) {
        struct t_log log = { 0 };

        for (uint64_t i = 0; i < 2 * SIZES; i++) {
            uint64_t size = sizes[i / 2];
            unsigned char *bytes = malloc(size + 1);

            T_CHECK(bytes);
            fill(bytes, size, i);
            T_OK(gpud_dispatcher_submit(d, T_TASK(.tag = i, .data = bytes, .size = size), 0, NULL,
                                        NULL));
            memset(bytes, 0xee, size); /* it has been copied */
            free(bytes);
            if (round != 2)
                t_collect(d, &log, i + 1);
        }
        t_collect(d, &log, 2 * SIZES);
        for (uint64_t i = 0; i < 2 * SIZES; i++)
            check_result(&log, i, sizes[i / 2]);
        t_log_free(&log);
        T_EQ(t_poll(d, &log, 0), 0); /* gives back what the last poll lent */
        T_EQ(t_stats(d).payload_used, 0);
        T_EQ(t_stats(d).result_used, 0);
    }
    t_end(&d, NULL);
}

/* A result of a head and so many bytes, by the task's tag; then its head is taken off. */
static int trim(gpud_task *t, void *state)
{
    enum { HEAD = 24 };
    uint64_t size = gpud_task_tag(t);
    void *room = NULL;
    int code = gpud_task_result_alloc(t, size + HEAD, &room);

    (void)state;
    if (code)
        return code;
    memset(room, 0xee, HEAD);
    fill((unsigned char *)room + HEAD, size, size + 1);
    return gpud_task_result_set(t, (unsigned char *)room + HEAD, size);
}

/* The data of result_set may be a part of the result before, in the cell, in the arena, or over to
 * the cell. */
T_CASE(part_of_the_result_before)
{
    static const uint64_t wanted[] = { 1, 23, 100, 4000, 4072, 4073, 4096, 4097, 65536, 1000000 };
    enum { WANTED = T_LENGTH(wanted) };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, trim, NULL);
    d = create("cpu:1");
    for (unsigned i = 0; i < WANTED; i++)
        T_SUBMIT(d, .tag = wanted[i]);
    t_collect(d, &log, WANTED);
    for (unsigned i = 0; i < WANTED; i++)
        check_result(&log, wanted[i], wanted[i]);
    t_end(&d, &log);
}

/* Written in place: aligned, taken by submit, may be shorter than allocated. */
T_CASE(lent_buffers)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    void *bytes = NULL;

    t_init(NULL, transform, NULL);
    d = create("cpu:2");
    for (uint64_t i = 1; i < SIZES; i++) {
        uint64_t size = i % 3 ? sizes[i] : sizes[i] / 2;

        T_OK(gpud_dispatcher_buffer_alloc(d, sizes[i], &bytes));
        T_CHECK(bytes && (uintptr_t)bytes % 64 == 0);
        fill(bytes, size, i);
        T_SUBMIT(d, .tag = i, .data = bytes, .size = size);
        /* It is no longer ours, neither to free nor to give again. */
        T_CODE(gpud_dispatcher_buffer_free(d, bytes), EINVAL);
        T_CODE(gpud_dispatcher_submit(d, T_TASK(.data = bytes, .size = size), 0, NULL, NULL),
               EINVAL);
    }
    t_collect(d, &log, SIZES - 1);
    for (uint64_t i = 1; i < SIZES; i++)
        check_result(&log, i, i % 3 ? sizes[i] : sizes[i] / 2);
    T_EQ(t_stats(d).payload_used, 0);

    T_OK(gpud_dispatcher_buffer_alloc(d, 5000, &bytes));
    T_CMP(t_stats(d).payload_used, >=, 5000);
    T_OK(gpud_dispatcher_buffer_free(d, bytes));
    T_EQ(t_stats(d).payload_used, 0);
    T_OK(gpud_dispatcher_buffer_free(d, NULL));
    T_CODE(gpud_dispatcher_buffer_free(d, &log), EINVAL);
    bytes = &log;
    T_CODE(gpud_dispatcher_buffer_alloc(d, 0, &bytes), EINVAL);
    T_CODE(gpud_dispatcher_buffer_alloc(d, (uint64_t)BUDGET_MIB * 4 << 20, &bytes), ETOOBIG);
    T_CODE(gpud_dispatcher_buffer_alloc(d, UINT64_MAX, &bytes), ETOOBIG);
    T_CHECK(bytes == (void *)&log);
    t_end(&d, &log);
}

/* A buffer that a failed submit did not take is still the caller's. */
T_CASE(buffer_survives_a_failed_submit)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    void *bytes = NULL;

    t_init(NULL, transform, NULL);
    d = create("cpu:1");
    T_OK(gpud_dispatcher_buffer_alloc(d, 10000, &bytes));
    fill(bytes, 10000, 4);
    T_CODE(
        gpud_dispatcher_submit(d, T_TASK(.tag = 4, .data = bytes, .size = 1u << 20), 0, NULL, NULL),
        EINVAL);
    T_SUBMIT(d, .tag = 4, .data = bytes, .size = 10000);
    t_collect(d, &log, 1);
    check_result(&log, 4, 10000);

    T_OK(gpud_dispatcher_buffer_alloc(d, 10000, &bytes));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.data = bytes, .size = 10000), 0, NULL, NULL), ECLOSED);
    T_OK(gpud_dispatcher_buffer_free(d, bytes));
    t_end(&d, &log);
}

/* Destroy frees buffers that nobody took. */
T_CASE(forgotten_buffer)
{
    gpud_dispatcher *d;
    void *bytes = NULL;

    t_init(NULL, transform, NULL);
    d = create("cpu:1");
    for (int i = 0; i < 10; i++)
        T_OK(gpud_dispatcher_buffer_alloc(d, 1u << 20, &bytes));
    t_end(&d, NULL);
}

static int probe(gpud_task *t, void *state)
{
    unsigned char *data = (unsigned char *)(uintptr_t)gpud_task_data(t);

    (void)state;
    if (gpud_task_tag(t) == 1)
        data[0] = 1; /* C17: task data is read-only in the worker */
    return 0;
}

/* The status page is mapped once, and the part of it that is the keeper's read-only. */
static int maps(gpud_task *t, void *state)
{
    FILE *in = fopen("/proc/self/maps", "re");
    unsigned begins = 0, read_only = 0;
    char line[512], access[8];
    unsigned long offset;

    (void)state;
    while (in && fgets(line, sizeof(line), in))
        if (strstr(line, "memfd:gpud-page") && sscanf(line, "%*s %7s %lx", access, &offset) == 2) {
            begins += offset == 0;
            read_only += access[1] == '-';
        }
    if (in)
        (void)fclose(in);
    if (gpud_task_tag(t) == 1)
        (void)raise(SIGKILL);
    return begins == 1 && read_only == 1 ? 0 : 1;
}

/* In each life, though the keeper which writes them has forked it. */
T_CASE(keepers_words_are_read_only)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, maps, NULL);
    d = create("cpu:1");
    t_submit_tags(d, 0, 3);
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    (void)T_OUTCOME(&log, 1, CRASHED);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    t_end(&d, &log);
}

/* C17: a worker that writes into its task's data dies of it; what the host holds is unharmed. */
T_CASE(task_data_is_read_only)
{
    static unsigned char bytes[100000];
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, probe, NULL);
    d = create("cpu:1");
    for (uint64_t tag = 0; tag < 3; tag++)
        T_SUBMIT(d, .tag = tag, .data = bytes, .size = sizeof(bytes));
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    (void)T_OUTCOME(&log, 1, CRASHED);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    t_end(&d, &log);
}
