/* SPDX-License-Identifier: MIT */
#include "device/list.h"

#include <string.h>
#include <strings.h>

#include "base/failure.h"

#define SCRIPT ",script="
#define BLANKS " \t" /* that may surround an entry */

/* The rest of an entry. */
struct rest {
    const char *at, *end;
};

static bool take(struct rest *r, const char *word)
{
    const size_t n = strlen(word);

    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* Reads digits; a number larger than `most` becomes most + 1. */
static bool number(struct rest *r, uint32_t most, uint32_t *ret)
{
    uint32_t n = 0;
    const char *from = r->at;

    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        n = n > most ? most + 1 : n * 10 + (uint32_t)(*r->at - '0');
    *ret = n > most ? most + 1 : n;
    return r->at > from;
}

static bool count(struct rest *r, uint32_t *ret)
{
    return number(r, GPI_DEVICE_MOST, ret) && *ret >= 1 && *ret <= GPI_DEVICE_MOST;
}

/* Reads nothing, or "/K". */
static bool workers(struct rest *r, struct gpi_device_entry *ret)
{
    ret->workers = 1;
    return !take(r, "/") || count(r, &ret->workers);
}

static bool ended(const struct rest *r)
{
    return r->at == r->end;
}

static int bad(const struct gpi_device_entry *entry, const char *what, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_EDEVICE, 0, "devices", GPI_ENTRY_FORMAT " %s", GPI_ENTRY_ARGS(entry),
                    what);
}

static int cpu(struct rest r, struct gpi_device_entry *ret, struct gpud_error *e)
{
    ret->kind = GPI_ENTRY_CPU;
    if (!count(&r, &ret->n) || !workers(&r, ret) || !ended(&r))
        return bad(ret, "is not cpu:N or cpu:N/K with N and K from 1 to 1,024", e);
    return 0;
}

static int fake(struct rest r, struct gpi_device_entry *ret, struct gpud_error *e)
{
    ret->kind = GPI_ENTRY_FAKE;
    if (!count(&r, &ret->n) || ret->n > GPI_GPUS_MAX || !workers(&r, ret))
        return bad(ret,
                   "is not fake:N[/K][,script=FILE] with N from 1 to 256 and K from 1 to 1,024", e);
    if (take(&r, SCRIPT)) {
        ret->script = r.at;
        ret->script_length = (uint32_t)(r.end - r.at);
        r.at = r.end;
        if (ret->script_length == 0)
            return bad(ret, "has no file name after script=", e);
    }
    return ended(&r) ? 0 : bad(ret, "is not fake:N[/K][,script=FILE], with /K directly after N", e);
}

static int unused(struct rest r, struct gpi_device_entry *ret, struct gpud_error *e)
{
    ret->kind = GPI_ENTRY_FREE;
    if ((take(&r, ":") && !count(&r, &ret->n)) || !workers(&r, ret) || !ended(&r))
        return bad(ret, "is not free[:N][/K] with N and K from 1 to 1,024", e);
    return 0;
}

/* Reads INDEX or INDEX:INSTANCE; `r` starts with a digit, or behind "gpu:". */
static int indexed(struct rest r, struct gpi_device_entry *ret, struct gpud_error *e)
{
    /* no machine has such an index; a later error names the number of devices */
    const uint32_t most = 999999;
    bool fine = number(&r, most, &ret->n);

    ret->kind = GPI_ENTRY_INDEX;
    if (fine && take(&r, ":")) {
        ret->kind = GPI_ENTRY_INSTANCE;
        fine = number(&r, most, &ret->instance);
    }
    if (!fine || !workers(&r, ret) || !ended(&r))
        return bad(ret, "is not [gpu:]INDEX[:INSTANCE][/K] with K from 1 to 1,024", e);
    return 0;
}

/* Returns the end of a UUID, before "/K".  Drivers before 470 named instances "MIG-GPU-.../1/0",
 * with two slashes. */
static const char *uuid_end(struct rest r)
{
    const char *slash = memchr(r.at, '/', (size_t)(r.end - r.at));
    const bool old = r.end - r.at >= 8 && strncasecmp(r.at, "MIG-GPU-", 8) == 0;

    for (int own = 2; old && slash && own > 0; own--)
        slash = memchr(slash + 1, '/', (size_t)(r.end - slash - 1));
    return slash ? slash : r.end;
}

