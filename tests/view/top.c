/* SPDX-License-Identifier: MIT */
/* top.c - the screen of top: cells, rows that fit and rows that are counted, keys, history. */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "../queue/failing.h"
#include "harness.h"
#include "queue/draw.h"
#include "view/night/findings.h"
#include "view/plain.h"
#include "view/top/layout.h"
#include "view/top/top.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

enum { NOW_MINUTE = 28333333 };
#define NOW (NOW_MINUTE * MINUTE + 30 * SECOND)

/* ---- Widths are those of UTF-8 ---- */

static locale_t utf8, before;

static void use_utf8(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    if (!utf8)
        t_skip("the locale C.UTF-8 is not installed");
    before = uselocale(utf8);
}

static void end_utf8(void)
{
    (void)uselocale(before);
    freelocale(utf8);
}

/* ---- Snapshots ---- */

static struct gpv_now_gpu *add_gpu(struct gpv_snapshot *s, enum gpv_does does, const char *class)
{
    struct gpv_now_gpu *g = gpv_now_gpu(s);
    T_CHECK(g);
    snprintf(g->name, sizeof g->name, "gpu:%zu", s->gpus.n - 1);
    snprintf(g->class_name, sizeof g->class_name, "%s", class);
    g->does = does;
    g->since = NOW - 86 * SECOND;
    g->memory_used = g->memory_total = UINT64_MAX;
    g->utilization = g->temperature = g->power = GPV_NONE;
    g->tasks = does == GPV_DOES_RUN;
    if (does == GPV_DOES_RUN)
        g->task = GPV_TASK(15, 754 + s->gpus.n);
    return g;
}

static struct gpv_now_batch *add_batch(struct gpv_snapshot *s, uint32_t id, const char *name)
{
    struct gpv_now_batch *b = gpv_now_batch(s);
    T_CHECK(b);
    b->id = id;
    snprintf(b->name, sizeof b->name, "%s", name);
    b->total = 100;
    b->ok = 60;
    b->bad = id % 7;
    b->running = id % 3;
    b->ready = 40 - b->bad - b->running;
    b->first = GPV_TASK(id, 3);
    snprintf(b->text, sizeof b->text, "reason of %" PRIu32, id);
    b->least = b->most = -1;
    return b;
}

static struct gpv_now_finding *add_finding(struct gpv_snapshot *s, uint32_t kind, int64_t first,
                                           const char *what)
{
    struct gpv_now_finding *f = gpv_now_finding(s);
    T_CHECK(f);
    f->kind = kind;
    f->outcome = GPV_CRASHED;
    f->first = f->last = first;
    snprintf(f->what, sizeof f->what, "%s", what);
    snprintf(f->text, sizeof f->text, "its text");
    snprintf(f->command, sizeof f->command, "gpudispatch gpus");
    return f;
}

static void begin(struct gpv_snapshot *s, struct gpv_top_state *t, int columns, int lines)
{
    *s = (struct gpv_snapshot){ .time = NOW, .since = 1, .least = -1, .most = -1 };
    snprintf(s->host, sizeof s->host, "box");
    gpv_top_init(t, columns, lines, false);
    t->live = true;
    t->now = NOW;
}

/* The screen as text. */
static char *text_of(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    struct gpv_screen screen;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    T_CHECK(f);
    T_EQ(gpv_top_draw(t, s, &screen), 0);
    gpv_screen_print(&screen, f);
    T_EQ(fclose(f), 0);
    gpv_screen_free(&screen);
    return text;
}

static void check_has(const struct gpv_top_state *t, const struct gpv_snapshot *s, const char *part,
                      bool has)
{
    char *text = text_of(t, s);
    if ((strstr(text, part) != NULL) != has)
        T_FAIL("%s '%s' in:\n%s", has ? "no" : "there is", part, text);
    free(text);
}

static size_t lines_with(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                         const char *part)
{
    char *text = text_of(t, s);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    free(text);
    return n;
}

/* ---- Cells ---- */

