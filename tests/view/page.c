/* SPDX-License-Identifier: MIT */
/* page.c - parts of the report: escaped text, lanes, and pages that go on or fail. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../queue/failing.h"
#include "pages.h"
#include "view/report/html.h"
#include "view/report/lanes.h"
#include "view/report/report.h"

/* What gpv_html writes for an argument, cut to `most` characters if that is not negative. */
static char *html(const char *text, int most)
{
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    T_CHECK(f);
    if (most < 0)
        gpv_html(f, "<b>%s</b>%%", text);
    else
        gpv_html(f, "<b>%.*s</b>%%", most, text);
    (void)fclose(f);
    T_CMP(size, >=, 8);
    T_TEXT(out + size - 5, "</b>%");
    out[size - 5] = 0;
    memmove(out, out + 3, size - 7);
    return out;
}

static void check_html(const char *text, int most, const char *wanted)
{
    char *seen = html(text, most);

    T_TEXT(seen, wanted);
    free(seen);
}

/* [V5] */
T_CASE(text_is_text)
{
    check_html("", -1, "");
    check_html("sweep 3", -1, "sweep 3");
    check_html("<script>", -1, "&lt;script&gt;");
    check_html("a&lt;\"'", -1, "a&amp;lt;&quot;&#39;");
    check_html("%s%n", -1, "%s%n");
    check_html("a\nb\tc\r\x1b[2J\x7f", -1, "a\\nb\\tc\\x0d\\x1b[2J\\x7f");
    check_html("\u00e4 \u65e5 \U0001f600", -1, "\u00e4 \u65e5 \U0001f600");
    check_html("\xc2\x85\u00ad\u200b\u202e\u2028\u2066\ufeff\U000e0041", -1,
               "\\x85\\xad\\u{200b}\\u{202e}\\u{2028}\\u{2066}\\u{feff}\\u{e0041}");
}

/* The same text in the data of the page.  [V5] */
T_CASE(strings_of_the_data)
{
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    T_CHECK(f);
    gpv_html_string(f, "</script>&\"\\\n\x1b\u2028\xff", -1);
    gpv_html_string(f, "ab\ncd", 5);
    gpv_html_string(f, "ab\ncd", 6);
    (void)fclose(f);
    T_TEXT(out, "\"\\u003c/script\\u003e\\u0026\\\"\\\\\\\\n\\\\x1b\\\\u{2028}\\\\xff\""
                "\"ab\\\\n…\"\"ab\\\\ncd\"");
    free(out);
}

/* Bytes that are no UTF-8 are shown one by one: lone, overlong, surrogates, too large, cut off. */
T_CASE(bytes_that_are_no_text)
{
    check_html("\x80z", -1, "\\x80z");
    check_html("\xc0\xbc", -1, "\\xc0\\xbc");
    check_html("\xe0\x80\xbc", -1, "\\xe0\\x80\\xbc");
    check_html("\xed\xa0\x80", -1, "\\xed\\xa0\\x80");
    check_html("\xf4\x90\x80\x80", -1, "\\xf4\\x90\\x80\\x80");
    check_html("\xf0\x9f\x98", -1, "\\xf0\\x9f\\x98");
    check_html("\xc3<", -1, "\\xc3&lt;");
    check_html("\xff", -1, "\\xff");
}

T_CASE(cut_at_a_character)
{
    check_html("abcd", 4, "abcd");
    check_html("abcde", 4, "abc…");
    check_html("\u00e4\u00f6\u00fc\u00df\u00e5", 4, "\u00e4\u00f6\u00fc…");
    check_html("<<<<<", 4, "&lt;&lt;&lt;…");
    check_html("ab\ncd", 4, "ab…");
    check_html("abcd", 0, "…");
    T_EQ(gpv_html_width("a\n<\u00e4\xff"), 9);
}

T_CASE(numbers)
{
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    T_CHECK(f);
    gpv_html(f, "%d %u %lld %llu %zu %.1f %s", -1, 4294967295u, -5000000000ll, 5000000000ull,
             (size_t)7, 1.25, "<");
    (void)fclose(f);
    T_TEXT(out, "-1 4294967295 -5000000000 5000000000 7 1.2 &lt;");
    free(out);
}

/* ---- Lanes ---- */

#define SHARED                                            \
    "gpu gpu:0\ngpu gpu:1\nclass c\nshape 1 c 1 1_GPU\n"  \
    "attempt 1.1 1 1 gpu:0 - @0:10 @0:20 ok 0\n"          \
    "attempt 1.2 1 1 gpu:0,gpu:1 - @0:20 @0:40 error 1\n" \
    "attempt 1.3 1 1 gpu:0 - @0:21 @0:30 ok 0\n"          \
    "attempt 1.4 1 1 gpu:0 - @0:30 @0:50 ok 0\n"          \
    "attempt 1.5 1 1 gpu:0 - @0:50 - running 0\n"         \
    "attempt 1.6 1 1 - - @0:20 @0:40 crashed -11\n"       \
    "attempt 1.7 0 1 - - - @0:30 cancelled 0\n"           \
    "now @1:00\n"

static void check_row(const struct gpv_row *r, unsigned row, unsigned rows)
{
    T_EQ(r->row, row);
    T_EQ(r->rows, rows);
}

