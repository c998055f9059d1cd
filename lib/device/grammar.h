/* SPDX-License-Identifier: MIT */
/* grammar.h - the parts that read a script: parse.c the whole, grammar.c a line, facts.c what a GPU
 * is, settings.c how it is. */
#ifndef GPI_DEVICE_GRAMMAR_H
#define GPI_DEVICE_GRAMMAR_H

#include "device/lines.h"
#include "device/words.h"

/* Each gives 0, or the code of what was told in r->e. */
int gpi_script_line(struct gpi_reader *r);
int gpi_script_push(struct gpi_reader *r, const struct gpi_effect *e);

/* For gpi_word_expected: a fact in a line that begins with a time or a file. */
#define GPI_EXPECTED_SETTING "a setting that can change after at or when"

/* KEY=VALUE that does not change: its number, GPI_FACTS = there is none of this key. */
#define GPI_FACTS 9u
uint32_t gpi_fact_named(const struct gpi_word *w);
int gpi_script_identify(struct gpi_reader *r, const struct gpi_effect *e, uint32_t which,
                        const struct gpi_word *w);

/* KEY=VALUE that may change: among those from `from` to before `to`, GPI_SETTINGS = there is none
 * of this key. */
uint32_t gpi_setting_named(const struct gpi_word *w, uint32_t from, uint32_t to);
int gpi_script_set(struct gpi_reader *r, struct gpi_effect e, uint32_t which,
                   const struct gpi_word *w);

#endif
