/* SPDX-License-Identifier: MIT */
/* present.c - what the present moment costs its writers. */
#include <stdlib.h>

#include "../measure.h"
#include "../report.h"
#include "night.h"
#include "rows.h"
#include "view/line.h"
#include "view/metrics/metrics.h"
#include "view/now/moment.h"

enum { ATTEMPTS = 2000, BATCHES = 64, ROUNDS = 15, WRITES = 200 };

/* The last moment of a night: each of its batches is a row.  Only the first snapshot of a reader
 * has a history, and so this one has none. */
static int make_moment(struct gpv_snapshot *ret)
{
    char *text = NULL;
    size_t size;
    struct gpv_night *n = gpv_night_new();
    FILE *f = open_memstream(&text, &size);
    int rc = n && f ? bv_night_write(f, ATTEMPTS, BATCHES) : -1;

    if (f)
        (void)fclose(f);
    if (rc == 0 &&
        (gpv_lines_read(n, text, size) || gpv_night_end(n, 0) || gpv_moment(n, n->to, ret)))
        rc = -1;
    free(text);
    gpv_night_free(n);
    ret->minutes = 0;
    return rc ? b_complain("no moment of a night") : 0;
}

/* The median CPU time of one write, in us, and its size in KiB.  -1 after a complaint. */
static int write_often(const struct gpv_snapshot *s,
                       void (*write)(const struct gpv_snapshot *, FILE *), double *ret_us,
                       double *ret_kib)
{
    double us[ROUNDS];
    char *text = NULL;
    size_t size = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        FILE *f = open_memstream(&text, &size);
        const uint64_t begun = b_cpu();
        if (!f)
            return b_complain("out of memory");
        for (unsigned k = 0; k < WRITES; k++) {
            rewind(f);
            write(s, f);
        }
        us[i] = (double)(b_cpu() - begun) / 1e3 / WRITES;
        (void)fclose(f);
        free(text);
    }
    *ret_us = b_median(us, ROUNDS);
    *ret_kib = (double)size / 1024;
    return 0;
}

/* Classes like those that are there, up to the number that have rows of their own in metrics. */
static int add_classes(struct gpv_snapshot *s)
{
    while (s->classes.n < GPV_METRIC_CLASSES) {
        struct gpv_now_class *c = gpv_now_class(s);
        if (!c)
            return b_complain("out of memory");
        *c = s->classes.row[(s->classes.n - 1) % BV_CLASSES];
        (void)snprintf(c->name, sizeof c->name, "class-%zu", s->classes.n);
    }
    return 0;
}

int bv_present(double *figures)
{
    struct gpv_snapshot s;
    int rc;

    if (make_moment(&s))
        return -1;
    rc = write_often(&s, gpv_snapshot_write, &figures[BV_snapshot_us_ROW],
                     &figures[BV_snapshot_kib_ROW]);
    if (rc == 0)
        rc = add_classes(&s);
    if (rc == 0)
        rc = write_often(&s, gpv_metrics_write, &figures[BV_metrics_us_ROW],
                         &figures[BV_metrics_kib_ROW]);
    gpv_snapshot_free(&s);
    return rc;
}
