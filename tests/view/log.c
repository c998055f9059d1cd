/* SPDX-License-Identifier: MIT */
/*
 * log.c - decision logs as texts, and the records that they are.
 *
 * Times are seconds after the start of the machine; with BEGINNING they are 1,000 s later.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/failing.h"
#include "view/line.h"
#include "view/read/log.h"

#define BEGINNING                          \
    "# decision log, libgpudispatch 1.0\n" \
    "# clock 0 wall 1000000000000\n"

static struct gpv_night *night_of(const char *text, uint64_t unknown)
{
    struct gpv_night *n = gpv_night_new();
    struct gpv_log *l = n ? gpv_log_new(n) : NULL;

    T_CHECK(l);
    T_EQ(gpv_log_read(l, text, strlen(text)), 0);
    T_EQ(gpv_log_end(l), 0);
    gpv_log_free(l);
    T_EQ(gpv_night_end(n, 0), 0);
    T_EQ(n->unknown, unknown);
    return n;
}

/* The fields of a line with blanks between them: '-' for an empty one, '_' for a blank; of times
 * the nine zeros are left out. */
static void append(char **to, const char *from, const char *end)
{
    static const char zeros[] = "000000000";

    while (from < end) {
        if (end - from > 9 && strncmp(from, zeros, 9) == 0 && (from[9] == '\t' || from[9] == '\n'))
            from += 9;
        if (*from == '\t' && (from[1] == '\t' || from[1] == '\n')) {
            *(*to)++ = ' ';
            *(*to)++ = '-';
        } else {
            *(*to)++ = *from == ' ' ? '_' : *from == '\t' ? ' ' : *from;
        }
        from++;
    }
}

/* The lines of these kinds. */
static void check(const char *log, const char *kinds, const char *wanted)
{
    struct gpv_night *n = night_of(log, 0);
    struct gpv_lines lines = { 0 };
    char seen[8192], *to = seen;

    T_CHECK(gpv_night_write(n, &lines));
    for (const char *at = lines.text, *all = at + lines.size; at < all;) {
        const char *end = (const char *)memchr(at, '\n', (size_t)(all - at)) + 1;
        char kind[16] = " ";
        (void)strncat(kind, at, strcspn(at, "\t"));
        (void)strcat(kind, " ");
        if (strstr(kinds, kind))
            append(&to, at, end);
        T_CHECK(to < seen + 6000);
        at = end;
    }
    *to = 0;
    T_TEXT(seen, wanted);
    gpv_lines_free(&lines);
    gpv_night_free(n);
}

/* ---- Names ---- */

T_CASE(names)
{
    check(BEGINNING "# host 0 name mybox\n"
                    "set slots=2\n"
                    "fact plan tasks=0 devices=0\n"
                    "# device 0 name gpu:3\n"
                    "# device 0 uuid GPU-3\n"
                    "# device 0 model H200\n"
                    "# device 0 pci 00000000:1B:00.0\n"
                    "# device 0 profile 1g.10gb\n"
                    "# device 0 parent GPU-1\n"
                    "# device 0 index 3\n"
                    "device 0\n"
                    "# class 0 name a  b\\x09c\\x5c\n"
                    "fact class 0 residence=resident need=devices:2,memory:40GiB,cpus:1\n"
                    "class 0\n"
                    "# task 4 label chapter 3\n"
                    "@1s submit t=4\n"
                    "@2s submit t=5 need=devices:1,memory:512MiB\n",
          " records gpu class shape attempt batch ",
          "records 1 mybox log\n"
          "gpu gpu:3 GPU-3 3 H200 00000000:1B:00.0 1g.10gb GPU-1\n"
          "class a__b\\tc\\\\\n"
          "shape 1 a__b\\tc\\\\ 2 2_GPUs,_40_GiB,_1_CPU\n"
          "shape 2 a__b\\tc\\\\ 1 1_GPU,_512_MiB\n"
          "batch 1 a__b\\tc\\\\ 1001 - 0 - 2 0 0 2 0 - 1 1 0\n");
}

