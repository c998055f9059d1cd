/* SPDX-License-Identifier: MIT */
/* grammar.h - the parts that read a script: parse.c the whole, grammar.c a line, facts.c the facts
 * of a GPU, settings.c its state; effects.c has the list that they fill. */
#ifndef GPI_FAKE_GRAMMAR_H
#define GPI_FAKE_GRAMMAR_H

#include "device/fake/lines.h"
#include "device/fake/words.h"

void gpi_script_line(struct gpi_reader *r);
void gpi_script_push(struct gpi_reader *r, const struct gpi_effect *e);

/* For gpi_word_expected: a fact in a line that begins with a time or a file. */
#define GPI_EXPECTED_SETTING "a setting that can change after at or when"

/* KEY=VALUE that does not change: returns its number, GPI_FACTS if there is no such key. */
#define GPI_FACTS 9u
uint32_t gpi_fact_named(const struct gpi_word *w);
void gpi_script_identify(struct gpi_reader *r, const struct gpi_effect *e, uint32_t which,
                         const struct gpi_word *w);

/* KEY=VALUE that may change: returns its number, from `from` to before `to`, GPI_SETTINGS if there
 * is no such key among these. */
uint32_t gpi_setting_named(const struct gpi_word *w, uint32_t from, uint32_t to);
void gpi_script_set(struct gpi_reader *r, struct gpi_effect e, uint32_t which,
                    const struct gpi_word *w);

#endif
