/* SPDX-License-Identifier: MIT */
/*
 * verbs.h - the verbs of the program and their options: one table, from which come parsing, help,
 * man page and completion. A new verb is an entry in verbs.c, and a file with its run function.
 */
#ifndef VERBS_H
#define VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_OK 0
#define EXIT_FAILED 1 /* it could not be done: the answer is not there */
#define EXIT_USAGE 2
#define EXIT_WRONG 3  /* it was done, and something is wrong with what was looked at */

/* The options of all verbs; one means the same wherever it is. */
enum option_id {
    OPTION_COMPLETION,
    OPTION_DEVICES,
    OPTION_GPU,
    OPTION_HELP,
    OPTION_JSON,
    OPTION_MAN,
    OPTION_QUICK,
    OPTION_ROOT,
    OPTION_WAIT,
    OPTION_WATCH,
    OPTION_COUNT
};

enum value { VALUE_NONE, VALUE_NEEDED, VALUE_OPTIONAL };

struct option_entry {
    const char *name;
    char letter; /* 0 = none */
    enum value value;
    const char *value_name;
    const char *help;
};

/* What the user said. */
struct call {
    const struct verb *verb;
    bool given[OPTION_COUNT];
    const char *value[OPTION_COUNT]; /* NULL where none was said */
    const char *operand;             /* NULL = none */
    char **argv;                     /* of the program */
};

struct status_entry {
    int status;
    const char *meaning;
};

struct verb {
    const char *name;
    const char *operand; /* what may follow, as it is shown; NULL = nothing */
    const char *summary; /* one line */
    const char *text;    /* paragraphs, one line each */
    unsigned options;    /* bits by option_id; help is always there */
    int (*run)(const struct call *call); /* returns the exit status */
    const struct status_entry *statuses; /* until the meaning is NULL */
};

extern const struct option_entry options[OPTION_COUNT];
extern const struct verb verbs[]; /* until the name is NULL */
extern const char program_summary[];

static inline bool verb_takes(const struct verb *v, unsigned option)
{
    return option == OPTION_HELP || (v->options & 1u << option);
}

const struct verb *verb_find(const char *name); /* NULL: none */

/* Reads the arguments after the verb's name.  0, or EXIT_USAGE after saying what is wrong. */
int verb_parse(struct call *call, int argc, char **argv);

/* Says what is wrong with the arguments, and where help is.  Returns EXIT_USAGE. */
int usage(const struct verb *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads SECONDS of an option as nanoseconds: `otherwise` where none were said. 0, or EXIT_USAGE
 * after saying why. */
int seconds_read(const struct call *call, enum option_id option, double least, double most,
                 uint64_t otherwise, uint64_t *ret);

/* The verbs. */
int doctor_run(const struct call *call);
int gpus_run(const struct call *call);
int help_run(const struct call *call);
int version_run(const struct call *call);

void help_program(void);
void help_verb(const struct verb *v);

#endif
