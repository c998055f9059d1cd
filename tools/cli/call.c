/* SPDX-License-Identifier: MIT */
/* call.c - reads the arguments of a verb. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/near.h"
#include "tools/cli/verb.h"

#define NS_PER_SECOND 1e9
#define FIRST_LONG 256 /* getopt's number of option 0: above all letters */

const struct verb *verb_find(const char *name)
{
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(v->name, name))
            return v;
    return NULL;
}

void verb_options(const struct verb *v, void (*fn)(enum option_id option, void *user), void *user)
{
    for (const unsigned char *id = v->options; *id != OPTION_END; id++)
        fn((enum option_id) * id, user);
    fn(OPTION_HELP, user);
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

/* Words of other programs, and the verbs that stand in their place. */
static const struct {
    const char *word, *verbs;
} others[] = {
    { "jobs", "ls" },           { "kill", "cancel" },
    { "list", "ls" },           { "queue", "ls" },
    { "start", "agent start" }, { "status", "ls or agent status" },
    { "rm", "cancel" },         { "stop", "cancel or agent stop" },
};

int verb_unknown(const struct verb *v, const char *name)
{
    struct near near = { .word = name };
    char text[200];

    for (const struct verb *known = verbs; known->name; known++)
        near_add(&near, known->name);
    near_text(&near, "", text, sizeof text);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(others[i].word, name))
            snprintf(text, sizeof text, ": did you mean %s?", others[i].verbs);
    return usage(v, "%s%sunknown verb '%s'%s", v ? v->name : "", v ? ": " : "", name, text);
}

/* What getopt_long needs. */
struct wanted {
    struct option longs[OPTION_COUNT + 1], *end;
    char letters[3 * OPTION_COUNT + 3], *letter;
};

static void want(enum option_id id, void *user)
{
    static const char colons[][3] = {
        [VALUE_NONE] = "", [VALUE_NEEDED] = ":", [VALUE_OPTIONAL] = "::"
    };
    static const int has_arg[] = { [VALUE_NONE] = no_argument,
                                   [VALUE_NEEDED] = required_argument,
                                   [VALUE_OPTIONAL] = optional_argument };
    const struct option_entry *o = &options[id];
    struct wanted *w = user;

    *w->end++ = (struct option){ o->name, has_arg[o->value], NULL, FIRST_LONG + (int)id };
    if (o->letter) {
        *w->letter++ = o->letter;
        w->letter = stpcpy(w->letter, colons[o->value]);
    }
}

/* Operands in their places ('-'), so that those behind "--" are told apart; and a missing value is
 * told from an unknown option (':'). */
static void want_options(const struct verb *v, struct wanted *w)
{
    *w = (struct wanted){ .end = w->longs, .letters = "-:", .letter = w->letters + 2 };
    verb_options(v, want, w);
    *w->letter = '\0';
}

struct letter {
    int found;
    enum option_id option;
};

static void has_letter(enum option_id id, void *user)
{
    struct letter *l = user;

    if (l->found == FIRST_LONG + (int)id || (options[id].letter && l->found == options[id].letter))
        l->option = id;
}

/* Letters are those of this verb.  OPTION_END: none. */
static enum option_id option_of(const struct verb *v, int found)
{
    struct letter l = { found, OPTION_END };

    verb_options(v, has_letter, &l);
    return l.option;
}

/* The name in --NAME or --NAME=VALUE; a name that is cut short is another one. */
struct name {
    const char *text;
    size_t length;
    bool known;
};

static void has_name(enum option_id id, void *user)
{
    struct name *name = user;

    if (strlen(options[id].name) == name->length &&
        strncmp(options[id].name, name->text, name->length) == 0)
        name->known = true;
}

static void add_near(enum option_id id, void *user)
{
    near_add(user, options[id].name);
}

