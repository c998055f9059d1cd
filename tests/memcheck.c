/* SPDX-License-Identifier: MIT */
/*
 * memcheck.c - a host that does a little of everything, to be run under valgrind: no error and no
 * leak in host, spawner, keepers or workers. The payload budget is small, since valgrind notes
 * something about each byte that is mapped, used or not.
 * [C19]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpudispatch/gpudispatch.h>

static int process(gpud_task *t, void *state)
{
    void *room;
    int r;

    (void)state;
    if (gpud_task_tag(t) % 10 == 9)
        abort();
    if (gpud_task_tag(t) % 10 == 8)
        return gpud_task_fail(t, 8, "eight");
    r = gpud_task_result_alloc(t, gpud_task_size(t), &room);
    if (r == 0)
        memcpy(room, gpud_task_data(t), gpud_task_size(t));
    return r;
}

static uint32_t wanted(uint64_t tag)
{
    return tag % 10 == 9   ? GPUD_OUTCOME_CRASHED
           : tag % 10 == 8 ? GPUD_OUTCOME_ERROR
                           : GPUD_OUTCOME_SUCCESS;
}

static int complain(const char *what, int r, const struct gpud_error *e)
{
    fprintf(stderr, "%s: %s: %s\n", what, gpud_error_name(r), e->text);
    return 1;
}

int main(void)
{
    static const struct gpud_definition definitions[] = { GPUD_DEFINITION("memcheck", NULL, process,
                                                                          NULL) };
    static unsigned char data[9000];
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpud_event event = { .struct_size = sizeof event }, kept = event;
    unsigned outcomes[GPUD_OUTCOME_COUNT] = { 0 };
    gpud_dispatcher *d = NULL;
    uint64_t id;
    int r = gpud_init(definitions, 1, &e);

    if (r)
        return complain("gpud_init", r, &e);
    o.devices = "cpu:2";
    o.payload_budget = 64u << 20;
    o.max_attempts = 2;
    r = gpud_dispatcher_create(&d, &o, &e);
    if (r)
        return complain("create", r, &e);
    for (uint64_t i = 0; i < 40; i++) {
        struct gpud_task_desc t = GPUD_TASK_DESC_INIT;
        t.tag = i;
        t.data = data;
        t.size = i * 200;
        t.label = i % 3 ? NULL : "third";
        t.awaited = i == 7;
        r = gpud_dispatcher_submit(d, &t, GPUD_NEVER, &id, NULL);
        if (r)
            return complain("submit", r, &e);
        if (t.awaited && (r = gpud_dispatcher_wait(d, id, &kept, GPUD_NEVER, NULL)))
            return complain("wait", r, &e);
    }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER); /* valgrind is slow */
    while ((r = gpud_dispatcher_poll(d, &event, 1, GPUD_NEVER)) == 1)
        if (event.kind == GPUD_EVENT_OUTCOME) {
            outcomes[event.outcome]++;
            if (event.outcome != wanted(event.tag))
                fprintf(stderr, "task %u is %s: %s\n", (unsigned)event.tag,
                        gpud_outcome_name(event.outcome), event.text);
        } else if (event.kind == GPUD_EVENT_LOG || event.kind == GPUD_EVENT_SETUP_FAILURE) {
            fprintf(stderr, "slot %u: %s\n", event.slot, event.text);
        }
    if (r != GPUD_EEND || outcomes[GPUD_OUTCOME_SUCCESS] != 31 ||
        outcomes[GPUD_OUTCOME_ERROR] != 4 || outcomes[GPUD_OUTCOME_CRASHED] != 4)
        return complain("outcomes", r, &e);
    (void)gpud_dispatcher_destroy(&d, NULL);
    if (kept.result_size != 1400 || memcmp(kept.result, data, 1400) != 0)
        return complain("kept result", GPUD_EINVAL, &e);
    (void)gpud_event_release(&kept);
    (void)gpud_fini();
    return 0;
}
