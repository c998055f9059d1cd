/* SPDX-License-Identifier: MIT */
/* out.c - prints its arguments as the program does: as a table of one column, then as a JSON array.
 */
#include "tools/cli/out.h"

int main(int argc, char **argv)
{
    static const struct column column[] = { { "", false }, { "", true } };
    struct table t;

    table_init(&t, column, 2);
    for (int i = 1; i < argc; i++) {
        table_cell(&t, "%s", argv[i]);
        table_cell(&t, "%d", i);
        table_note(&t, "%s", argv[i]);
    }
    table_print(&t);
    doc_open(0, '[');
    for (int i = 1; i < argc; i++)
        doc_text(0, argv[i]);
    doc_close(']');
    doc_end();
    return out_flush();
}