static int unknown_option(const struct verb *v, const struct name *name)
{
    char word[64], text[200];
    struct near near = { .word = word };

    snprintf(word, sizeof word, "%.*s", (int)(name->length < 63 ? name->length : 63), name->text);
    verb_options(v, add_near, &near);
    near_text(&near, "--", text, sizeof text);
    for (const struct verb *other = verbs; other->name && !*text; other++) {
        struct name same = { name->text, name->length, false };
        verb_options(other, has_name, &same);
        if (same.known)
            snprintf(text, sizeof text, ": it is an option of %s", other->name);
    }
    return usage(v, "%s: unknown option --%.*s%s", v->name, (int)name->length, name->text, text);
}

/* Whether the word is no option of the verb, though getopt_long may take it for the beginning of
 * one: with a further option the same word would mean another one. */
static bool is_unknown(const struct verb *v, const char *word, struct name *ret)
{
    *ret = (struct name){ .text = word + 2 };
    if (strncmp(word, "--", 2) != 0)
        return false;
    ret->length = strcspn(ret->text, "=");
    verb_options(v, has_name, ret);
    return !ret->known;
}

static int bad_option(const struct verb *v, int found)
{
    enum option_id i = option_of(v, optopt);

    if (found == ':' && i != OPTION_END)
        return usage(v, "%s: option --%s needs a value, %s", v->name, options[i].name,
                     options[i].value_name);
    if (optopt >= FIRST_LONG && i != OPTION_END)
        return usage(v, "%s: option --%s takes no value", v->name, options[i].name);
    return usage(v, "%s: unknown option -%c", v->name, optopt);
}

/* "--watch 5" is "--watch=5": an optional value may be a word of its own when it is a number. */
static const char *number_after(int argc, char **argv)
{
    if (optind < argc && argv[optind][0] >= '0' && argv[optind][0] <= '9')
        return argv[optind++];
    return NULL;
}

/* One for each word, or for each letter of a word such as -aj. */
static size_t options_most(int argc, char **argv)
{
    size_t n = 1;

    for (int i = 1; i < argc; i++)
        n += argv[i][0] == '-' && argv[i][1] != '-' ? strlen(argv[i]) : 1;
    return n;
}

static int read_options(struct call *call, int argc, char **argv)
{
    struct wanted w;
    struct name name;
    int found, at = optind; /* of the word that is read next */

    want_options(call->verb, &w);
    opterr = 0;
    for (; (found = getopt_long(argc, argv, w.letters, w.longs, NULL)) != -1; at = optind) {
        enum option_id i = option_of(call->verb, found);
        if (found == 1) {
            call->operand[call->operands++] = optarg;
            continue;
        }
        if (is_unknown(call->verb, argv[at], &name))
            return unknown_option(call->verb, &name);
        if (i == OPTION_END)
            return bad_option(call->verb, found);
        call->given[i] = true;
        call->value[i] = optarg;
        if (options[i].value == VALUE_OPTIONAL && !optarg)
            call->value[i] = number_after(argc, argv);
        call->said[call->n_said++] = (struct said){ i, call->value[i] };
    }
    return 0;
}

int call_read(struct call *call, int argc, char **argv)
{
    const struct verb *v = call->verb;
    size_t most = v->most == OPERANDS_ANY ? (size_t)argc : v->most;

    call->operand = calloc((size_t)argc + 1, sizeof *call->operand);
    call->said = calloc(options_most(argc, argv), sizeof *call->said);
    if (!call->operand || !call->said)
        return usage(v, "%s: no memory", v->name);
    if (read_options(call, argc, argv))
        return EXIT_USAGE;
    if (call->given[OPTION_HELP])
        return 0;
    if (optind <= argc && !strcmp(argv[optind - 1], "--") && v->command)
        call->command = argv + optind;
    else
        while (optind < argc)
            call->operand[call->operands++] = argv[optind++];
    if (call->operands > most)
        return usage(v, "%s: unexpected argument '%s'%s", v->name, call->operand[most],
                     v->command ? " (a command stands behind --)" : "");
    if (call->operands < v->least)
        return usage(v, "%s: expected %s", v->name, v->operands);
    return 0;
}

void call_free(struct call *call)
{
    free(call->operand);
    free(call->said);
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
