/* SPDX-License-Identifier: MIT */
/* needs.c - what a task needs, as JSON and as the dispatcher's request. */
#include "queue/agent/needs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/classes.h"
#include "queue/agent/fit.h"
#include "queue/agent/requests.h"

enum { GPUS_MOST = 16, SHARE_WHOLE = 10000, CPUS_MOST = 1 << 20, NAMES_MOST = 4095 };

struct variant {
    struct gpud_request r;
    uint32_t share;         /* 0 = not named */
    const char *class_name; /* of a shape */
    json_t *others;
};

#define AT(member) offsetof(struct variant, member)
static const struct gpq_field fields[] = {
    { "gpus", GPQ_FIELD_U32, AT(r.devices), 0, GPUS_MOST },
    { "share", GPQ_FIELD_U32, AT(share), 1, SHARE_WHOLE },
    { "memory", GPQ_FIELD_U64, AT(r.memory), 0, INT64_MAX },
    { "cpus", GPQ_FIELD_U32, AT(r.cpus), 0, CPUS_MOST },
    { "host_memory", GPQ_FIELD_U64, AT(r.host_memory), 0, INT64_MAX },
    { "compute", GPQ_FIELD_U32, AT(r.compute), 0, UINT32_MAX },
    { "on", GPQ_FIELD_TEXT, AT(r.on), 0, NAMES_MOST },
    { "not_on", GPQ_FIELD_TEXT, AT(r.not_on), 0, NAMES_MOST },
    { "or", GPQ_FIELD_LIST, AT(others), 0, GPQ_VARIANTS - 1 }, /* the first variant alone has it */
    { "class", GPQ_FIELD_TEXT, AT(class_name), 1, 63 },        /* a shape alone has it */
    { 0 },
};
enum { FIELDS_OF_A_VARIANT = 8, FIELDS_OF_NEEDS = 9, FIELDS = 10 };

/* What only GPUs have. */
static int check_without_gpus(const struct variant *v, const struct gpq_at *at, struct gpq_error *e)
{
    const char *member = v->share != 0       ? "share"
                         : v->r.memory != 0  ? "memory"
                         : v->r.compute != 0 ? "compute"
                         : v->r.on           ? "on"
                         : v->r.not_on       ? "not_on"
                                             : NULL;
    if (member)
        return gpq_at_fail(at, e, GPQ_EINVAL,
                           "has the member \"%s\", which is about GPUs, and gpus is 0: set gpus to "
                           "1 or more",
                           member);
    if (v->r.cpus == 0 && v->r.host_memory == 0)
        return gpq_at_fail(at, e, GPQ_EINVAL,
                           "needs nothing: set gpus, cpus or host_memory to more than 0");
    return 0;
}

static int finish(struct variant *v, const struct gpq_at *at, struct gpq_error *e)
{
    v->r.on = v->r.on && *v->r.on ? v->r.on : NULL;
    v->r.not_on = v->r.not_on && *v->r.not_on ? v->r.not_on : NULL;
    if (v->r.devices == 0)
        return check_without_gpus(v, at, e);
    if (v->share != 0 && v->share != SHARE_WHOLE && v->r.devices > 1)
        return gpq_at_fail(at, e, GPQ_EINVAL,
                           "share is %u, and gpus is %u: a part of a GPU is of one GPU", v->share,
                           v->r.devices);
    v->r.share = v->share != 0 ? v->share : SHARE_WHOLE;
    return 0;
}

/* Reads one variant with the first n fields. */
static int read_variant(json_t *json, const struct gpq_at *at, size_t n, uint32_t devices,
                        struct variant *v, struct gpq_error *e)
{
    struct gpq_field table[FIELDS + 1];
    memcpy(table, fields, sizeof(fields));
    table[n] = (struct gpq_field){ 0 };
    *v = (struct variant){ .r = GPUD_REQUEST_INIT };
    v->r.devices = devices != 0 ? 1 : 0;
    v->r.cpus = 1;
    int code = json ? gpq_fields_read(json, at, table, v, e) : 0;
    return code < 0 ? code : finish(v, at, e);
}

static int read_all(json_t *json, const struct gpq_at *at, size_t n, uint32_t devices,
                    struct gpq_needs *ret, struct gpq_error *e)
{
    struct variant v;
    int code = read_variant(json, at, n, devices, &v, e);
    if (code < 0)
        return code;
    json_t *others = v.others;
    *ret = (struct gpq_needs){ .n = 1, .class_name = v.class_name };
    ret->request[0] = v.r;
    for (size_t i = 0; i < json_array_size(others); i++) {
        struct gpq_at here = { at, "or", i };
        code = read_variant(json_array_get(others, i), &here, FIELDS_OF_A_VARIANT, devices, &v, e);
        if (code < 0)
            return code;
        ret->request[ret->n - 1].next = &ret->request[ret->n];
        ret->request[ret->n++] = v.r;
    }
    ret->json = json_incref(json);
    return 0;
}

