/* SPDX-License-Identifier: MIT */
/* fields.c - the members of a snapshot in JSON. */
#include "view/now/fields.h"

#include <string.h>

#include "view/night/findings.h"

static const char *finding_word(uint32_t kind)
{
    static const char *const words[] = { "",
                                         [GPV_FINDING_BAD] = "bad",
                                         [GPV_FINDING_OUT] = "out",
                                         [GPV_FINDING_KEPT] = "kept",
                                         [GPV_FINDING_LIMITED] = "limited",
                                         [GPV_FINDING_EVICTED] = "evicted",
                                         [GPV_FINDING_UNKNOWN] = "unknown",
                                         [GPV_FINDING_CLOCK] = "clock" };
    return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "?";
}

#define FIELD(type, member, name, kind, none, word)                                             \
    {                                                                                           \
        name, kind, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), none, \
            word                                                                                \
    }
#define END_OF_FIELDS \
    {                 \
        .name = NULL  \
    }
#define NO_INDEX ((int64_t)GPV_NONE)

#define GPU(member, kind, none) FIELD(gpv_now_gpu, member, #member, kind, none, NULL)
static const struct gpv_field gpu_fields[] = {
    FIELD(gpv_now_gpu, name, "gpu", GPV_TEXT, 0, NULL),
    GPU(index, GPV_U32, NO_INDEX),
    GPU(uuid, GPV_TEXT, 0),
    GPU(model, GPV_TEXT, 0),
    GPU(pci, GPV_TEXT, 0),
    GPU(profile, GPV_TEXT, 0),
    GPU(parent, GPV_TEXT, 0),
    FIELD(gpv_now_gpu, does, "does", GPV_WORD_OF, -1, gpv_does_word),
    GPU(since, GPV_I64, 0),
    FIELD(gpv_now_gpu, class_name, "class", GPV_TEXT, 0, NULL),
    GPU(task, GPV_TASK_ID, 0),
    GPU(attempt, GPV_U32, 0),
    GPU(tasks, GPV_U32, 0),
    GPU(limit, GPV_I64, 0),
    GPU(with, GPV_TEXT, 0),
    GPU(text, GPV_TEXT, 0),
    GPU(kept_for, GPV_TASK_ID, 0),
    GPU(memory_used, GPV_U64, -1),
    GPU(memory_total, GPV_U64, -1),
    GPU(utilization, GPV_U32, NO_INDEX),
    GPU(temperature, GPV_U32, NO_INDEX),
    GPU(power, GPV_U32, NO_INDEX),
    GPU(asleep, GPV_FLAG, 0),
    GPU(uses, GPV_USE_TIMES, 0),
    END_OF_FIELDS,
};

#define CLASS(member, kind, none) FIELD(gpv_now_class, member, #member, kind, none, NULL)
static const struct gpv_field class_fields[] = {
    FIELD(gpv_now_class, name, "class", GPV_TEXT, 0, NULL),
    CLASS(workers, GPV_U32, 0),
    CLASS(ready, GPV_U32, 0),
    CLASS(loading, GPV_U32, 0),
    CLASS(boot_p50, GPV_I64, -1),
    CLASS(run_p50, GPV_I64, -1),
    CLASS(evicted, GPV_U64, 0),
    CLASS(restarts, GPV_U64, 0),
    FIELD(gpv_now_class, waiting, "waiting", GPV_COUNTS, 0, gpv_why_word),
    CLASS(held, GPV_U64, 0),
    FIELD(gpv_now_class, ended_by, "ended", GPV_COUNTS, 0, gpv_outcome_word),
    FIELD(gpv_now_class, tasks_by, "tasks", GPV_COUNTS, 0, gpv_outcome_word),
    CLASS(run, GPV_HISTOGRAM, 0),
    CLASS(wait, GPV_HISTOGRAM, 0),
    END_OF_FIELDS,
};

#define BATCH(member, kind, none) FIELD(gpv_now_batch, member, #member, kind, none, NULL)
static const struct gpv_field batch_fields[] = {
    FIELD(gpv_now_batch, id, "batch", GPV_U32, 0, NULL),
    BATCH(name, GPV_TEXT, 0),
    BATCH(priority, GPV_I32, 0),
    BATCH(made, GPV_I64, 0),
    BATCH(ended, GPV_I64, 0),
    BATCH(total, GPV_U32, 0),
    BATCH(ok, GPV_U32, 0),
    BATCH(bad, GPV_U32, 0),
    BATCH(running, GPV_U32, 0),
    BATCH(ready, GPV_U32, 0),
    BATCH(held, GPV_U32, 0),
    BATCH(turn, GPV_U32, 0),
    BATCH(first, GPV_TASK_ID, 0),
    FIELD(gpv_now_batch, why, "why", GPV_WORD_OF, GPV_WHY_UNSEEN, gpv_why_word),
    BATCH(reason, GPV_TEXT, 0),
    BATCH(text, GPV_TEXT, 0),
    BATCH(gpus, GPV_U32, 0),
    BATCH(since, GPV_I64, 0),
    BATCH(least, GPV_I64, -1),
    BATCH(most, GPV_I64, -1),
    BATCH(per_hour, GPV_DECIMAL, 0),
    END_OF_FIELDS,
};

