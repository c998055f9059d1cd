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

const char program_summary[] =
    "lists and checks the devices of this machine as libgpudispatch sees them";

const struct option_entry options[OPTION_COUNT] = {
    [OPTION_COMPLETION] = { "completion", 0, VALUE_NONE, NULL, "print the bash completion" },
    [OPTION_DEVICES] = { "devices", 'd', VALUE_NEEDED, "SPEC",
                         "examine these: all (the GPUs of this machine, the default), or "
                         "fake:N[,script=FILE]" },
    [OPTION_GPU] = { "gpu", 'g', VALUE_NONE, NULL,
                     "require a usable GPU: it is a PROBLEM if there is none" },
    [OPTION_HELP] = { "help", 'h', VALUE_NONE, NULL, "print help and exit" },
    [OPTION_JSON] = { "json", 'j', VALUE_NONE, NULL, "print one JSON document, on one line" },
    [OPTION_MAN] = { "man", 0, VALUE_NONE, NULL, "print the manual page" },
    [OPTION_QUICK] = { "quick", 'q', VALUE_NONE, NULL, "start no worker and run no task" },
    [OPTION_ROOT] = { "root", 0, VALUE_NEEDED, "DIR",
                      "read the driver's files (/dev/nvidia*, /proc/driver/nvidia, /sys/bus/pci) "
                      "below DIR" },
    [OPTION_WAIT] = { "wait", 0, VALUE_NEEDED, "SECONDS",
                      "how long to wait for the driver's reply [10]" },
    [OPTION_WATCH] = { "watch", 'w', VALUE_OPTIONAL, "SECONDS",
                       "repeat after this time [2], until SIGINT, SIGTERM or the reader has "
                       "closed the output" },
};

#define HAS(option) (1u << OPTION_##option)

static const struct status_entry doctor_statuses[] = {
    { EXIT_OK, "no PROBLEM; a missing GPU is a PROBLEM only with --gpu" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage, or an invalid SPEC" },
    { EXIT_WRONG, "at least one PROBLEM" },
    { 0, NULL },
};

static const struct status_entry gpus_statuses[] = {
    { EXIT_OK,
      "the devices were listed, or there are none; with --watch: SIGINT, SIGTERM or the reader "
      "ended it" },
    { EXIT_FAILED,
      "the devices could not be listed: no monitor process, or the output could not be written" },
    { EXIT_USAGE, "wrong usage, or an invalid SPEC" },
    { EXIT_WRONG,
      "the driver is installed but does not work: it is hung, failed, too old, of two versions, or "
      "denies access; or a GPU is lost, must be reset, or is QUARANTINED" },
    { 0, NULL },
};

static const struct status_entry print_statuses[] = {
    { EXIT_OK, "printed" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage" },
    { 0, NULL },
};

const struct verb verbs[] = {
    { "doctor", NULL, "check system, limits, driver, devices and tasks, and name remedies",
      "Checks the system, its limits, the library, the driver and each device, then runs tasks. On "
      "a CPU slot: one that succeeds, one that crashes and one that ignores its time limit. On "
      "each GPU: a task, one that is killed, the canary and a task of the successor. Each check is "
      "\"ok\", \"note\" (worth knowing) or \"PROBLEM\", and names a remedy.\n"
      "On each GPU a worker has a CUDA context for a moment, which takes some hundred MB. With "
      "--quick no task runs.",
      HAS(DEVICES) | HAS(GPU) | HAS(JSON) | HAS(QUICK) | HAS(ROOT) | HAS(WAIT), doctor_run,
      doctor_statuses },
    { "gpus", NULL, "list GPUs and MIG instances with their health and use",
      "Prints the versions of driver and CUDA, then one row per device: its health (with evidence "
      "unless it is HEALTHY; heat, memory errors and pending remaps always), how many workers of "
      "this library use it, which other processes do (pid, user, memory and command), and the age "
      "of the reading. \"-\" marks an unknown value. A device that cannot be read is UNKNOWN, "
      "never HEALTHY. CUDA_VISIBLE_DEVICES has no effect.\n"
      "The JSON document has all fields of struct gpud_device_info and struct gpud_driver_info "
      "(device.h) under their names, but those about the use by a dispatcher (from state on), "
      "null for unknown values, and times in nanoseconds of CLOCK_MONOTONIC beside \"now\". Each "
      "device has the list of its processes. With --watch there is one document per line.",
      HAS(DEVICES) | HAS(JSON) | HAS(WAIT) | HAS(WATCH), gpus_run, gpus_statuses },
    { "help", "VERB", "explain the program, or one verb",
      "Help, manual page and completion come from one table in the program.",
      HAS(COMPLETION) | HAS(MAN), help_run, print_statuses },
    { "version", NULL, "print the versions of program and library",
      "Prints one line: the version of the program, that of the library, and its API number.", 0,
      version_run, print_statuses },
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
        return usage(v, "%s: option --%s needs a value, %s", v->name, options[i].name,
                     options[i].value_name);
    if (optopt >= FIRST_LONG && i < OPTION_COUNT)
        return usage(v, "%s: option --%s takes no value", v->name, options[i].name);
    if (optopt)
        return usage(v, "%s: unknown option -%c", v->name, optopt);
    return usage(v, "%s: unknown or ambiguous option %.*s", v->name, (int)strcspn(word, "="), word);
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
        return usage(v, "%s: unexpected argument '%s'", v->name, argv[optind]);
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
        return usage(call->verb, "%s: --%s is '%s', expected %g to %g seconds", call->verb->name,
                     options[option].name, text, least, most);
    *ret = (uint64_t)(seconds * NS_PER_SECOND);
    return 0;
}
