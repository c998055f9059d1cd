/* SPDX-License-Identifier: MIT */
/* names.c - names of GPUs and classes. */
#include "view/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/words.h"

/* The number in "gpu:3", or -1. */
static long plain_number(const char *name)
{
    char *end;
    if (strncmp(name, "gpu:", 4) != 0 || name[4] < '0' || name[4] > '9')
        return -1;
    const long number = strtol(name + 4, &end, 10);
    return *end == 0 && number <= UINT16_MAX ? number : -1;
}

const char *gpv_gpu_label(const struct gpv_night *n, uint32_t gpu, char ret[GPV_NAME])
{
    if (gpu >= n->gpus.n)
        return "a GPU";
    const struct gpv_gpu *row = &n->gpus.row[gpu];
    const char *name = gpv_text(n, row->name ? row->name : row->uuid);
    const char *profile = gpv_text(n, row->profile);
    const bool known = !strncmp(name, "gpu:", 4);
    (void)snprintf(ret, GPV_NAME, "%s%s%s%s", known ? "GPU " : "", known ? name + 4 : name,
                   *profile ? " " : "", profile);
    return ret;
}

/* Appends, and shows with " ..." what does not fit. */
static void append(char ret[GPV_NAME], const char *text)
{
    static const char more[] = " ...";
    const size_t used = strlen(ret), size = strlen(text), comma = used ? 2 : 0;
    if (used >= sizeof(more) && !strcmp(ret + used + 1 - sizeof(more), more))
        return;
    if (used + comma + size + sizeof(more) > GPV_NAME)
        (void)snprintf(ret + used, GPV_NAME - used, "%s", more);
    else
        (void)snprintf(ret + used, GPV_NAME - used, "%s%s", comma ? ", " : "", text);
}

const char *gpv_gpu_labels(const struct gpv_night *n, struct gpv_set set, char ret[GPV_NAME])
{
    uint16_t number[256];
    size_t plain = 0;
    char text[GPV_NAME], ranges[GPV_NAME - 12];
    ret[0] = 0;
    for (uint32_t i = 0; i < set.n; i++) {
        const long known = plain_number(gpv_text(n, n->gpus.row[set.gpu[i]].name));
        if (known >= 0 && plain < sizeof(number) / sizeof(number[0]))
            number[plain++] = (uint16_t)known;
    }
    if (plain) {
        (void)snprintf(text, sizeof(text), "GPU %s",
                       gpv_ranges(number, plain, ranges, sizeof(ranges)));
        append(ret, text);
    }
    for (uint32_t i = 0; i < set.n; i++) {
        if (plain_number(gpv_text(n, n->gpus.row[set.gpu[i]].name)) < 0)
            append(ret, gpv_gpu_label(n, set.gpu[i], text));
    }
    return ret;
}

const char *gpv_class_label(const struct gpv_night *n, uint32_t class)
{
    return class < n->classes.n ? gpv_text(n, n->classes.row[class].name) : "command";
}