static int uuid(struct rest r, struct gpi_device_entry *ret, struct gpud_error *e)
{
    ret->kind = GPI_ENTRY_UUID;
    r.at = uuid_end(r);
    ret->word_length = (uint32_t)(r.at - ret->text);
    if (!workers(&r, ret) || !ended(&r))
        return bad(
            ret, "is not a UUID, or the beginning of one, with an optional /K from 1 to 1,024", e);
    return 0;
}

static bool is_uuid(struct rest r)
{
    const size_t n = (size_t)(r.end - r.at);

    return n >= 4 && (!strncasecmp(r.at, "GPU-", 4) || !strncasecmp(r.at, "MIG-", 4));
}

static int parse(struct gpi_device_entry *ret, struct gpud_error *e)
{
    struct rest r = { ret->text, ret->text + ret->length };

    if (take(&r, "cpu:"))
        return cpu(r, ret, e);
    if (take(&r, "fake:"))
        return fake(r, ret, e);
    if (take(&r, "free"))
        return unused(r, ret, e);
    if (take(&r, "gpu:") || (r.at < r.end && *r.at >= '0' && *r.at <= '9'))
        return indexed(r, ret, e);
    if (is_uuid(r))
        return uuid(r, ret, e);
    ret->kind = GPI_ENTRY_ALL;
    if (take(&r, "all") && workers(&r, ret) && ended(&r))
        return 0;
    r.at = ret->text;
    if (take(&r, &SCRIPT[1]))
        return bad(ret, "does not follow a fake:N without a script", e);
    return bad(ret,
               "is not one of all, free, free:N, INDEX, gpu:INDEX, INDEX:INSTANCE, GPU-..., "
               "MIG-..., cpu:N, fake:N; each may end in /K",
               e);
}

/* Returns the end of the entry at `at`. */
static const char *entry_end(const char *at)
{
    const char *end = at + strcspn(at, ",");

    if (strncmp(at, "fake:", 5) == 0 && strncmp(end, SCRIPT, strlen(SCRIPT)) == 0)
        end += 1 + strcspn(end + 1, ",");
    return end;
}

int gpi_device_entry(const char **at, const struct gpi_device_entry *before,
                     struct gpi_device_entry *ret, struct gpud_error *e)
{
    const char *text = *at + strspn(*at, BLANKS), *end = entry_end(text), *to = end;
    size_t length;

    while (to > text && strchr(BLANKS, to[-1]))
        to--;
    length = (size_t)(to - text);
    *ret = (struct gpi_device_entry){ .text = text,
                                      .length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX,
                                      .position = before ? before->position + 1 : 1 };
    *at = *end ? end + 1 : NULL;
    return parse(ret, e);
}

/* Adds the needs of one entry. */
static int add(struct gpi_device_needs *needs, const struct gpi_device_entry *entry,
               struct gpud_error *e)
{
    if (entry->kind == GPI_ENTRY_CPU) {
        needs->cpus += entry->n;
        return 0;
    }
    if (entry->kind != GPI_ENTRY_FAKE) {
        needs->gpus = true;
        needs->readings |= entry->kind == GPI_ENTRY_FREE;
        return needs->fakes
                   ? bad(entry, "is a GPU in a list with fakes: one monitor cannot read both", e)
                   : 0;
    }
    if (needs->gpus)
        return bad(entry, "is a fake in a list with GPUs: one monitor cannot read both", e);
    needs->fakes += entry->n;
    if (needs->fakes > GPI_GPUS_MAX)
        return bad(entry, "is too many fakes, the maximum is 256", e);
    if (entry->script && needs->script)
        return bad(entry, "has a second script, the maximum is one for all fakes", e);
    if (entry->script) {
        needs->script = entry->script;
        needs->script_length = entry->script_length;
    }
    return 0;
}

int gpi_device_needs(const char *text, struct gpi_device_needs *ret, struct gpud_error *e)
{
    struct gpi_device_needs needs = { .cpus = 0 };
    struct gpi_device_entry entry, *before = NULL;

    for (const char *at = text; at; before = &entry) {
        int r = gpi_device_entry(&at, before, &entry, e);
        if (r == 0)
            r = add(&needs, &entry, e);
        if (r)
            return r;
    }
    *ret = needs;
    return 0;
}
