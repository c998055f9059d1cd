/* SPDX-License-Identifier: MIT */
/* sections.c - the sections of a config that was read. */
#include <stdlib.h>
#include <string.h>

#include "queue/config/config.h"

const struct gpq_section *gpq_config_section(const struct gpq_config *c, enum gpq_section_kind kind,
                                             const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->section[i].kind == kind && !strcmp(c->section[i].name, name))
            return &c->section[i];
    return NULL;
}

const char *gpq_section_get(const struct gpq_section *s, enum gpq_key key)
{
    return s->entry[key].value ? s->entry[key].value : gpq_keys[key].value;
}

void gpq_config_free(struct gpq_config *c)
{
    free(c->path);
    free(c->directory);
    free(c->text);
    free(c->section);
    *c = (struct gpq_config){ 0 };
}
