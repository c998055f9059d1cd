/* SPDX-License-Identifier: MIT */
/* page.c - the order of a report: answers first, then pictures, then tables. */
#include "view/report/page.h"

#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/report/embedded.h"
#include "view/report/html.h"
#include "view/report/textures.h"
#include "view/words.h"

#define DAY INT64_C(86400000000000) /* ns */

char *gpv_page_clock(const struct gpv_page *p, int64_t time, char ret[GPV_WORD])
{
    const int64_t begin = time < p->n->from ? time : p->n->from;
    return p->n->to - begin < DAY ? gpv_clock(time, ret) : gpv_date_clock(time, ret);
}

const char *gpv_page_batch(const struct gpv_page *p, uint32_t batch, char ret[GPV_NAME])
{
    const struct gpv_batch *b = &p->n->batches.row[batch];
    (void)snprintf(ret, GPV_NAME, "%u %s", b->id, gpv_text(p->n, b->name));
    return ret;
}

struct gpv_chart gpv_page_chart(const struct gpv_page *p)
{
    const struct gpv_night *n = p->n;
    size_t labels = 0;
    char label[GPV_NAME];
    for (uint32_t i = 0; i < n->gpus.n; i++) {
        const size_t width = gpv_html_width(gpv_gpu_label(n, i, label));
        labels = width > labels ? width : labels;
    }
    for (size_t i = 0; i < n->batches.n; i++) {
        const size_t width = gpv_html_width(gpv_page_batch(p, (uint32_t)i, label));
        labels = width > labels ? width : labels;
    }
    return gpv_chart_of(n, labels);
}

