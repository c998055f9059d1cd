/* SPDX-License-Identifier: MIT */
/*
 * top.h - the screen of `gpudispatch top`: the work of each GPU, why the rest waits, the faults,
 * and when all of it is done.
 *
 * All of it is pure: a state and a snapshot make a screen, a key makes a new state.  terminal.h has
 * the terminal, tools/gpudispatch/top.c the loop.
 *
 * The screen has parts.  A part whose rows do not fit counts the others, by kind.
 */
#ifndef GPV_TOP_H
#define GPV_TOP_H

#include "view/now/snapshot.h"
#include "view/top/screen.h"

/* name, value, a row of it, rows of it */
#define GPV_PART_MAP(X)           \
    X(GPUS, 0, "GPU", "GPUs")     \
    X(BATCHES, 1, "batch", "batches") \
    X(CLASSES, 2, "class", "classes") \
    X(FINDINGS, 3, "finding", "findings") \
    X(ENDS, 4, "end", "ends")
#define GPV_X_PART(name, value, one, many) GPV_PART_##name = value,
enum gpv_part { GPV_PART_MAP(GPV_X_PART) GPV_PARTS = 5 };
#undef GPV_X_PART

/* Orders of the batches: name, word. */
#define GPV_SORT_MAP(X)       \
    X(QUEUE, "the queue")     \
    X(WAITING, "waiting")     \
    X(LEFT, "time left")      \
    X(BAD, "bad ends")
#define GPV_X_SORT(name, word) GPV_SORT_##name,
enum gpv_sort { GPV_SORT_MAP(GPV_X_SORT) GPV_SORTS };
#undef GPV_X_SORT

/* The time that the history of a GPU covers. */
enum gpv_top_span { GPV_TOP_HOUR, GPV_TOP_FOUR_HOURS, GPV_TOP_ALL, GPV_TOP_SPANS };

enum { GPV_TOP_COLUMNS = 40, GPV_TOP_LINES = 10 }; /* the least */

/* A text in place of the parts, such as the output of `explain`. */
struct gpv_pane {
    bool open;
    char title[96];
    char *text; /* of any bytes; the owner frees it */
    size_t size, line; /* line: the first one that is shown */
};

struct gpv_top_state {
    int columns, lines;
    bool ascii, live; /* live: keys work, a row is chosen */
    int64_t now;      /* ns since 1970 */
    enum gpv_part part;
    uint64_t row[GPV_PARTS]; /* the key of the chosen one (rows.h); 0: the first one */
    enum gpv_sort sort;
    enum gpv_top_span span;
    char find[64]; /* rows without this text are left out; "": none are */
    bool finding;  /* it is being typed */
    bool paused, help;
    char notice[96]; /* of the program itself: the agent is gone */
    struct gpv_pane pane;
};

/* A request of a key to the program. */
enum gpv_wish { GPV_WISH_NONE, GPV_WISH_EXPLAIN, GPV_WISH_LOG, GPV_WISH_QUIT };

/* Keys that are no character. */
enum gpv_key {
    GPV_KEY_UP = 0x110000,
    GPV_KEY_DOWN,
    GPV_KEY_LEFT,
    GPV_KEY_RIGHT,
    GPV_KEY_PAGE_UP,
    GPV_KEY_PAGE_DOWN,
    GPV_KEY_HOME,
    GPV_KEY_END,
    GPV_KEY_BACK_TAB,
    GPV_KEY_ERASE,
    GPV_KEY_ENTER,
    GPV_KEY_ESCAPE,
    GPV_KEY_OTHER /* such as a new size of the screen */
};

void gpv_top_init(struct gpv_top_state *t, int columns, int lines, bool ascii);

/* -1: no memory; then the screen is empty.  The caller frees the screen in both cases. */
int gpv_top_draw(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                 struct gpv_screen *ret);
/* Lines at which each row of each part fits, for one that is not live; -1: no memory. */
int gpv_top_lines(const struct gpv_top_state *t, const struct gpv_snapshot *s);

/* A key is a character or one of enum gpv_key.  *ret_task: the one that is to be explained, or
 * whose output is to be shown. */
enum gpv_wish gpv_top_key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t key,
                          uint64_t *ret_task);

/* The uses of GPU `gpu` in the minute that is `ago` minutes before the one of `now`. */
struct gpv_uses gpv_top_minute(const struct gpv_snapshot *s, size_t gpu, int64_t now, uint32_t ago);

/* Whether the screen of a later second differs from that of now: something runs. */
bool gpv_top_ticks(const struct gpv_snapshot *s);

#endif
