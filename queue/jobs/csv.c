/* SPDX-License-Identifier: MIT */
/* csv.c - the rows of a CSV file (RFC 4180): fields, the header, and the job of a row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/reader.h"
#include "queue/jobs/template.h"
#include "queue/utf8.h"
#include "tools/cli/near.h"

enum { COLUMNS_MOST = 1000000 };

/* The state of a reader of CSV. */
enum {
    FIELD,  /* at the beginning of a field */
    PLAIN,  /* in a field without quotes */
    QUOTED, /* in quotes */
    CLOSED, /* behind a quote in quotes: it closes them, or is the first of two */
    RETURN, /* behind a carriage return that is outside quotes */
};

static void no_memory(struct gpq_jobs *r)
{
    struct gpq_error e;

    (void)gpq_fail(&e, GPQ_ENOMEM, "no memory for a row");
    gpq_reader_stop(r, r->csv.row_line, &e);
}

/* ---- The header ---- */

/* A name, and its column. */
struct column {
    const char *name;
    size_t at;
};

static int by_name(const void *a, const void *b)
{
    const struct column *one = a, *other = b;
    int order = strcmp(one->name, other->name);

    return order ? order : (one->at > other->at) - (one->at < other->at);
}

static int of_name(const void *name, const void *column)
{
    return strcmp(name, ((const struct column *)column)->name);
}

static size_t find_column(const struct column *columns, size_t n, const char *name)
{
    const struct column *found = bsearch(name, columns, n, sizeof(*columns), of_name);

    return found ? found->at : SIZE_MAX;
}

static void list_columns(const struct gpq_texts *header, char *ret, size_t size)
{
    const char *names[16];
    size_t n = header->n < 16 ? header->n : 16;

    for (size_t i = 0; i < n; i++)
        names[i] = gpq_texts_get(header, i);
    gpq_reader_list(ret, size, names, n);
}

/* Each name of the templates is a column, or one of the start. */
static int find_slots(struct gpq_jobs *r, const struct column *columns, struct gpq_error *e)
{
    struct gpq_csv *c = &r->csv;
    char list[200], why[256];

    for (size_t i = 0; i < r->make.n_slots; i++) {
        const char *name = r->make.slots[i];
        c->columns[i] = find_column(columns, c->header.n, name);
        if (c->columns[i] != SIZE_MAX || gpq_start_named(name, strlen(name)) != GPQ_STARTS)
            continue;
        list_columns(&c->header, list, sizeof(list));
        (void)snprintf(why, sizeof(why), "no such column; the file has %s%s", list,
                       c->header.n == 1 && strpbrk(list, ";\t") ? "; commas separate columns" : "");
        return gpq_make_unknown(name, why, e);
    }
    return 0;
}

static int unknown_column(const struct gpq_jobs *r, const char *name, struct gpq_error *e)
{
    char list[250];
    struct near near = { .word = name };
    size_t n = gpq_make_known_count(&r->make);

    near_add(&near, "command");
    for (size_t i = 0; i < n; i++)
        near_add(&near, r->how.known[i]);
    near_text(&near, "", list, sizeof(list));
    if (*list)
        return gpq_fail(e, GPQ_EINVAL, "column '%.60s' is no option%s", name, list);
    if (strpbrk(name, ";\t"))
        return gpq_fail(e, GPQ_EINVAL,
                        "column '%.60s' is no option; commas separate columns, not %s", name,
                        strchr(name, ';') ? "semicolons" : "tabs");
    gpq_reader_list(list, sizeof(list), r->how.known, n);
    return gpq_fail(e, GPQ_EINVAL,
                    "column '%.60s' is no option; beside command there may be %s; with --each FILE "
                    "-- COMMAND columns replace {NAME}",
                    name, n ? list : "none");
}

/* Notes the columns that are options, and without a template the one with the command. */
static int find_options(struct gpq_jobs *r, struct gpq_error *e)
{
    struct gpq_csv *c = &r->csv;

    for (size_t i = 0; i < c->header.n; i++) {
        const char *name = gpq_texts_get(&c->header, i);
        const char *option = gpq_make_known(&r->make, name);
        if (!r->how.command && !strcmp(name, "command")) {
            c->command = i;
        } else if (option) {
            c->options[c->n_options] = i;
            c->option_names[c->n_options++] = option;
        } else if (!r->how.command) {
            return unknown_column(r, name, e);
        }
    }
    if (!r->how.command && c->command == SIZE_MAX)
        return gpq_fail(e, GPQ_EINVAL,
                        "the header has no column command; with --each FILE -- COMMAND columns "
                        "replace {NAME}");
    return 0;
}

static int check_names(const struct column *columns, size_t n, struct gpq_error *e)
{
    for (size_t i = 1; i < n; i++)
        if (!strcmp(columns[i - 1].name, columns[i].name))
            return gpq_fail(e, GPQ_EINVAL, "columns %zu and %zu have the same name, %.60s",
                            columns[i - 1].at + 1, columns[i].at + 1, columns[i].name);
    return 0;
}

