/* SPDX-License-Identifier: MIT */
/* wrong.c - what went wrong, and what stood free: a row for each finding; what to type next; and
 * other events. */
#include <string.h>

#include "view/names.h"
#include "view/night/next.h"
#include "view/report/html.h"
#include "view/report/page.h"
#include "view/words.h"

enum {
    ROWS = 200, /* further findings are counted */
    EVENTS = 50,
    TEXT = 512
};

static const char *glyph_of(const struct gpv_finding *f)
{
    switch (f->kind) {
    case GPV_FINDING_BAD:
        return gpv_outcome_glyph(f->outcome);
    case GPV_FINDING_OUT:
        return "▨";
    case GPV_FINDING_KEPT:
    case GPV_FINDING_LIMITED:
        return "◌";
    default:
        return "?";
    }
}

static void write_tasks(FILE *out, const struct gpv_finding *f)
{
    char word[GPV_WORD];
    gpv_html(out, "task%s ", f->n_tasks == 1 ? "" : "s");
    for (uint32_t i = 0; i < f->n_ranges; i++) {
        gpv_html(out, "%s%u", i ? ", " : "", f->range[i].from);
        if (f->range[i].to != f->range[i].from)
            gpv_html(out, "-%u", f->range[i].to);
    }
    if (f->more)
        gpv_html(out, " and %s more", gpv_count(f->more, word));
}

static void write_whose(struct gpv_page *p, const struct gpv_finding *f)
{
    const uint32_t batch = gpv_find_batch(p->n, f->batch);
    gpv_html(p->f, "<td class=\"%s\">", f->batch ? "" : "none");
    if (f->batch)
        gpv_html(p->f, "%u %.*s", f->batch, 60,
                 batch != GPV_NONE ? gpv_text(p->n, p->n->batches.row[batch].name) : "");
    if (f->kind == GPV_FINDING_BAD) {
        gpv_html(p->f, "<br><span class=\"dim\">");
        write_tasks(p->f, f);
        gpv_html(p->f, "</span>");
    }
    gpv_html(p->f, "</td>");
}

/* "01:18–02:40, 04:11–05:34 and 3 more" */
static void write_parts(struct gpv_page *p, const struct gpv_finding *f)
{
    char from[GPV_WORD], to[GPV_WORD];
    const uint32_t shown = f->n_parts < GPV_FINDING_PARTS ? f->n_parts : GPV_FINDING_PARTS;
    for (uint32_t i = 0; i < shown; i++) {
        gpv_page_clock(p, f->part[i].from, from);
        gpv_page_clock(p, f->part[i].to, to);
        gpv_html(p->f, "%s<span class=\"nw\">%s%s%s</span>", i ? ", " : "", from,
                 strcmp(from, to) != 0 ? "–" : "", strcmp(from, to) != 0 ? to : "");
    }
    if (f->n_parts > shown)
        gpv_html(p->f, " and %u more", f->n_parts - shown);
}

static void write_times(struct gpv_page *p, const struct gpv_finding *f)
{
    char first[GPV_WORD], last[GPV_WORD];
    if (f->n_parts > 1) {
        write_parts(p, f);
        return;
    }
    gpv_html(p->f, "<span class=\"nw\">%s", gpv_page_clock(p, f->first, first));
    if (f->goes_on)
        gpv_html(p->f, "–end");
    else if (f->last / 60000000000 != f->first / 60000000000)
        gpv_html(p->f, "–%s", gpv_page_clock(p, f->last, last));
    gpv_html(p->f, "</span>");
}

/* The GPUs of bad ends, with the number of attempts where it is not that of the tasks. */
static void write_where(struct gpv_page *p, const struct gpv_finding *f)
{
    char word[GPV_WORD], name[GPV_NAME];
    const struct gpv_set set = gpv_set(p->n, f->set);
    if (f->count > f->n_tasks)
        gpv_html(p->f, "%s attempts%s", gpv_count(f->count, word), set.n ? " on " : "");
    if (set.n > 1)
        gpv_html(p->f, "%u GPUs: ", set.n);
    gpv_html(p->f, "%s", gpv_gpu_labels(p->n, set, name));
}

static void write_length(struct gpv_page *p, const struct gpv_finding *f)
{
    char word[GPV_WORD], first[GPV_WORD];
    if (f->n_parts > 1)
        gpv_html(p->f, "%s stretches, together ", gpv_count(f->n_parts, word));
    if (f->ns)
        gpv_html(p->f, "%s", gpv_span(f->ns, word));
    if (f->cleared)
        gpv_html(p->f, "; seen %s, %s", gpv_page_clock(p, f->first, first),
                 f->cleared < p->n->to ? "free of tasks from " : "a task still runs there");
    if (f->cleared && f->cleared < p->n->to)
        gpv_html(p->f, "%s", gpv_page_clock(p, f->cleared, word));
}

static void write_when(struct gpv_page *p, const struct gpv_finding *f)
{
    gpv_html(p->f, "<td>");
    write_times(p, f);
    gpv_html(p->f, "<br><span class=\"dim\">");
    if (f->kind == GPV_FINDING_BAD)
        write_where(p, f);
    else
        write_length(p, f);
    gpv_html(p->f, "</span></td>");
}

