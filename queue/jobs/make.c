/* SPDX-License-Identifier: MIT */
/* make.c - one job in the making. */
#include "queue/jobs/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/template.h"
#include "queue/utf8.h"

static int no_memory(struct gpq_error *e)
{
    return gpq_fail(e, GPQ_ENOMEM, "no memory for a job");
}

const char *gpq_make_known(const struct gpq_make *m, const char *name)
{
    for (const char *const *known = m->how->known; known && *known; known++)
        if (**known == *name && !strcmp(*known, name))
            return *known;
    return NULL;
}

size_t gpq_make_known_count(const struct gpq_make *m)
{
    size_t n = 0;

    while (m->how->known && m->how->known[n])
        n++;
    return n;
}

/* ---- The templates ---- */

static const char *template_text(const struct gpq_make *m, size_t i)
{
    return i < m->n_command ? m->how->command[i] : m->how->texts[i - m->n_command].value;
}

static int read_templates(struct gpq_make *m, struct gpq_error *e)
{
    const struct gpq_jobs_how *how = m->how;

    while (how->command[m->n_command])
        m->n_command++;
    if (m->n_command == 0)
        return gpq_fail(e, GPQ_EINVAL, "the command is empty");
    m->n_templates = m->n_command + how->n_texts;
    m->templates = calloc(m->n_templates, sizeof(*m->templates));
    if (!m->templates)
        return no_memory(e);
    for (size_t i = 0; i < m->n_templates; i++) {
        const char *text = template_text(m, i);
        if (gpq_utf8_fault(text, strlen(text)) != strlen(text))
            return i < m->n_command
                       ? gpq_fail(e, GPQ_EINVAL, "argument %zu of the command is not UTF-8", i)
                       : gpq_fail(e, GPQ_EINVAL, "--%s: the text is not UTF-8",
                                  how->texts[i - m->n_command].name);
        if (!gpq_template_read(text, true, &m->templates[i]))
            return no_memory(e);
        m->n_slots += m->templates[i].n / 2;
    }
    return 0;
}

static int list_slots(struct gpq_make *m, struct gpq_error *e)
{
    size_t slot = 0;

    m->slots = calloc(m->n_slots + 1, sizeof(*m->slots));
    m->values = calloc(m->n_slots + 1, sizeof(*m->values));
    if (!m->slots || !m->values)
        return no_memory(e);
    for (size_t i = 0; i < m->n_templates; i++)
        for (size_t part = 1; part < m->templates[i].n; part += 2)
            m->slots[slot++] = gpq_texts_get(&m->templates[i], part);
    return 0;
}

int gpq_make_open(struct gpq_make *m, const struct gpq_jobs_how *how, struct gpq_error *e)
{
    *m = (struct gpq_make){ .how = how };
    int code = how->command ? read_templates(m, e) : 0;
    return code ? code : list_slots(m, e);
}

void gpq_make_free(struct gpq_make *m)
{
    for (size_t i = 0; m->templates && i < m->n_templates; i++)
        gpq_texts_free(&m->templates[i]);
    free(m->templates);
    free(m->slots);
    free(m->values);
    gpq_texts_free(&m->argv);
    gpq_texts_free(&m->scratch);
    gpq_texts_free(&m->kept);
    gpq_texts_free(&m->option_values);
    free(m->option_names);
    free(m->arguments);
    free(m->options);
    *m = (struct gpq_make){ 0 };
}

int gpq_make_unknown(const char *name, const char *why, struct gpq_error *e)
{
    return gpq_fail(e, GPQ_EINVAL, "{%.60s}: %.300s; {{%.60s}} is the text itself", name, why,
                    name);
}

int gpq_make_has_one(const struct gpq_make *m, const char *what, bool must, struct gpq_error *e)
{
    bool has = false;
    char why[64];

    (void)snprintf(why, sizeof(why), "%s has no names, only {}", what);
    for (size_t i = 0; i < m->n_slots; i++) {
        has = has || !*m->slots[i];
        if (*m->slots[i] && gpq_start_named(m->slots[i], strlen(m->slots[i])) == GPQ_STARTS)
            return gpq_make_unknown(m->slots[i], why, e);
    }
    if (!has && must && m->how->command)
        return gpq_fail(e, GPQ_EINVAL,
                        "the command has no {}: it would be the same for each line; put {} where "
                        "the line belongs");
    return 0;
}

