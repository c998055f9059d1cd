/* SPDX-License-Identifier: MIT */
/* top_history.c - the minutes of the GPUs. */
#include <stdlib.h>

#include "top_made.h"

static struct gpv_uses *minute(struct gpv_snapshot *s, size_t gpu, uint32_t ago)
{
    return &s->history[gpu * s->minutes + s->minutes - 1 - ago];
}

static void with_history(struct gpv_snapshot *s, int64_t time, uint32_t gpus)
{
    *s = (struct gpv_snapshot){ .time = time, .since = 1 };
    for (uint32_t i = 0; i < gpus; i++)
        (void)add_gpu(s, GPV_DOES_RUN, "whisper");
    s->minutes = GPV_MINUTES;
    s->history = calloc(gpus * GPV_MINUTES, sizeof *s->history);
    T_CHECK(s->history);
}

T_CASE(later_snapshots_add_minutes)
{
    struct gpv_snapshot last, next = { .time = NOW + 90 * SECOND, .since = 1 };

    with_history(&last, NOW, 2);
    minute(&last, 0, 0)->ns[GPV_USE_OK] = 30 * SECOND;
    minute(&last, 0, 5)->ns[GPV_USE_OUT] = MINUTE;
    for (int i = 0; i < 2; i++)
        (void)add_gpu(&next, GPV_DOES_RUN, "whisper");
    last.gpus.row[0].uses.ns[GPV_USE_OK] = 1000 * SECOND;
    next.gpus.row[0].uses.ns[GPV_USE_OK] = 1090 * SECOND;
    gpv_now_carry(&last, &next);
    T_EQ(next.minutes, GPV_MINUTES);
    T_EQ(minute(&next, 0, 2)->ns[GPV_USE_OK], MINUTE); /* 30 s of before, and 30 s of 90 */
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_OK], MINUTE);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_OK], 0);
    T_EQ(minute(&next, 0, 7)->ns[GPV_USE_OUT], MINUTE);
    T_EQ(minute(&next, 1, 0)->ns[GPV_USE_OK], 0);
    /* without a further snapshot the GPU goes on with what it does */
    struct gpv_uses now = gpv_top_minute(&next, 0, next.time + 40 * SECOND, 0);
    T_EQ(now.ns[GPV_USE_OK], 40 * SECOND);
    now = gpv_top_minute(&next, 0, next.time + 80 * SECOND, 1);
    T_EQ(now.ns[GPV_USE_OK], MINUTE);
    T_EQ(gpv_top_minute(&next, 0, next.time, 100000).ns[GPV_USE_OK], 0);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

T_CASE(an_attempt_in_vain_takes_its_minutes_back)
{
    struct gpv_snapshot last, next = { .time = NOW, .since = 1 };

    with_history(&last, NOW - 10 * SECOND, 1);
    minute(&last, 0, 0)->ns[GPV_USE_OK] = 20 * SECOND;
    minute(&last, 0, 1)->ns[GPV_USE_OK] = MINUTE;
    (void)add_gpu(&next, GPV_DOES_IDLE, "");
    last.gpus.row[0].uses.ns[GPV_USE_OK] = 80 * SECOND;
    /* 50 s were in vain, and so are 10 s more */
    next.gpus.row[0].uses.ns[GPV_USE_OK] = 30 * SECOND;
    next.gpus.row[0].uses.ns[GPV_USE_LOST] = 60 * SECOND;
    gpv_now_carry(&last, &next);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_OK], 0);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_LOST], 30 * SECOND);
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_OK], 30 * SECOND);
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_LOST], 30 * SECOND);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

T_CASE(another_agent_begins_another_history)
{
    struct gpv_snapshot last, next = { .time = NOW + MINUTE, .since = 2 };

    with_history(&last, NOW, 1);
    (void)add_gpu(&next, GPV_DOES_RUN, "whisper");
    gpv_now_carry(&last, &next);
    T_EQ(next.minutes, 0);
    T_EQ(gpv_top_minute(&next, 0, next.time + SECOND, 0).ns[GPV_USE_OK], 0);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

T_CASE(letters_of_the_history_have_a_legend)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    with_history(&s, NOW, 2);
    check_has(&t, &s, "k kept", false);
    for (uint32_t i = 10; i < 20; i++)
        minute(&s, 1, i)->ns[GPV_USE_KEPT] = MINUTE;
    check_has(&t, &s, " k kept\nBATCH", true);
    for (uint32_t i = 10; i < 20; i++)
        minute(&s, 0, i)->ns[GPV_USE_LOADING] = MINUTE;
    check_has(&t, &s, " l load, k kept\nBATCH", true);
    t.span = GPV_TOP_ALL;
    check_has(&t, &s, "l load", false);
    t.span = GPV_TOP_HOUR;
    t.lines = 18; /* no line is empty */
    check_has(&t, &s, "l load", false);
    gpv_snapshot_free(&s);
}
