/* SPDX-License-Identifier: MIT */
/* help.c - what the table of verbs says, as help, as manual page and as completion; and the
 * version. */
#include <stdio.h>
#include <string.h>

#include <gpudispatch/version.h>

#include "verbs.h"

#define WIDTH 80
#define COLUMN 22 /* where the words about an option begin */

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define PROGRAM_VERSION \
    TEXT(GPUD_VERSION_MAJOR) "." TEXT(GPUD_VERSION_MINOR) "." TEXT(GPUD_VERSION_PATCH)

/* Prints one paragraph in lines of at most WIDTH, from `column` on; the cursor is at `at`. */
static void wrapped(const char *text, size_t length, int at, int column)
{
    const char *end = text + length;

    while (text < end) {
        size_t word = strcspn(text, " \n");
        if (word > (size_t)(end - text))
            word = (size_t)(end - text);
        if (at > column && at + 1 + (int)word > WIDTH) {
            putchar('\n');
            at = 0;
        }
        if (at < column)
            at += printf("%*s", column - at, "");
        else if (at > column)
            at += printf(" ");
        at += printf("%.*s", (int)word, text);
        text += word + 1;
    }
    putchar('\n');
}

static void paragraphs(const char *text, const char *before)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        fputs(before, stdout);
        wrapped(text, length, 0, 0);
        text += length + (text[length] != '\0');
    }
}

/* "-j, --json", "-w, --watch[=SECONDS]". */
static void option_head(char *text, size_t size, const struct option_entry *o)
{
    char letter[8] = "    ";

    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(text, size,
             o->value == VALUE_NONE     ? "%s--%s"
             : o->value == VALUE_NEEDED ? "%s--%s=%s"
                                        : "%s--%s[=%s]",
             letter, o->name, o->value_name);
}

static void two_columns(const char *head, const char *text)
{
    int at = printf("  %s", head);

    if (at >= COLUMN) {
        putchar('\n');
        at = 0;
    }
    wrapped(text, strlen(text), at, COLUMN);
}

void help_verb(const struct verb *v)
{
    char text[80];

    printf("Usage: gpudispatch %s [OPTION]...%s%s%s\n", v->name, v->operand ? " [" : "",
           v->operand ? v->operand : "", v->operand ? "]" : "");
    snprintf(text, sizeof text, "%s.", v->summary);
    printf("%c%s\n", text[0] - 'a' + 'A', text + 1);
    paragraphs(v->text, "\n");
    puts("\nOptions:");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (!verb_takes(v, i))
            continue;
        option_head(text, sizeof text, &options[i]);
        two_columns(text, options[i].help);
    }
    puts("\nExit status:");
    for (const struct status_entry *s = v->statuses; s->meaning; s++) {
        snprintf(text, sizeof text, "%d", s->status);
        two_columns(text, s->meaning);
    }
}

void help_program(void)
{
    printf("Usage: gpudispatch VERB [OPTION]...\n%c%s.\n\nVerbs:\n", program_summary[0] - 'a' + 'A',
           program_summary + 1);
    for (const struct verb *v = verbs; v->name; v++)
        two_columns(v->name, v->summary);
    puts("\ngpudispatch help VERB explains a verb; --help and --version are short forms.");
}

/* ---- the manual page ---- */

/* Text for roff: no line begins with a control character, and minus signs stay what they are. */
static void roff(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if ((text[i] == '.' || text[i] == '\'') && i == 0)
            printf("\\&%c", text[i]);
        else
            putchar(text[i]);
}

static void roff_line(const char *text)
{
    roff(text, strlen(text));
    putchar('\n');
}

static void man_option(const struct option_entry *o)
{
    puts(".TP");
    if (o->letter)
        printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    roff(o->name, strlen(o->name));
    fputs("\\fR", stdout);
    if (o->value != VALUE_NONE)
        printf(o->value == VALUE_NEEDED ? "=\\fI%s\\fR" : "[=\\fI%s\\fR]", o->value_name);
    putchar('\n');
    roff_line(o->help);
}

static void man_verb(const struct verb *v)
{
    printf(".SS gpudispatch %s [OPTION]...%s%s%s\n", v->name, v->operand ? " [" : "",
           v->operand ? v->operand : "", v->operand ? "]" : "");
    for (const char *text = v->text; *text;) {
        size_t length = strcspn(text, "\n");
        puts(".PP");
        roff(text, length);
        putchar('\n');
        text += length + (text[length] != '\0');
    }
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (verb_takes(v, i))
            man_option(&options[i]);
    puts(".PP\nExit status:");
    for (const struct status_entry *s = v->statuses; s->meaning; s++) {
        printf(".TP\n%d\n", s->status);
        roff_line(s->meaning);
    }
}

static void man_page(void)
{
    printf(
        ".TH GPUDISPATCH 1 \"\" \"gpudispatch %s\" \"User Commands\"\n.SH NAME\ngpudispatch \\- ",
        PROGRAM_VERSION);
    roff_line(program_summary);
    puts(".SH SYNOPSIS\n.B gpudispatch\n.I VERB\n[OPTION]...\n.SH DESCRIPTION");
    for (const struct verb *v = verbs; v->name; v++) {
        printf(".TP\n.B %s\n", v->name);
        roff_line(v->summary);
    }
    puts(".SH VERBS");
    for (const struct verb *v = verbs; v->name; v++)
        man_verb(v);
}

/* ---- the completion ---- */

static void completion_words(const struct verb *v)
{
    const char *before = "";

    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (verb_takes(v, i)) {
            printf("%s--%s%s", before, options[i].name,
                   options[i].value == VALUE_NEEDED ? "=" : "");
            before = " ";
        }
}

static void completion(void)
{
    puts("# bash completion for gpudispatch; printed by gpudispatch help --completion\n"
         "_gpudispatch() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$COMP_CWORD\" -eq 2 ] && [ "
         "\"${COMP_WORDS[1]}\" = help ] && [[ $word != -* ]]; }; then");
    fputs("        words=\"", stdout);
    for (const struct verb *v = verbs; v->name; v++)
        printf("%s%s", v == verbs ? "" : " ", v->name);
    puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("        %s) words=\"", v->name);
        completion_words(v);
        puts("\" ;;");
    }
    puts("        esac\n"
         "    fi\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
         "}\n"
         "complete -F _gpudispatch gpudispatch");
}

/* ---- the verbs ---- */

int help_run(const struct call *call)
{
    const struct verb *v = call->operand ? verb_find(call->operand) : NULL;

    if (call->operand && !v)
        return usage(call->verb, "help: unknown verb '%s'", call->operand);
    if (call->given[OPTION_MAN] + call->given[OPTION_COMPLETION] + (v != NULL) > 1)
        return usage(call->verb, "help: a verb, --man and --completion exclude one another");
    if (call->given[OPTION_MAN])
        man_page();
    else if (call->given[OPTION_COMPLETION])
        completion();
    else if (v)
        help_verb(v);
    else
        help_program();
    return EXIT_OK;
}

int version_run(const struct call *call)
{
    (void)call;
    printf("gpudispatch %s (library %s, API %d)\n", PROGRAM_VERSION, gpud_version(),
           GPUD_API_NUMBER);
    return EXIT_OK;
}