/* What is shown of a text in so many cells. */
static void check_put(const char *text, int width, bool ascii, const char *shown)
{
    struct gpv_screen screen;
    char *line = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&line, &size);
    int used;

    T_CHECK(f);
    T_EQ(gpv_screen_init(&screen, 60, 1, ascii), 0);
    (void)gpv_screen_put(&screen, 0, width, 1, GPV_STYLE_PLAIN, "|");
    used = gpv_screen_put(&screen, 0, 0, width, GPV_STYLE_PLAIN, text);
    T_CMP(used, <=, width);
    gpv_screen_print(&screen, f);
    T_EQ(fclose(f), 0);
    T_CHECK(strchr(line, '|'));
    *strchr(line, '|') = 0;
    for (size_t end = strlen(line); end > 0 && line[end - 1] == ' '; end--)
        line[end - 1] = 0;
    T_TEXT(line, shown);
    free(line);
    gpv_screen_free(&screen);
}

T_CASE(text_is_cut_by_its_width)
{
    use_utf8();
    check_put("whisper", 7, false, "whisper");
    check_put("whisper", 6, false, "whi...");
    check_put("whisper", 3, false, "whi");
    check_put("日本語", 6, false, "日本語");
    check_put("日本語", 5, false, "日...");
    check_put("日本語", 4, false, "...");
    check_put("a日本語", 6, false, "a日...");
    check_put("a日", 2, false, "a");
    check_put("\U0001f600x", 3, false, "\U0001f600x");
    end_utf8();
}

T_CASE(combining_characters_share_a_cell)
{
    use_utf8();
    check_put("e\u0301t\u00e9", 3, false, "e\u0301t\u00e9");
    check_put("\u0301x", 2, false, "x");
    check_put("日\u0301x", 3, false, "日\u0301x");
    /* more than a cell has room for */
    check_put("a\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309b", 2, false,
              "a\u0301\u0302\u0303\u0304\u0305\u0306\u0307b");
    /* joiners, on whose width terminals do not agree */
    check_put("\U0001f469\u200d\U0001f4bb\ufe0f", 4, false, "\U0001f469\U0001f4bb");
    end_utf8();
}

T_CASE(nothing_steers_the_terminal)
{
    use_utf8();
    check_put("\x1b[31mred", 30, false, "\\x1b[31mred");
    check_put("a\tb\r\n\x7f", 30, false, "a\\tb\\r\\n\\x7f");
    check_put("\xc2\x9b[2J\u202etxt\u2028", 30, false, "\\x9b[2J\\u202etxt\\u2028");
    check_put("a\xff\xc0\xafz", 30, false, "a\ufffd\ufffd\ufffdz");
    check_put("\x1b[31m", 6, false, "..."); /* an escape is whole or not there */
    check_put("\x1b[31m", 7, false, "\\x1b...");
    check_put("日é✕e\u0301", 30, true, "???e");
    end_utf8();
}

T_CASE(half_a_wide_character_is_none)
{
    struct gpv_screen s;
    use_utf8();
    T_EQ(gpv_screen_init(&s, 6, 1, false), 0);
    T_EQ(gpv_screen_put(&s, 0, 0, 6, GPV_STYLE_PLAIN, "日本語"), 6);
    T_EQ(gpv_screen_put(&s, 0, 3, 1, GPV_STYLE_PLAIN, "x"), 1);
    T_EQ(gpv_screen_put(&s, 0, 4, 1, GPV_STYLE_PLAIN, "y"), 1);
    T_TEXT(s.cell[0].text, "日");
    T_TEXT(s.cell[1].text, "");
    T_TEXT(s.cell[2].text, " ");
    T_TEXT(s.cell[3].text, "x");
    T_TEXT(s.cell[4].text, "y");
    T_TEXT(s.cell[5].text, " ");
    gpv_screen_free(&s);
    end_utf8();
}

/* ---- Rows ---- */