/* A log of an earlier version has no names, and no clock. */
T_CASE(no_names)
{
    check("# decision log, libgpudispatch 0.1.0\n"
          "fact class 1 residence=resident need=devices:1\n"
          "class 1\n"
          "device 2\n"
          "@5s submit t=0 class=1\n"
          "@5s decide\n"
          "----\n"
          "SEAT s=0 k=1\n"
          "SEAT_ON s=0 d=2\n"
          "\n"
          "@6s send\n"
          "----\n"
          "sent s=0 t=0 c=0\n"
          "\n"
          "@9s end t=0 outcome=TIMEOUT phase=PROCESS run=2s share=2s\n"
          "----\n"
          "task 0 TIMEOUT PROCESS attempts=1 why=limit\n"
          "# end\n",
          " records gpu batch attempt life now ",
          "records 1 - log\n"
          "gpu device_2 - - - - - -\n"
          "batch 1 class_1 5 9 0 - 1 0 0 0 0 timeout=1 0 - 0\n"
          "attempt 1.1 1 1 device_2 5 7 9 timeout 0 limit -\n"
          "life opened 5 9 -\n"
          "now 9\n");
}

/* A class that was removed: its number is another one. */
T_CASE(numbers_again)
{
    check(BEGINNING "# class 0 name a\n"
                    "class 0\n"
                    "@1s submit t=0\n"
                    "@2s cancel t=0 how=soft\n"
                    "----\n"
                    "task 0 CANCELLED QUEUED attempts=0\n"
                    "\n"
                    "@3s fact class_set c=0 what=remove\n"
                    "# class 0 name b\n"
                    "class 0\n"
                    "@4s submit t=0\n",
          " class batch attempt ",
          "class a\n"
          "class b\n"
          "batch 1 a 1001 1002 0 - 1 0 0 0 0 cancelled=1 0 - 0\n"
          "batch 2 b 1004 - 0 - 1 0 0 1 0 - 1 2 0\n"
          "attempt 1.1 0 1 - 1001 1002 1002 cancelled 0 - -\n");
}

/* ---- Attempts ---- */

#define WORKER                \
    BEGINNING                 \
    "# device 0 name gpu:0\n" \
    "device 0\n"              \
    "slot 0 devices=0\n"

/* A worker that dies: its task ran since the one before had ended; the next ones came back. */
T_CASE(a_worker_that_dies)
{
    check(WORKER "@1s submit t=0\n"
                 "@1s submit t=1\n"
                 "@1s submit t=2\n"
                 "@2s send\n----\nsent s=0 t=0 c=0\n\n"
                 "@2s send\n----\nsent s=0 t=1 c=1\n\n"
                 "@2s send\n----\nsent s=0 t=2 c=2\n\n"
                 "@5s end t=0 outcome=SUCCESS phase=PROCESS run=2s share=2s\n"
                 "----\ntask 0 SUCCESS PROCESS attempts=1\n\n"
                 "@8s sweeping s=0 i=1\n"
                 "@8s came_back t=2\n"
                 "@8s exited s=0 i=1\n"
                 "----\ntask 1 CRASHED PROCESS attempts=1 again\n"
                 "# task 1 end killed by signal 9\n"
                 "\n"
                 "@9s send\n----\nsent s=0 t=1 c=0\n\n"
                 "@10s end t=1 outcome=SUCCESS phase=PROCESS run=500ms share=500ms\n"
                 "----\ntask 1 SUCCESS PROCESS attempts=2\n\n"
                 "@11s close how=now at=12s\n"
                 "----\ntask 2 CANCELLED QUEUED attempts=0\n"
                 "# end\n",
          " attempt batch ",
          "batch 1 tasks 1001 1011 0 - 3 0 0 0 0 ok=2,cancelled=1 0 - 0\n"
          "attempt 1.1 1 1 gpu:0 1001 1003 1005 ok 0 - -\n"
          "attempt 1.2 1 1 gpu:0 1001 1005 1008 crashed 0 killed_by_signal_9 -\n"
          "attempt 1.2 2 1 gpu:0 1008 1009500000000 1010 ok 0 - -\n"
          "attempt 1.3 0 1 - 1001 1011 1011 cancelled 0 - -\n");
}

T_CASE(external_work)
{
    check(BEGINNING "device 0\n"
                    "device 1\n"
                    "@1s submit t=0\n"
                    "@2s decide\n----\nGRANT t=0 i=1 c=0\nGRANT_ON t=0 d=1\nGRANT_ON t=0 d=0\n\n"
                    "@3s declined t=0 at=4s\n"
                    "@4s decide\n----\nGRANT t=0 i=2 c=0\nGRANT_ON t=0 d=1\n\n"
                    "@6s started t=0 at=5s\n"
                    "@9s ended t=0 how=error at=8s\n"
                    "----\ntask 0 ERROR PROCESS attempts=1\n\n"
                    "@9s submit t=0\n"
                    "@9s fact adopt t=0 d=0,1 at=7s grant=2 attempts=1\n"
                    "@12s decide\n",
          " attempt batch ",
          "batch 1 tasks 1001 - 0 - 2 0 0 0 1 error=1 0 - 0\n"
          "attempt 1.1 1 1 device_1 1001 1005 1008 error 0 - -\n"
          "attempt 1.2 1 1 device_0,device_1 1007 1007 - running 0 - -\n");
}

