/* SPDX-License-Identifier: MIT */
/* parse.c - the lines of a config file. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/config/check.h"
#include "queue/config/split.h"
#include "queue/utf8.h"

enum { SECTIONS_MOST = 1024, NAME_MOST = 63, NEEDS_MOST = 3 };

struct parser {
    struct gpq_config *c;
    struct gpq_error *e;
    struct gpq_section *section; /* the present one */
    uint32_t line;
};

__attribute__((format(printf, 3, 4))) static int fail(const struct parser *p, uint32_t line,
                                                      const char *format, ...)
{
    char text[384];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    return gpq_fail(p->e, GPQ_EINVAL, "%.100s:%u: %s", p->c->path, line, text);
}

/* ---- Characters ---- */

static int check_line(const struct parser *p, const char *text, size_t size)
{
    const char *nul = memchr(text, '\0', size);
    size_t fault = gpq_utf8_fault(text, size);
    if (nul && (size_t)(nul - text) < fault)
        return fail(p, p->line, "byte %zu of the line is NUL", (size_t)(nul - text) + 1);
    if (fault != size)
        return fail(p, p->line, "byte %zu of the line is not UTF-8", fault + 1);
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Ends a text before the blanks at its end. */
static void trim(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    text[n] = '\0';
}

/* ---- Sections ---- */

static int add_section(struct parser *p, enum gpq_section_kind kind, const char *name)
{
    struct gpq_config *c = p->c;
    if (c->n == SECTIONS_MOST)
        return fail(p, p->line, "more than %d sections", SECTIONS_MOST);
    if (c->n == c->room) {
        size_t room = c->room != 0 ? 2 * c->room : 4;
        struct gpq_section *more = realloc(c->section, room * sizeof(*more));
        if (!more)
            return gpq_fail(p->e, GPQ_ENOMEM, "no memory for the config");
        c->section = more;
        c->room = room;
    }
    p->section = &c->section[c->n++];
    *p->section = (struct gpq_section){ .kind = kind, .name = name, .line = p->line };
    return 0;
}

static bool is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("\"'[],=#;", *c))
            return false;
    return *name && *name != '-';
}

static int open_section(struct parser *p, enum gpq_section_kind kind, const char *word,
                        const char *name)
{
    if (!is_name(name))
        return fail(p, p->line, "[%s %.60s]: expected a name without blanks and quotes", word,
                    name);
    if (strlen(name) > NAME_MOST)
        return fail(p, p->line, "[%s %.60s]: the name has %zu bytes, the maximum is %d", word, name,
                    strlen(name), NAME_MOST);
    if (kind == GPQ_SECTION_CLASS && !strcmp(name, "command"))
        return fail(p, p->line,
                    "[class command]: this is the class of commands; choose another "
                    "name");
    const struct gpq_section *before = gpq_config_section(p->c, kind, name);
    if (before)
        return fail(p, p->line, "[%s %s]: the section is in line %u already", word, name,
                    before->line);
    return add_section(p, kind, name);
}

/* `[class NAME]`; `text` is behind the bracket. */
static int read_section(struct parser *p, char *text)
{
    static const char *const words[GPQ_SECTIONS] = {
        [GPQ_SECTION_CLASS] = "class", [GPQ_SECTION_NEEDS] = "needs"
    };
    char *end = strchr(text, ']'), *name;
    if (!end)
        return fail(p, p->line, "[%.60s: expected a ]", text);
    const char *rest = end + 1 + strspn(end + 1, " \t");
    if (*rest && *rest != '#' && *rest != ';')
        return fail(p, p->line, "'%.60s' follows the ] of a section", rest);
    *end = '\0';
    text += strspn(text, " \t");
    trim(text);
    name = text + strcspn(text, " \t");
    if (*name)
        *name++ = '\0';
    name += strspn(name, " \t");
    for (int kind = GPQ_SECTION_CLASS; kind < GPQ_SECTIONS; kind++)
        if (!strcmp(text, words[kind]))
            return open_section(p, (enum gpq_section_kind)kind, text, name);
    return fail(p, p->line, "[%.60s]: expected [class NAME] or [needs NAME]", text);
}

/* ---- Keys ---- */

static const char *title(const struct gpq_section *s, char text[96])
{
    if (s->kind == GPQ_SECTION_TOP)
        return "the lines before the first section";
    (void)snprintf(text, 96, "[%s %s]", s->kind == GPQ_SECTION_CLASS ? "class" : "needs", s->name);
    return text;
}

