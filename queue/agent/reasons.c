/* SPDX-License-Identifier: MIT */
/* reasons.c - why a task does not start, as the dispatcher sees it. */
#include "queue/agent/reasons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/ahead.h"
#include "queue/agent/fields.h"
#include "queue/agent/fit.h"
#include "queue/agent/grant.h"
#include "queue/agent/lookup.h"
#include "queue/agent/needs.h"
#include "queue/agent/work.h"
#include "queue/agent/workers.h"

enum { REASONS = 64 };
#define NEAR GPUD_S(2) /* the clocks may have been read at other moments */

static const char *const units[] = {
    [GPUD_UNIT_BYTES] = "bytes",     [GPUD_UNIT_SHARE] = "share",
    [GPUD_UNIT_CPUS] = "cpus",       [GPUD_UNIT_WORKERS] = "workers",
    [GPUD_UNIT_DEVICES] = "devices", [GPUD_UNIT_COMPUTE] = "compute"
};

/* The dispatcher's number of a task means nothing to a person. */
static json_t *task_json(struct gpq_agent *a, uint64_t id)
{
    const struct gpq_unit *u = id != 0 ? gpq_work_by_id(a, id) : NULL;
    return u ? gpq_id_json(u->task) : NULL;
}

static int set_some(json_t *row, const char *name, json_t *value)
{
    return !value || json_object_set_new(row, name, value) == 0 ? 0 : GPQ_ENOMEM;
}

static json_t *some_text(const char *text)
{
    return *text ? json_string(text) : NULL;
}

static json_t *some_number(uint64_t number)
{
    return number != 0 ? json_integer((json_int_t)number) : NULL;
}

/* Whether the time is the limit of the task in the way, and no estimate. */
static bool is_limit(struct gpq_agent *a, const struct gpud_reason *r)
{
    const struct gpq_unit *u = r->task_id != 0 ? gpq_work_by_id(a, r->task_id) : NULL;
    struct gpq_task t;
    struct gpq_error e;
    if (!u || u->class || u->since == 0 || gpq_task_look(a->store, u->task, &t, &e) != 1)
        return false;
    uint64_t limit = gpq_limit_of(a, t.spec), until = gpq_wall_of(r->until);
    return limit != GPUD_NEVER && until + NEAR > u->since + limit; /* and the grace */
}

void gpq_reason_text_of(struct gpq_agent *a, const struct gpud_reason *r, char *text, size_t size)
{
    const struct gpq_unit *u = r->task_id != 0 ? gpq_work_by_id(a, r->task_id) : NULL;
    struct gpud_reason lasting = *r;
    lasting.task_id = lasting.until = 0;
    (void)gpud_reason_format(&lasting, text, size);
    size_t used = strlen(text);
    if (u)
        snprintf(text + used, size - used, "; task %u.%u", GPQ_BATCH_OF(u->task),
                 GPQ_NUMBER_OF(u->task));
}

static int add_row(struct gpq_agent *a, const struct gpud_reason *r, json_t *array)
{
    char text[256] = "";
    gpq_reason_text_of(a, r, text, sizeof(text));
    json_t *row =
        json_pack("{s:s, s:o}", "reason", gpud_reason_name(r->kind), "text", gpq_text_json(text));
    bool counted = row && r->unit < sizeof(units) / sizeof(units[0]) && units[r->unit];
    int code = row ? 0 : GPQ_ENOMEM;
    if (code == 0)
        code = set_some(row, "device", some_text(r->device));
    if (code == 0)
        code = set_some(row, "class", some_text(r->class_name));
    if (code == 0)
        code = set_some(row, "task", task_json(a, r->task_id));
    if (code == 0 && r->until != 0)
        code = set_some(row, "until", some_number(gpq_wall_of(r->until)));
    if (code == 0 && r->until != 0 && is_limit(a, r))
        code = set_some(row, "limit", json_true());
    if (code == 0)
        code = set_some(row, "pid", some_number(r->pid));
    if (code == 0 && counted && (r->have != 0 || r->need != 0)) {
        code = set_some(row, "unit", json_string(units[r->unit]));
        if (code == 0)
            code = set_some(row, "has", json_integer((json_int_t)r->have));
        if (code == 0)
            code = set_some(row, "needs", json_integer((json_int_t)r->need));
    }
    if (code == 0)
        return json_array_append_new(array, row) == 0 ? 0 : GPQ_ENOMEM;
    json_decref(row);
    return code;
}

int gpq_dispatch_explain(struct gpq_agent *a, uint64_t id, const struct gpud_task_desc *task,
                         json_t *array)
{
    struct gpud_reason reasons[REASONS];
    struct gpud_error why = GPUD_ERROR_INIT;
    size_t n = 0;
    for (int i = 0; i < REASONS; i++)
        reasons[i] = (struct gpud_reason)GPUD_REASON_INIT;
    int code = gpud_dispatcher_explain(a->dispatcher, id, task, reasons, REASONS, &n, &why);
    if (code == GPUD_EDEVICE)
        return gpq_reason_add(array, "NEVER", why.text);
    int ret = 0;
    for (size_t i = 0; code == 0 && ret == 0 && i < n && i < REASONS; i++)
        ret = add_row(a, &reasons[i], array);
    return ret;
}

