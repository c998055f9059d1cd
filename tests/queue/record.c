/* SPDX-License-Identifier: MIT */
/* record.c - the record of a run, whole, torn and damaged, and its judgement. */
#include "harness.h"

#include "draw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/lock.h"
#include "queue/files/save.h"
#include "queue/runner/find.h"
#include "queue/store.h"

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"
#define LATER "00000000-0000-0000-0000-000000000001"

static const struct gpq_claimed claimed = {
    .id = { GPQ_TASK(12, 44), 3, "00112233445566778899aabbccddeeff" }, .boot = BOOT
};
static const struct gpq_run_process runner = { 1234, 5678 }, command = { 2147483647, UINT64_MAX };
static const struct gpq_run_end an_end = { .how = GPQ_RUN_KILLED,
                                           .step = GPQ_STEP_CWD,
                                           .outputs = GPQ_OUTPUTS_SYNCED,
                                           .status = 9,
                                           .soft = 2,
                                           .hard = 1,
                                           .wall = UINT64_MAX,
                                           .log_bytes = 1,
                                           .left = 7,
                                           .oom_kills = 3 };

/* Writes a record of this many lines; ends[i] is the size up to line i. */
static size_t make(char data[GPQ_RECORD_MOST], unsigned lines, size_t ends[4])
{
    size_t size = 0;
    char line[GPQ_RECORD_LINE];

    for (unsigned i = 0; i < lines; i++) {
        size_t n = i == 0   ? gpq_record_head(line, &claimed.id, BOOT, 0)
                   : i == 1 ? gpq_record_runner(line, &runner)
                   : i == 2 ? gpq_record_start(line, &command, 17, 18)
                            : gpq_record_end(line, &an_end);
        memcpy(data + size, line, n);
        size += n;
        ends[i] = size;
    }
    return size;
}

T_CASE(it_is_text)
{
    char data[GPQ_RECORD_MOST] = "";
    size_t ends[4];

    T_CMP(make(data, 4, ends), <, 1024);
    T_TEXT(
        data,
        "gpudispatch-run version=1 run=12.44.3.00112233445566778899aabbccddeeff boot=" BOOT
        " sum=310bfb39\n"
        "runner pid=1234 ticks=5678 sum=01e9aa2f\n"
        "start pid=2147483647 ticks=18446744073709551615 monotonic=17 wall=18 sum=8a337542\n"
        "end how=killed step=cwd outputs=synced status=9 core=0 soft=2 hard=1 monotonic=0 "
        "wall=18446744073709551615 log_bytes=1 log_freed=0 log_lost=0 log_error=0 swept=0 left=7 "
        "oom_kills=3 sum=ac958aa2\n");
}

T_CASE(whole)
{
    char data[GPQ_RECORD_MOST];
    struct gpq_record r;
    size_t ends[4], size = make(data, 4, ends);

    T_EQ(gpq_record_read(data, size, &r), 0);
    T_CHECK(r.has_head && r.has_runner && r.has_start && r.has_end && !r.torn);
    T_CHECK(gpq_run_same(&r.id, &claimed.id));
    T_TEXT(r.boot, BOOT);
    T_CHECK(r.runner.pid == runner.pid && r.runner.ticks == runner.ticks);
    T_CHECK(r.command.pid == command.pid && r.command.ticks == command.ticks);
    T_CHECK(r.monotonic == 17 && r.wall == 18);
    T_CHECK(!memcmp(&r.end, &an_end, sizeof(an_end)));
}

T_CASE(a_port_in_the_head)
{
    const uint32_t ports[] = { 0, 1, 20007, 65535, 65536 };
    char line[GPQ_RECORD_LINE];
    struct gpq_record r;

    for (size_t i = 0; i < T_LENGTH(ports); i++) {
        size_t size = gpq_record_head(line, &claimed.id, BOOT, ports[i]);
        T_EQ(gpq_record_read(line, size, &r), ports[i] > 65535 ? -EBADMSG : 0);
        T_EQ(r.port, ports[i] > 65535 ? 0 : ports[i]);
    }
}

/* A line of another version: its sum is made here, as in record.c. */
static size_t with_sum(char *line, const char *text)
{
    uint32_t sum = UINT32_MAX;

    for (const char *c = text; *c; c++) {
        sum ^= (unsigned char)*c;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ UINT32_C(0xedb88320) : sum >> 1;
    }
    return (size_t)sprintf(line, "%s sum=%08x\n", text, (unsigned)~sum);
}

