/* SPDX-License-Identifier: MIT */
/* help.c - what the table of verbs says: help, manual page, page of Markdown and completions; and
 * the version. */
#include <stdio.h>
#include <string.h>

#include <gpudispatch/version.h>

#include "tools/cli/verb.h"

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

static void usage_line(const struct verb *v)
{
    printf("gpudispatch %s [OPTION]...%s%s%s", v->name, v->operands ? " " : "",
           v->operands ? v->operands : "", v->command ? " [-- COMMAND...]" : "");
}

static void help_option(enum option_id id, void *user)
{
    char head[80];

    (void)user;
    option_head(head, sizeof head, &options[id]);
    two_columns(head, options[id].help);
}

void help_verb(const struct verb *v)
{
    char text[80];

    fputs("Usage: ", stdout);
    usage_line(v);
    printf("\n%c%s.\n", v->summary[0] - 'a' + 'A', v->summary + 1);
    paragraphs(v->text, "\n");
    puts("\nOptions:");
    verb_options(v, help_option, NULL);
    puts("\nExit status:");
    for (const struct status_entry *s = v->statuses; s->meaning; s++) {
        snprintf(text, sizeof text, "%d", s->status);
        two_columns(text, s->meaning);
    }
}

static void help_program(void)
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

static void man_option(enum option_id id, void *user)
{
    const struct option_entry *o = &options[id];

    (void)user;
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
    fputs(".SS ", stdout);
    usage_line(v);
    putchar('\n');
    for (const char *text = v->text; *text;) {
        size_t length = strcspn(text, "\n");
        puts(".PP");
        roff(text, length);
        putchar('\n');
        text += length + (text[length] != '\0');
    }
    verb_options(v, man_option, NULL);
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

/* ---- the page of Markdown ---- */

/* Text of a cell. */
static void cell(const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", stdout);
        else
            putchar(*text);
}

static void markdown_option(enum option_id id, void *user)
{
    const struct option_entry *o = &options[id];

    (void)user;
    fputs("| ", stdout);
    if (o->letter)
        printf("`-%c`, ", o->letter);
    printf("`--%s%s", o->name, o->value == VALUE_NONE ? "" : o->value == VALUE_NEEDED ? "=" : "[=");
    if (o->value != VALUE_NONE)
        cell(o->value_name);
    printf("%s` | ", o->value == VALUE_OPTIONAL ? "]" : "");
    cell(o->help);
    puts(" |");
}

static void markdown_verb(const struct verb *v)
{
    printf("\n## %s\n\n`", v->name);
    usage_line(v);
    puts("`");
    paragraphs(v->text, "\n");
    puts("\n| option | meaning |\n|---|---|");
    verb_options(v, markdown_option, NULL);
    puts("\n| exit status | meaning |\n|---|---|");
    for (const struct status_entry *s = v->statuses; s->meaning; s++) {
        printf("| %d | ", s->status);
        cell(s->meaning);
        puts(" |");
    }
}

static void markdown(void)
{
    puts("# Commands\n\n"
         "This page describes the verbs of the program `gpudispatch`. The program prints it:\n"
         "`gpudispatch help --markdown`.\n\n| verb | purpose |\n|---|---|");
    for (const struct verb *v = verbs; v->name; v++)
        printf("| [%s](#%s) | %s |\n", v->name, v->name, v->summary);
    for (const struct verb *v = verbs; v->name; v++)
        markdown_verb(v);
}

/* ---- the completions ---- */

static void bash_word(enum option_id id, void *user)
{
    (void)user;
    printf("--%s%s ", options[id].name, options[id].value == VALUE_NEEDED ? "=" : "");
}

static void verb_words(void)
{
    for (const struct verb *v = verbs; v->name; v++)
        printf("%s%s", v == verbs ? "" : " ", v->name);
}

static void bash_completion(void)
{
    puts("# bash completion for gpudispatch; printed by gpudispatch help --completion\n"
         "_gpudispatch() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$COMP_CWORD\" -eq 2 ] && [ "
         "\"${COMP_WORDS[1]}\" = help ] && [[ $word != -* ]]; }; then");
    fputs("        words=\"", stdout);
    verb_words();
    puts("\"\n    elif [[ $word != -* ]]; then\n"
         "        compopt -o default\n"
         "        return\n"
         "    else\n        case ${COMP_WORDS[1]} in");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("        %s) words=\"", v->name);
        verb_options(v, bash_word, NULL);
        puts("\" ;;");
    }
    puts("        esac\n"
         "    fi\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
         "}\n"
         "complete -F _gpudispatch gpudispatch");
}

/* Text between single quotes, and in a description of zsh's _arguments. */
static void zsh_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
}

static void zsh_option(enum option_id id, void *user)
{
    const struct option_entry *o = &options[id];

    (void)user;
    printf(" \\\n            '*--%s%s[", o->name, o->value == VALUE_NONE ? "" : "=");
    zsh_text(o->help);
    putchar(']');
    if (o->value != VALUE_NONE) {
        fputs(o->value == VALUE_OPTIONAL ? "::" : ":", stdout);
        zsh_text(o->value_name);
        fputs(":_files", stdout);
    }
    putchar('\'');
}

static void zsh_completion(void)
{
    puts("#compdef gpudispatch\n"
         "# zsh completion for gpudispatch; printed by gpudispatch help --completion=zsh\n"
         "local -a verbs=(");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("    '%s:", v->name);
        zsh_text(v->summary);
        puts("'");
    }
    puts(")\n"
         "if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then\n"
         "    _describe verb verbs\n"
         "else\n"
         "    local verb=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $verb in");
    for (const struct verb *v = verbs; v->name; v++) {
        printf("        %s) _arguments", v->name);
        verb_options(v, zsh_option, NULL);
        puts(" \\\n            '*:file:_files' ;;");
    }
    puts("    esac\n"
         "fi");
}

/* ---- the verbs ---- */

int help_run(const struct call *call)
{
    const char *name = call->operand[0], *shell = call->value[OPTION_COMPLETION];
    const struct verb *v = name ? verb_find(name) : NULL;

    if (name && !v)
        return verb_unknown(call->verb, name);
    if (call->given[OPTION_MAN] + call->given[OPTION_COMPLETION] + call->given[OPTION_MARKDOWN] +
            (v != NULL) >
        1)
        return usage(call->verb,
                     "help: a verb, --man, --markdown and --completion exclude one another");
    if (shell && strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0)
        return usage(call->verb, "help: --completion is '%s', expected bash or zsh", shell);
    if (call->given[OPTION_MAN])
        man_page();
    else if (call->given[OPTION_MARKDOWN])
        markdown();
    else if (shell && !strcmp(shell, "zsh"))
        zsh_completion();
    else if (call->given[OPTION_COMPLETION])
        bash_completion();
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
