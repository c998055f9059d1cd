/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report.h"

#define TEXT 80
#define ENVIRONMENT 3000
#define BYTES(text)            \
    {                          \
        text, sizeof(text) - 1 \
    }

const struct gpq_bytes bq_stamp = BYTES("train.py 18734 1764370812.123456789");

static const struct gpq_bytes content =
    BYTES("{\"kind\":\"command\",\"cwd\":\"/home/ada/experiments/sweep\"}");
static const struct gpq_bytes shape = BYTES("{\"gpus\":1,\"memory\":8589934592}");
static const struct gpq_bytes options = BYTES("{\"limit\":3600000000000}");

int bq_load_open(struct bq_load *l, uint32_t most)
{
    char *environment = malloc(ENVIRONMENT);

    *l = (struct bq_load){ .items = calloc(most, sizeof *l->items),
                           .texts = malloc((size_t)most * TEXT),
                           .most = most };
    l->spec = (struct gpq_spec){ .content = content, .shape = shape, .options = options };
    if (environment) {
        memset(environment, 'e', ENVIRONMENT);
        l->spec.environment = (struct gpq_bytes){ environment, ENVIRONMENT };
    }
    if (l->items && l->texts && environment)
        return 0;
    bq_load_close(l);
    return b_complain("out of memory");
}

void bq_load_close(struct bq_load *l)
{
    free(l->items);
    free(l->texts);
    free((void *)l->spec.environment.data);
    *l = (struct bq_load){ 0 };
}

void bq_load_fill(struct bq_load *l, uint64_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char *text = l->texts + (size_t)i * TEXT;
        const unsigned long long line = first + i;
        const int size = snprintf(text, TEXT, "python%ctrain.py%c--seed%c%llu%c--out%cruns/%llu", 0,
                                  0, 0, line, 0, 0, line);

        l->items[i] = (struct gpq_item){ .line = i + 1,
                                         .content = { text, (size_t)size },
                                         .stamp = bq_stamp };
    }
}
