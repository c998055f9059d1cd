/* SPDX-License-Identifier: MIT */
/* grant.c - writes and reads grants. */
#include "queue/agent/grant.h"

#include <string.h>

char *gpq_grant_write(const struct gpud_event *event)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "names", event->device, "uuids",
                  event->device_uuid, "grant", (json_int_t)event->attempt, "share",
                  (json_int_t)event->share, "cpus", (json_int_t)event->cpus, "memory",
                  (json_int_t)event->memory, "host_memory", (json_int_t)event->host_memory);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static const char *text_in(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

static uint64_t number_in(const json_t *json, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(json, name));
}

bool gpq_grant_read(const char *text, struct gpq_grant *ret)
{
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    *ret = (struct gpq_grant){ .json = json,
                               .names = text_in(json, "names"),
                               .uuids = text_in(json, "uuids"),
                               .number = (uint32_t)number_in(json, "grant"),
                               .share = (uint32_t)number_in(json, "share"),
                               .cpus = (uint32_t)number_in(json, "cpus"),
                               .memory = number_in(json, "memory"),
                               .host_memory = number_in(json, "host_memory") };
    return json || !text;
}

void gpq_grant_free(struct gpq_grant *g)
{
    json_decref(g->json);
    g->json = NULL;
}

bool gpq_list_has(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == size && strncmp(at, name, size) == 0)
            return true;
    return false;
}
