/* SPDX-License-Identifier: MIT */
/* spent.c - what the time of each GPU was used for, in numbers and as a bar. */
#include "view/report/html.h"
#include "view/names.h"
#include "view/report/page.h"
#include "view/report/textures.h"
#include "view/words.h"

enum { BAR = 240, HIGH = 14 };

static int64_t sum(const struct gpv_uses *u)
{
    int64_t all = 0;
    for (unsigned i = 0; i < GPV_USES; i++)
        all += u->ns[i];
    return all;
}

static void write_bar(FILE *f, const struct gpv_uses *u, double whole)
{
    double x = 0;
    gpv_html(f,
             "<td><svg class=\"bar\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
             "aria-hidden=\"true\"><rect class=\"frame\" fill=\"none\" stroke=\"#999\" "
             "width=\"%u\" height=\"%u\"/>",
             BAR, HIGH, BAR, HIGH, BAR, HIGH);
    for (unsigned i = 0; i < GPV_USES; i++) {
        const double width = whole > 0 ? (double)u->ns[i] / whole * BAR : 0;
        if (i != GPV_USE_IDLE && width >= .3) {
            gpv_html(f, "<rect x=\"%.1f\" width=\"%.1f\" height=\"%u\"", x, width, HIGH);
            gpv_texture_fill(f, gpv_texture_of_use(i));
            gpv_html(f, "/>");
        }
        x += width;
    }
    gpv_html(f, "</svg></td>");
}

static void write_row(FILE *f, const char *name, const struct gpv_uses *u)
{
    char word[GPV_WORD];
    const double whole = (double)sum(u);
    gpv_html(f, "<th scope=\"row\" class=\"nw\">%s</th>", name);
    write_bar(f, u, whole);
    for (unsigned i = 0; i < GPV_USES; i++)
        gpv_html(f, "<td class=\"n\" data-ns=\"%lld\">%s</td>", (long long)u->ns[i],
                 u->ns[i] ? gpv_percent((double)u->ns[i], whole, word) : "–");
    gpv_html(f, "</tr>\n");
}

int gpv_page_time(struct gpv_page *p)
{
    char name[GPV_NAME];
    gpv_page_section(p, "time", "Where the GPU time went");
    if (p->n->gpus.n == 0) {
        gpv_html(p->f, "<p>The records have no GPU.</p>\n");
        gpv_page_section_end(p);
        return 0;
    }
    gpv_page_table(p, "Where the GPU time went");
    gpv_html(p->f, "<thead><tr><th scope=\"col\">GPU</th><th scope=\"col\">"
                   "<span class=\"unseen\">bar</span></th>");
    for (unsigned i = 0; i < GPV_USES; i++)
        gpv_html(p->f, "<th scope=\"col\" class=\"n\">%s</th>", gpv_use_text(i));
    gpv_html(p->f, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < p->n->gpus.n; i++) {
        gpv_html(p->f, "<tr data-gpu=\"%u\">", i);
        write_row(p->f, gpv_gpu_label(p->n, i, name), &p->uses[i]);
    }
    gpv_html(p->f, "</tbody><tfoot><tr>");
    write_row(p->f, "all", &p->all);
    gpv_html(p->f, "</tfoot>");
    gpv_page_table_end(p);
    gpv_page_section_end(p);
    return 0;
}