/* An end of an older runner is one all the same. */
T_CASE(an_end_without_the_last_number)
{
    static const char number[] = " oom_kills=3";
    char data[GPQ_RECORD_MOST], text[GPQ_RECORD_LINE] = "", *at;
    struct gpq_record r;
    size_t ends[4], size = make(data, 4, ends);

    memcpy(text, data + ends[2], size - ends[2]);
    at = strstr(text, number);
    T_CHECK(at);
    *at = 0;
    size = ends[2] + with_sum(data + ends[2], text);
    T_EQ(gpq_record_read(data, size, &r), 0);
    T_CHECK(r.has_end && r.end.left == 7 && r.end.oom_kills == 0);
}

/* Q4: a run that was asked to end, and whose end is unknown, has not crashed. */
T_CASE(a_stop)
{
    static const char *const wrong[] = { "stop by=", "stop by=2147483648", "stop" };
    char data[GPQ_RECORD_MOST], line[GPQ_RECORD_LINE];
    struct gpq_record r;
    size_t ends[4], start = (make(data, 4, ends), ends[2]), size = start;

    size += gpq_record_stop(data + size, 77);
    for (size_t n = start; n <= size; n++) {
        T_EQ(gpq_record_read(data, n, &r), 0);
        T_EQ(r.has_stop, n == size);
        T_EQ(gpq_run_judge(&claimed, &r, 0, false, BOOT),
             r.has_stop ? GPQ_FOUND_LOST : GPQ_FOUND_CRASHED);
    }
    T_EQ(r.stop_by, 77);
    T_EQ(gpq_run_judge(&claimed, &r, 0, true, BOOT), GPQ_FOUND_RUNNING);
    size += gpq_record_end(data + size, &an_end);
    T_EQ(gpq_record_read(data, size, &r), 0);
    T_CHECK(r.has_stop && r.has_end && r.end.left == an_end.left);
    T_EQ(gpq_run_judge(&claimed, &r, 0, false, BOOT), GPQ_FOUND_ENDED);
    size += gpq_record_stop(data + size, 0); /* behind the end */
    T_EQ(gpq_record_read(data, size, &r), -EBADMSG);
    size = start + gpq_record_stop(data + start, 0);
    size += gpq_record_stop(data + size, 0); /* twice */
    T_EQ(gpq_record_read(data, size, &r), -EBADMSG);
    size = ends[1] + gpq_record_stop(data + ends[1], 0); /* before the start */
    T_EQ(gpq_record_read(data, size, &r), -EBADMSG);
    for (size_t i = 0; i < T_LENGTH(wrong); i++) {
        (void)make(data, 3, ends);
        size = with_sum(line, wrong[i]);
        memcpy(data + start, line, size);
        T_EQ(gpq_record_read(data, start + size, &r), -EBADMSG);
    }
}

/* Q4: a torn end is no end, at whichever byte; nor is a torn start a start. */
T_CASE(torn_at_each_byte)
{
    char data[GPQ_RECORD_MOST];
    size_t ends[4], size = make(data, 4, ends);

    for (size_t n = 0; n <= size; n++) {
        struct gpq_record r;
        char *copy = malloc(n + 1); /* exactly as long, for a sanitizer */
        T_CHECK(copy);
        memcpy(copy, data, n);
        T_EQ(gpq_record_read(copy, n, &r), n < ends[0] ? -ENODATA : 0);
        T_EQ(r.has_head, n >= ends[0]);
        T_EQ(r.has_runner, n >= ends[1]);
        T_EQ(r.has_start, n >= ends[2]);
        T_EQ(r.has_end, n >= ends[3]);
        T_EQ(r.torn, n != 0 && n != ends[0] && n != ends[1] && n != ends[2] && n != ends[3]);
        T_EQ(gpq_run_judge(&claimed, &r, n < ends[0] ? -ENODATA : 0, false, BOOT),
             n >= ends[3]   ? GPQ_FOUND_ENDED
             : n >= ends[2] ? GPQ_FOUND_CRASHED
                            : GPQ_FOUND_NEVER_STARTED);
        free(copy);
    }
}