/* ---- A job ---- */

void gpq_make_clear(struct gpq_make *m)
{
    gpq_texts_clear(&m->argv);
    gpq_texts_clear(&m->option_values);
    m->n_options = 0;
    m->is_line = false;
    m->replace = false;
}

#define TOO_LONG \
    "has more than %zu bytes, the maximum; put a long value into a file that the command reads"

static int long_argument(struct gpq_error *e, size_t i)
{
    return gpq_fail(e, GPQ_EINVAL, "argument %zu of the command " TOO_LONG, i,
                    GPQ_JOBS_ARGUMENT_MOST);
}

/* Names an option that is being filled: what its list has is taken back by the next job. */
static int add_option_name(struct gpq_make *m, const char *name, struct gpq_error *e)
{
    if (m->n_options == m->options_room) {
        size_t room = m->options_room ? 2 * m->options_room : 16;
        const char **names = realloc(m->option_names, room * sizeof(*names));
        if (!names)
            return no_memory(e);
        m->option_names = names;
        m->options_room = room;
    }
    m->option_names[m->n_options++] = name;
    return 0;
}

int gpq_make_option(struct gpq_make *m, const char *name, const char *value, struct gpq_error *e)
{
    if (!gpq_texts_put(&m->option_values, value))
        return no_memory(e);
    return add_option_name(m, name, e);
}

/* The first name of the start in these parts that has no value. */
static const char *without_value(const struct gpq_texts *parts, const char *const *values)
{
    for (size_t i = 0; i < parts->n / 2; i++)
        if (!values[i])
            return gpq_texts_get(parts, 2 * i + 1);
    return "";
}

static int fill_option(struct gpq_make *m, size_t i, const char *const *values, struct gpq_error *e)
{
    const char *name = m->how->texts[i - m->n_command].name;
    const struct gpq_texts *parts = &m->templates[i];
    bool starts = false;
    int code = gpq_template_fill(parts, values, GPQ_JOBS_ARGUMENT_MOST, &m->option_values, &starts);

    if (code == GPQ_ENOMEM)
        return no_memory(e);
    if (code)
        return gpq_fail(e, GPQ_EINVAL, "--%s " TOO_LONG, name, GPQ_JOBS_ARGUMENT_MOST);
    if (starts)
        return gpq_fail(e, GPQ_EINVAL,
                        "--%s: {%s} is known only when the task starts, and replaced only in the "
                        "command; {{%s}} is the text itself",
                        name, without_value(parts, values), without_value(parts, values));
    return add_option_name(m, name, e);
}

/* Adds the filled arguments to argv, spelled for the agent if it replaces names in any. */
static int spell_arguments(struct gpq_make *m, struct gpq_error *e)
{
    for (size_t i = 0; i < m->scratch.n; i++) {
        const char *text = gpq_texts_get(&m->scratch, i);
        if (!(m->replace ? gpq_template_write(text, &m->argv) : gpq_texts_put(&m->argv, text)))
            return no_memory(e);
    }
    return 0;
}

int gpq_make_fill(struct gpq_make *m, struct gpq_error *e)
{
    const char *const *values = m->values;
    int code = 0;

    gpq_texts_clear(&m->scratch);
    for (size_t i = 0; code == 0 && i < m->n_templates; i++) {
        if (i >= m->n_command) {
            code = fill_option(m, i, values, e);
        } else {
            code = gpq_template_fill(&m->templates[i], values, GPQ_JOBS_ARGUMENT_MOST, &m->scratch,
                                     &m->replace);
            if (code)
                code = code == GPQ_ENOMEM ? no_memory(e) : long_argument(e, i);
        }
        values += m->templates[i].n / 2;
    }
    return code ? code : spell_arguments(m, e);
}