int gpq_needs_read(json_t *json, const struct gpq_at *at, uint32_t devices, struct gpq_needs *ret,
                   struct gpq_error *e)
{
    return read_all(json, at, FIELDS_OF_NEEDS, devices, ret, e);
}

int gpq_needs_parse(struct gpq_bytes shape, struct gpq_needs *ret, struct gpq_error *e)
{
    const struct gpq_at at = { NULL, "shape", GPQ_NO_INDEX };
    json_error_t why;
    json_t *json = json_loadb(shape.data, shape.size, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        return gpq_at_fail(&at, e, GPQ_EINVAL, "is no JSON: %.100s", why.text);
    int code = read_all(json, &at, FIELDS, 0, ret, e);
    json_decref(json);
    return code;
}

static json_t *variant_json(const struct gpud_request *r)
{
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "gpus", (json_int_t)r->devices, "memory",
                  (json_int_t)r->memory, "cpus", (json_int_t)r->cpus, "host_memory",
                  (json_int_t)r->host_memory, "compute", (json_int_t)r->compute, "on",
                  r->on ? r->on : "", "not_on", r->not_on ? r->not_on : "");
    if (!json || r->share == 0 || json_object_set_new(json, "share", json_integer(r->share)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

json_t *gpq_needs_json(const struct gpq_needs *n)
{
    json_t *json = variant_json(&n->request[0]), *others = n->n > 1 ? json_array() : NULL;
    bool lost = n->n > 1 && !others;
    for (uint32_t i = 1; !lost && i < n->n; i++)
        lost = json_array_append_new(others, variant_json(&n->request[i])) != 0;
    if (others && json_object_set_new(json, "or", others) != 0)
        lost = true;
    if (n->class_name && json_object_set_new(json, "class", json_string(n->class_name)) != 0)
        lost = true;
    if (!lost)
        return json;
    json_decref(json);
    return NULL;
}

char *gpq_needs_write(const struct gpq_needs *n)
{
    json_t *json = gpq_needs_json(n);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(json);
    return text;
}

/* ---- In words ---- */

__attribute__((format(printf, 3, 4))) static void append(char *ret, size_t size, const char *format,
                                                         ...)
{
    size_t used = strlen(ret);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(ret + used, size - used, format, list);
    va_end(list);
}

static void append_size(char *ret, size_t size, uint64_t bytes, const char *of)
{
    bool large = bytes >= UINT64_C(1) << 30;
    append(ret, size, ", %.4g %s%s", (double)bytes / (large ? 1 << 30 : 1 << 20),
           large ? "GiB" : "MiB", of);
}

static void append_variant(char *ret, size_t size, const struct gpud_request *r)
{
    if (r->devices == 1 && r->share < SHARE_WHOLE)
        append(ret, size, "%g of a GPU", (double)r->share / SHARE_WHOLE);
    else if (r->devices == 0)
        append(ret, size, "no GPU");
    else
        append(ret, size, "%u GPU%s", r->devices, r->devices == 1 ? "" : "s");
    if (r->memory != 0)
        append_size(ret, size, r->memory, r->devices > 1 ? " each" : "");
    if (r->compute != 0)
        append(ret, size, ", compute %u.%u", r->compute / 100, r->compute % 100);
    if (r->on)
        append(ret, size, ", on %.100s", r->on);
    if (r->not_on)
        append(ret, size, ", not on %.100s", r->not_on);
    if (r->cpus > 1)
        append(ret, size, ", %u CPU slots", r->cpus);
    if (r->host_memory != 0)
        append_size(ret, size, r->host_memory, " of the machine");
}

const char *gpq_needs_text(const struct gpq_needs *n, char *ret, size_t size)
{
    ret[0] = '\0';
    for (uint32_t i = 0; i < n->n; i++) {
        append(ret, size, "%s", i == 0 ? "" : " or ");
        append_variant(ret, size, &n->request[i]);
    }
    return ret;
}

/* ---- Names of devices ---- */

/* Appends one name of the list, completed. */
static int add_name(struct gpq_agent *a, const char *name, bool allow_wait, const struct gpq_at *at,
                    char *ret, size_t room, struct gpq_error *e)
{
    struct gpud_device_info info = GPUD_DEVICE_INFO_INIT;
    char all[256];
    size_t used = strlen(ret);
    bool number = strspn(name, "0123456789") == strlen(name);
    const char *known = name;
    if (gpq_device_find(a, name, &info))
        known = number ? info.name : !strcmp(name, info.name) ? info.name : info.uuid;
    else if (!allow_wait) {
        gpq_devices_text(a, all, sizeof(all));
        return gpq_at_fail(at, e, GPQ_EREFUSED,
                           "is \"%.95s\": the agent has no such GPU, or several; it has %s; "
                           "--allow-wait accepts it for devices to come",
                           name, all);
    }
    int n = snprintf(ret + used, room - used, "%s%s%s", used ? "," : "",
                     known == name && number ? "gpu:" : "", known);
    return n >= 0 && (size_t)n < room - used
               ? 0
               : gpq_at_fail(at, e, GPQ_EINVAL, "has more than %d bytes", NAMES_MOST);
}

static int complete_names(struct gpq_agent *a, json_t *needs, const char *member, bool allow_wait,
                          const struct gpq_at *in, struct gpq_error *e)
{
    const struct gpq_at at = { in, member, GPQ_NO_INDEX };
    const char *text = json_string_value(json_object_get(needs, member));
    char ret[NAMES_MOST + 1] = "", *copy, *rest, *name;
    int code = 0;
    if (!text || !*text)
        return 0;
    copy = rest = strdup(text);
    if (!copy)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the needs");
    while (code == 0 && (name = strsep(&rest, ",")))
        if (*name)
            code = add_name(a, name, allow_wait, &at, ret, sizeof(ret), e);
    free(copy);
    if (code == 0 && strcmp(ret, text) != 0 &&
        json_object_set_new(needs, member, json_string(ret)) != 0)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory for the needs");
    return code;
}

int gpq_needs_names(struct gpq_agent *a, json_t *needs, bool allow_wait, const struct gpq_at *at,
                    struct gpq_error *e)
{
    json_t *others = json_object_get(needs, "or"), *one;
    size_t i;
    if (!a->dispatcher)
        return 0;
    int code = complete_names(a, needs, "on", allow_wait, at, e);
    if (code == 0)
        code = complete_names(a, needs, "not_on", allow_wait, at, e);
    json_array_foreach(others, i, one)
    {
        const struct gpq_at here = { at, "or", i };
        if (code == 0)
            code = complete_names(a, one, "on", allow_wait, &here, e);
        if (code == 0)
            code = complete_names(a, one, "not_on", allow_wait, &here, e);
    }
    return code;
}

/* ---- Checks ---- */

/* The needs of a class were checked when it was added. */
static int check_class(const struct gpq_agent *a, const char *name, const struct gpq_at *at,
                       struct gpq_error *e)
{
    char why[384];
    if (gpq_class_usable(a, name, why, sizeof(why)))
        return 0;
    return gpq_at_fail(at, e, GPQ_EREFUSED, "class is \"%.63s\": %s", name, why);
}

/* No device that is here could ever hold them. */
static int refuse_misfit(struct gpq_agent *a, const struct gpq_needs *n, const struct gpq_at *at,
                         const char *text, struct gpq_error *e)
{
    struct gpq_misfit why = { .member = NULL };
    bool known = gpq_misfit(a, n, &why);
    const struct gpq_at member = { at, why.member, GPQ_NO_INDEX };
    if (!known) /* of the class, or the devices have changed */
        return gpq_at_fail(at, e, GPQ_EREFUSED, "can never be met here: %.240s", text);
    return gpq_at_fail(why.member ? &member : at, e, GPQ_EREFUSED,
                       "%s %s: %s%s; --allow-wait accepts it for devices to come",
                       why.member ? "is" : "are", why.value, why.why,
                       n->n > 1 ? ", nor can those of \"or\" be met" : "");
}

int gpq_needs_check(struct gpq_agent *a, const struct gpq_needs *n, const char *class_name,
                    bool allow_wait, const struct gpq_at *at, struct gpq_error *e)
{
    struct gpud_task_desc desc = GPUD_TASK_DESC_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    if (!a->dispatcher)
        return 0;
    if (strcmp(class_name, GPQ_COMMANDS) != 0)
        return check_class(a, class_name, at->in, e);
    desc.class_name = class_name;
    desc.request = n->request;
    switch (gpud_dispatcher_check(a->dispatcher, &desc, &why)) {
    case GPUD_EDEVICE:
        return allow_wait ? 0 : refuse_misfit(a, n, at, why.text, e);
    case GPUD_EINVAL:
        return gpq_at_fail(at, e, GPQ_EINVAL, "is refused: %.300s", why.text);
    default: /* no room now, or no more: the store keeps the task */
        return 0;
    }
}

void gpq_needs_free(struct gpq_needs *n)
{
    json_decref(n->json);
    *n = (struct gpq_needs){ 0 };
}