T_CASE(alike_gpus_are_folded_where_rows_are_short)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    for (int i = 0; i < 7; i++)
        (void)add_gpu(&s, GPV_DOES_RUN, i == 3 || i == 5 ? "judge" : "whisper");
    check_has(&t, &s, "\n3   run   judge", true);
    for (int i = 7; i < 16; i++)
        (void)add_gpu(&s, GPV_DOES_IDLE, "");
    snprintf(add_gpu(&s, GPV_DOES_OUT, "")->text, 160, "drained");
    check_has(&t, &s, "\n0-2,4,6 run   whisper 5 GPUs: 15.755", true);
    check_has(&t, &s, "\n3,5     run   judge   2 GPUs: 15.758", true);
    check_has(&t, &s, "\n7-15    idle          9 GPUs", true);
    check_has(&t, &s, "GPU     STATE CLASS   TASK", true);
    check_has(&t, &s, "\n16      OUT   drained", true);
    t.columns = 40;
    t.lines = 10;
    check_has(&t, &s, "\n0-2,4,6 run   5 GPUs: 15.755", true);
    gpv_snapshot_free(&s);
}

/* "N more batches: R run, W wait, B bad" and the shown rows are all there is. */
static void check_batches(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    unsigned long batches = s->more.batches, run = s->more.running, bad = s->more.bad;
    unsigned long wait = s->more.ready + s->more.held, shown = 0;
    char *text = text_of(t, s), line[96];

    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        snprintf(line, sizeof line, "\n%" PRIu32 " b%" PRIu32 " ", b->id, b->id);
        if (strstr(text, line)) {
            shown++;
            continue;
        }
        batches++;
        run += b->running;
        bad += b->bad;
        wait += b->ready + b->held;
    }
    T_CMP(shown, >, 0);
    snprintf(line, sizeof line, "\n%lu more batch%s: %lu run, %lu wait, %lu bad\n", batches,
             batches == 1 ? "" : "es", run, wait, bad);
    if ((strstr(text, line) != NULL) != (batches > 0))
        T_FAIL("%s in:\n%s", line, text);
    free(text);
}

T_CASE(rows_that_do_not_fit_are_counted)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_gpu(&s, GPV_DOES_IDLE, "");
    t.part = GPV_PART_BATCHES;
    for (uint32_t i = 1; i <= 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%" PRIu32, i);
        (void)add_batch(&s, i, name);
        check_batches(&t, &s);
    }
    s.more = (struct gpv_now_more){ .batches = 5, .running = 7, .ready = 11, .held = 2, .bad = 3 };
    check_batches(&t, &s);
    for (int i = 0; i < 50; i++) {
        uint64_t task;
        T_EQ(gpv_top_key(&t, &s, GPV_KEY_DOWN, &task), GPV_WISH_NONE);
        check_batches(&t, &s);
    }
    check_has(&t, &s, "\n40 b40 ", true);
    gpv_snapshot_free(&s);
}

T_CASE(findings_and_gpus_that_do_not_fit_are_counted)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    for (int i = 0; i < 30; i++) { /* none is like another one */
        char class[16];
        snprintf(class, sizeof class, "class%d", i);
        (void)add_gpu(&s, i % 3 ? GPV_DOES_RUN : GPV_DOES_LOAD, class);
        (void)add_finding(&s, GPV_FINDING_BAD, NOW - i * MINUTE, "1x CRASHED");
    }
    s.more.findings = 4;
    s.bad_24h = 34;
    size_t gpus = lines_with(&t, &s, " class"), findings = lines_with(&t, &s, "CRASHED");
    char line[64];
    snprintf(line, sizeof line, "\n%zu more GPUs: ", 30 - gpus);
    check_has(&t, &s, line, true);
    snprintf(line, sizeof line, "(34 bad ends in 24 h, newest first; %zu more findings)",
             34 - findings);
    check_has(&t, &s, line, true);
    t.lines = 10; /* a row and the count share a line */
    snprintf(line, sizeof line, " +%zu\n", 34 - lines_with(&t, &s, "CRASHED"));
    check_has(&t, &s, line, true);
    gpv_snapshot_free(&s);
}

T_CASE(evictions_stand_behind_faults)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_finding(&s, GPV_FINDING_EVICTED, NOW, "whisper left GPU 4");
    (void)add_finding(&s, GPV_FINDING_OUT, NOW - MINUTE, "GPU 5 QUARANTINED");
    char *text = text_of(&t, &s);
    T_CMP(strstr(text, "GPU 5 Q") - text, <, strstr(text, "whisper left") - text);
    free(text);
    gpv_snapshot_free(&s);
}

