/* SPDX-License-Identifier: MIT */
/* classes.c - the classes of a decision log, with their shapes and batches. */
#include <stdio.h>
#include <string.h>

#include "view/line.h"
#include "view/read/parts.h"

/* ---- Classes ---- */

static struct gpv_log_class *class_at(struct gpv_log *l, uint32_t class)
{
    l->strange = l->strange || class >= GPV_LOG_CLASSES;
    return class < GPV_LOG_CLASSES ? &l->class[class] : NULL;
}

void gpv_log_class_fact(struct gpv_log *l, uint32_t class, struct gpv_word word,
                        struct gpv_word text)
{
    struct gpv_log_class *c = class_at(l, class);
    uint32_t kept;

    if (!c || !gpv_word_is(word, "name"))
        return;
    kept = gpv_line_keep(l->night, text.at, text.size);
    l->no_memory = l->no_memory || kept == GPV_NONE;
    *c = (struct gpv_log_class){ .name = kept == GPV_NONE ? 0 : kept };
}

/* "class 1": from here on the number is another class. */
void gpv_log_class(struct gpv_log *l)
{
    uint64_t class;

    if (!gpv_word_number(gpv_word_next(&l->rest), GPV_LOG_CLASSES - 1, &class)) {
        l->strange = true;
        return;
    }
    l->class[class].batch = 0;
    l->class[class].has_shape = false;
    l->class[class].has_line = true;
}

/* "class 1 residence=resident need=devices:1,memory:6GiB" */
void gpv_log_needs(struct gpv_log *l)
{
    struct gpv_word need = { NULL, 0 };
    uint64_t class;

    if (!gpv_word_number(gpv_word_next(&l->rest), GPV_LOG_CLASSES - 1, &class)) {
        l->strange = true;
        return;
    }
    if (gpv_word_of(&l->rest, "need", &need)) {
        uint32_t kept = gpv_line_keep(l->night, need.at, need.size);
        l->no_memory = kept == GPV_NONE;
        l->class[class].need = l->no_memory ? 0 : kept;
        l->class[class].has_shape = false;
    }
}

/* The class of a dispatcher without classes has no line. */
static uint32_t name_of(struct gpv_log *l, uint32_t class)
{
    char name[32] = "tasks";

    if (l->class[class].name != 0)
        return l->class[class].name;
    if (class != 0 || l->class[class].has_line)
        (void)snprintf(name, sizeof(name), "class %u", (unsigned)class);
    return l->class[class].name = gpv_log_keep(l, name);
}

uint32_t gpv_log_class_of(struct gpv_log *l, uint32_t class)
{
    const struct gpv_class row = { name_of(l, class) };

    if (l->no_memory)
        return GPV_NONE;
    gpv_log_added(l, gpv_add_class(l->night, &row));
    return gpv_find_class(l->night, gpv_text(l->night, row.name));
}

/* ---- Shapes ---- */

/* The value of "devices:2,memory:6GiB" for a key; of size 0: it has none. */
static struct gpv_word need_of(const char *need, const char *key)
{
    const size_t size = strlen(key);

    for (const char *at = need; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, key, size) == 0 && at[size] == ':')
            return (struct gpv_word){ at + size + 1, strcspn(at + size + 1, ",") };
    return (struct gpv_word){ need, 0 };
}

static uint32_t gpus_of(const char *need)
{
    struct gpv_word word = need_of(need, "devices");
    uint64_t gpus;

    return word.size == 0 ? 1 : gpv_word_number(word, UINT16_MAX, &gpus) ? (uint32_t)gpus : 0;
}

/* "2 GPUs, 40 GiB" */
static uint32_t needs_text(struct gpv_log *l, const char *need)
{
    struct gpv_word memory = need_of(need, "memory"), cpus = need_of(need, "cpus");
    const uint32_t gpus = gpus_of(need);
    char text[96] = "";
    uint64_t bytes, n;
    int at = 0;

    if (gpus != 0)
        at = snprintf(text, sizeof(text), "%u GPU%s", (unsigned)gpus, gpus == 1 ? "" : "s");
    if (gpv_word_bytes(memory, &bytes) && bytes != 0)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%llu %s", at ? ", " : "",
                       (unsigned long long)(bytes >> (bytes % (1 << 30) == 0 ? 30 : 20)),
                       bytes % (1 << 30) == 0 ? "GiB" : "MiB");
    if (gpv_word_number(cpus, UINT32_MAX, &n) && n != 0)
        (void)snprintf(text + at, sizeof(text) - (size_t)at, "%s%llu CPU%s", at ? ", " : "",
                       (unsigned long long)n, n == 1 ? "" : "s");
    return gpv_log_keep(l, text);
}

/* Index in the night, or GPV_NONE. */
static uint32_t shape_of(struct gpv_log *l, uint32_t class, uint32_t need)
{
    const uint32_t of = gpv_log_class_of(l, class);
    uint32_t n = l->n_shapes;

    for (uint32_t i = 0; i < n; i++)
        if (l->shapes.row[i].class == of && l->shapes.row[i].need == need)
            return l->shapes.row[i].shape;
    if (n == GPV_LOG_SHAPES || l->no_memory || !GPV_LOG_ROOM(l, l->shapes, (size_t)n + 1))
        return GPV_NONE;
    struct gpv_shape row = { ++l->n_shapes, of, gpus_of(gpv_text(l->night, need)),
                             needs_text(l, gpv_text(l->night, need)) };
    gpv_log_added(l, gpv_add_shape(l->night, &row));
    l->shapes.row[n] = (struct gpv_log_shape){ of, need, gpv_find_shape(l->night, row.id) };
    return l->shapes.row[n].shape;
}

static uint32_t shape_of_class(struct gpv_log *l, uint32_t class)
{
    struct gpv_log_class *c = &l->class[class];

    if (!c->has_shape) {
        c->need = c->need ? c->need : gpv_log_keep(l, "devices:1");
        c->shape = shape_of(l, class, c->need);
        c->has_shape = true;
    }
    return c->shape;
}

uint32_t gpv_log_shape_of(struct gpv_log *l, uint32_t class)
{
    struct gpv_word need;
    uint32_t kept;

    if (!gpv_word_of(&l->rest, "need", &need) || need.size == 0)
        return shape_of_class(l, class);
    kept = gpv_line_keep(l->night, need.at, need.size);
    l->no_memory = l->no_memory || kept == GPV_NONE;
    return l->no_memory || kept == 0 ? GPV_NONE : shape_of(l, class, kept);
}

/* ---- Batches ---- */

struct gpv_log_batch *gpv_log_batch_of(struct gpv_log *l, uint32_t class)
{
    struct gpv_log_class *c = &l->class[class];

    if (c->batch != 0)
        return &l->batches.row[c->batch - 1];
    if (!GPV_LOG_ROOM(l, l->batches, (size_t)l->n_batches + 1))
        return NULL;
    c->batch = ++l->n_batches;
    l->batches.row[c->batch - 1].row = (struct gpv_batch){
        .id = c->batch, .name = name_of(l, class), .made = l->now, .shape = GPV_NONE
    };
    return &l->batches.row[c->batch - 1];
}