T_CASE(each_changed_byte_is_damage)
{
    char data[GPQ_RECORD_MOST];
    struct gpq_record r;
    size_t ends[4], size = make(data, 4, ends);

    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            data[i] ^= (char)(1 << bit);
            int ret = gpq_record_read(data, size, &r);
            /* The last newline may become another byte: then the end is torn. */
            T_CHECK(i == size - 1 ? !ret && !r.has_end && r.torn : ret == -EBADMSG || r.torn);
            T_CHECK(!r.has_end);
            data[i] ^= (char)(1 << bit);
        }
}

#define HEAD_OF(version) \
    "gpudispatch-run version=" version " run=12.44.3.00112233445566778899aabbccddeeff boot=" BOOT

static int read_lines(const char *const *texts, size_t n, struct gpq_record *r)
{
    char data[GPQ_RECORD_MOST];
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += with_sum(data + size, texts[i]);
    return gpq_record_read(data, size, r);
}

T_CASE(versions)
{
    static const char *const later_fields[] = { HEAD_OF("1") " colour=blue",
                                                "runner pid=1 ticks=2 x=y" };
    static const char *const later[] = { HEAD_OF("2") };
    struct gpq_record r;

    T_EQ(read_lines(later_fields, 2, &r), 0);
    T_EQ(r.runner.ticks, 2);
    T_EQ(read_lines(later, 1, &r), -EPROTONOSUPPORT);
    T_EQ(gpq_run_judge(&claimed, &r, -EPROTONOSUPPORT, false, BOOT), GPQ_FOUND_LOST);
}

T_CASE(lines_that_are_none)
{
    static const char *const wrong[][4] = {
        { "gpudispatch-ran version=1" },
        { HEAD_OF("") },
        { HEAD_OF("01") },
        { HEAD_OF("1") "7" },
        { HEAD_OF("1"), HEAD_OF("1") },
        { HEAD_OF("1"), "start pid=1 ticks=2 monotonic=3 wall=4" },
        { HEAD_OF("1"), "runner pid=0 ticks=2" },
        { HEAD_OF("1"), "runner pid=2147483648 ticks=2" },
        { HEAD_OF("1"), "runner pid=-1 ticks=2" },
        { HEAD_OF("1"), "runner pid=1 ticks=" },
        { HEAD_OF("1"), "runner pid=1 ticks=18446744073709551616" },
        { HEAD_OF("1"), "runner pid=1 ticks=2", "end how=eaten step=none outputs=none status=0" },
        { HEAD_OF("1"), "runner pid=1 ticks=2", "end how=exited step=none outputs=none status=0" },
        { HEAD_OF("1"), "runner pid=1 ticks=2", "start pid=1 ticks=2 monotonic=3 wall=4",
          "start pid=1 ticks=2 monotonic=3 wall=4" },
        { "" },
    };
    struct gpq_record r;

    for (size_t i = 0; i < T_LENGTH(wrong); i++) {
        size_t n = 0;
        while (n < 4 && wrong[i][n])
            n++;
        T_EQ(read_lines(wrong[i], n, &r), -EBADMSG);
    }
}

T_CASE(random_bytes)
{
    uint64_t seed = 1;
    char data[600];
    struct gpq_record r;

    for (size_t i = 0; i < t_rounds(200000, 20000); i++) {
        size_t n = draw(&seed) % sizeof(data);
        for (size_t k = 0; k < n; k++)
            data[k] = (char)draw(&seed);
        T_CHECK(gpq_record_read(data, n, &r) && !r.has_head);
    }
}

/* ---- The judgement ---- */