T_CASE(a_task_of_several_gpus_names_the_others)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_batch(&s, 15, "rec-11");
    struct gpv_now_gpu *g = add_gpu(&s, GPV_DOES_RUN, "judge");
    snprintf(g->with, sizeof g->with, "gpu:2,gpu:3");
    g->limit = 600 * SECOND;
    g->memory_used = UINT64_C(14) << 30;
    check_has(&t, &s, "0   run   judge   15.755 rec-11 +GPU 2,3           1:26  10:00   14", true);
    gpv_snapshot_free(&s);
}

T_CASE(the_end_is_a_range)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 120, 24);
    struct gpv_now_batch *b = add_batch(&s, 1, "a");
    check_has(&t, &s, "done: not known yet", true);
    check_has(&t, &s, " unknown ", true);
    s.least = 162 * MINUTE;
    s.most = 239 * MINUTE;
    check_has(&t, &s, "(in 2 h 42 to 3 h 59)", true);
    s.most = -1;
    check_has(&t, &s, "done not before ", true);
    static const struct {
        int64_t least, most;
        const char *text;
    } left[] = {
        { 49 * MINUTE, 58 * MINUTE, " 49-58 min " },
        { 20 * SECOND, 40 * SECOND, " 20-40 s " },
        { 40 * SECOND, 3 * MINUTE, " 0-3 min " },
        { 162 * MINUTE, 239 * MINUTE, " 2h42-3h59 " },
        { 60 * MINUTE, 239 * MINUTE, " 1h00-3h59 " },
        { 50 * 60 * MINUTE, 99 * 60 * MINUTE, " 2d2h-4d3h " },
        { 5 * MINUTE, 5 * MINUTE + SECOND, " 5 min " },
        { 0, 0, " 0 s " },
        { 49 * MINUTE, -1, " 49 min+ " },
        { 162 * MINUTE, -1, " 2h42+ " },
    };
    for (size_t i = 0; i < T_LENGTH(left); i++) {
        b->least = left[i].least;
        b->most = left[i].most;
        check_has(&t, &s, left[i].text, true);
    }
    gpv_snapshot_free(&s);
}

/* ---- Keys ---- */

static uint64_t key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t k,
                    enum gpv_wish wish)
{
    uint64_t task;
    T_EQ(gpv_top_key(t, s, k, &task), wish);
    return task;
}

static void fill(struct gpv_snapshot *s, struct gpv_top_state *t)
{
    begin(s, t, 80, 24);
    for (int i = 0; i < 3; i++)
        (void)add_gpu(s, i == 1 ? GPV_DOES_IDLE : GPV_DOES_RUN, "whisper");
    add_batch(s, 12, "night")->ready = 3;
    add_batch(s, 15, "rec-11")->ready = 90;
    (void)add_finding(s, GPV_FINDING_OUT, NOW, "GPU 5 QUARANTINED");
}

T_CASE(enter_and_l_name_a_task)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    T_EQ(key(&t, &s, 'l', GPV_WISH_LOG), GPV_TASK(15, 755));
    T_EQ(key(&t, &s, GPV_KEY_DOWN, GPV_WISH_NONE), 0);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_NONE), 0); /* it is idle */
    T_CHECK(*t.notice);
    (void)key(&t, &s, GPV_KEY_END, GPV_WISH_NONE);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_EXPLAIN), GPV_TASK(15, 757));
    (void)key(&t, &s, '\t', GPV_WISH_NONE);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_EXPLAIN), GPV_TASK(12, 3));
    T_EQ(key(&t, &s, 'l', GPV_WISH_NONE), 0); /* none of it runs */
    (void)key(&t, &s, GPV_KEY_DOWN, GPV_WISH_NONE);
    T_EQ(key(&t, &s, 'l', GPV_WISH_LOG), GPV_TASK(15, 755));
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_EXPLAIN), GPV_TASK(15, 3));
    T_EQ(key(&t, &s, 'q', GPV_WISH_QUIT), 0);
    gpv_snapshot_free(&s);
}

