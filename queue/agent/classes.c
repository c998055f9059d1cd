/* SPDX-License-Identifier: MIT */
/* classes.c - finds classes by their names, and lists them. */
#include "queue/agent/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/requests.h"

enum { CLASSES_MOST = 256 };

struct gpq_class *gpq_class_find(const struct gpq_agent *a, const char *name)
{
    for (size_t i = 0; a->classes && i < a->classes->n; i++)
        if (!strcmp(a->classes->list[i].name, name))
            return &a->classes->list[i];
    return NULL;
}

/* The names, as many as there is room for. */
static void list_names(const struct gpq_classes *all, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < all->n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ",
                                 all->list[i].name);
}

bool gpq_class_usable(const struct gpq_agent *a, const char *name, char *text, size_t size)
{
    const struct gpq_class *class = gpq_class_find(a, name);
    const char *path = a->classes ? a->classes->path : NULL;
    char names[160];
    if (class && class->there)
        return true;
    if (class) {
        (void)snprintf(text, size, "it cannot run here: %s", class->text);
    } else if (!path || a->classes->n == 0) {
        (void)snprintf(text, size, "no such class; the config file %.120s has none",
                       path ? path : "of the agent");
    } else {
        list_names(a->classes, names, sizeof(names));
        (void)snprintf(text, size, "no such class; the config file %.120s has %s", path, names);
    }
    return false;
}

bool gpq_class_stats(const struct gpq_agent *a, const char *name, struct gpud_class_stats *ret)
{
    struct gpud_class_stats *rows = a->dispatcher ? calloc(CLASSES_MOST, sizeof(*rows)) : NULL;
    bool found = false;
    *ret = (struct gpud_class_stats)GPUD_CLASS_STATS_INIT;
    for (int i = 0; rows && i < CLASSES_MOST; i++)
        rows[i] = *ret;
    int n = rows ? gpud_dispatcher_classes(a->dispatcher, rows, CLASSES_MOST) : 0;
    for (int i = 0; i < n && i < CLASSES_MOST && !found; i++) {
        found = strcmp(rows[i].name, name) == 0;
        if (found)
            *ret = rows[i];
    }
    free(rows);
    return found;
}

/* ---- The request ---- */

const struct gpq_field gpq_classes_fields[] = { { 0 } };

static json_t *class_json(const struct gpq_agent *a, const struct gpq_class *c)
{
    struct gpud_class_stats s;
    (void)gpq_class_stats(a, c->name, &s);
    json_t *row =
        json_pack("{s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "class", c->name, "usable",
                  (int)c->there, "paused", (int)c->paused, "failed", (int)c->failed, "fit",
                  (json_int_t)c->fit, "batch", (json_int_t)c->batch, "workers",
                  (json_int_t)s.workers, "starting", (json_int_t)s.starting, "queued",
                  (json_int_t)s.queued, "running", (json_int_t)s.running);
    if (row && c->text[0])
        (void)json_object_set_new(row, "text", gpq_text_json(c->text));
    return row;
}

json_t *gpq_do_classes(struct gpq_call *c)
{
    const struct gpq_classes *all = c->a->classes;
    if (gpq_call_read(c, gpq_classes_fields, NULL) < 0)
        return NULL;
    json_t *list = json_array();
    bool whole = list != NULL;
    for (size_t i = 0; whole && all && i < all->n; i++)
        whole = json_array_append_new(list, class_json(c->a, &all->list[i])) == 0;
    if (!whole) {
        json_decref(list);
        return gpq_no_memory(c);
    }
    return gpq_reply_end(c, json_pack("{s:o, s:o}", "classes", list, "config",
                                      gpq_text_json(all ? all->path : NULL)));
}
