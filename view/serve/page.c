/* SPDX-License-Identifier: MIT */
/* page.c - the live page, with the state at loading as text. */
#include "view/serve/page.h"

#include <inttypes.h>
#include <string.h>

#include "view/report/embedded.h"
#include "view/report/html.h"
#include "view/report/textures.h"
#include "view/words.h"

const char *gpv_page_policy(char ret[GPV_POLICY])
{
    snprintf(ret, GPV_POLICY,
             "default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             gpv_live_style.hash, gpv_live_script.hash);
    return ret;
}

/* ---- The four answers ---- */

static void count(FILE *f, uint64_t n, const char *one, const char *many)
{
    char word[GPV_WORD];
    gpv_html(f, "%s %s", gpv_count(n, word), n == 1 ? one : many);
}

static void answer_running(const struct gpv_snapshot *s, FILE *f)
{
    uint64_t does[GPV_DOES] = { 0 };
    const char *separator = "";
    for (size_t i = 0; i < s->gpus.n; i++)
        does[s->gpus.row[i].does % GPV_DOES]++;
    gpv_html(f, "<p>");
    count(f, s->gpus.n, "GPU: ", "GPUs: ");
    for (uint32_t i = 0; i < GPV_DOES; i++) {
        if (does[i] == 0)
            continue;
        gpv_html(f, "%s%llu %s", separator, (unsigned long long)does[i], gpv_does_word(i));
        separator = ", ";
    }
    gpv_html(f, "</p>\n");
}

struct counts {
    uint64_t total, ok, bad, running, waiting;
};

static struct counts sum(const struct gpv_snapshot *s)
{
    struct counts c = { s->more.total, s->more.ok, s->more.bad, s->more.running,
                        (uint64_t)s->more.ready + s->more.held };
    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        c.total += b->total;
        c.ok += b->ok;
        c.bad += b->bad;
        c.running += b->running;
        c.waiting += (uint64_t)b->ready + b->held;
    }
    return c;
}

static void answer_waiting(const struct gpv_snapshot *s, FILE *f)
{
    gpv_html(f, "<p>");
    count(f, sum(s).waiting, "task waits", "tasks wait");
    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        if (b->first == 0)
            continue;
        gpv_html(f, ". The first of batch %u %.*s: %.*s", b->id, 40, b->name, 120,
                 *b->text ? b->text : gpv_why_text(b->why));
        break;
    }
    gpv_html(f, "</p>\n");
}

static void answer_wrong(const struct gpv_snapshot *s, FILE *f)
{
    gpv_html(f, "<p>");
    count(f, s->bad_24h, "bad end in 24 hours", "bad ends in 24 hours");
    if (s->findings.n > 0)
        gpv_html(f, ". Newest: %.*s %.*s", 60, s->findings.row[0].what, 60,
                 s->findings.row[0].whose);
    gpv_html(f, "</p>\n");
}

static void answer_done(const struct gpv_snapshot *s, FILE *f)
{
    char from[GPV_WORD], to[GPV_WORD];
    const struct counts c = sum(s);
    if (c.running + c.waiting == 0)
        gpv_html(f, "<p>Nothing waits or runs</p>\n");
    else if (s->least < 0 || (s->least == 0 && s->most < 0))
        gpv_html(f, "<p>Not known yet</p>\n");
    else if (s->most < 0)
        gpv_html(f, "<p>Not before %s</p>\n", gpv_clock(s->time + s->least, from));
    else
        gpv_html(f, "<p>About %s to %s</p>\n", gpv_clock(s->time + s->least, from),
                 gpv_clock(s->time + s->most, to));
}

static void answers(const struct gpv_snapshot *s, FILE *f)
{
    static const struct {
        const char *question;
        void (*write)(const struct gpv_snapshot *s, FILE *f);
    } all[] = {
        { "What runs", answer_running },
        { "Why the rest waits", answer_waiting },
        { "What went wrong", answer_wrong },
        { "When it is done", answer_done },
    };
    gpv_html(f, "<div class=\"answers\">\n");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        gpv_html(f, "<div><h2>%s</h2>", all[i].question);
        all[i].write(s, f);
        gpv_html(f, "</div>\n");
    }
    gpv_html(f, "</div>\n");
}

