/* SPDX-License-Identifier: MIT */
/*
 * engine.c - owns all calls of PocketSphinx.
 *
 * A speech engine adapts to its input: to the channel (cepstral mean) and to the noise floor.
 * That is right for one caller on one line.  It is wrong for a queue of unrelated files, because a
 * text would then depend on the files that the same worker had before.  So here each recording is
 * a stream and an utterance of its own:
 *   - `-cmn batch` and one call with the whole recording: the engine takes the mean over this
 *     recording only;
 *   - ps_start_stream: the noise estimate starts anew.
 */
#include "engine.h"

#include <pocketsphinx.h>
#include <sphinxbase/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096 };

struct engine {
    ps_decoder_t *decoder;
    cmd_ln_t *config;
};

/* Prints only errors: PocketSphinx logs about 200 lines while it loads. */
static void log_line(void *user, err_lvl_t level, const char *format, ...)
{
    (void)user;
    if (level < ERR_ERROR)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

static cmd_ln_t *make_config(const char *model_dir)
{
    char hmm[PATH_BYTES], lm[PATH_BYTES], dict[PATH_BYTES];
    int n1 = snprintf(hmm, sizeof hmm, "%s/en-us/en-us", model_dir);
    int n2 = snprintf(lm, sizeof lm, "%s/en-us/en-us.lm.bin", model_dir);
    int n3 = snprintf(dict, sizeof dict, "%s/en-us/cmudict-en-us.dict", model_dir);
    if (n1 >= PATH_BYTES || n2 >= PATH_BYTES || n3 >= PATH_BYTES)
        return NULL;
    return cmd_ln_init(NULL, ps_args(), TRUE, "-hmm", hmm, "-lm", lm, "-dict", dict,
                       "-cmn", "batch", "-samprate", "16000", NULL);
}

int engine_open(struct engine **ret_engine, const char *model_dir)
{
    err_set_logfp(NULL); /* otherwise it prints its settings without the callback */
    err_set_callback(log_line, NULL);
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return -1;
    e->config = make_config(model_dir);
    if (e->config == NULL)
        goto fail;
    e->decoder = ps_init(e->config);
    if (e->decoder == NULL)
        goto fail;
    *ret_engine = e;
    return 0;
fail:
    engine_close(e);
    return -1;
}

int engine_recognise(struct engine *e, const struct sound *s, const char **ret_text)
{
    int32 score = 0;
    if (ps_start_stream(e->decoder) < 0 || ps_start_utt(e->decoder) < 0)
        return -1;
    int heard = ps_process_raw(e->decoder, s->samples, s->n, FALSE, TRUE);
    int ended = ps_end_utt(e->decoder);
    if (heard < 0 || ended < 0)
        return -1;
    const char *text = ps_get_hyp(e->decoder, &score);
    *ret_text = text != NULL ? text : "";
    return 0;
}

void engine_close(struct engine *e)
{
    if (e == NULL)
        return;
    if (e->decoder != NULL)
        ps_free(e->decoder);
    if (e->config != NULL)
        cmd_ln_free_r(e->config);
    free(e);
}
