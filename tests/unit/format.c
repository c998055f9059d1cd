/* SPDX-License-Identifier: MIT */
/* format.c - gpud_event_format, gpud_reason_format: a line for each kind, whole or cut. */
#include "harness.h"

#include <gpudispatch/gpudispatch.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/process.h"

#define EVENT(...) (&(struct gpud_event){ .struct_size = sizeof(struct gpud_event), __VA_ARGS__ })

static void is(const struct gpud_event *e, const char *wanted)
{
    char line[1024];
    int n = gpud_event_format(e, line, sizeof line);

    T_TEXT(line, wanted);
    T_EQ(n, strlen(wanted));
    T_EQ(gpud_event_format(e, NULL, 0), n);
}

T_CASE(outcomes)
{
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 17, .label = "label",
             .outcome = GPUD_OUTCOME_SUCCESS, .phase = GPUD_PHASE_PROCESS, .attempt = 1, .slot = 2,
             .device = "cpu:2", .text = "", .started_at = T_MS(100), .ended_at = T_MS(113)),
       "task 17 \"label\" SUCCESS on slot 2 (cpu:2) in 0.013 s");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 1, .label = "", .outcome = GPUD_OUTCOME_SUCCESS,
             .attempt = 2, .slot = 0, .device = "cpu:0,cpu:1",
             .text = "attempt 1: killed by signal 9 (SIGKILL)", .started_at = 1000,
             .ended_at = 14000),
       "task 1 SUCCESS on slot 0 (cpu:0,cpu:1) in 0.013 ms, attempt 2: attempt 1: killed by signal "
       "9 (SIGKILL)");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 18, .outcome = GPUD_OUTCOME_TIMEOUT,
             .phase = GPUD_PHASE_HARD, .code = GPUD_ETIMEOUT, .attempt = 1, .device = "cpu:0",
             .text = "the text", .started_at = T_S(5), .ended_at = T_S(7) + T_MS(4)),
       "task 18 TIMEOUT, phase HARD, slot 0 (cpu:0), attempt 1, after 2.004 s: the text");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 19, .outcome = GPUD_OUTCOME_ERROR,
             .phase = GPUD_PHASE_PROCESS, .code = 7, .attempt = 1, .slot = 1, .device = "cpu:1",
             .text = "process returned 7", .started_at = T_S(1), .ended_at = T_S(4000)),
       "task 19 ERROR, code 7, phase PROCESS, slot 1 (cpu:1), attempt 1, after 3999.000 s: process "
       "returned 7");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 20, .outcome = GPUD_OUTCOME_CRASHED,
             .phase = GPUD_PHASE_PROCESS, .code = GPUD_EDEVICE, .attempt = 3, .slot = 4,
             .device = "gpu:4", .text = "gpu:4 failed"),
       "task 20 CRASHED, EDEVICE, phase PROCESS, slot 4 (gpu:4), attempt 3: gpu:4 failed");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 21, .label = "late",
             .outcome = GPUD_OUTCOME_CANCELLED, .phase = GPUD_PHASE_QUEUED, .code = GPUD_ECANCELLED,
             .slot = GPUD_NO_SLOT, .device = "", .text = "", .ended_at = T_S(3)),
       "task 21 \"late\" CANCELLED, phase QUEUED");
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = UINT64_MAX, .outcome = GPUD_OUTCOME_NO_WORKER,
             .phase = 99, .code = -99, .slot = GPUD_NO_SLOT),
       "task 18446744073709551615 NO_WORKER, code -99, phase ?");
}

