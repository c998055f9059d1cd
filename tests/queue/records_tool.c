/* SPDX-License-Identifier: MIT */
/*
 * records_tool.c - prints the records that a verb would read.
 *
 * usage: queue_records STATE SINCE NAMES ENOUGH [BATCH...]
 *
 * NAMES: 1 = with names.  ENOUGH: it leaves after so many calls of its function; 0 = at the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "queue/client/records.h"

enum { LEFT = 9 };

static int print(const char *lines, size_t size, void *user)
{
    long *enough = user;
    if (size == 0 || lines[size - 1] != '\n')
        return EXIT_WRONG;
    (void)fwrite(lines, 1, size, stdout);
    return *enough > 0 && --*enough == 0 ? LEFT : 0;
}

int main(int argc, char **argv)
{
    static const struct verb verb = { .name = "records" };
    struct call call = { .verb = &verb };
    if (argc < 5)
        return EXIT_USAGE;
    long enough = strtol(argv[4], NULL, 10);
    call.value[OPTION_STATE_DIR] = argv[1];
    call.given[OPTION_STATE_DIR] = true;
    call.operand = argv + 5;
    call.operands = (size_t)(argc - 5);
    return gpq_records_read(&call, strtoull(argv[2], NULL, 10), argv[3][0] == '1', print, &enough);
}
