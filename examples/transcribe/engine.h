/* SPDX-License-Identifier: MIT */
/*
 * engine.h - owns the speech engine, which turns sound into English text.
 * It knows neither workers nor tasks.  One engine belongs to one thread.
 *
 * The text of a recording depends on this recording alone, not on earlier ones: see engine.c.
 */
#ifndef TRANSCRIBE_ENGINE_H
#define TRANSCRIBE_ENGINE_H

#include "sound.h"

struct engine;

/*
 * Loads the acoustic model, the language model and the dictionary below `model_dir`.
 * Returns: 0 and *ret_engine; -1 if a part is missing or broken, with the reason on stderr.
 */
int engine_open(struct engine **ret_engine, const char *model_dir);

/*
 * Recognises one recording.
 * Returns: 0 and in *ret_text the words in lower case, "" if the engine recognised none; the text
 * is valid until the next call.  -1 if the engine refuses the recording.
 */
int engine_recognise(struct engine *e, const struct sound *s, const char **ret_text);

/* Ends the engine.  e may be NULL. */
void engine_close(struct engine *e);

#endif
