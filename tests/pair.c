/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup_a(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    t_word_add(T_UPS);
    return 0;
}

/* Fails while word T_BROKEN is not 0. */
static int setup_b(gpud_worker *w, void **ret_state)
{
    return t_word(T_BROKEN) ? 7 : setup_a(w, ret_state);
}

/* Tells class, devices, setup data and environment: "a fake:0 data= env=". */
static int tell(gpud_task *t, gpud_worker *w, const char *who)
{
    const void *data = NULL;
    size_t size = 0;
    char text[256];
    int n;

    t_word_add(T_STARTS);
    if (gpud_task_tag(t) >= T_GATED)
        t_word_wait(T_GATE, (uint32_t)(gpud_task_tag(t) - T_GATED));
    data = gpud_worker_setup_data(w, &size);
    n = snprintf(text, sizeof(text), "%s %s data=%.*s env=%s", who, gpud_worker_device(w),
                 (int)size, data ? (const char *)data : "",
                 getenv("T_CLASS") ? getenv("T_CLASS") : "-");
    return gpud_task_result_set(t, text, (uint64_t)n + 1);
}

static int process_a(gpud_task *t, void *state)
{
    return tell(t, state, "a");
}

static int process_b(gpud_task *t, void *state)
{
    return tell(t, state, "b");
}

void t_pair_init(void)
{
    static const struct gpud_definition defs[] = {
        GPUD_DEFINITION("def-a", setup_a, process_a, NULL),
        GPUD_DEFINITION("def-b", setup_b, process_b, NULL),
    };

    T_OK(gpud_init(defs, 2, NULL));
}

void t_check_result(const struct t_log *log, uint64_t tag, const char *text)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);
    const char *device = strchr(text, ' ') + 1;

    T_TEXT((const char *)e->result, text);
    T_EQ(strncmp(e->device, device, strcspn(device, " ")), 0);
    T_EQ(strlen(e->device), strcspn(device, " "));
}

void t_check_changes(const struct t_log *log, const char *name, const char *wanted)
{
    char all[128] = "", line[256];

    for (size_t i = 0; i < log->count; i++) {
        const struct gpud_event *e = &log->list[i];
        if (e->kind != GPUD_EVENT_CLASS || strcmp(e->class_name, name) != 0)
            continue;
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", *all ? " " : "",
                       gpud_class_change_name(e->class_change));
        T_CMP(gpud_event_format(e, line, sizeof(line)), <, sizeof(line));
        T_CHECK(strncmp(line, "class ", 6) == 0);
    }
    T_TEXT(all, wanted);
}