T_CASE(tasks_that_share_a_gpu)
{
    struct gpv_night *n = t_night(SHARED);
    struct gpv_lanes lanes;
    struct gpv_row row[8];

    T_EQ(gpv_lanes_of(n, &lanes), 0);
    T_EQ(lanes.list.n, 3);
    T_EQ(lanes.list.row[0].n, 5);
    T_CHECK(gpv_lane_rows(n, &lanes.list.row[0], 4, row));
    check_row(&row[0], 0, 1);
    check_row(&row[1], 0, 2);
    check_row(&row[2], 1, 2);
    check_row(&row[3], 1, 2);
    check_row(&row[4], 0, 1);
    T_CHECK(!gpv_lane_rows(n, &lanes.list.row[0], 1, row));
    T_EQ(lanes.list.row[1].n, 1);
    T_EQ(lanes.list.row[2].gpu, GPV_NONE);
    T_EQ(lanes.list.row[2].n, 2);
    gpv_lanes_free(&lanes);
    gpv_night_free(n);
}

/* An attempt on two GPUs stands on two lanes, and its end is marked on one.  [V4] */
T_CASE(each_bad_end_is_on_one_lane)
{
    struct gpv_night *n = t_night(SHARED);
    struct gpv_lanes lanes;

    T_EQ(gpv_lanes_of(n, &lanes), 0);
    for (size_t a = 0; a < n->attempts.n; a++) {
        unsigned marks = 0;
        for (size_t i = 0; i < lanes.list.n; i++)
            marks += gpv_lane_marks(n, &lanes.list.row[i], &n->attempts.row[a]);
        T_EQ(marks, gpv_is_bad(n->attempts.row[a].outcome));
    }
    gpv_lanes_free(&lanes);
    gpv_night_free(n);
}

/* ---- Pages ---- */

static bool has_reload(struct gpv_night *n, unsigned reload)
{
    char *page = t_page_of(n, reload);
    const bool ret = strstr(page, "<meta http-equiv=\"refresh\" content=\"10\">") != NULL;

    T_EQ(ret, strstr(page, "http-equiv=\"refresh\"") != NULL);
    free(page);
    return ret;
}

T_CASE(the_page_loads_itself_until_the_night_is_over)
{
    struct gpv_night *goes_on = t_night(SHARED);
    struct gpv_night *over = t_night("gpu gpu:0\nshape 1 - 1 1_GPU\n"
                                     "attempt 1.1 1 1 gpu:0 - @0:10 @0:20 ok 0\nnow @1:00\n");

    T_CHECK(has_reload(goes_on, 10));
    T_CHECK(!has_reload(goes_on, 0));
    T_CHECK(!has_reload(over, 10));
    gpv_night_free(goes_on);
    gpv_night_free(over);
}

/* The page has the waits of the named batches alone, and its title names one of them. */
T_CASE(batches_that_the_reader_has_named)
{
    struct gpv_night *n = t_night(SHARED "batch 1 a @0:00 - 0 - 9 0 0 2 1 - 8 1\n"
                                         "batch 2 b @0:00 - 0 - 9 0 0 2 1 - 8 1\n");
    char *page = t_page_of(n, 0);

    T_CHECK(strstr(page, "<g data-batch=\"1\">") && strstr(page, "<g data-batch=\"2\">"));
    free(page);
    n->batches.row[1].asked = true;
    page = t_page_of(n, 0);
    T_CHECK(strstr(page, "<title>Batch 2 b, "));
    T_CHECK(!strstr(page, "<g data-batch=\"1\">") && strstr(page, "<g data-batch=\"2\">"));
    T_CHECK(strstr(page, "<tr data-batch=\"1\""));
    free(page);
    n->batches.row[0].asked = true;
    page = t_page_of(n, 0);
    T_CHECK(strstr(page, "<title>2 batches, "));
    free(page);
    gpv_night_free(n);
}

T_CASE(a_disk_that_is_full)
{
    struct gpv_night *n = t_night(SHARED);
    const struct gpv_report_options o = { 0 };
    FILE *f = fopen("/dev/full", "we");

    T_CHECK(f);
    T_EQ(gpv_report_write(n, &o, f), -1);
    (void)fclose(f);
    gpv_night_free(n);
}

/* The Nth allocation fails, for each N. */
T_CASE(no_memory)
{
    struct gpv_night *n = t_night(SHARED "tenancy gpu:0 boot c @0:01 @0:02 first_use\n"
                                         "batch 1 b @0:00 - 0 - 9 0 0 2 1 - 8 1\n"
                                         "reason 1 1.8 BUSY @0:10 @0:50 busy\n");
    const struct gpv_report_options o = { 0 };
    FILE *f = fopen("/dev/null", "we");
    unsigned at = 0, failed = 0;

    T_CHECK(f);
    do {
        fail_at = ++at;
        failed += gpv_report_write(n, &o, f) != 0;
    } while (fail_at == 0);
    fail_at = 0;
    T_CMP(at, >, 20);
    T_CMP(failed, >=, at - 2); /* not the last one, and a finding may lack its GPUs */
    T_EQ(gpv_report_write(n, &o, f), 0);
    (void)fclose(f);
    gpv_night_free(n);
}
