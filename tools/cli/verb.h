/* SPDX-License-Identifier: MIT */
/*
 * verb.h - what a verb is, and how its arguments are read.  The program has a table of its verbs,
 * from which come parsing, help, manual page and completion.
 */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include <stddef.h>
#include <stdint.h>

#include "tools/cli/options.h"

#define EXIT_OK 0
#define EXIT_FAILED 1 /* it could not be done: the answer is not there */
#define EXIT_USAGE 2
#define EXIT_WRONG 3   /* it was done, and something is wrong with what was looked at */
#define EXIT_NONE 4    /* no agent, or no such task */
#define EXIT_TIMEOUT 5 /* --timeout is over */
#define EXIT_REFUSED 6
#define EXIT_UNUSABLE 75 /* the state directory */

/* What the user said. */
struct call {
    const struct verb *verb;
    bool given[OPTION_COUNT];
    const char *value[OPTION_COUNT]; /* the last one; NULL where none was said */
    struct said {
        enum option_id option;
        const char *value;
    } * said; /* all of them, in their order */
    size_t n_said;
    char **operand; /* ends with NULL */
    size_t operands;
    char **command; /* behind "--", ends with NULL; NULL without "--" */
    char **argv;    /* of the program */
};

struct status_entry {
    int status;
    const char *meaning;
};

#define OPERANDS_ANY 255u

struct verb {
    const char *name;
    const char *operands; /* as they are shown; NULL = none */
    unsigned char least, most;
    bool command;                        /* a command may follow "--" */
    const char *summary;                 /* one line */
    const char *text;                    /* paragraphs, one line each */
    const unsigned char *options;        /* ids, until OPTION_END; help is always there */
    int (*run)(const struct call *call); /* returns the exit status */
    const struct status_entry *statuses; /* until the meaning is NULL */
};

/* Of the program. */
extern const struct verb verbs[]; /* until the name is NULL */
extern const char program_summary[];

const struct verb *verb_find(const char *name); /* NULL: none */
/* Says that there is none of this name.  Returns EXIT_USAGE. */
int verb_unknown(const struct verb *v, const char *name);

/* Calls fn for each option that the verb takes, in the order of its list. */
void verb_options(const struct verb *v, void (*fn)(enum option_id option, void *user), void *user);

/* Reads the arguments after the verb's name.  0, or EXIT_USAGE after saying what is wrong; the
 * caller frees in both cases. */
int call_read(struct call *call, int argc, char **argv);
void call_free(struct call *call);

/* Says what is wrong with the arguments, and where help is.  Returns EXIT_USAGE. */
int usage(const struct verb *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads SECONDS of an option as nanoseconds: `otherwise` where none were said. 0, or EXIT_USAGE
 * after saying why. */
int seconds_read(const struct call *call, enum option_id option, double least, double most,
                 uint64_t otherwise, uint64_t *ret);

int help_run(const struct call *call);
int version_run(const struct call *call);
void help_verb(const struct verb *v);

#endif
