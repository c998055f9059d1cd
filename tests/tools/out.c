/* SPDX-License-Identifier: MIT */
/* out.c - prints its arguments as the program does: as a table of one column, then as a JSON array.
 */
#include "../../tools/gpudispatch/out.h"

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
    json_open(0, '[');
    for (int i = 1; i < argc; i++)
        json_text(0, argv[i]);
    json_close(']');
    json_end();
    return out_flush();
}
