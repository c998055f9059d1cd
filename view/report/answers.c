/* SPDX-License-Identifier: MIT */
/* answers.c - the top of the page: a sentence and three answers. */
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/night/left.h"
#include "view/night/lefts.h"
#include "view/report/html.h"
#include "view/report/page.h"
#include "view/words.h"

enum { OTHER_USES = 3 }; /* named beside the work */

static double whole(const struct gpv_page *p)
{
    double sum = 0;
    for (unsigned i = 0; i < GPV_USES; i++)
        sum += (double)p->all.ns[i];
    return sum;
}

static void sentence(struct gpv_page *p)
{
    const struct gpv_night_facts *facts = &p->facts;
    char a[GPV_WORD], b[GPV_WORD], c[GPV_WORD];
    gpv_html(p->f, "<p class=\"verdict\">");
    if (facts->tasks == 0)
        gpv_html(p->f, "No task ran. ");
    else if (p->n->over)
        gpv_html(p->f, "%s of %s tasks ended well; %s did not. ",
                 gpv_count(facts->tasks_by[GPV_OK], a), gpv_count(facts->tasks, b),
                 facts->tasks_bad ? gpv_count(facts->tasks_bad, c) : "none");
    else
        gpv_html(p->f, "%s tasks have ended well; %s have not. ",
                 gpv_count(facts->tasks_by[GPV_OK], a),
                 facts->tasks_bad ? gpv_count(facts->tasks_bad, c) : "none");
    if (!p->n->over)
        gpv_html(p->f, "At %s %s run and %s wait. ", gpv_page_clock(p, p->n->to, c),
                 gpv_count(facts->tasks_by[GPV_RUNNING], a), gpv_count(facts->waiting, b));
    else if (facts->ended)
        gpv_html(p->f, "Done at %s after %s. ", gpv_page_clock(p, facts->ended, a),
                 gpv_span(facts->ended - p->n->from, b));
    if (p->n->gpus.n)
        gpv_html(p->f, "The GPUs worked %s of the time.",
                 gpv_percent((double)p->all.ns[GPV_USE_OK], whole(p), a));
    gpv_html(p->f, "</p>\n");
}

static void answer(struct gpv_page *p, const char *question, const char *big)
{
    gpv_html(p->f, "<div><h2>%s</h2><p class=\"big\">%s</p><p>", question, big);
}

/* When work that goes on will be done. */
struct coming {
    int64_t least, most; /* ns from the end of the span; most -1: unknown */
    uint32_t unknown;    /* index of a batch whose range is not known; GPV_NONE */
    enum gpv_left_why why;
    bool any; /* a batch goes on */
};

static int find_coming(const struct gpv_page *p, struct coming *ret)
{
    const struct gpv_night *n = p->n;
    struct gpv_left_of *left = calloc(n->batches.n + 1, sizeof(*left));
    const int code = left ? gpv_lefts(n, left) : -1;
    *ret = (struct coming){ 0, 0, GPV_NONE, GPV_LEFT_KNOWN, false };
    for (uint32_t i = 0; code == 0 && i < n->batches.n; i++) {
        if (n->batches.row[i].ended || (p->asked && !n->batches.row[i].asked))
            continue;
        ret->any = true;
        gpv_left_join(&ret->least, &ret->most, left[i].least, left[i].most);
        if (left[i].why != GPV_LEFT_KNOWN && ret->unknown == GPV_NONE) {
            ret->unknown = i;
            ret->why = left[i].why;
        }
    }
    free(left);
    return code;
}

/* "07:56–11:36", "07:56 or later", "unknown" */
static void put_range(const struct gpv_page *p, const struct coming *c, char *ret, size_t size)
{
    char least[GPV_WORD], most[GPV_WORD];
    gpv_page_clock(p, p->n->to + c->least, least);
    if (!c->any || (c->most < 0 && c->least <= 0))
        (void)snprintf(ret, size, "unknown");
    else if (c->most < 0)
        (void)snprintf(ret, size, "%s or later", least);
    else
        (void)snprintf(ret, size, "%s–%s", least, gpv_page_clock(p, p->n->to + c->most, most));
}

static void write_why(struct gpv_page *p, const struct coming *c)
{
    static const char *const texts[] = {
        [GPV_LEFT_FEW] = "fewer than 4 of its tasks have ended",
        [GPV_LEFT_STANDS] = "its tasks wait, and none has run for as long as one usually takes",
        [GPV_LEFT_MORE] = "tasks are held, or may be added",
    };
    if (!c->any)
        gpv_html(p->f, "The records have no batch that goes on. ");
    else if (c->unknown == GPV_NONE)
        gpv_html(p->f, "Estimated from the tasks that have ended. ");
    else
        gpv_html(p->f, "Not known of %u %.*s: %s. ", p->n->batches.row[c->unknown].id, 60,
                 gpv_text(p->n, p->n->batches.row[c->unknown].name), texts[c->why]);
}