int gpq_make_one(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e)
{
    gpq_texts_clear(&m->kept);
    if (!gpq_texts_add(&m->kept, text, size) || !gpq_texts_end(&m->kept))
        return no_memory(e);
    for (size_t i = 0; i < m->n_slots; i++)
        m->values[i] = *m->slots[i] ? NULL : gpq_texts_get(&m->kept, 0);
    return gpq_make_fill(m, e);
}

int gpq_make_argument(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e)
{
    return gpq_texts_add(&m->argv, text, size) && gpq_texts_end(&m->argv) ? 0 : no_memory(e);
}

int gpq_make_line(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e)
{
    if (!gpq_texts_put(&m->argv, m->how->shell ? m->how->shell : "/bin/sh") ||
        !gpq_texts_put(&m->argv, "-c"))
        return no_memory(e);
    m->is_line = true;
    return gpq_make_argument(m, text, size, e);
}

int gpq_make_starts(struct gpq_make *m, struct gpq_error *e)
{
    bool braces = false;

    for (size_t i = 0; i < m->argv.n && !m->replace; i++) {
        const char *text = gpq_texts_get(&m->argv, i);
        if (memchr(text, '{', gpq_texts_size(&m->argv, i))) {
            braces = true;
            m->replace = gpq_template_starts(text) != 0;
        }
    }
    if (!braces || m->replace) /* written as the agent reads it */
        return 0;
    gpq_texts_clear(&m->scratch);
    for (size_t i = 0; i < m->argv.n; i++)
        if (!gpq_template_read(gpq_texts_get(&m->argv, i), false, &m->scratch))
            return no_memory(e);
    const struct gpq_texts argv = m->argv;
    m->argv = m->scratch;
    m->scratch = argv;
    return 0;
}

/* ---- The end of a job ---- */

/* Returns the list with room for n items, or NULL, and then the list is as before. */
static void *make_room(void *list, size_t *room, size_t n, size_t size)
{
    if (n <= *room)
        return list;
    void *grown = realloc(list, 2 * n * size);
    if (grown)
        *room = 2 * n;
    return grown;
}

static int list_room(struct gpq_make *m, struct gpq_error *e)
{
    const char **arguments =
        make_room(m->arguments, &m->arguments_room, m->argv.n + 1, sizeof(*arguments));
    if (!arguments)
        return no_memory(e);
    m->arguments = arguments;
    struct gpq_job_option *options =
        make_room(m->options, &m->options_listed, m->n_options + 1, sizeof(*options));
    if (!options)
        return no_memory(e);
    m->options = options;
    return 0;
}

static int check(const struct gpq_make *m, struct gpq_error *e)
{
    if (m->argv.n == 0 || gpq_texts_size(&m->argv, 0) == 0)
        return gpq_fail(e, GPQ_EINVAL, "the command is empty");
    for (size_t i = 0; i < m->argv.n; i++)
        if (gpq_texts_size(&m->argv, i) > GPQ_JOBS_ARGUMENT_MOST && !(m->is_line && i == 2))
            return long_argument(e, i);
    return 0;
}

int gpq_make_job(struct gpq_make *m, struct gpq_job *ret, struct gpq_error *e)
{
    int code = check(m, e);

    if (code == 0)
        code = list_room(m, e);
    if (code)
        return code;
    for (size_t i = 0; i < m->argv.n; i++)
        m->arguments[i] = gpq_texts_get(&m->argv, i);
    m->arguments[m->argv.n] = NULL;
    for (size_t i = 0; i < m->n_options; i++)
        m->options[i] = (struct gpq_job_option){ .name = m->option_names[i],
                                                 .value = gpq_texts_get(&m->option_values, i) };
    *ret = (struct gpq_job){ .argv = m->arguments,
                             .n_argv = m->argv.n,
                             .options = m->options,
                             .n_options = m->n_options,
                             .is_line = m->is_line,
                             .replace = m->replace };
    return 0;
}