#define FINDING(member, kind, none) FIELD(gpv_now_finding, member, #member, kind, none, NULL)
static const struct gpv_field finding_fields[] = {
    FIELD(gpv_now_finding, kind, "kind", GPV_WORD_OF, 0, finding_word),
    FIELD(gpv_now_finding, outcome, "outcome", GPV_WORD_OF, 0, gpv_outcome_word),
    FINDING(batch, GPV_U32, 0),
    FINDING(first, GPV_I64, 0),
    FINDING(last, GPV_I64, 0),
    FINDING(count, GPV_U64, 0),
    FINDING(tasks, GPV_U32, 0),
    FINDING(what, GPV_TEXT, 0),
    FINDING(whose, GPV_TEXT, 0),
    FINDING(text, GPV_TEXT, 0),
    FINDING(gpus, GPV_TEXT, 0),
    FINDING(command, GPV_TEXT, 0),
    END_OF_FIELDS,
};

#define ENDED(member, kind, none) FIELD(gpv_now_end, member, #member, kind, none, NULL)
static const struct gpv_field end_fields[] = {
    ENDED(time, GPV_I64, 0),
    ENDED(task, GPV_TASK_ID, 0),
    FIELD(gpv_now_end, batch_name, "batch", GPV_TEXT, 0, NULL),
    FIELD(gpv_now_end, outcome, "outcome", GPV_WORD_OF, -1, gpv_outcome_word),
    ENDED(ran, GPV_I64, -1),
    ENDED(waited, GPV_I64, -1),
    ENDED(gpus, GPV_TEXT, 0),
    END_OF_FIELDS,
};

#define HEAD(member, kind, none) FIELD(gpv_snapshot, member, #member, kind, none, NULL)
const struct gpv_field gpv_head_fields[] = {
    HEAD(sequence, GPV_U64, 0), HEAD(time, GPV_I64, 0),     HEAD(since, GPV_I64, 0),
    HEAD(host, GPV_TEXT, 0),    HEAD(version, GPV_TEXT, 0), HEAD(pid, GPV_U32, 0),
    HEAD(notice, GPV_TEXT, 0),  HEAD(bad_24h, GPV_U64, 0),  HEAD(bad_tasks_24h, GPV_U64, 0),
    HEAD(least, GPV_I64, -1),   HEAD(most, GPV_I64, -1),    END_OF_FIELDS,
};

#define MORE(member) FIELD(gpv_now_more, member, #member, GPV_U32, 0, NULL)
const struct gpv_field gpv_more_fields[] = {
    MORE(batches), MORE(total), MORE(ok),       MORE(bad),     MORE(running), MORE(ready),
    MORE(held),    MORE(turn),  MORE(findings), MORE(classes), END_OF_FIELDS,
};

#define LIST(member, type, fields, rows, bytes)                                                  \
    {                                                                                            \
#member, fields, offsetof(struct gpv_snapshot, member), sizeof(struct type), rows, bytes \
    }
const struct gpv_now_list gpv_now_lists[GPV_NOW_LISTS] = {
    [GPV_GPUS] = LIST(gpus, gpv_now_gpu, gpu_fields, 0, 0),
    [GPV_CLASSES] = LIST(classes, gpv_now_class, class_fields, GPV_NOW_CLASSES, 0),
    [GPV_BATCHES] =
        LIST(batches, gpv_now_batch, batch_fields, GPV_NOW_BATCHES, GPV_NOW_BATCH_BYTES),
    [GPV_FINDINGS] =
        LIST(findings, gpv_now_finding, finding_fields, GPV_NOW_FINDINGS, GPV_NOW_FINDING_BYTES),
    [GPV_ENDS] = LIST(ends, gpv_now_end, end_fields, GPV_NOW_ENDS, GPV_NOW_END_BYTES),
};

int64_t gpv_number_in(const void *at, size_t size)
{
    uint32_t small;
    int64_t large;
    if (size == sizeof(small)) {
        memcpy(&small, at, sizeof(small));
        return small;
    }
    memcpy(&large, at, sizeof(large));
    return large;
}
