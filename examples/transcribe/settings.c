/* SPDX-License-Identifier: MIT */
/*
 * settings.c - owns the names, defaults and descriptions of the options.
 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

/* The folders of the Debian packages; the build may define different ones. */
#ifndef TRANSCRIBE_MODEL_DIR
#define TRANSCRIBE_MODEL_DIR "/usr/share/pocketsphinx/model"
#endif
#ifndef TRANSCRIBE_SOUNDS_DIR
#define TRANSCRIBE_SOUNDS_DIR "/usr/share/asterisk/sounds/en_US_f_Allison"
#endif

/* A prompt takes 1 s, the longest of the package about 10 s, on a slow machine a minute. */
enum { LIMIT_DEFAULT_S = 120, LIMIT_MAX_S = 86400 };

#define NS_PER_SECOND 1000000000ull

static const char help[] =
    "Usage: transcribe [OPTION]... [FILE]...\n"
    "Turns G.722 recordings (64 kbit/s, 16 kHz) of spoken English into text, with one\n"
    "speech engine in each worker process.\n"
    "\n"
    "Without FILE: 60 fixed prompts of the package asterisk-core-sounds-en-g722.\n"
    "\n"
    "  --all            every .g722 file below the folder of the prompts instead\n"
    "  --sounds DIR     folder of the prompts [" TRANSCRIBE_SOUNDS_DIR "]\n"
    "  --model DIR      folder of the speech model [" TRANSCRIBE_MODEL_DIR "]\n"
    "  --workers N      worker processes, 1 to 64 [one per processor]; each takes about 100 MB\n"
    "  --limit SECONDS  time limit of one file [120]\n"
    "  --json FILE      one JSON object per file, then one summary; - is stdout, in place\n"
    "                   of the text\n"
    "  --kill-one       kill a busy worker mid-run, to show the retry and the restart\n"
    "  --help           this text\n"
    "\n"
    "stdout has one line per file, NAME: TEXT; stderr has progress and the summary.\n"
    "Ctrl-C lets running files end and cancels the rest; a second Ctrl-C cancels all.\n"
    "Exit status: 0 all files SUCCESS, 1 not all, 2 wrong usage, 130 interrupted.\n";

enum option_id {
    OPT_ALL = 256,
    OPT_SOUNDS,
    OPT_MODEL,
    OPT_WORKERS,
    OPT_LIMIT,
    OPT_JSON,
    OPT_KILL_ONE
};

static const struct option long_options[] = {
    { "all", no_argument, NULL, OPT_ALL },
    { "sounds", required_argument, NULL, OPT_SOUNDS },
    { "model", required_argument, NULL, OPT_MODEL },
    { "workers", required_argument, NULL, OPT_WORKERS },
    { "limit", required_argument, NULL, OPT_LIMIT },
    { "json", required_argument, NULL, OPT_JSON },
    { "kill-one", no_argument, NULL, OPT_KILL_ONE },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static int complain(const char *what)
{
    fprintf(stderr, "transcribe: %s\nTry transcribe --help.\n", what);
    return 2;
}

/* Reads a whole number in a range.  Returns: 0 and *ret_value, or 2 after an error message. */
static int read_number(const char *option, const char *text, unsigned long max,
                       unsigned long *ret_value)
{
    char *rest;
    errno = 0;
    unsigned long value = strtoul(text, &rest, 10);
    if (text[0] < '0' || text[0] > '9' || *rest != '\0' || errno != 0 || value < 1 || value > max) {
        fprintf(stderr, "transcribe: %s wants a whole number from 1 to %lu, not '%s'\n", option,
                max, text);
        return 2;
    }
    *ret_value = value;
    return 0;
}

static uint32_t processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1)
        return 1;
    return n > WORKERS_MAX ? WORKERS_MAX : (uint32_t)n;
}

static int take_option(struct settings *s, int id, const char *value)
{
    unsigned long number = 0;
    switch (id) {
    case OPT_ALL:
        s->all = 1;
        return 0;
    case OPT_SOUNDS:
        s->sounds_dir = value;
        return 0;
    case OPT_MODEL:
        s->model_dir = value;
        return 0;
    case OPT_WORKERS:
        if (read_number("--workers", value, WORKERS_MAX, &number) != 0)
            return 2;
        s->workers = (uint32_t)number;
        return 0;
    case OPT_LIMIT:
        if (read_number("--limit", value, LIMIT_MAX_S, &number) != 0)
            return 2;
        s->limit = number * NS_PER_SECOND;
        return 0;
    case OPT_JSON:
        s->json_path = value;
        return 0;
    case OPT_KILL_ONE:
        s->kill_one = 1;
        return 0;
    case 'h':
        fputs(help, stdout);
        return 1;
    default: /* getopt_long has printed the error */
        fputs("Try transcribe --help.\n", stderr);
        return 2;
    }
}

int settings_read(struct settings *ret_settings, int argc, char **argv)
{
    struct settings s = {
        .sounds_dir = TRANSCRIBE_SOUNDS_DIR,
        .model_dir = TRANSCRIBE_MODEL_DIR,
        .workers = processors(),
        .limit = LIMIT_DEFAULT_S * NS_PER_SECOND,
    };
    int id;
    while ((id = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        int done = take_option(&s, id, optarg);
        if (done != 0)
            return done;
    }
    s.files = argv + optind;
    s.n_files = argc - optind;
    if (s.all && s.n_files > 0)
        return complain("--all and FILE cannot be given together");
    *ret_settings = s;
    return 0;
}