static void write_finding(struct gpv_page *p, const struct gpv_finding *f)
{
    char text[TEXT], word[GPV_WORD];
    const bool bad = f->kind == GPV_FINDING_BAD;
    gpv_html(p->f, "<tr data-n=\"%llu\"><td class=\"%s\">%s</td>",
             (unsigned long long)(bad ? f->count : 0),
             bad || f->kind == GPV_FINDING_OUT ? "glyph mark" : "glyph dim", glyph_of(f));
    gpv_html(p->f, "<td><b>%s</b>", gpv_finding_text(p->n, f, text, sizeof(text)));
    if (*gpv_finding_detail(p->n, f, text, sizeof(text)))
        gpv_html(p->f, "<br><span class=\"dim\">%s</span>", text);
    if (bad && !f->still)
        gpv_html(p->f, "<br>%s", f->n_tasks == 1 ? "It ended ok later." : "All ended ok later.");
    gpv_html(p->f, "</td>");
    write_whose(p, f);
    write_when(p, f);
    gpv_html(p->f, "<td class=\"n %s\">%s</td></tr>\n", bad ? "still" : "none",
             bad ? gpv_count(f->still, word) : "");
}

/* The number of findings before the first one that is an event, or that stood free. */
static size_t before(const struct gpv_findings *all, bool (*is)(const struct gpv_finding *f))
{
    size_t n = 0;
    while (n < all->n && !is(&all->row[n]))
        n++;
    return n;
}

static bool is_no_fault(const struct gpv_finding *f)
{
    return gpv_stood_free(f) || gpv_is_event(f);
}

static void write_rest(struct gpv_page *p, size_t from, size_t to)
{
    char word[GPV_WORD], more[GPV_WORD];
    uint64_t left = 0;
    for (size_t i = from; i < to; i++)
        left += p->findings->row[i].kind == GPV_FINDING_BAD ? p->findings->row[i].count : 0;
    if (from < to)
        gpv_html(p->f,
                 "<tr data-n=\"%llu\"><td></td><td colspan=\"4\">%s more findings, with %s bad "
                 "ends</td></tr>\n",
                 (unsigned long long)left, gpv_count(to - from, word), gpv_count(left, more));
}

static void write_findings(struct gpv_page *p, const char *label, size_t from, size_t to)
{
    gpv_page_table(p, label);
    gpv_html(p->f, "<thead><tr><th scope=\"col\"><span class=\"unseen\">kind</span></th>"
                   "<th scope=\"col\">what</th><th scope=\"col\">whose</th>"
                   "<th scope=\"col\">when, where</th>"
                   "<th scope=\"col\" class=\"n\">tasks still failed</th></tr></thead><tbody>\n");
    for (size_t i = from; i < to && i < from + ROWS; i++)
        write_finding(p, &p->findings->row[i]);
    write_rest(p, from + ROWS, to);
    gpv_html(p->f, "</tbody>");
    gpv_page_table_end(p);
}

int gpv_page_findings(struct gpv_page *p)
{
    const size_t faults = before(p->findings, is_no_fault);
    const size_t free_too = before(p->findings, gpv_is_event);
    gpv_page_section(p, "wrong", "What went wrong");
    if (faults > 0)
        write_findings(p, "What went wrong", 0, faults);
    else
        gpv_html(p->f, "<p>Nothing.</p>\n");
    gpv_page_section_end(p);
    if (free_too == faults)
        return 0;
    gpv_page_section(p, "free", "Which GPUs stood free for long");
    gpv_html(p->f, "<p class=\"dim\">For half an hour or more, although tasks waited.  These are no "
                   "faults.</p>\n");
    write_findings(p, "Which GPUs stood free for long", faults, free_too);
    gpv_page_section_end(p);
    return 0;
}

int gpv_page_next(struct gpv_page *p)
{
    struct gpv_next next;
    char text[256];
    gpv_next_of(p->n, p->findings, &next);
    if (next.n == 0)
        return 0;
    gpv_page_section(p, "next", "What to type next");
    gpv_html(p->f, "<ol>\n");
    for (size_t i = 0; i < next.n; i++)
        gpv_html(p->f, "<li><code>%s</code>: %s</li>\n", next.step[i].command,
                 gpv_step_text(p->n, &next.step[i], text, sizeof(text)));
    gpv_html(p->f, "</ol>\n");
    if (next.more)
        gpv_html(p->f, "<p class=\"dim\">Other tasks that failed have logs, too.</p>\n");
    gpv_page_section_end(p);
    return 0;
}

static void write_event(struct gpv_page *p, const struct gpv_finding *f)
{
    char text[TEXT];
    gpv_html(p->f, "<li>%s, ", gpv_finding_text(p->n, f, text, sizeof(text)));
    write_times(p, f);
    if (*gpv_finding_detail(p->n, f, text, sizeof(text)))
        gpv_html(p->f, " <span class=\"dim\">%s</span>", text);
    gpv_html(p->f, "</li>\n");
}

int gpv_page_events(struct gpv_page *p)
{
    const struct gpv_findings *all = p->findings;
    const size_t first = before(all, gpv_is_event);
    char word[GPV_WORD];
    if (first == all->n)
        return 0;
    gpv_page_section(p, "events", "Other events");
    gpv_html(p->f, "<p class=\"dim\">These are no faults.</p>\n<ul>\n");
    for (size_t i = first; i < all->n && i < first + EVENTS; i++)
        write_event(p, &all->row[i]);
    if (all->n > first + EVENTS)
        gpv_html(p->f, "<li>%s more</li>\n", gpv_count(all->n - first - EVENTS, word));
    gpv_html(p->f, "</ul>\n");
    gpv_page_section_end(p);
    return 0;
}
