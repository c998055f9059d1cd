/* SPDX-License-Identifier: MIT */
/* kinds.c - the words of outcomes and of kinds of rows. */
#include "view/records.h"

#define GPV_X_WORD(name, value, word, ...) [value] = word,
#define GPV_X_GLYPH(name, value, word, glyph) [value] = glyph,
static const char *const outcome_words[] = { GPV_OUTCOME_MAP(GPV_X_WORD) };
static const char *const outcome_glyphs[] = { GPV_OUTCOME_MAP(GPV_X_GLYPH) };
static const char *const tenancy_words[] = { GPV_TENANCY_MAP(GPV_X_WORD) };
static const char *const out_words[] = { GPV_OUT_MAP(GPV_X_WORD) };
static const char *const life_words[] = { GPV_LIFE_MAP(GPV_X_WORD) };
#define WORD(table, value) \
    ((value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "?")

const char *gpv_outcome_word(uint32_t outcome)
{
    return WORD(outcome_words, outcome);
}

const char *gpv_outcome_text(uint32_t outcome)
{
    return outcome == GPV_RETURNED ? "put back" : gpv_outcome_word(outcome);
}

const char *gpv_outcome_glyph(uint32_t outcome)
{
    return WORD(outcome_glyphs, outcome);
}

const char *gpv_tenancy_word(uint32_t kind)
{
    return WORD(tenancy_words, kind);
}

const char *gpv_out_word(uint32_t kind)
{
    return WORD(out_words, kind);
}

const char *gpv_life_word(uint32_t kind)
{
    return WORD(life_words, kind);
}
