/* SPDX-License-Identifier: MIT */
/* names.c - names of GPUs, classes and batches. */
#include "view/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/words.h"

const char *gpv_gpu_name(const struct gpv_night *n, uint32_t gpu)
{
    return gpu < n->gpus.n ? gpv_text(n, n->gpus.row[gpu].name) : "";
}

const char *gpv_class_name(const struct gpv_night *n, uint32_t class)
{
    return class < n->classes.n ? gpv_text(n, n->classes.row[class].name) : "";
}

const char *gpv_batch_name(const struct gpv_night *n, uint32_t id)
{
    uint32_t batch = gpv_find_batch(n, id);
    return batch != GPV_NONE ? gpv_text(n, n->batches.row[batch].name) : "";
}

long gpv_gpu_number(const char *name)
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

const char *gpv_gpu_labels(const struct gpv_night *n, struct gpv_set set, char ret[GPV_NAME])
{
    uint16_t number[256];
    size_t plain = 0;
    char text[GPV_NAME], ranges[GPV_NAME - 12];
    struct gpv_cut c = gpv_cut(ret, GPV_NAME);
    for (uint32_t i = 0; i < set.n; i++) {
        const long known = gpv_gpu_number(gpv_gpu_name(n, set.gpu[i]));
        if (known >= 0 && plain < sizeof(number) / sizeof(number[0]))
            number[plain++] = (uint16_t)known;
    }
    if (plain)
        gpv_cut_add(&c, "GPU ", gpv_ranges(number, plain, ranges, sizeof(ranges)));
    for (uint32_t i = 0; i < set.n; i++) {
        if (gpv_gpu_number(gpv_gpu_name(n, set.gpu[i])) < 0)
            gpv_cut_add(&c, c.used ? ", " : "", gpv_gpu_label(n, set.gpu[i], text));
    }
    return ret;
}

const char *gpv_class_label(const struct gpv_night *n, uint32_t class)
{
    return class < n->classes.n ? gpv_class_name(n, class) : "command";
}