T_CASE(other_kinds)
{
    is(EVENT(.kind = GPUD_EVENT_PROGRESS, .task_id = 5, .label = "x", .progress = 0.449, .slot = 1,
             .device = "cpu:1", .text = "half of it"),
       "task 5 \"x\" at 45 % on slot 1 (cpu:1): half of it");
    is(EVENT(.kind = GPUD_EVENT_STARTED, .task_id = 17, .label = "label", .slot = 2,
             .device = "cpu:2", .attempt = 1, .started_at = 5),
       "task 17 \"label\" started on slot 2 (cpu:2)");
    is(EVENT(.kind = GPUD_EVENT_STARTED, .task_id = 18, .label = "", .slot = 1, .device = "cpu:1",
             .attempt = 2, .started_at = 5),
       "task 18 started on slot 1 (cpu:1), attempt 2");
    is(EVENT(.kind = GPUD_EVENT_SETUP_FAILURE, .code = 17, .phase = GPUD_PHASE_SETUP, .slot = 3,
             .incarnation = 2, .device = "cpu:3", .text = "no such model"),
       "slot 3 (cpu:3) SETUP_FAILURE, code 17, incarnation 2: no such model");
    is(EVENT(.kind = GPUD_EVENT_SETUP_FAILURE, .code = GPUD_ECRASHED, .slot = 0, .incarnation = 1,
             .device = "gpu:0", .exit_kind = GPUD_EXIT_CODE, .exit_status = 3,
             .text = "exited with status 3"),
       "slot 0 (gpu:0) SETUP_FAILURE, ECRASHED, incarnation 1: exited with status 3");
    is(EVENT(.kind = GPUD_EVENT_CLEANUP_FAILURE, .code = GPUD_ETIMEOUT, .slot = 0, .incarnation = 1,
             .device = "cpu:0", .text = "cleanup passed its limit"),
       "slot 0 (cpu:0) CLEANUP_FAILURE, ETIMEOUT, incarnation 1: cleanup passed its limit");
    is(EVENT(.kind = GPUD_EVENT_SLOT, .slot = 2, .slot_state = GPUD_SLOT_BACKOFF, .incarnation = 4,
             .device = "cpu:2", .text = ""),
       "slot 2 (cpu:2) enters BACKOFF, incarnation 4");
    is(EVENT(.kind = GPUD_EVENT_PROMISE, .task_id = 7, .label = "x", .class_name = "jobs",
             .slot = GPUD_NO_SLOT, .promise = GPUD_PROMISE_DEVICE),
       "task 7 \"x\" of class jobs has no promise any more, DEVICE");
    is(EVENT(.kind = GPUD_EVENT_PROMISE, .task_id = 7, .class_name = "jobs", .starts_by = 1,
             .slot = GPUD_NO_SLOT, .promise = GPUD_PROMISE_FIRST),
       "task 7 of class jobs starts within 0.000 s, FIRST");
    is(EVENT(.kind = GPUD_EVENT_LOG, .level = GPUD_LEVEL_WARNING, .slot = 1, .device = "cpu:1",
             .text = "the text"),
       "WARNING slot 1: the text");
    is(EVENT(.kind = GPUD_EVENT_LOG, .level = GPUD_LEVEL_INFO, .slot = GPUD_NO_SLOT,
             .text = "the text"),
       "INFO: the text");
    is(EVENT(.kind = GPUD_EVENT_DEVICE, .slot = GPUD_NO_SLOT, .device = "gpu:0",
             .device_uuid = "GPU-5c10", .device_health = GPUD_HEALTH_QUARANTINED, .xid = 79,
             .text = "XID 79"),
       "device gpu:0 (GPU-5c10) QUARANTINED, XID 79: XID 79");
    is(EVENT(.kind = GPUD_EVENT_DEVICE, .slot = GPUD_NO_SLOT, .device = "cpu:0",
             .device_uuid = "cpu:0", .device_health = GPUD_HEALTH_HEALTHY, .text = "drained"),
       "device cpu:0 HEALTHY: drained");
    is(EVENT(.kind = 99, .slot = 1, .device = "cpu:1", .text = "of a later version"),
       "event 99, slot 1 (cpu:1): of a later version");
    is(EVENT(.slot = GPUD_NO_SLOT), "event 0");
}

/* Progress of any kind is between 0 and 100. */
T_CASE(progress)
{
    const double values[] = {
        0, -1, -1e300, 0.004, 0.995, 1, 7, 1e300, strtod("nan", NULL), strtod("inf", NULL)
    };
    const unsigned wanted[] = { 0, 0, 0, 0, 100, 100, 100, 100, 0, 100 };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "task 1 at %u %%", wanted[i]);
        is(EVENT(.kind = GPUD_EVENT_PROGRESS, .task_id = 1, .slot = GPUD_NO_SLOT,
                 .progress = values[i]),
           line);
    }
}

