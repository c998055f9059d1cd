/* SPDX-License-Identifier: MIT */
/*
 * textures.h - how areas are filled: a pattern and a colour for each class, use and reason.
 *
 * Each is told from the others without its colour.  The colours of a light page stand in
 * attributes; report.css has those of a dark one.                                          [V7]
 */
#ifndef GPV_TEXTURES_H
#define GPV_TEXTURES_H

#include <stdint.h>
#include <stdio.h>

#include "view/night/use.h"
#include "view/night/waits.h"

enum { GPV_TEXTURE_CLASSES = 8 }; /* the first ones; all other classes have one together */

/* name, colour, turn in degrees, size, path of its lines, width of these; "" = plain */
#define GPV_TEXTURE_MAP(X)                                                                     \
    X(CLASS_0, "#0072b2", 0, 6, "", "1")                                                       \
    X(CLASS_1, "#a85a00", 45, 5, "M.7 0V5", "1.3")                                             \
    X(CLASS_2, "#00795c", 0, 5, "M0 .5H5", "1")                                                \
    X(CLASS_3, "#7b4ba6", 135, 6, "M1 0V6", "2")                                               \
    X(CLASS_4, "#007a87", 0, 5, "M1.5 1.5h1.6", "1.6")                                         \
    X(CLASS_5, "#8c5a3c", 0, 5, "M.5 0V5", "1")                                                \
    X(CLASS_6, "#a83279", 0, 6, "M0 .5H6M.5 0V6", "1")                                         \
    X(CLASS_7, "#6b6b00", 45, 6, "M0 .5H6M.5 0V6", "1")                                        \
    X(CLASS_OTHER, "#5a626c", 0, 8, "M0 6L4 2L8 6", "1.2")                                     \
    X(WORKED, "#2f4b7c", 0, 6, "", "1")                                                        \
    X(BAD, "#c40026", 0, 4, "M0 4L4 0", ".8")                                                  \
    X(LOADING, "", 135, 4, "M.8 0V4", "1.6")                                                   \
    X(KEPT, "", 0, 5, "M1 1.5h1.6", "1.6")                                                     \
    X(OUT, "", 0, 6, "M0 0L6 6M6 0L0 6", ".9")                                                 \
    X(UNKNOWN, "", 0, 8, "M0 2h4M4 6h4", "1")                                                  \
    X(LIMITED, "", 0, 4, "M0 3.5H4", "1")                                                      \
    X(BUSY, "#5a626c", 0, 6, "", "1")                                                          \
    X(LIMIT, "#b9bfc6", 0, 4, "M0 .5H4", "1")                                                  \
    X(PAUSED, "", 0, 6, "M1 0V6M3 0V6", "1")                                                   \
    X(OTHER, "", 0, 8, "M0 6L4 2L8 6", "1.2")

#define GPV_X_TEXTURE(name, colour, turn, size, path, width) GPV_TEXTURE_##name,
enum gpv_texture { GPV_TEXTURE_MAP(GPV_X_TEXTURE) GPV_TEXTURES };
#undef GPV_X_TEXTURE

/* Each class gets a texture, the most used ones one of their own.  ret[n->classes.n + 1]; the last
 * one is that of tasks without a class.  0, or -1 without memory. */
int gpv_textures_of(const struct gpv_night *n, uint8_t *ret);

enum gpv_texture gpv_texture_of_use(enum gpv_use use);
enum gpv_texture gpv_texture_of_why(enum gpv_why why);

/* The patterns, which all figures of the page share. */
void gpv_textures_write(FILE *f);
/* ` class="t3" fill="url(#t3)"`, as attributes of a shape. */
void gpv_texture_fill(FILE *f, enum gpv_texture t);
/* An entry of a legend: a sample and its text. */
void gpv_texture_key(FILE *f, enum gpv_texture t, const char *text);

#endif
