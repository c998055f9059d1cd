/* SPDX-License-Identifier: MIT */
/* record_lines.c - writes rows of the store as lines. */
#include "queue/agent/record_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/classes.h"
#include "queue/agent/needs.h"
#include "queue/agent/payload.h"
#include "queue/agent/spans.h"
#include "queue/agent/workers.h"
#include "queue/config/values.h"
#include "queue/files/numbers.h"
#include "queue/grow.h"
#include "view/words.h"

enum { NAME_MOST = 80 /* characters of a command */, END_MOST = 512 };

_Static_assert((int)GPQ_OUTCOME_SUCCESS == (int)GPV_OK && (int)GPQ_OUTCOME_LOST == (int)GPV_LOST,
               "both have the same outcomes");

void gpq_record_lines_free(struct gpq_record_lines *l)
{
    gpv_lines_free(&l->rows);
    gpv_lines_free(&l->named);
    free(l->shape);
    free(l->gpu);
    *l = (struct gpq_record_lines){ 0 };
}

/* ---- GPUs, classes, shapes ---- */

/* False: it has a line already, or no memory is left. */
static bool note_gpu(struct gpq_record_lines *l, const char *uuid, size_t size)
{
    for (size_t i = 0; i < l->gpus; i++)
        if (strlen(l->gpu[i]) == size && memcmp(l->gpu[i], uuid, size) == 0)
            return false;
    char(*larger)[96] = gpq_grown(l->gpu, l->gpus, &l->gpus_room, sizeof(*larger));
    l->rows.failed = l->rows.failed || !larger;
    if (!larger || size >= sizeof(*larger))
        return false;
    l->gpu = larger;
    memcpy(l->gpu[l->gpus], uuid, size);
    l->gpu[l->gpus++][size] = '\0';
    return true;
}

void gpq_record_gpu(struct gpq_record_lines *l, const struct gpud_device_info *d, bool written)
{
    struct gpv_lines *to = &l->named;
    if (!note_gpu(l, d->uuid, strlen(d->uuid)) || !written)
        return;
    gpv_line_begin(to, "gpu");
    gpv_line_text(to, d->name);
    gpv_line_text(to, d->uuid);
    gpv_line_number(to, d->index);
    gpv_line_text(to, d->model);
    gpv_line_text(to, d->pci);
    gpv_line_text(to, d->mig_profile);
    gpv_line_text(to, d->parent_uuid);
    gpv_line_end(to);
}

/* One that the head does not have: it is gone, or no agent runs. */
static void write_gone(struct gpq_record_lines *l, const char *name, size_t name_size,
                       const char *uuid, size_t uuid_size)
{
    if (name_size == 0 || !note_gpu(l, uuid, uuid_size))
        return;
    gpv_line_begin(&l->named, "gpu");
    gpv_line_bytes(&l->named, name, name_size);
    gpv_line_bytes(&l->named, uuid, uuid_size);
    for (int i = 0; i < 5; i++)
        gpv_line_text(&l->named, NULL);
    gpv_line_end(&l->named);
}

void gpq_record_class(struct gpq_record_lines *l, const char *name)
{
    gpv_line_begin(&l->named, "class");
    gpv_line_text(&l->named, name);
    gpv_line_end(&l->named);
}

static void want_shape(struct gpq_record_lines *l, uint32_t id)
{
    for (size_t i = l->shapes; i > 0; i--) /* mostly that of the row before */
        if (l->shape[i - 1] == id)
            return;
    uint32_t *larger = gpq_grown(l->shape, l->shapes, &l->shapes_room, sizeof(*larger));
    l->rows.failed = l->rows.failed || !larger;
    if (!larger)
        return;
    l->shape = larger;
    l->shape[l->shapes++] = id;
}

static void write_shape_id(struct gpq_record_lines *l, uint32_t id)
{
    want_shape(l, id);
    gpv_line_number(&l->rows, id);
}