/* ---- What GPUs were not used for ---- */

T_CASE(tenancies)
{
    check(BEGINNING "# device 0 name gpu:0\n"
                    "device 0\n"
                    "# class 0 name a\n"
                    "class 0\n"
                    "# class 1 name b\n"
                    "class 1\n"
                    "@1s decide\n----\nSEAT s=0 k=0\nSEAT_ON s=0 d=0\nslot 0 WAIT\n\n"
                    "@2s decide\n----\nslot 0 BOOT\n\n"
                    "@3s answered s=0 i=1\n----\nslot 0 SETUP\n\n"
                    "@4s setup_ok s=0 i=1\n----\nslot 0 UP\n\n"
                    "@5s sweeping s=0 i=1\n----\nslot 0 SWEEP\n\n"
                    "@6s exited s=0 i=1\n----\nslot 0 COOL\n\n"
                    "@7s memory s=0\n----\nslot 0 BOOT\n\n"
                    "@8s setup_ok s=0 i=2\n----\nslot 0 UP\n\n"
                    "@9s decide\n----\nslot 0 LEAVE\nslot 0 END\n\n"
                    "@10s memory s=0\n----\nslot 0 OFF\n\n"
                    "@10s decide\n----\nSEAT s=1 k=1\nSEAT_ON s=1 d=0\nslot 1 WAIT\n\n"
                    "@11s decide\n----\nslot 1 BOOT\n\n"
                    "@12s setup_ok s=1 i=1\n----\nslot 1 UP\n\n"
                    "@13s drain d=0\n----\nslot 1 END\n\n"
                    "@14s exited s=1 i=1\n----\nslot 1 OFF\nSEAT s=1 k=0\nSEAT_ON s=1 d=0\n\n"
                    "@15s decide\n----\nslot 1 BOOT\n\n",
          " tenancy out ",
          "tenancy gpu:0 boot a 1002 1004 first_use\n"
          "tenancy gpu:0 unload a 1005 1007 it_died\n"
          "tenancy gpu:0 boot a 1007 1008 restart\n"
          "tenancy gpu:0 unload a 1009 1010 evicted_for_b\n"
          "tenancy gpu:0 boot b 1011 1012 first_use\n"
          "tenancy gpu:0 unload b 1013 1014 device_drained\n"
          "tenancy gpu:0 boot a 1015 - again\n"
          "out gpu:0 drained 1013 - -\n");
}

T_CASE(out_of_use)
{
    check(BEGINNING "fact plan foreign_memory=2GiB foreign_load=5000\n"
                    "device 0\n"
                    "device 1\n"
                    "slot 0 devices=0\n"
                    "@1s device d=0 how=doubt what=none\n"
                    "@2s device d=0 how=out what=kill\n"
                    "@3s device d=0 how=ok what=none\n"
                    "@4s device d=0 how=dead what=kill\n"
                    "@5s pause d=1\n"
                    "@6s return d=1\n"
                    "@7s fact foreign d=1 memory=2GiB\n"
                    "@8s fact foreign d=1 memory=3GiB load=100\n"
                    "@9s fact foreign d=1\n"
                    "@10s fact foreign d=1 load=6000\n"
                    "@11s want s=0\n----\nslot 0 BACKOFF\n\n"
                    "@12s want s=0\n----\nslot 0 FAILED\n\n"
                    "@13s remove d=1\n"
                    "@14s decide\n",
          " out ",
          "out device_0 quarantined 1002 1003 -\n"
          "out device_0 lost 1004 - -\n"
          "out device_1 drained 1005 1006 paused\n"
          "out device_1 foreign 1008 1009 3072_MiB\n"
          "out device_1 foreign 1010 - 60_%_busy\n"
          "out device_0 backoff 1011 1012 -\n"
          "out device_0 failed 1012 - -\n"
          "out device_1 lost 1013 - removed\n");
}

/* ---- Ends of logs ---- */

