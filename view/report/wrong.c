/* SPDX-License-Identifier: MIT */
/* wrong.c - what went wrong: a row for each finding, with the command to type next. */
#include "view/report/html.h"
#include "view/names.h"
#include "view/report/page.h"
#include "view/words.h"

enum {
    ROWS = 200, /* further findings are counted */
    TEXT = 300  /* characters of a text */
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
    case GPV_FINDING_EVICTED:
        return "⇄";
    case GPV_FINDING_CLOCK:
        return "◷";
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

static void write_when(struct gpv_page *p, const struct gpv_finding *f)
{
    char first[GPV_WORD], last[GPV_WORD], name[GPV_NAME];
    gpv_page_clock(p, f->first, first);
    gpv_html(p->f, "<td><span class=\"nw\">%s", first);
    if (f->goes_on)
        gpv_html(p->f, "–end");
    else if (f->last / 60000000000 != f->first / 60000000000)
        gpv_html(p->f, "–%s", gpv_page_clock(p, f->last, last));
    gpv_html(p->f, "</span><br><span class=\"dim\">");
    if (f->kind == GPV_FINDING_BAD && f->set != GPV_NONE16)
        gpv_html(p->f, "%s", gpv_gpu_labels(p->n, gpv_set(p->n, f->set), name));
    else if (f->kind != GPV_FINDING_BAD && f->kind != GPV_FINDING_EVICTED && f->ns)
        gpv_html(p->f, "%s", gpv_span(f->ns, first));
    gpv_html(p->f, "</span></td>");
}

static void write_finding(struct gpv_page *p, const struct gpv_finding *f)
{
    char text[256], word[GPV_WORD];
    const bool bad = f->kind == GPV_FINDING_BAD;
    gpv_html(p->f, "<tr data-n=\"%llu\"><td class=\"%s\">%s</td>",
             (unsigned long long)(bad ? f->count : 0),
             bad || f->kind == GPV_FINDING_OUT ? "glyph mark" : "glyph dim", glyph_of(f));
    gpv_html(p->f, "<td><b>%s</b>", gpv_finding_text(p->n, f, text, sizeof(text)));
    if (*gpv_text(p->n, f->text))
        gpv_html(p->f, "<br><span class=\"dim\">%.*s</span>", TEXT, gpv_text(p->n, f->text));
    gpv_html(p->f, "</td>");
    write_whose(p, f);
    write_when(p, f);
    gpv_html(p->f, "<td class=\"n %s\">%s</td>", bad ? "still" : "none",
             bad ? gpv_count(f->still, word) : "");
    if (*f->command)
        gpv_html(p->f, "<td><code>%s</code></td></tr>\n", f->command);
    else
        gpv_html(p->f, "<td>%s</td></tr>\n",
                 !bad || f->still  ? ""
                 : f->n_tasks == 1 ? "it ended ok later"
                                   : "all ended ok later");
}

int gpv_page_findings(struct gpv_page *p)
{
    const struct gpv_findings *all = p->findings;
    char word[GPV_WORD], more[GPV_WORD];
    uint64_t left = 0;
    gpv_page_section(p, "wrong", "What went wrong");
    if (all->n == 0) {
        gpv_html(p->f, "<p>Nothing.</p>\n");
        gpv_page_section_end(p);
        return 0;
    }
    gpv_page_table(p, "What went wrong");
    gpv_html(p->f, "<thead><tr><th scope=\"col\"><span class=\"unseen\">kind</span></th>"
                   "<th scope=\"col\">what</th><th scope=\"col\">whose</th>"
                   "<th scope=\"col\">when, where</th>"
                   "<th scope=\"col\" class=\"n\">tasks still failed</th>"
                   "<th scope=\"col\">type next</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < all->n; i++) {
        if (i < ROWS)
            write_finding(p, &all->row[i]);
        else if (all->row[i].kind == GPV_FINDING_BAD)
            left += all->row[i].count;
    }
    if (all->n > ROWS)
        gpv_html(p->f,
                 "<tr data-n=\"%llu\"><td></td><td colspan=\"5\">%s more findings, with %s bad "
                 "ends</td></tr>\n",
                 (unsigned long long)left, gpv_count(all->n - ROWS, word), gpv_count(left, more));
    gpv_html(p->f, "</tbody>");
    gpv_page_table_end(p);
    gpv_page_section_end(p);
    return 0;
}