T_CASE(a_finding_is_shown_in_full)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    while (t.part != GPV_PART_FINDINGS)
        (void)key(&t, &s, '\t', GPV_WISH_NONE);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_NONE), 0);
    T_CHECK(t.pane.open);
    check_has(&t, &s, "\nTo type next: gpudispatch gpus\n", true);
    check_has(&t, &s, "WENT WRONG", false);
    (void)key(&t, &s, 'q', GPV_WISH_NONE);
    T_CHECK(!t.pane.open);
    check_has(&t, &s, "WENT WRONG", true);
    free(t.pane.text);
    gpv_snapshot_free(&s);
}

T_CASE(tab_reaches_each_part_and_a_low_screen_shows_it)
{
    static const char *const titles[] = { "GPU STATE", "BATCH ", "CLASS  ", "WENT WRONG",
                                          "ENDED LAST" };
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    for (int i = 0; i < 2 * GPV_PARTS; i++) {
        T_EQ(t.part, i % GPV_PARTS);
        check_has(&t, &s, titles[t.part], true);
        (void)key(&t, &s, '\t', GPV_WISH_NONE);
    }
    (void)key(&t, &s, GPV_KEY_BACK_TAB, GPV_WISH_NONE);
    T_EQ(t.part, GPV_PART_ENDS);
    gpv_snapshot_free(&s);
}

T_CASE(the_chosen_batch_stays_chosen_in_another_order)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    t.part = GPV_PART_BATCHES;
    (void)key(&t, &s, GPV_KEY_DOWN, GPV_WISH_NONE);
    T_EQ(t.row[t.part], 15);
    (void)key(&t, &s, 's', GPV_WISH_NONE);
    T_EQ(t.sort, GPV_SORT_WAITING);
    char *text = text_of(&t, &s);
    T_CMP(strstr(text, "15 rec-11") - text, <, strstr(text, "12 night") - text);
    free(text);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_EXPLAIN), GPV_TASK(15, 3));
    for (enum gpv_sort i = t.sort; i < GPV_SORTS; i++)
        (void)key(&t, &s, 's', GPV_WISH_NONE);
    T_EQ(t.sort, GPV_SORT_QUEUE);
    gpv_snapshot_free(&s);
}

T_CASE(rows_are_found_by_their_text)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    (void)key(&t, &s, '/', GPV_WISH_NONE);
    for (const char *at = "Niqhs"; *at; at++)
        (void)key(&t, &s, (uint32_t)*at, GPV_WISH_NONE); /* q and s are letters here */
    T_TEXT(t.find, "Niqhs");
    for (int i = 0; i < 3; i++)
        (void)key(&t, &s, GPV_KEY_ERASE, GPV_WISH_NONE);
    (void)key(&t, &s, 'g', GPV_WISH_NONE);
    check_has(&t, &s, "find: Nig_", true);
    check_has(&t, &s, "12 night", true);
    check_has(&t, &s, "15 rec-11  ", false);
    check_has(&t, &s, "no GPU with the text that is looked for", true);
    (void)key(&t, &s, GPV_KEY_ENTER, GPV_WISH_NONE);
    check_has(&t, &s, "find: Nig ", true);
    (void)key(&t, &s, GPV_KEY_ESCAPE, GPV_WISH_NONE);
    T_TEXT(t.find, "");
    (void)key(&t, &s, '/', GPV_WISH_NONE);
    for (int i = 0; i < 100; i++)
        (void)key(&t, &s, 0x65e5, GPV_WISH_NONE);
    T_EQ(strlen(t.find) % 3, 0);
    T_CMP(strlen(t.find), <, sizeof t.find);
    (void)key(&t, &s, GPV_KEY_ERASE, GPV_WISH_NONE);
    T_EQ(strlen(t.find) % 3, 0);
    gpv_snapshot_free(&s);
}

