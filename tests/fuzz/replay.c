/* SPDX-License-Identifier: MIT */
/*
 * replay.c - a fuzz target as a unit test, with any compiler: its corpus, and pseudo-random inputs
 * made of noise and of changed corpus files.  tests/fuzz/fuzz.sh lets a real fuzzer look further;
 * what it finds becomes a file of the corpus.
 */
#include "harness.h"

#include "fuzz.h"

#include <dirent.h>

#ifndef T_CORPUS
#error "T_CORPUS names the folder of this target's corpus"
#endif

#ifndef T_INPUTS
#define T_INPUTS 100000
#endif

enum { INPUTS = T_INPUTS, FILES = 256, LONGEST = 4096 };

struct input {
    uint8_t bytes[LONGEST];
    size_t size;
};

static struct input *corpus;
static size_t files;

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void read_file(const char *name)
{
    char path[4096];
    FILE *in;

    (void)snprintf(path, sizeof(path), "%s/%s", T_CORPUS, name);
    in = fopen(path, "re");
    if (!in)
        T_FAIL("cannot read %s", path);
    T_CMP(files, <, FILES);
    corpus[files].size = fread(corpus[files].bytes, 1, LONGEST, in);
    files++;
    (void)fclose(in);
}

static void read_corpus(void)
{
    struct dirent *entry;
    DIR *dir = opendir(T_CORPUS);

    if (!dir)
        T_FAIL("no corpus %s", T_CORPUS);
    corpus = calloc(FILES, sizeof(*corpus));
    T_CHECK(corpus);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            read_file(entry->d_name);
    (void)closedir(dir);
    T_CMP(files, >, 0);
}

/* Every file, and every beginning of it: truncated input is the commonest bad one. */
T_CASE(corpus)
{
    read_corpus();
    for (size_t i = 0; i < files; i++)
        for (size_t n = 0; n <= corpus[i].size; n++)
            (void)LLVMFuzzerTestOneInput(corpus[i].bytes, n);
    printf("%zu files\n", files);
    free(corpus);
}

static void change(struct input *in, uint64_t *seed)
{
    static const uint8_t edges[] = { 0, 1, 2, 0x7f, 0x80, 0xff, ',', '/', ':', '0', '9' };
    size_t at = in->size ? draw(seed) % in->size : 0, n;

    switch (draw(seed) % 6) {
    case 0:
        in->bytes[at] = (uint8_t)draw(seed);
        break;
    case 1:
        in->bytes[at] ^= (uint8_t)(1u << draw(seed) % 8);
        break;
    case 2:
        in->bytes[at] = edges[draw(seed) % sizeof(edges)];
        break;
    case 3:
        in->size = at;
        break;
    case 4: /* a piece doubled */
        n = in->size - at;
        if (in->size + n <= LONGEST)
            memmove(in->bytes + in->size, in->bytes + at, n), in->size += n;
        break;
    default: /* a word of zeros, ones or edges */
        for (n = 0; n < 8 && at + n < in->size; n++)
            in->bytes[at + n] = edges[draw(seed) % 6];
        break;
    }
}

T_LONG_CASE(random, 120)
{
    static struct input in;
    uint64_t seed = 0x9e3779b97f4a7c15U;

    read_corpus();
    for (unsigned i = 0; i < t_rounds(INPUTS / 4, INPUTS); i++) {
        if (i % 4 == 0) {
            in.size = draw(&seed) % 512;
            for (size_t n = 0; n < in.size; n++)
                in.bytes[n] = (uint8_t)draw(&seed);
        } else {
            in = corpus[draw(&seed) % files];
            for (uint64_t n = 1 + draw(&seed) % 4; n > 0; n--)
                change(&in, &seed);
        }
        (void)LLVMFuzzerTestOneInput(in.bytes, in.size);
    }
    free(corpus);
}
