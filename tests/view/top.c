/* SPDX-License-Identifier: MIT */
/* top.c - the screen of top at any size, of any snapshot, and without memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../queue/failing.h"
#include "queue/draw.h"
#include "top_made.h"
#include "view/plain.h"

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
