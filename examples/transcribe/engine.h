/* SPDX-License-Identifier: MIT */
/*
 * engine.h - owns the speech engine: sound goes in, English text comes out.
 * Knows nothing of workers or tasks; one engine belongs to one thread.
 *
 * The text of a recording depends on the recording alone, not on what the engine heard
 * before: engine.c says how.
 */
#ifndef TRANSCRIBE_ENGINE_H
#define TRANSCRIBE_ENGINE_H

#include "sound.h"

struct engine;

/*
 * Loads the acoustic model, the language model and the dictionary below `model_dir`.
 * Returns: 0 and *ret_engine; -1 when something is missing or broken, the reason has
 * been written to stderr.
 */
int engine_open(struct engine **ret_engine, const char *model_dir);

/*
 * Recognises one recording.
 * Returns: 0 and in *ret_text what was said, lower case, "" when nothing was
 * understood, valid until the next call; -1 when the engine refuses.
 */
int engine_recognise(struct engine *e, const struct sound *s, const char **ret_text);

/* Ends the engine.  NULL is fine. */
void engine_close(struct engine *e);

#endif
