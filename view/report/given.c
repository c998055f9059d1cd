/* SPDX-License-Identifier: MIT */
/* given.c - the batches: how many of their tasks ended well, how long they ran and waited. */
#include "view/night/waits.h"
#include "view/report/html.h"
#include "view/names.h"
#include "view/report/page.h"
#include "view/words.h"

enum {
    ROWS = 200,  /* further batches are counted */
    REASONS = 2, /* of a batch */
    NAME = 60    /* characters */
};
static const double LEAST = .02; /* part of the time for which a batch waited that is shown */

static void write_number(FILE *f, uint64_t number)
{
    char word[GPV_WORD];
    gpv_html(f, "<td class=\"n\">%s</td>", gpv_count(number, word));
}

static void write_time(const struct gpv_page *p, int64_t time)
{
    char word[GPV_WORD];
    gpv_html(p->f, "<td class=\"nw\">%s</td>", time ? gpv_page_clock(p, time, word) : "–");
}

static void write_span(FILE *f, int64_t ns)
{
    char word[GPV_WORD];
    gpv_html(f, "<td class=\"n nw\">%s</td>", ns >= 0 ? gpv_span(ns, word) : "–");
}

static int write_reasons(struct gpv_page *p, uint32_t batch)
{
    double sum[GPV_WHYS], all = 0;
    char word[GPV_WORD];
    if (gpv_wait_sum(p->n, batch, sum) != 0)
        return -1;
    for (unsigned i = 0; i < GPV_WHYS; i++)
        all += sum[i];
    gpv_html(p->f, "<td>");
    for (unsigned k = 0; k < REASONS; k++) {
        unsigned most = 0;
        for (unsigned i = 1; i < GPV_WHYS; i++)
            most = sum[i] > sum[most] ? i : most;
        if (all <= 0 || sum[most] < LEAST * all)
            break;
        gpv_html(p->f, "%s<span class=\"nw\">%s</span> %s", k ? ", " : "",
                 gpv_percent(sum[most], all, word), gpv_why_text(most));
        sum[most] = 0;
    }
    gpv_html(p->f, "</td>");
    return 0;
}

static int write_batch(struct gpv_page *p, uint32_t i)
{
    const struct gpv_batch *b = &p->n->batches.row[i];
    const struct gpv_batch_facts *facts = &p->batches[i];
    gpv_html(p->f, "<tr data-batch=\"%u\" class=\"%s\"><th scope=\"row\">%u %.*s</th>", b->id,
             b->asked ? "asked" : "", b->id, NAME, gpv_text(p->n, b->name));
    gpv_html(p->f, "<td>%.*s</td>", NAME,
             facts->attempts ? gpv_class_label(p->n, facts->class) : "–");
    write_number(p->f, facts->gpus);
    write_number(p->f, b->total);
    write_number(p->f, facts->ok);
    write_number(p->f, facts->bad);
    write_time(p, b->made);
    if (b->ended)
        write_time(p, b->ended);
    else
        gpv_html(p->f, "<td class=\"nw\">goes on</td>");
    write_span(p->f, facts->run_p50);
    write_span(p->f, facts->run_p95);
    write_span(p->f, facts->wait_p50);
    if (write_reasons(p, i) != 0)
        return -1;
    gpv_html(p->f, "</tr>\n");
    return 0;
}

int gpv_page_batches(struct gpv_page *p)
{
    const size_t n = p->n->batches.n;
    char word[GPV_WORD];
    gpv_page_section(p, "batches", "Batches");
    if (n == 0) {
        gpv_html(p->f, "<p>None.</p>\n");
        gpv_page_section_end(p);
        return 0;
    }
    gpv_page_table(p, "Batches");
    gpv_html(p->f, "<thead><tr><th scope=\"col\">batch</th><th scope=\"col\">class</th>"
                   "<th scope=\"col\" class=\"n\">GPUs</th><th scope=\"col\" class=\"n\">tasks</th>"
                   "<th scope=\"col\" class=\"n\">ok</th><th scope=\"col\" class=\"n\">failed</th>"
                   "<th scope=\"col\">given</th><th scope=\"col\">ended</th>"
                   "<th scope=\"col\" class=\"n\">median run</th>"
                   "<th scope=\"col\" class=\"n\">95 %% run</th>"
                   "<th scope=\"col\" class=\"n\">median wait</th>"
                   "<th scope=\"col\">because</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < n && i < ROWS; i++) {
        if (write_batch(p, i) != 0)
            return -1;
    }
    if (n > ROWS)
        gpv_html(p->f, "<tr><td colspan=\"12\">%s more batches</td></tr>\n",
                 gpv_count(n - ROWS, word));
    gpv_html(p->f, "</tbody>");
    gpv_page_table_end(p);
    gpv_page_section_end(p);
    return 0;
}