T_CASE(ends)
{
    check(BEGINNING "@1s decide\n@2s decide\n# end\n", " life now ",
          "life opened 1001 1002 -\nnow 1002\n");
    check(BEGINNING "@1s decide\n@2s decide\n", " life now ",
          "life opened 1001 1002 the_log_has_no_end:_its_program_was_killed,_or_goes_on\n"
          "now 1002\n");
    check(BEGINNING "@1s decide\n@2s decide\ncut\n", " life now ",
          "life opened 1001 1002 the_log_was_cut_here\nnow 1002\n");
    check("# decision log", " records life now ", "records 1 - log\nnow -\n");
    check("", " records life now ", "records 1 - log\nnow -\n");
}

/* ---- Damaged logs ---- */

static const char *const garbage[] = {
    "decided",
    "\x80\xff",
    "=",
    "@",
    "@1 decide",
    "@1m decide",
    "@-1s decide",
    "@never decide",
    "@99999999999999999999s decide",
    "@2s",
    "@0s decide",
    "submit",
    "submit t=",
    "submit t=-1",
    "submit t=x",
    "submit t=99999999999",
    "submit t=4294967295",
    "submit t=2097152",
    "submit t=1 class=256",
    "submit t=0",
    "sent s=0 t=9 c=0",
    "sent t=0",
    "sent s=65536 t=0",
    "task",
    "task x",
    "task 9 SUCCESS PROCESS attempts=1",
    "task 0 WELL PROCESS attempts=1",
    "end t=9 outcome=SUCCESS",
    "end t=0 run=1",
    "SEAT s=0",
    "SEAT k=0",
    "SEAT s=0 k=256",
    "SEAT_ON s=0",
    "SEAT_ON s=0 d=16384",
    "slot",
    "slot x",
    "slot 0 ASLEEP",
    "slot 65536 UP",
    "slot 0 devices=x",
    "slot 0 devices=0,16384",
    "device",
    "device d=16384 how=out",
    "pause",
    "class",
    "class 256",
    "fact",
    "fact class",
    "fact class 256",
    "fact moon d=0",
    "fact foreign",
    "fact foreign d=0 memory=1XiB",
    "fact foreign d=0 load=x",
    "fact plan foreign_memory=x",
    "GRANT t=9",
    "# device 16384 name x",
    "# device 0 name a,b",
    "# device 0 index x",
    "# class 256 name x",
    "# task 2097152 label x",
    "# clock 5 wall 6",
};

/* Each such line is counted, and the others are read. */
T_CASE(garbage_is_counted)
{
    for (size_t i = 0; i < T_LENGTH(garbage); i++) {
        char text[512];
        struct gpv_night *n;
        (void)snprintf(text, sizeof(text),
                       WORKER "@1s submit t=0\n%s\n@2s send\n----\nsent s=0 t=0 c=0\n@3s time\n",
                       garbage[i]);
        printf("  %s\n", garbage[i]);
        n = night_of(text, 1);
        T_EQ(n->to, INT64_C(1003000000000));
        T_EQ(n->attempts.n, 1);
        gpv_night_free(n);
    }
}

/* A comment is for people, but for the facts. */
T_CASE(comments_are_ignored)
{
    check(BEGINNING "#\n##\n# x\n# task\n# task 1\n# task x label y\n# moon 1 name x\n"
                    "# task 3 end nothing has ended\n@1s submit t=3\n",
          " batch ", "batch 1 tasks 1001 - 0 - 1 0 0 1 0 - 1 1 0\n");
}

/* ---- Memory ---- */

T_CASE(memory_fails)
{
    static const char text[] =
        WORKER "# class 1 name a\nclass 1\n# task 1 label b\n@1s submit t=1 class=1\n"
               "@2s decide\n----\nSEAT s=1 k=1\nSEAT_ON s=1 d=1\nslot 1 BOOT\nslot 1 SWEEP\n\n"
               "@2s send\n----\nsent s=1 t=1 c=0\n\n@3s drain d=1\n"
               "@4s end t=1\n----\ntask 1 ERROR PROCESS attempts=1\n# task 1 end bad\n";
    unsigned failed = 0;

    do {
        struct gpv_night *n = gpv_night_new();
        struct gpv_log *l;
        int code = -1;
        T_CHECK(n);
        fail_at = failed + 1;
        l = gpv_log_new(n);
        if (l)
            code = gpv_log_read(l, text, sizeof(text) - 1);
        code = code == 0 ? gpv_log_end(l) : code;
        failed += code != 0;
        T_CHECK((code == 0) == (fail_at != 0));
        gpv_log_free(l);
        gpv_night_free(n);
    } while (fail_at == 0);
    T_CHECK(failed >= 8);
    fail_at = 0;
}
