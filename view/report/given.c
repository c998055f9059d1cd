/* SPDX-License-Identifier: MIT */
/* given.c - the batches: how many of their tasks ended well, how long they ran and waited. */
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/night/waits.h"
#include "view/report/html.h"
#include "view/report/page.h"
#include "view/words.h"

enum {
    ROWS = 200,  /* further batches are counted */
    NAME = 60,   /* characters */
    DETAIL = 120 /* characters */
};

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

/* The GPUs that were kept free for a batch. */
static int write_kept(struct gpv_page *p, uint32_t batch)
{
    const struct gpv_night *n = p->n;
    bool *kept = calloc(n->gpus.n + 1, sizeof(*kept));
    uint16_t *gpu = calloc(n->gpus.n + 1, sizeof(*gpu));
    char name[GPV_NAME];
    struct gpv_set set = { gpu, 0 };
    for (size_t i = 0; kept && i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];
        if (t->kind == GPV_TENANCY_KEPT && t->gpu < n->gpus.n &&
            gpv_kept_for(n, t) == n->batches.row[batch].id)
            kept[t->gpu] = true;
    }
    for (uint16_t i = 0; kept && gpu && i < n->gpus.n; i++)
        if (kept[i])
            gpu[set.n++] = i;
    if (set.n > 0)
        gpv_html(p->f, ", kept free for it: %s", gpv_gpu_labels(n, set, name));
    free(gpu);
    free(kept);
    return kept && gpu ? 0 : -1;
}

/* What the most frequent text adds to the kind of a reason: of BUSY nothing, since it names the task
 * that had a GPU when the row began. */
static int write_detail(struct gpv_page *p, uint32_t batch, unsigned why, uint32_t text)
{
    const char *detail = gpv_reason_detail(gpv_text(p->n, text));
    if (why == GPV_WHY_GATHERING)
        return write_kept(p, batch);
    if (*detail && why != GPV_WHY_BUSY && why != GPV_WHY_UNSEEN)
        gpv_html(p->f, ": <span class=\"dim\">%.*s</span>", DETAIL, detail);
    return 0;
}

/* All reasons, the longest ones first.  The parts add up to 100 %. */
static int write_reasons(struct gpv_page *p, uint32_t batch)
{
    double sum[GPV_WHYS];
    uint32_t text[GPV_WHYS];
    unsigned percent[GPV_WHYS];
    if (gpv_wait_sum(p->n, batch, sum, text) != 0)
        return -1;
    gpv_wait_percents(sum, percent);
    gpv_html(p->f, "<td>");
    for (unsigned k = 0; k < GPV_WHYS; k++) {
        unsigned most = 0;
        for (unsigned i = 1; i < GPV_WHYS; i++)
            most = sum[i] > sum[most] ? i : most;
        if (sum[most] <= 0)
            break;
        gpv_html(p->f, k ? "<br><span class=\"nw\">" : "<span class=\"nw\">");
        if (percent[most])
            gpv_html(p->f, "%u %%", percent[most]);
        else
            gpv_html(p->f, "&lt;1 %%");
        gpv_html(p->f, "</span> %s", gpv_why_text(most));
        if (write_detail(p, batch, most, text[most]) != 0)
            return -1;
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
                   "<th scope=\"col\">because, of the waiting time of its tasks</th></tr></thead>"
                   "<tbody>\n");
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