/* One line, whatever a worker has written; what is no control character stays. */
T_CASE(control_characters)
{
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 1, .label = "a\nb\tc\r",
             .outcome = GPUD_OUTCOME_ERROR, .slot = GPUD_NO_SLOT,
             .text = "\x1b[31mred\x7f\x01 \xc2\x85 \xc2\x9b \xc2\xa0 Gr\xc3\xb6\xc3\x9f\x65"),
       "task 1 \"a b c \" ERROR:  [31mred       \xc2\xa0 Gr\xc3\xb6\xc3\x9f\x65");
    is(EVENT(.kind = GPUD_EVENT_LOG, .level = GPUD_LEVEL_ERROR, .slot = GPUD_NO_SLOT,
             .text = "\xc2"),
       "ERROR: \xc2");
}

/* A host with a decimal comma. */
T_CASE(locale)
{
    const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8" };
    bool set = false;

    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]) != NULL;
    is(EVENT(.kind = GPUD_EVENT_OUTCOME, .task_id = 1, .outcome = GPUD_OUTCOME_SUCCESS,
             .slot = GPUD_NO_SLOT, .started_at = T_S(1), .ended_at = T_MS(2500)),
       "task 1 SUCCESS in 1.500 s");
    (void)setlocale(LC_NUMERIC, "C");
}

