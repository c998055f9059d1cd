/* SPDX-License-Identifier: MIT */
/*
 * settings.c - owns the names, defaults and descriptions of the options.
 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef SPECTROGRAM_SOUNDS_DIR
#define SPECTROGRAM_SOUNDS_DIR "/usr/share/asterisk/sounds/en_US_f_Allison"
#endif

/* A frame has 32 ms at the prompts' 16 kHz, and four frames cover each moment. */
enum { SIZE_DEFAULT = 512, OVERLAP = 4, LIMIT_DEFAULT_S = 60, LIMIT_MAX_S = 86400 };

#define NS_PER_SECOND 1000000000ull

static const char help[] =
    "Usage: spectrogram [OPTION]... [FILE]...\n"
    "Makes a picture of each recording: time from left to right, frequency from bottom to top,\n"
    "strength as brightness; on GPUs with cuFFT, elsewhere on processors.\n"
    "\n"
    "FILE is WAVE (PCM, 16 bits) or raw G.722 (.g722). Without FILE: the 60 prompts of the demo, "
    "of the\n"
    "package asterisk-core-sounds-en-g722.\n"
    "\n"
    "  --devices LIST   devices, such as \"0\", \"all/2\" or \"cpu:4\" [all GPUs; where there is "
    "none,\n"
    "                   one cpu slot per processor]\n"
    "  --out DIR        where NAME.pgm is written; is made when it is missing [.]\n"
    "  --size N         samples in a frame: a power of two from 64 to 8192 [512]\n"
    "  --hop N          samples from one frame to the next, 1 to the size [a quarter of it]\n"
    "  --sounds DIR     folder of the prompts [" SPECTROGRAM_SOUNDS_DIR "]\n"
    "  --limit SECONDS  time limit of one file [60]\n"
    "  --compare        compute up to 512 frames of each file again, by the definition and in\n"
    "                   double precision, and print the largest relative error\n"
    "  --help           this text\n"
    "\n"
    "stdout has one line per file; stderr has failures and a summary.\n"
    "Ctrl-C lets running files end and cancels the rest; a second Ctrl-C cancels all.\n"
    "Exit status: 0 all pictures written (and, with --compare, right), 1 not all, 2 wrong usage,\n"
    "130 interrupted.\n";

enum option_id {
    OPT_DEVICES = 256,
    OPT_OUT,
    OPT_SIZE,
    OPT_HOP,
    OPT_SOUNDS,
    OPT_LIMIT,
    OPT_COMPARE
};

static const struct option long_options[] = {
    { "devices", required_argument, NULL, OPT_DEVICES },
    { "out", required_argument, NULL, OPT_OUT },
    { "size", required_argument, NULL, OPT_SIZE },
    { "hop", required_argument, NULL, OPT_HOP },
    { "sounds", required_argument, NULL, OPT_SOUNDS },
    { "limit", required_argument, NULL, OPT_LIMIT },
    { "compare", no_argument, NULL, OPT_COMPARE },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

/* Reads a whole number in a range.  Returns: 0 and *ret_value, or 2 after an error message. */
static int read_number(const char *option, const char *text, unsigned long min, unsigned long max,
                       unsigned long *ret_value)
{
    char *rest;
    errno = 0;
    unsigned long value = strtoul(text, &rest, 10);
    if (text[0] < '0' || text[0] > '9' || *rest != '\0' || errno != 0 || value < min ||
        value > max) {
        fprintf(stderr, "spectrogram: %s wants a whole number from %lu to %lu, not '%s'\n", option,
                min, max, text);
        return 2;
    }
    *ret_value = value;
    return 0;
}

static int read_size(struct settings *s, const char *text)
{
    unsigned long n = 0;
    if (read_number("--size", text, SIZE_MIN, 1ul << SIZE_MAX_LOG, &n) != 0)
        return 2;
    if ((n & (n - 1)) != 0) {
        fprintf(stderr, "spectrogram: --size wants a power of two, not %lu\n", n);
        return 2;
    }
    s->cut.size = (uint32_t)n;
    return 0;
}

static int take_option(struct settings *s, int id, const char *value)
{
    unsigned long number = 0;
    switch (id) {
    case OPT_DEVICES:
        s->devices = value;
        return 0;
    case OPT_OUT:
        s->out_dir = value;
        return 0;
    case OPT_SIZE:
        return read_size(s, value);
    case OPT_HOP:
        if (read_number("--hop", value, 1, 1ul << SIZE_MAX_LOG, &number) != 0)
            return 2;
        s->cut.hop = (uint32_t)number;
        return 0;
    case OPT_SOUNDS:
        s->sounds_dir = value;
        return 0;
    case OPT_LIMIT:
        if (read_number("--limit", value, 1, LIMIT_MAX_S, &number) != 0)
            return 2;
        s->limit = number * NS_PER_SECOND;
        return 0;
    case OPT_COMPARE:
        s->compare = 1;
        return 0;
    case 'h':
        fputs(help, stdout);
        return 1;
    default: /* getopt_long has printed the error */
        fputs("Try spectrogram --help.\n", stderr);
        return 2;
    }
}

int settings_read(struct settings *ret_settings, int argc, char **argv)
{
    struct settings s = {
        .out_dir = ".",
        .sounds_dir = SPECTROGRAM_SOUNDS_DIR,
        .limit = LIMIT_DEFAULT_S * NS_PER_SECOND,
        .cut.size = SIZE_DEFAULT,
    };
    int id;
    while ((id = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        int done = take_option(&s, id, optarg);
        if (done != 0)
            return done;
    }
    if (s.cut.hop == 0)
        s.cut.hop = s.cut.size / OVERLAP;
    if (s.cut.hop > s.cut.size) {
        fprintf(stderr,
                "spectrogram: --hop %u is more than a frame of %u samples: some would be in none\n",
                (unsigned)s.cut.hop, (unsigned)s.cut.size);
        return 2;
    }
    s.files = argv + optind;
    s.n_files = argc - optind;
    *ret_settings = s;
    return 0;
}