void gpq_record_shape(struct gpq_record_lines *l, const struct gpq_agent *a,
                      const struct gpq_shape *shape)
{
    struct gpv_lines *to = &l->named;
    struct gpq_needs needs;
    struct gpq_error e;
    char text[256] = "";
    if (gpq_needs_parse(shape->request, &needs, &e) < 0)
        return;
    const struct gpq_class *class = needs.class_name ? gpq_class_find(a, needs.class_name) : NULL;
    if (class)
        needs.request[0].devices = class->gpus;
    gpv_line_begin(to, "shape");
    gpv_line_number(to, shape->id);
    gpv_line_text(to, needs.class_name ? needs.class_name : GPQ_COMMANDS);
    if (needs.class_name && !class)
        gpv_line_text(to, NULL);
    else
        gpv_line_number(to, needs.request[0].devices);
    gpv_line_text(to, needs.class_name ? NULL : gpq_needs_text(&needs, text, sizeof(text)));
    gpv_line_end(to);
    gpq_needs_free(&needs);
}

/* ---- Batches ---- */

static void write_ends(struct gpv_lines *to, const struct gpq_batch *b)
{
    char text[GPQ_OUTCOMES * 32] = "";
    size_t used = 0;
    for (uint32_t i = GPQ_OUTCOME_SUCCESS; i < GPQ_OUTCOMES; i++)
        if (b->outcome[i] != 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%u", used ? "," : "",
                                     gpv_outcome_word(i), b->outcome[i]);
    gpv_line_bytes(to, text, used);
}

void gpq_record_batch(struct gpq_record_lines *l, const struct gpq_batch *b,
                      const struct gpq_waiting *w)
{
    struct gpv_lines *to = &l->rows;
    const struct gpq_task *first = w->first.id != 0 ? &w->first : NULL;
    gpv_line_begin(to, "batch");
    gpv_line_number(to, b->id);
    gpv_line_text(to, b->name);
    gpv_line_time(to, b->made);
    gpv_line_time(to, b->ended);
    gpv_line_number(to, first ? first->priority : 0);
    gpv_line_flags(to, b->open, b->held, b->at_once != 0);
    gpv_line_number(to, b->total);
    gpv_line_number(to, b->joined);
    gpv_line_number(to, b->state[GPQ_HELD]);
    gpv_line_number(to, b->state[GPQ_READY]);
    gpv_line_number(to, b->state[GPQ_RUNNING]);
    write_ends(to, b);
    if (first) {
        gpv_line_number(to, GPQ_NUMBER_OF(first->id));
        write_shape_id(l, first->shape);
    } else {
        gpv_line_text(to, NULL);
        gpv_line_text(to, NULL);
    }
    gpv_line_number(to, w->turn);
    gpv_line_end(to);
}

/* ---- Attempts ---- */

/* A text of the JSON of a grant, which the agent has written: names and UUIDs have no escapes. */
static const char *text_in(const char *json, const char *member, size_t *ret_size)
{
    const char *at = json ? strstr(json, member) : NULL;
    at = at ? at + strlen(member) : "";
    *ret_size = strcspn(at, "\"\\");
    return at;
}

/* The next name of a list, which moves behind it. */
static const char *next_name(const char **at, size_t *left, size_t *ret_size)
{
    const char *name = *at, *comma = *left != 0 ? memchr(name, ',', *left) : NULL;
    *ret_size = comma ? (size_t)(comma - name) : *left;
    size_t behind = *ret_size + (comma != NULL);
    *at += behind;
    *left -= behind;
    return name;
}

static void add_name(char *list, size_t room, size_t *used, const char *name, size_t size)
{
    if (size == 0 || *used + size + 1 > room)
        return;
    if (*used != 0)
        list[(*used)++] = ',';
    memcpy(list + *used, name, size);
    *used += size;
}

/* Each by its UUID, or else by its name; no CPU slot. */
static void write_gpus(struct gpq_record_lines *l, const char *names, size_t n_names,
                       const char *uuids, size_t n_uuids)
{
    char list[GPQ_VALUE_GPUS * 100];
    size_t used = 0;
    while (n_names != 0) {
        size_t name_size, uuid_size;
        const char *name = next_name(&names, &n_names, &name_size);
        const char *uuid = next_name(&uuids, &n_uuids, &uuid_size);
        if (name_size >= 3 && memcmp(name, "cpu", 3) == 0)
            continue;
        if (uuid_size != 0)
            write_gone(l, name, name_size, uuid, uuid_size);
        add_name(list, sizeof(list), &used, uuid_size != 0 ? uuid : name,
                 uuid_size != 0 ? uuid_size : name_size);
    }
    gpv_line_bytes(&l->rows, list, used);
}

