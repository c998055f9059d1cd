/* SPDX-License-Identifier: MIT */
/* textures.c - patterns and colours of areas. */
#include "view/report/textures.h"

#include <stdlib.h>
#include <string.h>

#include "view/report/html.h"

#define GPV_X_TEXTURE(name, colour, turn, size, path, width) { colour, turn, size, path, width },
static const struct {
    const char *colour; /* "": the page shows through */
    unsigned turn, size;
    const char *path, *width;
} textures[] = { GPV_TEXTURE_MAP(GPV_X_TEXTURE) };
#undef GPV_X_TEXTURE

struct rank {
    uint64_t attempts;
    uint32_t class;
};

static int most_first(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->attempts != y->attempts)
        return x->attempts < y->attempts ? 1 : -1;
    return (x->class > y->class) - (x->class < y->class);
}

static int first_first(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    return (x->class > y->class) - (x->class < y->class);
}

int gpv_textures_of(const struct gpv_night *n, uint8_t *ret)
{
    const size_t classes = n->classes.n + 1;
    struct rank *rank = calloc(classes, sizeof(*rank));
    if (!rank)
        return -1;
    for (uint32_t i = 0; i < classes; i++)
        rank[i].class = i;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const uint32_t class = gpv_class_of(n, &n->attempts.row[i]);
        rank[class < n->classes.n ? class : n->classes.n].attempts++;
    }
    memset(ret, GPV_TEXTURE_CLASS_OTHER, classes);
    qsort(rank, classes, sizeof(*rank), most_first);
    const size_t own = classes < GPV_TEXTURE_CLASSES ? classes : GPV_TEXTURE_CLASSES;
    qsort(rank, own, sizeof(*rank), first_first);
    for (uint8_t i = 0; i < own; i++)
        ret[rank[i].class] = i;
    free(rank);
    return 0;
}

enum gpv_texture gpv_texture_of_use(enum gpv_use use)
{
    switch (use) {
    case GPV_USE_OK:
        return GPV_TEXTURE_WORKED;
    case GPV_USE_LOST:
        return GPV_TEXTURE_BAD;
    case GPV_USE_LOADING:
        return GPV_TEXTURE_LOADING;
    case GPV_USE_KEPT:
        return GPV_TEXTURE_KEPT;
    case GPV_USE_OUT:
        return GPV_TEXTURE_OUT;
    case GPV_USE_UNKNOWN:
        return GPV_TEXTURE_UNKNOWN;
    case GPV_USE_LIMITED:
        return GPV_TEXTURE_LIMITED;
    case GPV_USE_IDLE:
    case GPV_USES:
        break;
    }
    return GPV_TEXTURES;
}

enum gpv_texture gpv_texture_of_why(enum gpv_why why)
{
    switch (why) {
    case GPV_WHY_BUSY:
        return GPV_TEXTURE_BUSY;
    case GPV_WHY_LIMIT:
        return GPV_TEXTURE_LIMIT;
    case GPV_WHY_GATHERING:
        return GPV_TEXTURE_KEPT;
    case GPV_WHY_LOADING:
        return GPV_TEXTURE_LOADING;
    case GPV_WHY_OUT:
        return GPV_TEXTURE_OUT;
    case GPV_WHY_PAUSED:
        return GPV_TEXTURE_PAUSED;
    case GPV_WHY_UNSEEN:
        return GPV_TEXTURE_UNKNOWN;
    case GPV_WHY_OTHER:
    case GPV_WHYS:
        break;
    }
    return GPV_TEXTURE_OTHER;
}

void gpv_textures_write(FILE *f)
{
    gpv_html(f, "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\n");
    for (unsigned i = 0; i < GPV_TEXTURES; i++) {
        const unsigned size = textures[i].size;
        if (!*textures[i].path)
            continue;
        gpv_html(f,
                 "<pattern id=\"t%u\" width=\"%u\" height=\"%u\" patternUnits=\"userSpaceOnUse\"",
                 i, size, size);
        if (textures[i].turn)
            gpv_html(f, " patternTransform=\"rotate(%u)\"", textures[i].turn);
        gpv_html(f, ">");
        if (*textures[i].colour)
            gpv_html(f, "<rect class=\"t%u\" fill=\"%s\" width=\"%u\" height=\"%u\"/>", i,
                     textures[i].colour, size, size);
        gpv_html(f,
                 "<path class=\"%s\" stroke=\"%s\" stroke-width=\"%s\" fill=\"none\" d=\"%s\"/>"
                 "</pattern>\n",
                 *textures[i].colour ? "ink" : "pen", *textures[i].colour ? "#fff" : "#444",
                 textures[i].width, textures[i].path);
    }
    gpv_html(f, "</defs></svg>\n");
}

void gpv_texture_fill(FILE *f, enum gpv_texture t)
{
    if (*textures[t].path)
        gpv_html(f, " fill=\"url(#t%u)\"", t);
    else
        gpv_html(f, " class=\"t%u\" fill=\"%s\"", t, textures[t].colour);
}

void gpv_texture_key(FILE *f, enum gpv_texture t, const char *text)
{
    gpv_html(f, "<span><svg class=\"key\" width=\"22\" height=\"12\" viewBox=\"0 0 22 12\" "
                "aria-hidden=\"true\"><rect");
    gpv_texture_fill(f, t);
    gpv_html(f, " width=\"22\" height=\"12\"/></svg> %.*s</span>\n", 60, text);
}
