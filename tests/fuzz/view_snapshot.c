/* SPDX-License-Identifier: MIT */
/*
 * view_snapshot.c - any bytes as the line of a snapshot.
 *
 * Reading is total, and each value is one that a view can show.  What was read, written and read
 * again is the same line, but for rows that a line does not have.  [V9]
 */
#include "fuzz.h"

#include "view/now/snapshot.h"

static char *line_of(const struct gpv_snapshot *s, size_t *ret_size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_size);
    FUZZ_CHECK(f);
    gpv_snapshot_write(s, f);
    FUZZ_CHECK(fclose(f) == 0);
    return text;
}

static void check_uses(const struct gpv_uses *uses)
{
    for (int use = 0; use < GPV_USES; use++)
        FUZZ_CHECK(uses->ns[use] >= 0);
}

static void check(const struct gpv_snapshot *s)
{
    for (size_t i = 0; i < s->gpus.n; i++) {
        FUZZ_CHECK(s->gpus.row[i].does < GPV_DOES);
        check_uses(&s->gpus.row[i].uses);
    }
    for (size_t i = 0; i < s->batches.n; i++)
        FUZZ_CHECK(s->batches.row[i].why < GPV_WHYS);
    for (size_t i = 0; i < s->findings.n; i++)
        FUZZ_CHECK(s->findings.row[i].outcome < GPV_OUTCOMES);
    for (size_t i = 0; i < s->ends.n; i++)
        FUZZ_CHECK(s->ends.row[i].outcome < GPV_OUTCOMES);
    FUZZ_CHECK(s->history ? s->minutes > 0 && s->minutes <= GPV_MINUTES : s->minutes == 0);
    for (size_t i = 0; i < s->gpus.n * s->minutes; i++)
        check_uses(&s->history[i]);
}

/* A text whose last character was cut away may be shorter in a second line, none in a third. */
static void write_again(const struct gpv_snapshot *s)
{
    struct gpv_snapshot again, third;
    size_t size, second_size;
    char *line = line_of(s, &size);

    FUZZ_CHECK(gpv_snapshot_read(&again, line, size) == 0);
    free(line);
    line = line_of(&again, &size);
    FUZZ_CHECK(gpv_snapshot_read(&third, line, size) == 0);
    char *second = line_of(&third, &second_size);
    FUZZ_CHECK(size == second_size && memcmp(line, second, size) == 0);
    gpv_snapshot_free(&third);
    gpv_snapshot_free(&again);
    free(second);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpv_snapshot s;

    if (gpv_snapshot_read(&s, (const char *)data, size) != 0) {
        FUZZ_CHECK(!s.gpus.row && !s.history);
        return 0;
    }
    check(&s);
    write_again(&s);
    gpv_snapshot_free(&s);
    return 0;
}
