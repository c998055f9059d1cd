/* SPDX-License-Identifier: MIT */
/* page.h - a page under construction, and its parts in their order. */
#ifndef GPV_PAGE_H
#define GPV_PAGE_H

#include <stdio.h>

#include "view/names.h"
#include "view/night/batches.h"
#include "view/night/findings.h"
#include "view/night/use.h"
#include "view/report/chart.h"
#include "view/report/report.h"
#include "view/words.h"

/* The night and its numbers.  No part computes others. */
struct gpv_page {
    FILE *f;
    struct gpv_night *n;
    const struct gpv_report_options *o;
    struct gpv_night_facts facts;
    struct gpv_findings *findings;
    struct gpv_batch_facts *batches; /* of each batch */
    struct gpv_uses *uses;           /* of each GPU */
    struct gpv_uses all;             /* their sum */
    size_t asked;                    /* batches that the reader has named */
    uint8_t *texture;                /* of each class, and of tasks without one (textures.h) */
};

/* Each writes a section: 0, or -1 without memory. */
int gpv_page_answers(struct gpv_page *p);
int gpv_page_timeline(struct gpv_page *p);
int gpv_page_waits(struct gpv_page *p);
int gpv_page_findings(struct gpv_page *p);
int gpv_page_next(struct gpv_page *p);
int gpv_page_events(struct gpv_page *p);
int gpv_page_time(struct gpv_page *p);
int gpv_page_batches(struct gpv_page *p);
/* The search over all attempts, and the data that the script of the page reads. */
int gpv_page_data(struct gpv_page *p);

/* The text of a row about the agent; NULL: it is not shown. */
const char *gpv_page_life(const struct gpv_page *p, const struct gpv_life *life);

/* "02:17"; with its date in a night that is longer than a day, and for a time before the night. */
char *gpv_page_clock(const struct gpv_page *p, int64_t time, char ret[GPV_WORD]);

/* "15 rec-11" of the index of a batch. */
const char *gpv_page_batch(const struct gpv_page *p, uint32_t batch, char ret[GPV_NAME]);

/* The time of the night for a picture: all pictures have each hour at the same place. */
struct gpv_chart gpv_page_chart(const struct gpv_page *p);

/* The head of a section; a box around a wide table, which scrolls on a narrow page. */
void gpv_page_section(struct gpv_page *p, const char *id, const char *title);
void gpv_page_section_end(struct gpv_page *p);
void gpv_page_table(struct gpv_page *p, const char *label);
void gpv_page_table_end(struct gpv_page *p);

#endif