/* ---- Lists ---- */

static void gpus(const struct gpv_snapshot *s, FILE *f)
{
    char word[GPV_WORD];
    gpv_html(f, "<h2>GPUs</h2>\n<ul>\n");
    for (size_t i = 0; i < s->gpus.n; i++) {
        const struct gpv_now_gpu *g = &s->gpus.row[i];
        gpv_html(f, "<li>%s: %s", g->name, gpv_does_word(g->does));
        if (*g->class_name)
            gpv_html(f, " %s", g->class_name);
        if (g->task != 0)
            gpv_html(f, " %s", gpv_task_id(g->task, word));
        if (g->since != 0)
            gpv_html(f, ", for %s", gpv_span(s->time - g->since, word));
        if (*g->text)
            gpv_html(f, ": %s", g->text);
        gpv_html(f, "</li>\n");
    }
    gpv_html(f, "</ul>\n");
}

static void batches(const struct gpv_snapshot *s, FILE *f)
{
    gpv_html(f, "<h2>Batches</h2>\n<ul>\n");
    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        gpv_html(f, "<li>%u %s: %u ok, %u bad, %u run, %u wait", b->id, b->name, b->ok, b->bad,
                 b->running, b->ready + b->held);
        if (b->first != 0)
            gpv_html(f, ". Why the first one waits: %s", *b->text ? b->text : gpv_why_text(b->why));
        gpv_html(f, "</li>\n");
    }
    if (s->more.batches > 0)
        gpv_html(f, "<li>%u further batches</li>\n", s->more.batches);
    gpv_html(f, "</ul>\n");
}

static void findings(const struct gpv_snapshot *s, FILE *f)
{
    char from[GPV_WORD];
    gpv_html(f, "<h2>Went wrong in the last 24 hours</h2>\n<ul>\n");
    for (size_t i = 0; i < s->findings.n; i++) {
        const struct gpv_now_finding *x = &s->findings.row[i];
        gpv_html(f, "<li>%s %s %s %s <code>%s</code></li>\n", gpv_clock(x->last, from), x->what,
                 x->whose, x->text, x->command);
    }
    if (s->more.findings > 0)
        gpv_html(f, "<li>%u further ones</li>\n", s->more.findings);
    gpv_html(f, "</ul>\n");
}

static void state(const struct gpv_snapshot *s, FILE *f)
{
    char time[GPV_WORD];
    gpv_html(f, "<p class=\"dim\">%s, state of %s</p>\n", s->host,
             gpv_clock_seconds(s->time, time));
    if (*s->notice)
        gpv_html(f, "<p class=\"mark\">%s</p>\n", s->notice);
    answers(s, f);
    gpus(s, f);
    batches(s, f);
    findings(s, f);
}

/* ---- The page ---- */

void gpv_page_write(const struct gpv_snapshot *s, bool asks_token, FILE *f)
{
    gpv_html(f, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<title>gpudispatch</title>\n<style>");
    gpv_html_constant(f, gpv_live_style.text, gpv_live_style.size);
    gpv_html(f, "</style></head><body>\n");
    gpv_textures_write(f);
    gpv_html(f,
             "<h1>gpudispatch, live</h1>\n<p id=\"link\" class=\"dim\" role=\"status\"></p>\n"
             "<noscript><p>Without scripts this page does not change: %s</p></noscript>\n"
             "<main id=\"state\">\n",
             s            ? "it shows the state when it was loaded. Load it again for a later one."
             : asks_token ? "and without scripts it cannot send its token. Use the socket, which "
                            "asks for none: gpudispatch serve without --port."
                          : "there was no state yet. Load it again.");
    if (s)
        state(s, f);
    gpv_html(f, "</main>\n<script>");
    gpv_html_constant(f, gpv_live_script.text, gpv_live_script.size);
    gpv_html(f, "</script>\n</body></html>\n");
}