static int refuse_key(const struct parser *p, const char *name)
{
    char where[96], suggestion[256];
    gpq_key_suggest(p->section->kind, name, suggestion, sizeof(suggestion));
    return fail(p, p->line, "'%.40s' is no key of %s%s", name, title(p->section, where),
                suggestion);
}

static int read_key(struct parser *p, char *text)
{
    struct gpq_error why;
    char *value = strchr(text, '=');
    if (!value)
        return fail(p, p->line, "'%.60s': expected KEY = VALUE, [class NAME] or [needs NAME]",
                    text);
    *value++ = '\0';
    value += strspn(value, " \t");
    trim(value);
    trim(text);
    enum gpq_key key = gpq_key_find(p->section->kind, text);
    if (key == GPQ_KEYS)
        return refuse_key(p, text);
    struct gpq_entry *entry = &p->section->entry[key];
    if (entry->value)
        return fail(p, p->line, "%s is in line %u already", text, entry->line);
    if (!*value)
        return fail(p, p->line, "%s has no value", text);
    int code = gpq_key_check(key, value, &why);
    if (code < 0)
        return code == GPQ_EINVAL ? fail(p, p->line, "%s: %s", text, why.text)
                                  : gpq_fail(p->e, code, "%s", why.text);
    *entry = (struct gpq_entry){ value, p->line };
    return 0;
}

/* ---- The whole ---- */

static int read_line(struct parser *p, char *text, size_t size)
{
    if (size > 0 && text[size - 1] == '\r')
        text[--size] = '\0';
    int code = check_line(p, text, size);
    if (code < 0)
        return code;
    text += strspn(text, " \t");
    trim(text);
    if (!*text || *text == '#' || *text == ';')
        return 0;
    return *text == '[' ? read_section(p, text + 1) : read_key(p, text);
}

static int check_class(const struct parser *p, const struct gpq_section *s)
{
    bool plugin = s->entry[GPQ_KEY_PLUGIN].value, worker = s->entry[GPQ_KEY_WORKER].value;
    if (plugin == worker)
        return fail(p, s->line, "[class %s] has %s, expected one of them", s->name,
                    plugin ? "both plugin and worker" : "neither plugin nor worker");
    return 0;
}

/* The names of `or` are those of other needs. */
static int check_needs(const struct parser *p, const struct gpq_section *s)
{
    const struct gpq_entry *entry = &s->entry[GPQ_KEY_NEEDS_OR];
    char **names;
    int n = entry->value ? gpq_split_words(entry->value, &names, p->e) : 0, code = 0;
    if (n <= 0)
        return n;
    if (n > NEEDS_MOST)
        code = fail(p, entry->line, "or has %d names, the maximum is %d", n, NEEDS_MOST);
    for (int i = 0; code == 0 && i < n; i++)
        if (!strcmp(names[i], s->name) || !gpq_config_section(p->c, GPQ_SECTION_NEEDS, names[i]))
            code =
                fail(p, entry->line, "or: '%.60s' is no other [needs NAME] of the file", names[i]);
    free(names);
    return code;
}

static int check_sections(const struct parser *p)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < p->c->n; i++) {
        const struct gpq_section *s = &p->c->section[i];
        code = s->kind == GPQ_SECTION_CLASS   ? check_class(p, s)
               : s->kind == GPQ_SECTION_NEEDS ? check_needs(p, s)
                                              : 0;
    }
    return code;
}

static int read_lines(struct parser *p, char *text, size_t size)
{
    int code = add_section(p, GPQ_SECTION_TOP, "");
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        size -= 3;
    }
    for (char *end = text + size; code == 0 && text < end;) {
        char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = newline ? (size_t)(newline - text) : (size_t)(end - text);
        text[n] = '\0'; /* the last line has a byte behind it */
        p->line++;
        code = read_line(p, text, n);
        text += n + 1;
    }
    return code == 0 ? check_sections(p) : code;
}

int gpq_config_parse(const char *path, const void *data, size_t size, struct gpq_config *ret,
                     struct gpq_error *e)
{
    struct parser p = { .c = ret, .e = e };
    *ret = (struct gpq_config){ .path = strdup(path), .text = malloc(size + 1) };
    const char *slash = strrchr(path, '/');
    ret->directory =
        !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int code = 0;
    if (!ret->path || !ret->text || !ret->directory)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory for the config");
    else if (size != 0)
        memcpy(ret->text, data, size);
    if (code == 0)
        code = read_lines(&p, ret->text, size);
    if (code < 0)
        gpq_config_free(ret);
    return code;
}