T_CASE(pause_span_and_help)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    s.minutes = GPV_MINUTES;
    s.history = calloc(s.gpus.n * GPV_MINUTES, sizeof *s.history);
    T_CHECK(s.history);
    (void)key(&t, &s, 'p', GPV_WISH_NONE);
    check_has(&t, &s, "PAUSED", true);
    (void)key(&t, &s, 'p', GPV_WISH_NONE);
    check_has(&t, &s, "PAUSED", false);
    check_has(&t, &s, "LAST HOUR", true);
    (void)key(&t, &s, 'h', GPV_WISH_NONE);
    check_has(&t, &s, "LAST 4 h", true);
    (void)key(&t, &s, 'h', GPV_WISH_NONE);
    check_has(&t, &s, "SINCE ", true);
    (void)key(&t, &s, 'h', GPV_WISH_NONE);
    (void)key(&t, &s, '?', GPV_WISH_NONE);
    check_has(&t, &s, "Nothing here can be changed", true);
    (void)key(&t, &s, 'q', GPV_WISH_NONE);
    check_has(&t, &s, "Nothing here can be changed", false);
    gpv_snapshot_free(&s);
}

T_CASE(a_long_text_scrolls)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;
    char text[4000] = "";

    fill(&s, &t);
    for (int i = 1; i <= 100; i++)
        sprintf(text + strlen(text), "line %d\n", i);
    t.pane = (struct gpv_pane){ .open = true, .text = text, .size = strlen(text) };
    check_has(&t, &s, "\nline 1\n", true);
    check_has(&t, &s, "\nline 30\n", false);
    (void)key(&t, &s, GPV_KEY_PAGE_DOWN, GPV_WISH_NONE);
    check_has(&t, &s, "\nline 1\n", false);
    check_has(&t, &s, "\nline 30\n", true);
    (void)key(&t, &s, GPV_KEY_END, GPV_WISH_NONE);
    check_has(&t, &s, "\nline 100\n", true);
    (void)key(&t, &s, GPV_KEY_HOME, GPV_WISH_NONE);
    (void)key(&t, &s, GPV_KEY_UP, GPV_WISH_NONE);
    check_has(&t, &s, "\nline 1\n", true);
    gpv_snapshot_free(&s);
}

/* ---- History ---- */

static struct gpv_uses *minute(struct gpv_snapshot *s, size_t gpu, uint32_t ago)
{
    return &s->history[gpu * s->minutes + s->minutes - 1 - ago];
}

static void with_history(struct gpv_snapshot *s, int64_t time, uint32_t gpus)
{
    *s = (struct gpv_snapshot){ .time = time, .since = 1 };
    for (uint32_t i = 0; i < gpus; i++)
        (void)add_gpu(s, GPV_DOES_RUN, "whisper");
    s->minutes = GPV_MINUTES;
    s->history = calloc(gpus * GPV_MINUTES, sizeof *s->history);
    T_CHECK(s->history);
}

T_CASE(later_snapshots_add_minutes)
{
    struct gpv_snapshot last, next = { .time = NOW + 90 * SECOND, .since = 1 };

    with_history(&last, NOW, 2);
    minute(&last, 0, 0)->ns[GPV_USE_OK] = 30 * SECOND;
    minute(&last, 0, 5)->ns[GPV_USE_OUT] = MINUTE;
    for (int i = 0; i < 2; i++)
        (void)add_gpu(&next, GPV_DOES_RUN, "whisper");
    last.gpus.row[0].uses.ns[GPV_USE_OK] = 1000 * SECOND;
    next.gpus.row[0].uses.ns[GPV_USE_OK] = 1090 * SECOND;
    gpv_now_carry(&last, &next);
    T_EQ(next.minutes, GPV_MINUTES);
    T_EQ(minute(&next, 0, 2)->ns[GPV_USE_OK], MINUTE); /* 30 s of before, and 30 s of 90 */
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_OK], MINUTE);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_OK], 0);
    T_EQ(minute(&next, 0, 7)->ns[GPV_USE_OUT], MINUTE);
    T_EQ(minute(&next, 1, 0)->ns[GPV_USE_OK], 0);
    /* without a further snapshot the GPU goes on with what it does */
    struct gpv_uses now = gpv_top_minute(&next, 0, next.time + 40 * SECOND, 0);
    T_EQ(now.ns[GPV_USE_OK], 40 * SECOND);
    now = gpv_top_minute(&next, 0, next.time + 80 * SECOND, 1);
    T_EQ(now.ns[GPV_USE_OK], MINUTE);
    T_EQ(gpv_top_minute(&next, 0, next.time, 100000).ns[GPV_USE_OK], 0);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