T_CASE(judgements)
{
    char data[GPQ_RECORD_MOST];
    struct gpq_record r[5] = { 0 }; /* with that many lines */
    struct gpq_claimed other = claimed;
    size_t ends[4];

    for (unsigned n = 1; n < 5; n++)
        T_EQ(gpq_record_read(data, make(data, n, ends), &r[n]), 0);
    for (unsigned n = 0; n < 5; n++) {
        int fault = n ? 0 : -ENODATA;
        T_EQ(gpq_run_judge(&claimed, &r[n], fault, true, BOOT), GPQ_FOUND_RUNNING);
        T_EQ(gpq_run_judge(&claimed, &r[n], fault, false, LATER),
             n == 4 ? GPQ_FOUND_ENDED : GPQ_FOUND_LOST);
        T_EQ(gpq_run_judge(&claimed, &r[n], fault, false, BOOT), n == 4 ? GPQ_FOUND_ENDED
                                                                 : n == 3
                                                                     ? GPQ_FOUND_CRASHED
                                                                     : GPQ_FOUND_NEVER_STARTED);
        T_EQ(gpq_run_judge(&claimed, &r[n], -EBADMSG, false, BOOT), GPQ_FOUND_LOST);
    }
    T_EQ(gpq_run_judge(&claimed, &r[0], -ENOENT, false, BOOT), GPQ_FOUND_NEVER_STARTED);
    T_EQ(gpq_run_judge(&claimed, &r[0], -ENOENT, false, LATER), GPQ_FOUND_LOST);
    /* The end of another run is none of this one. */
    other.id.nonce[31] = '0';
    T_EQ(gpq_run_judge(&other, &r[4], 0, false, BOOT), GPQ_FOUND_LOST);
    T_TEXT(gpq_found_text(GPQ_FOUND_STATES), "?");
    T_TEXT(gpq_run_how_text(99), "?");
}

T_CASE(look)
{
    struct gpq_found found;
    char data[GPQ_RECORD_MOST];
    size_t ends[4];
    int fd;

    memset(data, '\n', sizeof(data)); /* what follows the lines: none is empty */

    T_EQ(mkdir("run", 0700), 0);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), 0);
    T_EQ(found.state, GPQ_FOUND_NEVER_STARTED);
    T_EQ(found.fault, -ENOENT);
    T_EQ(gpq_lock_take("run/12.44.3", &fd), 0);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), 0);
    T_EQ(found.state, GPQ_FOUND_RUNNING);
    (void)make(data, 3, ends);
    T_EQ(pwrite(fd, data, ends[2], 0), ends[2]);
    gpq_lock_close(fd);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), 0);
    T_EQ(found.state, GPQ_FOUND_CRASHED);
    T_EQ(gpq_save(&gpq_system_files, "run", "12.44.3", data, sizeof(data)), 0);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), 0);
    T_EQ(found.state, GPQ_FOUND_LOST); /* bytes that nobody wrote */
    T_EQ(truncate("run/12.44.3", GPQ_RECORD_MOST + 1), 0);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), 0);
    T_EQ(found.state, GPQ_FOUND_LOST);
    T_EQ(unlink("run/12.44.3") + mkdir("run/12.44.3", 0700), 0);
    T_EQ(gpq_run_look(".", &claimed, BOOT, &found), -EISDIR);
}

T_CASE(tags)
{
    static const char *const wrong[] = {
        "",
        "12.44.3",
        "12.44.3.",
        "12.44.3.0011223344556677889900aabbccddee0",
        "12.44.3.00112233445566778899AABBCCDDEEFF",
        "12.44.0.00112233445566778899aabbccddeeff",
        "12.44.3.00112233445566778899aabbccddeef",
        "12.44.3.00112233445566778899aabbccddeeff0",
    };
    struct gpq_run_id id;
    char tag[GPQ_RUN_TAG], name[GPQ_RUN_NAME], boot[GPQ_BOOT + 1], nonce[2][GPQ_NONCE + 1];

    T_CHECK(
        gpq_run_tag_read("4294967295.4294967295.4294967295.00112233445566778899aabbccddeeff", &id));
    T_EQ(id.task, UINT64_MAX);
    gpq_run_tag(tag, &id);
    T_TEXT(tag, "4294967295.4294967295.4294967295.00112233445566778899aabbccddeeff");
    gpq_run_name(name, &id);
    T_TEXT(name, "4294967295.4294967295.4294967295");
    for (size_t i = 0; i < T_LENGTH(wrong); i++)
        T_CHECK(!gpq_run_tag_read(wrong[i], &id));
    for (int i = 0; i < 2; i++) {
        T_EQ(gpq_run_nonce(nonce[i]), 0);
        T_EQ(strspn(nonce[i], "0123456789abcdef"), GPQ_NONCE);
    }
    T_CHECK(strcmp(nonce[0], nonce[1]));
    T_EQ(gpq_boot_read(boot), 0);
    T_CHECK(gpq_boot_valid(boot));
}