void gpv_page_section(struct gpv_page *p, const char *id, const char *title)
{
    gpv_html(p->f, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

void gpv_page_section_end(struct gpv_page *p)
{
    gpv_html(p->f, "</section>\n");
}

void gpv_page_table(struct gpv_page *p, const char *label)
{
    gpv_html(p->f, "<div class=\"scroll\" role=\"region\" aria-label=\"%s\" tabindex=\"0\"><table>",
             label);
}

void gpv_page_table_end(struct gpv_page *p)
{
    gpv_html(p->f, "</table></div>\n");
}

/* ---- Head ---- */

/* "Batch 15 rec-11, ", "3 batches, ": those that the reader has named. */
static void asked(struct gpv_page *p)
{
    char word[GPV_WORD];
    if (p->asked > 1)
        gpv_html(p->f, "%s batches, ", gpv_count(p->asked, word));
    for (size_t i = 0; p->asked == 1 && i < p->n->batches.n; i++) {
        const struct gpv_batch *b = &p->n->batches.row[i];
        if (b->asked)
            gpv_html(p->f, "Batch %u %.*s, ", b->id, 60, gpv_text(p->n, b->name));
    }
}

/* "13 November 2026, 20:00 to 14 Nov 06:02, on box" */
static void title(struct gpv_page *p)
{
    const struct gpv_night *n = p->n;
    const char *host = gpv_text(n, n->host);
    char date[GPV_WORD], from[GPV_WORD], to[GPV_WORD];
    if (n->to <= n->from) {
        gpv_html(p->f, "No work%s%.*s", *host ? " on " : "", 60, host);
    } else {
        const bool one_day = strcmp(gpv_date(n->from, date), gpv_date(n->to, to)) == 0;
        asked(p);
        gpv_html(p->f, "%s, %s to %s%s%.*s", date, gpv_clock(n->from, from),
                 one_day ? gpv_clock(n->to, to) : gpv_date_clock(n->to, to), *host ? ", on " : "",
                 60, host);
    }
}

static void head(struct gpv_page *p)
{
    gpv_html(p->f,
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n",
             gpv_page_style.hash, gpv_page_script.hash);
    if (p->o->reload && !p->n->over)
        gpv_html(p->f, "<meta http-equiv=\"refresh\" content=\"%u\">\n", p->o->reload);
    gpv_html(p->f, "<title>");
    title(p);
    gpv_html(p->f, "</title>\n<style>");
    gpv_html_constant(p->f, gpv_page_style.text, gpv_page_style.size);
    gpv_html(p->f, "</style></head><body>\n");
    gpv_textures_write(p->f);
    gpv_html(p->f, "<h1>");
    title(p);
    gpv_html(p->f, "</h1>\n");
}

/* ---- Facts ---- */

static void number(struct gpv_page *p, uint64_t n, const char *one, const char *many)
{
    char word[GPV_WORD];
    gpv_html(p->f, "%s %s", gpv_count(n, word), n == 1 ? one : many);
}

static void facts(struct gpv_page *p)
{
    char from[GPV_WORD], to[GPV_WORD];
    gpv_html(p->f, "<p class=\"dim\">%s to %s: ", gpv_date_clock(p->n->from, from),
             gpv_date_clock(p->n->to, to));
    number(p, p->facts.attempts, "attempt, ", "attempts, ");
    number(p, p->facts.bad, "bad end, ", "bad ends, ");
    number(p, p->facts.evictions, "eviction, ", "evictions, ");
    number(p, p->facts.restarts, "restart of a worker.", "restarts of workers.");
    if (p->asked)
        gpv_html(p->f, " The page shows all work in the time of the named batch%s.",
                 p->asked == 1 ? "" : "es");
    if (p->n->unknown) {
        gpv_html(p->f, " The records have ");
        number(p, p->n->unknown, "line", "lines");
        gpv_html(p->f, " that this version does not know.");
    }
    if (p->o->reload && !p->n->over)
        gpv_html(p->f, " The page loads itself again every %u s until the work has ended.",
                 p->o->reload);
    gpv_html(p->f, "</p>\n");
}

/* ---- All ---- */

static int collect(struct gpv_page *p)
{
    const struct gpv_night *n = p->n;
    p->findings = gpv_findings_of(p->n);
    for (size_t i = 0; i < n->batches.n; i++)
        p->asked += n->batches.row[i].asked;
    p->batches = calloc(n->batches.n + 1, sizeof(*p->batches));
    p->uses = calloc(n->gpus.n + 1, sizeof(*p->uses));
    p->texture = calloc(n->classes.n + 1, sizeof(*p->texture));
    if (!p->findings || !p->batches || !p->uses || !p->texture ||
        gpv_night_facts(n, &p->facts) != 0 || gpv_batch_facts(n, p->batches) != 0 ||
        gpv_textures_of(n, p->texture) != 0 || gpv_use_sum_all(n, n->from, n->to, &p->all) != 0)
        return -1;
    for (uint32_t i = 0; i < n->gpus.n; i++) {
        if (gpv_use_sum(n, i, n->from, n->to, &p->uses[i]) != 0)
            return -1;
    }
    return 0;
}

static int parts(struct gpv_page *p)
{
    head(p);
    if (gpv_page_answers(p) != 0 || gpv_page_timeline(p) != 0 || gpv_page_waits(p) != 0 ||
        gpv_page_findings(p) != 0 || gpv_page_next(p) != 0 || gpv_page_events(p) != 0 ||
        gpv_page_time(p) != 0 || gpv_page_batches(p) != 0)
        return -1;
    facts(p);
    if (gpv_page_data(p) != 0)
        return -1;
    gpv_html(p->f, "<script>");
    gpv_html_constant(p->f, gpv_page_script.text, gpv_page_script.size);
    gpv_html(p->f, "</script>\n</body></html>\n");
    return ferror(p->f) ? -1 : 0;
}

int gpv_report_write(struct gpv_night *n, const struct gpv_report_options *o, FILE *f)
{
    struct gpv_page p = { .f = f, .n = n, .o = o };
    const int ret = collect(&p) == 0 ? parts(&p) : -1;
    gpv_findings_free(p.findings);
    free(p.batches);
    free(p.uses);
    free(p.texture);
    return ret;
}
