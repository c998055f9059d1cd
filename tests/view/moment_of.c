/* SPDX-License-Identifier: MIT */
/* moment_of.c - prints the moment of a night as JSON: moment_of TIME < LINES. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/line.h"
#include "view/now/moment.h"

static int read_lines(struct gpv_night *n)
{
    char *line = NULL;
    size_t room = 0;
    int code = 0;
    for (ssize_t size; code == 0 && (size = getline(&line, &room, stdin)) > 0;)
        code = gpv_line_read(n, line, (size_t)size - (line[size - 1] == '\n'));
    free(line);
    return code;
}

int main(int argc, char **argv)
{
    struct gpv_night *n = gpv_night_new();
    struct gpv_snapshot s;
    if (argc != 2 || !n || read_lines(n) < 0 || gpv_night_end(n, 0) < 0 ||
        gpv_moment(n, strtoll(argv[1], NULL, 10), &s) < 0)
        return 1;
    gpv_snapshot_write(&s, stdout);
    gpv_snapshot_free(&s);
    gpv_night_free(n);
    return 0;
}
