/* SPDX-License-Identifier: MIT */
/* top_cells.c - texts as cells of a screen. */
#include <stdlib.h>
#include <string.h>

#include "top_made.h"

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
