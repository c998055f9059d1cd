/* SPDX-License-Identifier: MIT */
/* view_lines.c - any bytes as lines of records: reading is total.  [V5] [V9] */
#include "view_night.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);

    check_night(read_lines(text, size));
    free(text);
    return 0;
}