/* The first row is kept as the header. */
static void take_header(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;
    struct gpq_error e;
    size_t n = c->row.n, known = gpq_make_known_count(&r->make);

    c->header = c->row;
    c->row = (struct gpq_texts){ 0 };
    c->command = SIZE_MAX;
    struct column *columns = calloc(n, sizeof(*columns));
    c->columns = calloc(r->make.n_slots + 1, sizeof(*c->columns));
    c->options = calloc(known + 1, sizeof(*c->options));
    c->option_names = calloc(known + 1, sizeof(*c->option_names));
    if (!columns || !c->columns || !c->options || !c->option_names) {
        free(columns);
        no_memory(r);
        return;
    }
    for (size_t i = 0; i < n; i++)
        columns[i] = (struct column){ .name = gpq_texts_get(&c->header, i), .at = i };
    qsort(columns, n, sizeof(*columns), by_name);
    int code = check_names(columns, n, &e);
    if (code == 0)
        code = find_slots(r, columns, &e);
    if (code == 0)
        code = find_options(r, &e);
    if (code)
        gpq_reader_stop(r, c->row_line, &e);
    free(columns);
}

/* ---- The job of a row ---- */

/* An empty field of an option's column does not set it; {gpus} is then that of the start. */
static void set_values(struct gpq_jobs *r)
{
    struct gpq_make *m = &r->make;

    for (size_t i = 0; i < m->n_slots; i++) {
        const char *name = m->slots[i];
        size_t column = r->csv.columns[i];
        m->values[i] = column == SIZE_MAX ? NULL : gpq_texts_get(&r->csv.row, column);
        if (m->values[i] && !*m->values[i] && gpq_make_known(m, name) &&
            gpq_start_named(name, strlen(name)) != GPQ_STARTS)
            m->values[i] = NULL;
    }
}

static int set_options(struct gpq_jobs *r, struct gpq_error *e)
{
    const struct gpq_csv *c = &r->csv;
    int code = 0;

    for (size_t i = 0; code == 0 && i < c->n_options; i++) {
        const char *value = gpq_texts_get(&c->row, c->options[i]);
        if (*value)
            code = gpq_make_option(&r->make, c->option_names[i], value, e);
    }
    return code;
}

static int set_command(struct gpq_jobs *r, struct gpq_error *e)
{
    const struct gpq_texts *row = &r->csv.row;
    const char *command = gpq_texts_get(row, r->csv.command);

    if (command[strspn(command, " \t\r\n")] == 0)
        return gpq_fail(e, GPQ_EINVAL, "command is empty");
    int code = gpq_make_line(&r->make, command, gpq_texts_size(row, r->csv.command), e);
    return code ? code : gpq_make_starts(&r->make, e);
}

static void take_row(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;
    struct gpq_error e;
    int code;

    if (c->fields != c->header.n) {
        gpq_reader_bad(r, c->row_line, "the row has %zu field%s, the header %zu", c->fields,
                       c->fields == 1 ? "" : "s", c->header.n);
        return;
    }
    gpq_make_clear(&r->make);
    if (r->how.command) {
        set_values(r);
        code = gpq_make_fill(&r->make, &e);
    } else {
        code = set_command(r, &e);
    }
    if (code == 0)
        code = set_options(r, &e);
    gpq_reader_job(r, c->row_line, code, &e);
}

/* ---- Fields and rows ---- */

static void fault(struct gpq_jobs *r, uint64_t line, const char *text)
{
    struct gpq_error e;

    (void)gpq_fail(&e, GPQ_EINVAL, "field %zu: %s", r->csv.fields + 1, text);
    gpq_reader_stop(r, line, &e);
}

/* Of a row that has too many fields only the number of them is of use. */
static bool keeps(const struct gpq_csv *c)
{
    return c->header.n == 0 || c->fields < c->header.n;
}

/* Refuses fields of a header before it is whole, so that their number is bounded. */
static bool bad_name(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;
    struct gpq_error e;

    if (c->header.n == 0 && gpq_texts_open(&c->row) == 0) {
        fault(r, r->line, "a column of the header has no name");
    } else if (c->header.n == 0 && c->fields == COLUMNS_MOST) {
        (void)gpq_fail(&e, GPQ_EINVAL, "the header has more than %d columns, the maximum",
                       COLUMNS_MOST);
        gpq_reader_stop(r, c->row_line, &e);
    }
    return r->broken;
}

static void end_field(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;

    if (bad_name(r))
        return;
    if (keeps(c) && !gpq_texts_end(&c->row))
        no_memory(r);
    c->fields++;
    c->quoted = false;
    c->state = FIELD;
}

