/* SPDX-License-Identifier: MIT */
/* layout.c - shares the lines of the screen among the parts. */
#include "view/top/layout.h"

enum {
    HIGH = 30,   /* from here on classes and ends are shown, too */
    ROOMY = 20,  /* an empty line before each part */
    TITLED = 16, /* a title for each part */
    WIDE = 72,   /* the header has two lines, else three */
    LEAST = 3    /* rows of a part, at least, if there are so many lines */
};

/* In a low screen, only three parts: a further one takes the place of the findings. */
static bool is_shown(const struct gpv_top_state *t, enum gpv_part part)
{
    bool chosen = t->live && t->part == part;
    bool further = t->part == GPV_PART_CLASSES || t->part == GPV_PART_ENDS;

    if (t->lines >= HIGH || part == GPV_PART_GPUS || part == GPV_PART_BATCHES)
        return true;
    return part == GPV_PART_FINDINGS ? !(t->live && further) : chosen;
}

/* A part without rows has a line that says so; other rows may be known by their number only. */
static int wanted(const struct gpv_snapshot *s, enum gpv_part part, const struct gpv_place *p)
{
    bool more = (part == GPV_PART_BATCHES && s->more.batches) ||
                (part == GPV_PART_FINDINGS && s->more.findings) ||
                (part == GPV_PART_CLASSES && s->more.classes);
    size_t n = p->rows.n;

    n = n > 9999 ? 9999 : n;
    return (int)n + (more || n == 0);
}

/* Lines that the part gets, so that it has `want` at most. */
static int grant(struct gpv_place *p, int want, int lines)
{
    int n = want - p->height;

    n = n > lines ? lines : n;
    n = n < 0 ? 0 : n;
    p->height += n;
    return n;
}

/* The other parts get a few lines first; GPUs as many as they want of the rest; then all others in
 * turn, the chosen one before them. */
static int share(const struct gpv_top_state *t, const struct gpv_snapshot *s, struct gpv_layout *l,
                 int lines)
{
    const int least = t->lines < ROOMY ? 1 : LEAST;
    struct gpv_place *gpus = &l->part[GPV_PART_GPUS];
    int before;

    for (enum gpv_part i = 0; i < GPV_PARTS; i++) {
        int want = l->part[i].shown && i != GPV_PART_GPUS ? wanted(s, i, &l->part[i]) : 0;
        lines -= grant(&l->part[i], want < least ? want : least, lines);
    }
    if (wanted(s, GPV_PART_GPUS, gpus) > lines) {
        gpv_rows_free(&gpus->rows);
        l->folded = true;
        if (gpv_rows_make(t, s, GPV_PART_GPUS, true, &gpus->rows))
            return -1;
    }
    if (l->folded && t->lines < TITLED) /* of a low screen no more than half */
        lines -= grant(gpus, wanted(s, GPV_PART_GPUS, gpus), lines / 2 + 1);
    else
        lines -= grant(gpus, wanted(s, GPV_PART_GPUS, gpus), lines);
    if (t->live && l->part[t->part].shown)
        lines -= grant(&l->part[t->part], wanted(s, t->part, &l->part[t->part]), lines);
    do {
        before = lines;
        for (enum gpv_part i = 0; i < GPV_PARTS && lines > 0; i++)
            if (l->part[i].shown && wanted(s, i, &l->part[i]) > l->part[i].height)
                lines -= grant(&l->part[i], l->part[i].height + 1, lines);
    } while (lines < before);
    return 0;
}

static void place(struct gpv_layout *l, bool titled, bool roomy)
{
    int line = l->header;

    for (enum gpv_part i = 0; i < GPV_PARTS; i++) {
        struct gpv_place *p = &l->part[i];
        p->head = -1;
        if (!p->shown)
            continue;
        line += roomy;
        if (titled)
            p->head = line++;
        p->line = line;
        line += p->height;
    }
}

int gpv_layout_make(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                    struct gpv_layout *ret)
{
    bool titled = t->lines >= TITLED, roomy = t->lines >= ROOMY;
    int lines, parts = 0;

    *ret = (struct gpv_layout){ .header = t->columns < WIDE ? 3 : 2 };
    ret->header += *s->notice != 0;
    for (enum gpv_part i = 0; i < GPV_PARTS; i++) {
        ret->part[i].shown = is_shown(t, i);
        parts += ret->part[i].shown;
        if (gpv_rows_make(t, s, i, false, &ret->part[i].rows))
            return -1;
    }
    lines = t->lines - ret->header - (t->live ? 1 : 0) - parts * (titled + roomy);
    if (share(t, s, ret, lines > 0 ? lines : 0))
        return -1;
    place(ret, titled, roomy);
    return 0;
}

void gpv_layout_free(struct gpv_layout *l)
{
    for (enum gpv_part i = 0; i < GPV_PARTS; i++)
        gpv_rows_free(&l->part[i].rows);
}

bool gpv_layout_counts_in_title(enum gpv_part part, const struct gpv_place *p)
{
    return part == GPV_PART_ENDS || (part == GPV_PART_FINDINGS && p->head >= 0);
}

size_t gpv_layout_first(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                        enum gpv_part part, const struct gpv_place *p, size_t *ret_n)
{
    size_t chosen = gpv_row_chosen(t, s, part, &p->rows), height = (size_t)p->height;

    if (!gpv_layout_counts_in_title(part, p) && wanted(s, part, p) > p->height && height > 1)
        height--; /* for the count */
    *ret_n = p->rows.n < height ? p->rows.n : height;
    return chosen < height ? 0 : chosen - height + 1;
}

int gpv_top_lines(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    struct gpv_layout l;
    int lines = -1;

    if (gpv_layout_make(t, s, &l) == 0) {
        lines = l.header;
        for (enum gpv_part i = 0; i < GPV_PARTS; i++)
            lines += 2 + wanted(s, i, &l.part[i]);
    }
    gpv_layout_free(&l);
    return lines < 0 || lines > HIGH ? lines : HIGH;
}