T_CASE(an_attempt_in_vain_takes_its_minutes_back)
{
    struct gpv_snapshot last, next = { .time = NOW, .since = 1 };

    with_history(&last, NOW - 10 * SECOND, 1);
    minute(&last, 0, 0)->ns[GPV_USE_OK] = 20 * SECOND;
    minute(&last, 0, 1)->ns[GPV_USE_OK] = MINUTE;
    (void)add_gpu(&next, GPV_DOES_IDLE, "");
    last.gpus.row[0].uses.ns[GPV_USE_OK] = 80 * SECOND;
    /* 50 s were in vain, and so are 10 s more */
    next.gpus.row[0].uses.ns[GPV_USE_OK] = 30 * SECOND;
    next.gpus.row[0].uses.ns[GPV_USE_LOST] = 60 * SECOND;
    gpv_now_carry(&last, &next);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_OK], 0);
    T_EQ(minute(&next, 0, 0)->ns[GPV_USE_LOST], 30 * SECOND);
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_OK], 30 * SECOND);
    T_EQ(minute(&next, 0, 1)->ns[GPV_USE_LOST], 30 * SECOND);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

T_CASE(another_agent_begins_another_history)
{
    struct gpv_snapshot last, next = { .time = NOW + MINUTE, .since = 2 };

    with_history(&last, NOW, 1);
    (void)add_gpu(&next, GPV_DOES_RUN, "whisper");
    gpv_now_carry(&last, &next);
    T_EQ(next.minutes, 0);
    T_EQ(gpv_top_minute(&next, 0, next.time + SECOND, 0).ns[GPV_USE_OK], 0);
    gpv_snapshot_free(&last);
    gpv_snapshot_free(&next);
}

/* ---- Any size, any text ---- */

static void draw_text(uint64_t *seed, char *to, size_t size)
{
    static const char *const pieces[] = { "a",       " ",      "rec",  "\n", "\x1b[2J",
                                          "é",       "\u202e", "\xff", "😀",  "日",
                                          "e\u0301", "\u200b", "gpu:", "0",  "," };
    char text[256] = "";
    for (uint32_t i = draw_below(seed, 24); i > 0; i--)
        strcat(text, pieces[draw_below(seed, T_LENGTH(pieces))]);
    gpv_now_text(to, size, text);
}

static void draw_snapshot(uint64_t *seed, struct gpv_snapshot *s)
{
    *s = (struct gpv_snapshot){ .time = NOW, .since = 1, .least = -1, .most = 5 };
    draw_text(seed, s->host, sizeof s->host);
    if (draw_chance(seed, 30))
        draw_text(seed, s->notice, sizeof s->notice);
    for (uint32_t i = draw_below(seed, 70); i > 0; i--) {
        struct gpv_now_gpu *g = add_gpu(s, draw_below(seed, GPV_DOES), "c");
        draw_text(seed, g->text, sizeof g->text);
        if (draw_chance(seed, 30))
            draw_text(seed, g->name, sizeof g->name);
        draw_text(seed, g->with, sizeof g->with);
        g->tasks = draw_below(seed, 4);
    }
    for (uint32_t i = draw_below(seed, 40); i > 0; i--) {
        struct gpv_now_batch *b = add_batch(s, i, "");
        draw_text(seed, b->name, sizeof b->name);
        draw_text(seed, b->text, sizeof b->text);
        b->least = draw_below(seed, 1000) * SECOND - SECOND;
        b->most = draw_below(seed, 1000) * MINUTE - MINUTE;
    }
    for (uint32_t i = draw_below(seed, 40); i > 0; i--) {
        struct gpv_now_finding *f = add_finding(s, 1 + draw_below(seed, 7), NOW - i, "");
        draw_text(seed, f->what, sizeof f->what);
        draw_text(seed, f->whose, sizeof f->whose);
    }
    for (uint32_t i = draw_below(seed, 20); i > 0; i--) {
        struct gpv_now_end *e = gpv_now_end(s);
        T_CHECK(e);
        e->task = GPV_TASK(3, i);
        draw_text(seed, e->batch_name, sizeof e->batch_name);
        draw_text(seed, gpv_now_class(s)->name, 64);
    }
    s->minutes = GPV_MINUTES;
    s->history = calloc(s->gpus.n * GPV_MINUTES + 1, sizeof *s->history);
    T_CHECK(s->history);
    for (size_t i = 0; i < s->gpus.n * GPV_MINUTES; i++)
        s->history[i].ns[draw_below(seed, GPV_USES)] = draw_below(seed, 60) * SECOND;
}

