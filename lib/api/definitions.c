/* SPDX-License-Identifier: MIT */
#include "api/definitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/versioned.h"
#include "base/failure.h"

#define NAME_MAX_BYTES 63
#define DEFINITIONS_MAX 1024
#define LEAST_SIZE offsetof(struct gpud_definition, process_batch) /* the first version's */

static int check_definition(const struct gpud_definition *all, size_t i, struct gpud_error *e)
{
    const struct gpud_definition *d = &all[i];

    if (!d->name || !*d->name || strnlen(d->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return gpi_fail(e, GPUD_EINVAL, 0, "name",
                        "definitions[%zu].name %s, expected 1 to %d bytes", i,
                        !d->name   ? "is NULL"
                        : *d->name ? "is too long"
                                   : "is empty",
                        NAME_MAX_BYTES);
    if (!d->process && !d->process_batch)
        return gpi_fail(e, GPUD_EINVAL, 0, "process",
                        "definitions[%zu] (%s): process and process_batch are NULL", i, d->name);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(all[k].name, d->name))
            return gpi_fail(e, GPUD_EINVAL, 0, "name",
                            "definitions[%zu] and definitions[%zu] have the same name, %s", k, i,
                            d->name);
    return 0;
}

/* Reads definition i of an array whose records are as long as the caller knows them. */
static int read_definition(struct gpud_definition *to, const struct gpud_definition *from, size_t i,
                           struct gpud_error *e)
{
    const size_t stride = from->struct_size;
    const char *at = (const char *)from + i * stride;
    char record[40];
    uint32_t given;
    int r;

    memcpy(&given, at, sizeof given);
    r = given == stride && stride % sizeof(void *) == 0
            ? gpi_versioned_read(to, sizeof *to, at, LEAST_SIZE)
            : GPUD_ESTRUCT;
    if (r == 0)
        return 0;
    (void)snprintf(record, sizeof record, "definitions[%zu]", i);
    return gpi_fail_size(e, r, record, given, sizeof *to);
}

static int read_all(struct gpud_definition *to, const struct gpud_definition *from, size_t n,
                    struct gpud_error *e)
{
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        r = read_definition(&to[i], from, i, e);
        if (r == 0)
            r = check_definition(to, i, e);
    }
    return r;
}

int gpi_definitions_copy(struct gpud_definition **ret, const struct gpud_definition *from, size_t n,
                         struct gpud_error *e)
{
    struct gpud_definition *to;
    char *names;
    int r;

    if (!from)
        return gpi_fail_null(e, "definitions");
    if (n == 0 || n > DEFINITIONS_MAX)
        return gpi_fail(e, GPUD_EINVAL, 0, "definitions", "n is %zu, expected 1 to %d definitions",
                        n, DEFINITIONS_MAX);
    to = malloc(n * (sizeof *to + NAME_MAX_BYTES + 1));
    if (!to)
        return gpi_fail(e, GPUD_ENOMEM, ENOMEM, "", "no memory for the definitions");
    r = read_all(to, from, n, e);
    if (r) {
        free(to);
        return r;
    }
    names = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        strcpy(names + i * (NAME_MAX_BYTES + 1), to[i].name);
        to[i].name = names + i * (NAME_MAX_BYTES + 1);
    }
    *ret = to;
    return 0;
}
