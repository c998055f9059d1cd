/* SPDX-License-Identifier: MIT */
/* data.c - the search, and the data that the script of the page reads. */
#include "view/report/html.h"
#include "view/report/page.h"

int gpv_page_data(struct gpv_page *p)
{
    gpv_html(p->f,
             "<section id=\"search\" class=\"screen\"><h2>Find a task</h2>\n"
             "<p class=\"dim\">The search needs scripts; the tables above do not.</p></section>\n"
             "<script type=\"application/json\" id=\"data\">{\"version\":1}</script>\n");
    return 0;
}