static void write_devices(struct gpq_record_lines *l, const char *json, const char *at_work)
{
    size_t n_names, n_uuids;
    const char *names = text_in(json, "\"names\":\"", &n_names);
    const char *uuids = text_in(json, "\"uuids\":\"", &n_uuids);
    if (!json && at_work)
        write_gpus(l, at_work, strlen(at_work), "", 0);
    else
        write_gpus(l, names, n_names, uuids, n_uuids);
}

/* "exit 1", "signal 11 (SIGSEGV)", "limit 30 min": shorter than the texts of the store. */
static void shorten(const char *text, char ret[256])
{
    static const struct {
        const char *long_text, *text;
    } begins[] = { { "exited with status ", "exit " }, { "killed by signal ", "signal " } };
    static const char limit[] = "exceeded its time limit of ";
    char span[GPV_WORD];
    snprintf(ret, 256, "%s", text);
    for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
        if (strncmp(text, begins[i].long_text, strlen(begins[i].long_text)) == 0)
            snprintf(ret, 256, "%s%s", begins[i].text, text + strlen(begins[i].long_text));
    if (strncmp(text, limit, strlen(limit)) == 0) {
        double seconds = strtod(text + strlen(limit), NULL);
        if (seconds > 0 && seconds < 1e9)
            snprintf(ret, 256, "limit %s", gpv_span((int64_t)(seconds * 1e9), span));
    }
    char *detour = strstr(ret, ", by the shell's status ");
    if (detour) {
        const char *rest = strchr(detour, ':');
        memmove(detour, rest ? rest : "", strlen(rest ? rest : "") + 1);
    }
}

/* Why it ended so, and the last line that it printed. */
static void write_end(struct gpv_lines *to, const struct gpq_attempt *a)
{
    char text[END_MOST], cause[256] = "";
    const char *said = a->said ? a->said : "";
    if (a->outcome == GPQ_OUTCOME_SUCCESS) { /* of a task of a class the text is its device */
        gpv_line_text(to, NULL);
        return;
    }
    if (a->text)
        shorten(a->text, cause);
    if (a->returned_at != 0 && strcmp(cause, GPQ_DRAINED) != 0)
        snprintf(text, sizeof(text), "%s%s%s", gpq_return_text(a->returned), *cause ? ": " : "",
                 cause);
    else if (*said && a->text && strstr(a->text, said)) /* the error of a worker's task is both */
        snprintf(text, sizeof(text), "%s", cause);
    else
        snprintf(text, sizeof(text), "%s%s%s", cause, *cause && *said ? ": " : "", said);
    gpv_line_text(to, text);
}

/* The first characters of some bytes. */
static size_t cut(const char *text, size_t size, size_t most)
{
    size_t at = 0;
    for (size_t n = 0; at < size && at < most * 4; at++) {
        n += ((unsigned char)text[at] & 0xc0) != 0x80;
        if (n > most)
            break;
    }
    return at;
}

/* The words of a command with blanks between them; of `sh -c LINE` the line. */
static void write_command(struct gpv_lines *to, const char *argv, size_t size)
{
    static const char shell[] = "/bin/sh\0-c"; /* and its NUL byte */
    char text[NAME_MOST * 4];
    if (size > sizeof(shell) && memcmp(argv, shell, sizeof(shell)) == 0) {
        argv += sizeof(shell);
        size -= sizeof(shell);
    }
    size_t n = cut(argv, size - 1, NAME_MOST);
    memcpy(text, argv, n);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    gpv_line_bytes(to, text, n);
}

static void write_name(struct gpv_lines *to, const struct gpq_history *h)
{
    struct gpq_bytes payload = gpq_payload_of(h->content);
    if (h->name)
        gpv_line_text(to, h->name);
    else if (gpq_is_argv(h->content))
        write_command(to, h->content.data, h->content.size);
    else if (payload.size != 0 && !memchr(payload.data, 0, payload.size))
        gpv_line_bytes(to, payload.data, cut(payload.data, payload.size, NAME_MOST));
    else
        gpv_line_text(to, NULL);
}

