/* SPDX-License-Identifier: MIT */
/* verbs.c - the table of verbs and options, and how arguments are read by it. */
#include "verbs.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_SECOND 1e9
#define FIRST_LONG 256 /* getopt's number of option 0: above all letters */

const char program_summary[] = "looks at the devices of this machine as libgpudispatch sees them";

const struct option_entry options[OPTION_COUNT] = {
    [OPTION_COMPLETION] = { "completion", 0, VALUE_NONE, NULL, "print the completion for bash" },
    [OPTION_DEVICES] = { "devices", 'd', VALUE_NEEDED, "SPEC",
                         "look at these: all (the GPUs of this machine, the default), or "
                         "fake:N[,script=FILE]" },
    [OPTION_GPU] = { "gpu", 'g', VALUE_NONE, NULL,
                     "a GPU must be there that can be used: none is a PROBLEM" },
    [OPTION_HELP] = { "help", 'h', VALUE_NONE, NULL, "print help and exit" },
    [OPTION_JSON] = { "json", 'j', VALUE_NONE, NULL, "print one JSON document, on one line" },
    [OPTION_MAN] = { "man", 0, VALUE_NONE, NULL, "print the manual page" },
    [OPTION_QUICK] = { "quick", 'q', VALUE_NONE, NULL, "look only: start no worker, run no task" },
    [OPTION_ROOT] = { "root", 0, VALUE_NEEDED, "DIR",
                      "look for the driver's files (/dev/nvidia*, /proc/driver/nvidia, "
                      "/sys/bus/pci) below DIR" },
    [OPTION_WAIT] = { "wait", 0, VALUE_NEEDED, "SECONDS",
                      "how long the driver may take to answer [10]" },
    [OPTION_WATCH] = { "watch", 'w', VALUE_OPTIONAL, "SECONDS",
                       "again and again, every so many seconds [2], until SIGINT, SIGTERM or the "
                       "reader has gone" },
};

#define HAS(option) (1u << OPTION_##option)

static const struct status_entry doctor_statuses[] = {
    { EXIT_OK, "nothing is wrong; a machine without a GPU is not wrong, unless --gpu is given" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage, or a bad SPEC" },
    { EXIT_WRONG, "something is wrong: at least one PROBLEM" },
    { 0, NULL },
};

static const struct status_entry gpus_statuses[] = {
    { EXIT_OK,
      "the question was answered, also with \"none\"; and the end of --watch by SIGINT, SIGTERM or because the reader has gone" },
    { EXIT_FAILED,
      "it could not be answered: no monitor process, or the output could not be written" },
    { EXIT_USAGE, "wrong usage, or a bad SPEC" },
    { EXIT_WRONG,
      "the driver is there and does not serve: it is hung, failed, too old, of two versions, or access is denied; or a GPU is lost, must be reset, or is QUARANTINED" },
    { 0, NULL },
};

static const struct status_entry print_statuses[] = {
    { EXIT_OK, "printed" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage" },
    { 0, NULL },
};

const struct verb verbs[] = {
    { "doctor", NULL, "tell what is here, what works, what is wrong and what to do",
      "Looks at the system, its limits, the library, the driver and each device, then runs tasks: "
      "on a CPU slot, one that succeeds, one that crashes and one that ignores its time limit; on "
      "each GPU, a task, one that is killed, the canary and a task of the successor. Each check is "
      "\"ok\", \"note\" (worth knowing) or \"PROBLEM\", with what to do.\n"
      "On each GPU a worker has a CUDA context for a moment, some hundred MB. With --quick nothing "
      "is run.",
      HAS(DEVICES) | HAS(GPU) | HAS(JSON) | HAS(QUICK) | HAS(ROOT) | HAS(WAIT), doctor_run,
      doctor_statuses },
    { "gpus", NULL, "list GPUs and MIG instances with their health and use",
      "The versions of driver and CUDA, then one row per device: how it is (with evidence where it "
      "is not HEALTHY; heat, memory errors and pending remaps in any case), how many workers of "
      "this library use it, which other processes do (pid, user, memory and command), and how old "
      "the reading is. \"-\" is what is not known; what cannot be read is UNKNOWN, never HEALTHY. "
      "CUDA_VISIBLE_DEVICES is not looked at.\n"
      "The JSON document has all fields of struct gpud_device_info and struct gpud_driver_info "
      "(device.h) under their names, null for what is not known, and times in nanoseconds of "
      "CLOCK_MONOTONIC beside \"now\"; and of each device its processes. With --watch there is one "
      "document per line.",
      HAS(DEVICES) | HAS(JSON) | HAS(WAIT) | HAS(WATCH), gpus_run, gpus_statuses },
    { "help", "VERB", "tell how the program, or one verb, is used",
      "All of it comes from one table in the program: this help, the manual page and the "
      "completion.",
      HAS(COMPLETION) | HAS(MAN), help_run, print_statuses },
    { "version", NULL, "print the versions of program and library",
      "One line: the program's version, the library's, and the number of its API.", 0, version_run,
      print_statuses },
    { 0 },
};

const struct verb *verb_find(const char *name)
{
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(v->name, name))
            return v;
    return NULL;
}

int usage(const struct verb *v, const char *format, ...)
{
    va_list args;

    fputs("gpudispatch: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry: gpudispatch help%s%s\n", v ? " " : "", v ? v->name : "");
    return EXIT_USAGE;
}

/* What getopt_long needs, of the options that this verb takes. */
static void for_getopt(const struct verb *v, struct option *longs, char *letters)
{
    static const char colons[][3] = {
        [VALUE_NONE] = "", [VALUE_NEEDED] = ":", [VALUE_OPTIONAL] = "::"
    };
    static const int has_arg[] = { [VALUE_NONE] = no_argument,
                                   [VALUE_NEEDED] = required_argument,
                                   [VALUE_OPTIONAL] = optional_argument };

    *letters++ = ':'; /* a missing value is told apart */
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_entry *o = &options[i];
        if (!verb_takes(v, i))
            continue;
        *longs++ = (struct option){ o->name, has_arg[o->value], NULL, FIRST_LONG + (int)i };
        if (o->letter) {
            *letters++ = o->letter;
            letters = stpcpy(letters, colons[o->value]);
        }
    }
    *longs = (struct option){ 0 };
    *letters = '\0';
}