static bool bad_field(struct gpq_jobs *r)
{
    const struct gpq_texts *row = &r->csv.row;

    for (size_t i = 0; i < row->n; i++) {
        const char *text = gpq_texts_get(row, i);
        size_t size = gpq_texts_size(row, i), bad = gpq_utf8_fault(text, size);
        if (bad == size)
            continue;
        gpq_reader_bad(r, r->csv.row_line, "byte %zu of field %zu is 0x%02x, which is not UTF-8",
                       bad + 1, i + 1, (unsigned char)text[bad]);
        return true;
    }
    return false;
}

static void end_row(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;
    bool empty = c->fields == 0 && gpq_texts_open(&c->row) == 0 && !c->quoted;

    if (!empty)
        end_field(r);
    if (r->broken)
        return;
    if (empty)
        r->counts.comments++;
    else if (c->header.n == 0 && bad_field(r))
        r->broken = true;
    else if (c->header.n == 0)
        take_header(r);
    else if (!bad_field(r))
        take_row(r);
    gpq_texts_clear(&c->row);
    c->fields = 0;
    c->bytes = 0;
    c->state = FIELD;
}

/* ---- Bytes ---- */

/* Returns the number of bytes at the beginning that are part of the field as they are. */
static size_t plain_bytes(const struct gpq_csv *c, const char *data, size_t size)
{
    size_t n = 0;

    if (c->state == QUOTED) {
        const char *quote = memchr(data, '"', size);
        return quote ? (size_t)(quote - data) : size;
    }
    while (n < size && data[n] != ',' && data[n] != '\n' && data[n] != '"' && data[n] != '\r')
        n++;
    return n;
}

static void add(struct gpq_jobs *r, const char *data, size_t size)
{
    const char *nul = memchr(data, 0, size), *end = nul ? nul : data + size;

    for (const char *at = data; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        r->line++;
    if (nul)
        fault(r, r->line, "it has a NUL, which no command can have");
    else if (keeps(&r->csv) && !gpq_texts_add(&r->csv.row, data, size))
        no_memory(r);
}

/* A byte that is not part of the field as it is. */
static void take_byte(struct gpq_jobs *r, char byte)
{
    struct gpq_csv *c = &r->csv;

    if (c->state == QUOTED) { /* it is a quote */
        c->state = CLOSED;
    } else if (c->state == RETURN && byte != '\n') {
        fault(r, r->line, "a carriage return without a newline; put the field in quotes");
    } else if (byte == ',') {
        end_field(r);
    } else if (byte == '\n') {
        end_row(r);
        r->line++;
        c->row_line = r->line;
    } else if (byte == '\r') {
        c->state = RETURN;
    } else if (c->state == FIELD) {
        c->quoted = true;
        c->quote_line = r->line;
        c->state = QUOTED;
    } else if (c->state == CLOSED) {
        c->state = QUOTED;
        add(r, "\"", 1);
    } else {
        fault(r, r->line,
              "a quote in a field that has none at its beginning; put the whole field "
              "in quotes, and double this one");
    }
}

/* Behind a closing quote or a carriage return no text may follow. */
static void take_text(struct gpq_jobs *r, const char *data, size_t size)
{
    struct gpq_csv *c = &r->csv;

    if (c->state == CLOSED) {
        fault(r, r->line,
              "text behind the closing quote; double a quote that is part of the "
              "field");
    } else if (c->state == RETURN) {
        fault(r, r->line, "a carriage return without a newline; put the field in quotes");
    } else {
        if (c->state == FIELD)
            c->state = PLAIN;
        add(r, data, size);
    }
}

static void too_long(struct gpq_jobs *r)
{
    const struct gpq_csv *c = &r->csv;
    struct gpq_error e;

    (void)gpq_fail(&e, GPQ_EINVAL, "the row has more than %zu MiB, the maximum%s",
                   GPQ_JOBS_LINE_MOST >> 20,
                   c->state == QUOTED ? "; a quote in it may not be closed" : "");
    gpq_reader_stop(r, c->row_line, &e);
}

void gpq_csv_feed(struct gpq_jobs *r, const char *data, size_t size)
{
    struct gpq_csv *c = &r->csv;

    while (size > 0 && !r->broken) {
        size_t plain = plain_bytes(c, data, size), n = plain > 0 ? plain : 1;
        if (n > GPQ_JOBS_LINE_MOST - c->bytes) {
            too_long(r);
            break;
        }
        c->bytes += n;
        if (plain > 0)
            take_text(r, data, n);
        else
            take_byte(r, *data);
        data += n;
        size -= n;
    }
}

void gpq_csv_end(struct gpq_jobs *r)
{
    struct gpq_csv *c = &r->csv;

    if (c->state == QUOTED)
        fault(r, c->quote_line, "the quote at its beginning is not closed");
    else if (c->state != FIELD || c->fields > 0)
        end_row(r);
    if (c->header.n == 0 && r->first.code == 0)
        gpq_reader_bad(r, 0, "the file has no header; its first line names the columns");
}

void gpq_csv_free(struct gpq_csv *csv)
{
    gpq_texts_free(&csv->row);
    gpq_texts_free(&csv->header);
    free(csv->columns);
    free(csv->options);
    free(csv->option_names);
}