bool gpq_record_attempt(struct gpq_record_lines *l, const struct gpq_history *h,
                        const struct gpq_at_work *at_work)
{
    struct gpv_lines *to = &l->rows;
    const struct gpq_attempt *a = &h->attempt;
    bool worker = a->run && strcmp(a->run, GPQ_WORKER_RUN) == 0;
    uint64_t started = a->started != 0 ? a->started : at_work->started;
    if (started == 0 && !worker)
        started = a->claimed;
    bool runs = a->number != 0 && a->outcome == 0 && a->returned_at == 0;
    bool returned = a->returned_at != 0;
    if (returned && a->returned == GPQ_RETURN_UNSTARTED && a->outcome == 0)
        return true; /* it was claimed, and never began */
    if (runs && started == 0)
        return false;
    gpv_line_begin(to, "attempt");
    gpv_line_task(to, a->task);
    gpv_line_number(to, a->number);
    write_shape_id(l, h->shape);
    write_devices(l, a->devices, at_work->devices);
    gpv_line_time(to, a->ready);
    gpv_line_time(to, started);
    gpv_line_time(to, returned ? a->returned_at : a->ended);
    gpv_line_text(to, gpv_outcome_word(returned && a->outcome == 0 ? GPV_RETURNED : a->outcome));
    gpv_line_number(to, a->status);
    write_end(to, a);
    write_name(to, h);
    gpv_line_end(to);
    return true;
}

/* ---- Spans ---- */

static const char *text_of(const struct gpq_span *span)
{
    return span->text ? span->text : "";
}

static void end_span(struct gpv_lines *to, const struct gpq_span *span, const char *text)
{
    gpv_line_time(to, span->since);
    gpv_line_time(to, span->until);
    gpv_line_text(to, text);
    gpv_line_end(to);
}

static void begin_span(struct gpv_lines *to, const char *kind, const struct gpq_span *span)
{
    gpv_line_begin(to, kind);
    gpv_line_text(to, span->subject);
    gpv_line_text(to, span->reason);
}

/* A GPU that is kept has no class, but a task, for which it is. */
static void write_tenancy(struct gpv_lines *to, const struct gpq_span *span)
{
    size_t whom;
    const char *text = text_of(span), *why = gpq_span_why(text, &whom);
    bool kept = span->reason && strcmp(span->reason, "kept") == 0;
    begin_span(to, "tenancy", span);
    gpv_line_bytes(to, text, kept ? 0 : whom);
    end_span(to, span, kept ? text : why);
}

static void write_out(struct gpq_record_lines *l, const struct gpq_span *span)
{
    size_t whom, subject = strlen(span->subject);
    const char *text = text_of(span), *why = gpq_span_why(text, &whom);
    if (whom != subject || memcmp(text, span->subject, subject) != 0)
        write_gone(l, text, whom, span->subject, subject);
    begin_span(&l->rows, "out", span);
    end_span(&l->rows, span, why);
}

static void write_reason(struct gpq_record_lines *l, const struct gpq_span *span)
{
    size_t whom;
    const char *text = text_of(span), *why = gpq_span_why(text, &whom);
    uint32_t shape = 0;
    if (!gpq_numbers_read(span->subject, "", &shape, 1, NULL))
        return;
    gpv_line_begin(&l->rows, "reason");
    write_shape_id(l, shape);
    gpv_line_bytes(&l->rows, text, whom);
    gpv_line_text(&l->rows, span->reason);
    end_span(&l->rows, span, why);
}

/* LEAST MOST, each of which may be empty. */
static void write_left(struct gpv_lines *to, const struct gpq_span *span)
{
    const char *least = text_of(span), *most = strchr(least, ' ');
    gpv_line_begin(to, "left");
    gpv_line_text(to, span->subject);
    gpv_line_time(to, span->since);
    gpv_line_bytes(to, least, most ? (size_t)(most - least) : 0);
    gpv_line_text(to, most ? most + 1 : NULL);
    gpv_line_end(to);
}

void gpq_record_span(struct gpq_record_lines *l, const struct gpq_span *span)
{
    if (strcmp(span->kind, "tenancy") == 0) {
        write_tenancy(&l->rows, span);
    } else if (strcmp(span->kind, "device") == 0) {
        write_out(l, span);
    } else if (strcmp(span->kind, "reason") == 0) {
        write_reason(l, span);
    } else if (strcmp(span->kind, "left") == 0) {
        write_left(&l->rows, span);
    } else if (strcmp(span->kind, "life") == 0) {
        gpv_line_begin(&l->rows, "life");
        gpv_line_text(&l->rows, span->reason);
        end_span(&l->rows, span, span->text);
    }
}