static unsigned option_of(int found)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (found == FIRST_LONG + (int)i || (options[i].letter && found == options[i].letter))
            return i;
    return OPTION_COUNT;
}

static int bad_option(const struct verb *v, int found, char *const *argv)
{
    const char *word = argv[optind - 1];
    unsigned i = option_of(optopt);

    if (found == ':' && i < OPTION_COUNT)
        return usage(v, "%s: option --%s wants %s", v->name, options[i].name,
                     options[i].value_name);
    if (optopt >= FIRST_LONG && i < OPTION_COUNT)
        return usage(v, "%s: option --%s takes no value", v->name, options[i].name);
    if (optopt)
        return usage(v, "%s: there is no option -%c", v->name, optopt);
    return usage(v, "%s: there is no option %.*s, or it is the beginning of several", v->name,
                 (int)strcspn(word, "="), word);
}

/* "--watch 5" is "--watch=5": an optional value may be a word of its own when it is a number. */
static const char *number_after(int argc, char **argv)
{
    if (optind < argc && argv[optind][0] >= '0' && argv[optind][0] <= '9')
        return argv[optind++];
    return NULL;
}

int verb_parse(struct call *call, int argc, char **argv)
{
    const struct verb *v = call->verb;
    struct option longs[OPTION_COUNT + 1];
    char letters[3 * OPTION_COUNT + 2];
    int found;

    for_getopt(v, longs, letters);
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        unsigned i = option_of(found);
        if (i == OPTION_COUNT)
            return bad_option(v, found, argv);
        call->given[i] = true;
        call->value[i] = optarg;
        if (options[i].value == VALUE_OPTIONAL && !optarg)
            call->value[i] = number_after(argc, argv);
    }
    if (v->operand && optind < argc)
        call->operand = argv[optind++];
    if (optind < argc)
        return usage(v, "%s: what is '%s' for?", v->name, argv[optind]);
    return 0;
}

int seconds_read(const struct call *call, enum option_id option, double least, double most,
                 uint64_t otherwise, uint64_t *ret)
{
    const char *text = call->value[option];
    double seconds;
    char *end;

    *ret = otherwise;
    if (!text)
        return 0;
    errno = 0;
    seconds = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(seconds) || seconds < least || seconds > most)
        return usage(call->verb, "%s: --%s wants seconds from %g to %g, not '%s'", call->verb->name,
                     options[option].name, least, most, text);
    *ret = (uint64_t)(seconds * NS_PER_SECOND);
    return 0;
}