/* Whether the bytes are whole characters of UTF-8. */
static bool is_whole(const char *text)
{
    while (*text) {
        const unsigned char c = (unsigned char)*text++;
        for (unsigned more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3; more; more--)
            if (((unsigned char)*text++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

/* At every size: the beginning of the line, terminated, no half character, and nothing behind. */
static void cut(const struct gpud_event *e)
{
    char whole[512], line[512];
    int n = gpud_event_format(e, whole, sizeof whole);

    T_CMP(n, <, sizeof whole);
    for (size_t size = 0; size <= (size_t)n + 3; size++) {
        size_t length;
        memset(line, 0x5a, sizeof line);
        T_EQ(gpud_event_format(e, line, size), n);
        for (size_t i = size; i < sizeof line; i++)
            T_EQ(line[i], 0x5a);
        if (size == 0)
            continue;
        length = strnlen(line, size);
        T_CMP(length, <, size);
        T_CHECK(length + 4 >= size || length == (size_t)n);
        T_EQ(memcmp(line, whole, length), 0);
        T_CHECK(is_whole(line));
        if (size > (size_t)n)
            T_EQ(length, n);
    }
}

T_CASE(cut_at_every_size)
{
    for (uint32_t kind = 0; kind <= GPUD_EVENT_COUNT; kind++)
        cut(EVENT(.kind = kind, .task_id = 12, .label = "\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80 task",
                  .outcome = GPUD_OUTCOME_ERROR, .code = 3, .phase = GPUD_PHASE_PROCESS,
                  .attempt = 1, .slot = 1, .incarnation = 1, .slot_state = GPUD_SLOT_READY,
                  .level = GPUD_LEVEL_INFO, .device = "cpu:1", .device_uuid = "cpu:1",
                  .device_health = GPUD_HEALTH_HEALTHY, .progress = 1, .started_at = 1,
                  .ended_at = T_S(2),
                  .text = "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xe2\x82\xac\xe2\x82\xac\xc3\xb6\xc3\xb6"
                          " end"));
    cut(EVENT(.kind = GPUD_EVENT_SLOT, .slot = 1, .device = "cpu:1"));
}

/* Bytes that are no UTF-8 are cut, too. */
T_CASE(cut_in_no_utf8)
{
    const struct gpud_event *e =
        EVENT(.kind = GPUD_EVENT_LOG, .level = GPUD_LEVEL_INFO, .slot = GPUD_NO_SLOT,
              .text = "\x80\x80\x80\x80\x80\x80\x80\x80");
    char line[12];

    T_EQ(gpud_event_format(e, line, sizeof line), 14);
    T_CMP(strnlen(line, sizeof line), <, sizeof line);
    T_EQ(strncmp(line, "INFO: ", 6), 0);
    T_EQ(gpud_event_format(e, line, 1), 14);
    T_TEXT(line, "");
}

/* C15: a record of older headers ends early, one of later headers has more; others are refused. */
T_CASE(versions)
{
    struct {
        struct gpud_event event;
        uint64_t more[8];
    } later = { .event = { .struct_size = sizeof later,
                           .kind = GPUD_EVENT_LOG,
                           .level = 3,
                           .slot = 1,
                           .text = "x" } };
    struct gpud_event e = { .kind = GPUD_EVENT_OUTCOME,
                            .task_id = 9,
                            .label = "l",
                            .outcome = GPUD_OUTCOME_SUCCESS,
                            .attempt = 2,
                            .slot = 1,
                            .device = "cpu:1",
                            .started_at = 1,
                            .ended_at = T_S(1) + 1 };
    char line[100];

    memset(later.more, 0xff, sizeof later.more);
    is(&later.event, "INFO slot 1: x");
    e.struct_size = offsetof(struct gpud_event, device_health);
    is(&e, "task 9 \"l\" SUCCESS on slot 1 (cpu:1) in 1.000 s, attempt 2");
    e.struct_size = offsetof(struct gpud_event, started_at);
    is(&e, "task 9 \"l\" SUCCESS on slot 1 (cpu:1), attempt 2");
    e.struct_size = offsetof(struct gpud_event, device);
    is(&e, "task 9 \"l\" SUCCESS on slot 1, attempt 2");
    e.struct_size = offsetof(struct gpud_event, slot);
    is(&e, "task 9 \"l\" SUCCESS, attempt 2");
    e.struct_size = offsetof(struct gpud_event, label);
    e.kind = GPUD_EVENT_LOG;
    is(&e, "?");
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t bad[] = { 0, 16, sizeof e - 1, 1u << 20 };
        e.struct_size = bad[i];
        T_EQ(gpud_event_format(&e, line, sizeof line), GPUD_ESTRUCT);
    }
    T_EQ(gpud_event_format(NULL, line, sizeof line), GPUD_EINVAL);
    T_EQ(gpud_event_format(EVENT(.kind = 1), NULL, 1), GPUD_EINVAL);
}

/* ---- gpud_reason_format ---- */

#define REASON(...) \
    (&(struct gpud_reason){ .struct_size = sizeof(struct gpud_reason), __VA_ARGS__ })

static void reason_is(const struct gpud_reason *r, const char *wanted)
{
    char line[256];
    const int n = gpud_reason_format(r, line, sizeof line);

    T_TEXT(line, wanted);
    T_EQ(n, strlen(wanted));
    T_EQ(gpud_reason_format(r, NULL, 0), n);
}

T_CASE(reasons)
{
    char name[GPI_PROCESS_NAME], wanted[160];

    reason_is(REASON(.kind = GPUD_REASON_MEMORY, .unit = GPUD_UNIT_BYTES, .device = "fake:0",
                     .have = 4ull << 30, .need = 8ull << 30, .task_id = 17,
                     .class_name = "whisper", .until = 1),
              "MEMORY on fake:0, has 4096 MiB, needs 8192 MiB, task 17 of class whisper, until "
              "now: workers hold the memory");
    reason_is(REASON(.kind = GPUD_REASON_PASSED_OVER_BY, .task_id = 17, .class_name = "whisper"),
              "PASSED_OVER_BY, task 17 of class whisper: the task comes first");
    reason_is(REASON(.kind = GPUD_REASON_SHARE, .variant = 2, .unit = GPUD_UNIT_SHARE,
                     .device = "gpu:1", .have = 2500, .need = 5000),
              "SHARE on gpu:1, variant 2, has 2500 of 10000, needs 5000 of 10000: running tasks "
              "have the share of the device");
    reason_is(REASON(.kind = GPUD_REASON_CPUS, .unit = GPUD_UNIT_CPUS, .have = 1, .need = 4),
              "CPUS, has 1 CPU, needs 4 CPUs: running tasks have the CPU slots");
    reason_is(REASON(.kind = GPUD_REASON_FOREIGN, .unit = GPUD_UNIT_BYTES, .device = "gpu:0",
                     .have = 12ull << 30, .need = 1024, .pid = 4194305),
              "FOREIGN on gpu:0, they have 12288 MiB, at most 1024 bytes, pid 4194305: foreign "
              "processes use the device");
    gpi_process_name((uint32_t)getpid(), name);
    (void)snprintf(wanted, sizeof wanted,
                   "FOREIGN on gpu:0, pid %d (user %u, %s): foreign processes use the device",
                   (int)getpid(), (unsigned)getuid(), name);
    reason_is(REASON(.kind = GPUD_REASON_FOREIGN, .device = "gpu:0", .pid = (uint32_t)getpid()),
              wanted);
    reason_is(REASON(.kind = GPUD_REASON_SEATS, .unit = GPUD_UNIT_WORKERS, .have = 1, .need = 2),
              "SEATS: max_workers 1 of the dispatcher is reached");
    reason_is(REASON(.kind = GPUD_REASON_SEATS, .variant = 1, .unit = GPUD_UNIT_WORKERS, .have = 3,
                     .need = 4, .class_name = "whisper"),
              "SEATS, variant 1: max_workers 3 of class whisper is reached");
    reason_is(REASON(.kind = GPUD_REASON_SEATS),
              "SEATS: max_workers of the class, or of the dispatcher, are there");
    reason_is(REASON(.kind = GPUD_REASON_PINNED, .device = "gpu:0", .class_name = "a\nb"),
              "PINNED on gpu:0, class a b: a worker of the class stays: it is pinned, or one of "
              "min_workers");
    reason_is(REASON(.kind = GPUD_REASON_NEVER, .unit = GPUD_UNIT_COMPUTE, .device = "gpu:0",
                     .have = 750, .need = 806),
              "NEVER on gpu:0, has compute 750, needs compute 806: the device, or without one the "
              "dispatcher, could never hold it");
    reason_is(REASON(.kind = GPUD_REASON_NEVER, .unit = GPUD_UNIT_DEVICES, .have = 0, .need = 1),
              "NEVER, has 0 devices, needs 1 device: the device, or without one the dispatcher, "
              "could never hold it");
    reason_is(REASON(.kind = 99, .unit = 98, .have = 3, .need = 4), "?, has 3, needs 4: ?");
}

/* The line has the time that is left. */
T_CASE(time_left)
{
    const char *begin = "BOOTING on gpu:0, class a, until in ";
    unsigned long left;
    char line[256], *rest;

    (void)gpud_reason_format(REASON(.kind = GPUD_REASON_BOOTING, .device = "gpu:0",
                                    .class_name = "a", .until = t_now() + T_S(1000)),
                             line, sizeof line);
    T_EQ(strncmp(line, begin, strlen(begin)), 0);
    left = strtoul(line + strlen(begin), &rest, 10);
    T_CMP(left, >, 900);
    T_CMP(left, <=, 1000);
    T_TEXT(rest, " s: a worker of the class starts");
}

T_CASE(reasons_cut_and_versions)
{
    const struct gpud_reason *whole = REASON(.kind = GPUD_REASON_PAUSED, .device = "gpu:0");
    struct gpud_reason r = { .kind = GPUD_REASON_PAUSED, .class_name = "a", .task_id = 5 };
    char line[100];
    const int n = gpud_reason_format(whole, line, 10);

    T_TEXT(line, "PAUSED on");
    T_EQ(n, strlen("PAUSED on gpu:0: the device, or without one the class, is paused"));
    r.struct_size = offsetof(struct gpud_reason, task_id);
    reason_is(&r, "PAUSED, class a: the device, or without one the class, is paused");
    memset(r.class_name, 'x', sizeof r.class_name); /* without a 0 byte */
    T_EQ(gpud_reason_format(&r, line, sizeof line),
         63 + strlen("PAUSED, class : the device, or without one the class, is paused"));
    r.struct_size -= 8;
    T_EQ(gpud_reason_format(&r, line, sizeof line), GPUD_ESTRUCT);
    T_EQ(gpud_reason_format(NULL, line, sizeof line), GPUD_EINVAL);
    T_EQ(gpud_reason_format(whole, NULL, 1), GPUD_EINVAL);
}

T_CASE(reason_names)
{
    T_TEXT(gpud_reason_name(GPUD_REASON_NONE), "NONE");
    T_TEXT(gpud_reason_name(GPUD_REASON_PASSED_OVER_BY), "PASSED_OVER_BY");
    T_TEXT(gpud_reason_name(GPUD_REASON_RETRY), "RETRY");
    T_TEXT(gpud_reason_name(GPUD_REASON_COUNT), "?");
}