/* Each line has as many cells as the screen is wide, and none of them steers. */
static void check_screen(const struct gpv_screen *s)
{
    for (int line = 0; line < s->lines; line++)
        for (int column = 0; column < s->columns; column++) {
            const char *at = s->cell[line * s->columns + column].text;
            T_CHECK(*at || (column > 0 && *s->cell[line * s->columns + column - 1].text));
            while (*at) {
                uint32_t c;
                size_t n = gpv_character(at, &c);
                T_CMP(n, >, 0);
                T_CHECK(!gpv_steers(c));
                T_CHECK(!s->ascii || c < 0x80);
                at += n;
            }
        }
}

T_LONG_CASE(any_snapshot_fits_any_size, 300)
{
    static const uint32_t keys[] = { '\t',          's',        'h',           'p',
                                     '?',           '/',        'a',           GPV_KEY_ESCAPE,
                                     GPV_KEY_DOWN,  GPV_KEY_UP, GPV_KEY_END,   GPV_KEY_PAGE_DOWN,
                                     GPV_KEY_ENTER, 'q',        GPV_KEY_ERASE, 0x65e5,
                                     GPV_KEY_LEFT };
    uint64_t seed = 1;

    use_utf8();
    for (size_t round = t_rounds(600, 600); round > 0; round--) {
        struct gpv_snapshot s;
        struct gpv_top_state t;
        draw_snapshot(&seed, &s);
        gpv_top_init(&t, 80, 24, draw_chance(&seed, 30));
        t.live = draw_chance(&seed, 70);
        t.now = NOW + draw_below(&seed, 1000) * SECOND;
        for (int step = 0; step < 12; step++) {
            struct gpv_screen screen;
            t.columns = 1 + (int)draw_below(&seed, 250);
            t.lines = 1 + (int)draw_below(&seed, 60);
            T_EQ(gpv_top_draw(&t, &s, &screen), 0);
            check_screen(&screen);
            gpv_screen_free(&screen);
            uint64_t task;
            (void)gpv_top_key(&t, &s, keys[draw_below(&seed, T_LENGTH(keys))], &task);
        }
        free(t.pane.text);
        gpv_snapshot_free(&s);
    }
    end_utf8();
}

T_CASE(a_screen_that_is_too_small_says_so)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 39, 24);
    check_has(&t, &s, "39x24: top needs 40x10", true);
    t.columns = 40;
    t.lines = 9;
    check_has(&t, &s, "40x9: top needs 40x10", true);
    t.lines = 10;
    check_has(&t, &s, "needs", false);
    gpv_snapshot_free(&s);
}

T_CASE(without_memory_there_is_no_screen)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    fill(&s, &t);
    for (int i = 0; i < 20; i++)
        (void)add_gpu(&s, GPV_DOES_IDLE, ""); /* folded */
    unsigned n = 0, screens = 0;
    bool failed;
    do {
        struct gpv_screen screen;
        fail_at = ++n;
        int code = gpv_top_draw(&t, &s, &screen);
        failed = fail_at == 0;
        fail_at = 0;
        T_CHECK(code == 0 ? screen.cell != NULL : screen.cell == NULL && failed);
        screens += code == 0;
        gpv_screen_free(&screen);
        T_CMP(n, <, 1000);
    } while (failed);
    T_CMP(screens, >, 0);
    T_CMP(n, >, 10);
    gpv_snapshot_free(&s);
}
