/* SPDX-License-Identifier: MIT */
/* top_keys.c - what a key of top does. */
#include <stdlib.h>
#include <string.h>

#include "top_made.h"

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