int gpq_reason_add(json_t *array, const char *reason, const char *text)
{
    json_t *row = json_pack("{s:s, s:o}", "reason", reason, "text", gpq_text_json(text));
    return row && json_array_append_new(array, row) == 0 ? 0 : GPQ_ENOMEM;
}

/* ---- A task that runs ---- */

/* The slot of the worker that runs it.  False: it is behind others. */
static bool find_slot(struct gpq_agent *a, const struct gpq_unit *u, struct gpud_slot_stats *ret)
{
    int n = gpud_dispatcher_slots(a->dispatcher, NULL, 0);
    struct gpud_slot_stats *slots = n > 0 ? calloc((size_t)n, sizeof(*slots)) : NULL;
    bool found = false;
    for (int i = 0; slots && i < n; i++)
        slots[i] = (struct gpud_slot_stats)GPUD_SLOT_STATS_INIT;
    int there = slots ? gpud_dispatcher_slots(a->dispatcher, slots, (size_t)n) : 0;
    for (int i = 0; i < there && i < n && !found; i++)
        if (slots[i].task_id == u->id) {
            *ret = slots[i];
            found = true;
        }
    free(slots);
    return found;
}

uint64_t gpq_work_since(struct gpq_agent *a, uint64_t task, char devices[512])
{
    const struct gpq_unit *u = a->work ? gpq_work_of(a, task) : NULL;
    struct gpud_slot_stats slot = GPUD_SLOT_STATS_INIT;
    devices[0] = '\0';
    if (!u || !u->class)
        return u ? u->since : 0;
    if (!find_slot(a, u, &slot))
        return 0;
    snprintf(devices, 512, "%s", slot.devices);
    return gpq_wall_of(slot.task_started);
}

void gpq_work_describe(struct gpq_agent *a, const struct gpq_task *t, json_t *row)
{
    const struct gpq_unit *u = t->state == GPQ_RUNNING && row ? gpq_work_of(a, t->id) : NULL;
    struct gpud_slot_stats slot = GPUD_SLOT_STATS_INIT;
    struct gpq_grant grant;
    if (!u)
        return;
    if (u->class) {
        if (!find_slot(a, u, &slot))
            return;
        (void)json_object_set_new(row, "devices", gpq_text_json(slot.devices));
        (void)json_object_set_new(row, "started",
                                  json_integer((json_int_t)gpq_wall_of(slot.task_started)));
        return;
    }
    (void)gpq_grant_read(u->devices, &grant);
    if (*grant.names)
        (void)json_object_set_new(row, "devices", gpq_text_json(grant.names));
    if (u->since != 0)
        (void)json_object_set_new(row, "started", json_integer((json_int_t)u->since));
    gpq_grant_free(&grant);
}

/* ---- A command that is not inside ---- */

struct waiting {
    struct gpq_needs needs;
    struct gpq_error e;
    int code;
};

static int read_needs(const struct gpq_shape *s, void *user)
{
    struct waiting *w = user;
    w->code = gpq_needs_parse(s->request, &w->needs, &w->e);
    return 1;
}

static int explain_needs(struct gpq_agent *a, const struct gpq_task *t, json_t *array)
{
    struct gpud_task_desc d = GPUD_TASK_DESC_INIT;
    struct waiting w = { .code = GPQ_ENOTFOUND };
    struct gpq_misfit misfit = { .member = NULL };
    char text[512];
    int code = 0;
    if (a->store->engine->shape(a->store, t->shape, read_needs, &w, &w.e) < 0 || w.code < 0)
        return 0;
    if (!w.needs.class_name && gpq_misfit(a, &w.needs, &misfit)) {
        (void)snprintf(text, sizeof(text), "%s%s%s%s: %s", misfit.member ? "--" : "",
                       misfit.member ? misfit.member : "", misfit.member ? " " : "", misfit.value,
                       misfit.why);
        for (char *at = text; *at && *at != ' '; at++)
            *at = *at == '_' ? '-' : *at;
        code = gpq_reason_add(array, "NEVER", text);
    } else if (!w.needs.class_name) {
        d.class_name = GPQ_COMMANDS;
        d.request = w.needs.request;
        d.priority = t->priority;
        code = gpq_dispatch_explain(a, 0, &d, array);
    }
    gpq_needs_free(&w.needs);
    return code;
}

int gpq_work_explain(struct gpq_agent *a, const struct gpq_task *t, json_t *array)
{
    struct gpq_unit *u = gpq_work_of(a, t->id);
    if (u && u->phase == (u->class ? GPQ_RUNS : GPQ_INSIDE))
        return gpq_dispatch_explain(a, u->id, NULL, array);
    if (u)
        return 0;
    size_t before = json_array_size(array);
    int code = gpq_workers_explain(a, t->id, array);
    return code == 0 && json_array_size(array) == before && t->state == GPQ_READY
               ? explain_needs(a, t, array)
               : code;
}
