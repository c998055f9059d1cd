/* SPDX-License-Identifier: MIT */
/*
 * order.c - tests that a text depends on its recording alone.  One engine recognises the same
 * prompts in order, another one reversed, a third one shuffled.  Engines without any earlier input
 * recognise some of them, too.  All texts of a prompt must be equal.
 *
 * Without ps_start_stream in engine.c this test fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "recordings.h"

enum { EXIT_SKIP = 77, EVERY = 3, ROUNDS = 3, FRESH = 5, TEXT_BYTES = 1024 };

/* No text begins with this character. */
static const char unseen = '?';

static const char model_dir[] = TRANSCRIBE_MODEL_DIR;
static const char sounds_dir[] = "/usr/share/asterisk/sounds/en_US_f_Allison";

struct texts {
    char (*text)[TEXT_BYTES]; /* the first text of each prompt; unseen before there is one */
    size_t n;
};

static int recognise(struct engine *e, const struct recording *rec, char *ret_text)
{
    struct sound sound;
    const char *text;
    if (sound_read_g722(&sound, rec->path) != 0)
        return -1;
    int failed = engine_recognise(e, &sound, &text);
    if (!failed)
        snprintf(ret_text, TEXT_BYTES, "%s", text);
    sound_free(&sound);
    return failed;
}

/* Compares a text with the first one of this prompt, or keeps it as the first. */
static int check(struct texts *texts, size_t i, const char *name, const char *text)
{
    if (texts->text[i][0] == unseen)
        snprintf(texts->text[i], TEXT_BYTES, "%s", text);
    if (strcmp(texts->text[i], text) == 0)
        return 0;
    fprintf(stderr, "%s: '%s' before, '%s' now\n", name, texts->text[i], text);
    return 1;
}

/* The order of one round: 0 as listed, 1 reversed, else shuffled with a fixed seed. */
static void make_order(size_t *order, size_t n, int round)
{
    uint32_t seed = 12345;
    for (size_t i = 0; i < n; i++)
        order[i] = round == 1 ? n - 1 - i : i;
    for (size_t i = n - 1; round > 1 && i > 0; i--) {
        seed = seed * 1664525u + 1013904223u;
        size_t k = (seed >> 8) % (i + 1);
        size_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* Recognises `n` prompts of the list with one engine.  Returns the number of differences. */
static int one_life(const struct recordings *list, struct texts *texts, const size_t *order,
                    size_t n)
{
    struct engine *e;
    char text[TEXT_BYTES];
    int different = 0;
    if (engine_open(&e, model_dir) != 0)
        return 1;
    for (size_t i = 0; i < n; i++) {
        const struct recording *rec = &list->items[order[i] * EVERY];
        if (recognise(e, rec, text) != 0) {
            fprintf(stderr, "%s: not recognised\n", rec->name);
            different++;
            continue;
        }
        different += check(texts, order[i], rec->name, text);
    }
    engine_close(e);
    return different;
}

static int compare_orders(const struct recordings *list, struct texts *texts)
{
    size_t *order = calloc(texts->n, sizeof *order);
    int different = 0;
    if (order == NULL)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        make_order(order, texts->n, round);
        different += one_life(list, texts, order, texts->n);
    }
    for (size_t i = 0; i < texts->n; i += FRESH)
        different += one_life(list, texts, &i, 1);
    free(order);
    return different;
}

int main(void)
{
    struct recordings list = { 0 };
    struct engine *e;
    if (recordings_add_fixed(&list, sounds_dir) != 0 || list.items[0].bytes == 0 ||
        engine_open(&e, model_dir) != 0) {
        fputs("skipped: no prompts or no model here\n", stderr);
        recordings_free(&list);
        return EXIT_SKIP;
    }
    engine_close(e);
    struct texts texts = { .n = (list.n + EVERY - 1) / EVERY };
    texts.text = calloc(texts.n, sizeof *texts.text);
    for (size_t i = 0; texts.text != NULL && i < texts.n; i++)
        texts.text[i][0] = unseen;
    int different = texts.text == NULL ? 1 : compare_orders(&list, &texts);
    printf("%zu prompts, %d orders, %d differences\n", texts.n, ROUNDS, different);
    free(texts.text);
    recordings_free(&list);
    return different != 0;
}