static int will_be(struct gpv_page *p)
{
    struct coming coming;
    char text[2 * GPV_WORD + 8], word[GPV_WORD];
    if (find_coming(p, &coming) != 0)
        return -1;
    put_range(p, &coming, text, sizeof(text));
    answer(p, "When will it be done?", text);
    write_why(p, &coming);
    if (p->facts.p95)
        gpv_html(p->f, "95 %% of the ended tasks by %s", gpv_page_clock(p, p->facts.p95, word));
    gpv_html(p->f, "</p></div>\n");
    return 0;
}

static void was(struct gpv_page *p)
{
    const struct gpv_night *n = p->n;
    char word[GPV_WORD];
    answer(p, "When was it done?",
           p->facts.ended ? gpv_page_clock(p, p->facts.ended, word) : "nothing ran");
    if (p->facts.p95)
        gpv_html(p->f, "95 %% of the tasks by %s", gpv_page_clock(p, p->facts.p95, word));
    if (p->facts.last_batch < n->batches.n)
        gpv_html(p->f, "; last batch: %u %.*s", n->batches.row[p->facts.last_batch].id, 60,
                 gpv_text(n, n->batches.row[p->facts.last_batch].name));
    gpv_html(p->f, "</p></div>\n");
}

/* The bad ends of the most tasks that are still bad; NULL: there are none. */
static const struct gpv_finding *worst(const struct gpv_findings *all)
{
    const struct gpv_finding *ret = NULL;
    for (size_t i = 0; i < all->n && all->row[i].kind == GPV_FINDING_BAD; i++) {
        if (!ret || all->row[i].still > ret->still)
            ret = &all->row[i];
    }
    return ret;
}

static bool is_fault(const struct gpv_night *n, const struct gpv_finding *f)
{
    if (f->kind != GPV_FINDING_OUT || f->row >= n->outs.n)
        return false;
    const uint32_t kind = n->outs.row[f->row].kind;
    return kind == GPV_OUT_QUARANTINED || kind == GPV_OUT_FAILED || kind == GPV_OUT_LOST;
}

/* The most frequent bad ends, and each GPU that is out of use for a fault. */
static void wrong(struct gpv_page *p)
{
    const struct gpv_findings *all = p->findings;
    const uint64_t bad = p->facts.tasks_bad;
    const struct gpv_finding *most = worst(all);
    char text[256], a[GPV_WORD], b[GPV_WORD];
    (void)snprintf(text, sizeof(text), "%s task%s", bad ? gpv_count(bad, a) : "no",
                   bad == 1 ? "" : "s");
    answer(p, "What went wrong?", text);
    if (most) {
        const bool one =
            strcmp(gpv_page_clock(p, most->first, a), gpv_page_clock(p, most->last, b)) == 0;
        gpv_html(p->f, "most: %s, %s%s%s, in %u %.*s%s",
                 gpv_finding_text(p->n, most, text, sizeof(text)), a, one ? "" : "–", one ? "" : b,
                 most->batch, 60, gpv_batch_name(p->n, most->batch),
                 most->still ? "" : "; all ended ok later");
    }
    bool any = most != NULL;
    for (size_t i = 0; i < all->n; i++) {
        if (!is_fault(p->n, &all->row[i]))
            continue;
        if (any)
            gpv_html(p->f, "<br>");
        gpv_html(p->f, "%s at %s",
                 gpv_finding_text(p->n, &all->row[i], text, sizeof(text)),
                 gpv_page_clock(p, all->row[i].first, a));
        any = true;
    }
    gpv_html(p->f, "%s</p></div>\n", any ? "" : "nothing");
}

static void spent(struct gpv_page *p)
{
    struct gpv_uses left = p->all;
    char text[GPV_WORD + 16], word[GPV_WORD];
    const double all = whole(p);
    (void)snprintf(text, sizeof(text), "%s worked",
                   gpv_percent((double)left.ns[GPV_USE_OK], all, word));
    answer(p, "Where did GPU time go?", p->n->gpus.n ? text : "no GPU");
    for (unsigned k = 0; k < OTHER_USES; k++) {
        unsigned most = GPV_USE_LOST;
        for (unsigned i = most + 1; i < GPV_USES; i++)
            most = left.ns[i] > left.ns[most] ? i : most;
        if (left.ns[most] == 0)
            break;
        gpv_html(p->f, "%s<span class=\"nw\">%s</span> %s", k ? "; " : "",
                 gpv_percent((double)left.ns[most], all, word), gpv_use_text(most));
        left.ns[most] = 0;
    }
    gpv_html(p->f, "</p></div>\n");
}

int gpv_page_answers(struct gpv_page *p)
{
    sentence(p);
    gpv_html(p->f, "<div class=\"answers\">\n");
    if (p->n->over)
        was(p);
    else if (will_be(p) != 0)
        return -1;
    wrong(p);
    spent(p);
    gpv_html(p->f, "</div>\n");
    return 0;
}
