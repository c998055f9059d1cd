/* SPDX-License-Identifier: MIT */
/* client_ids.c - ids of batches, tasks and ranges, as a person writes them. */
#include "harness.h"

#include "queue/client/ids.h"

T_CASE(ids)
{
    static const struct {
        const char *text;
        struct gpq_id id;
    } ids[] = {
        { "1", { GPQ_ID_BATCH, 1, 0, 0 } },
        { "4294967295", { GPQ_ID_BATCH, UINT32_MAX, 0, 0 } },
        { "007", { GPQ_ID_BATCH, 7, 0, 0 } },
        { "12.44", { GPQ_ID_TASK, 12, 44, 44 } },
        { "12.4294967295", { GPQ_ID_TASK, 12, UINT32_MAX, UINT32_MAX } },
        { "12.40-49", { GPQ_ID_RANGE, 12, 40, 49 } },
        { "12.40-40", { GPQ_ID_RANGE, 12, 40, 40 } },
    };
    static const char *const none[] = {
        "",           "0",
        "-1",         "+1",
        " 1",         "1 ",
        "4294967296", "99999999999999999999999",
        "1.",         "1.0",
        "1.x",        "1.1x",
        "1.1-",       "1.2-1",
        "1.1-0",      "1.1-2-3",
        "1.1.1",      "1.1-4294967296",
        ".1",         "a",
        "1,2",        "0x1",
        "1e3",        "night",
    };

    for (size_t i = 0; i < T_LENGTH(ids); i++) {
        struct gpq_id id = gpq_id_read(ids[i].text);
        T_EQ(id.kind, ids[i].id.kind);
        T_EQ(id.batch, ids[i].id.batch);
        if (id.kind == GPQ_ID_BATCH)
            continue;
        T_EQ(id.first, ids[i].id.first);
        T_EQ(id.last, ids[i].id.last);
    }
    for (size_t i = 0; i < T_LENGTH(none); i++)
        if (gpq_id_read(none[i]).kind != GPQ_ID_NONE)
            T_FAIL("'%s' is no id", none[i]);
}
