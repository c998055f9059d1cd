/* SPDX-License-Identifier: MIT */
/* plugin.c - a plugin in order, and, with one of the macros below, one that is not. */
#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (!strcmp(gpud_task_label(t), "die"))
        abort();
    if (!strcmp(gpud_task_label(t), "uid")) {
        uid_t uid = getuid();
        return gpud_task_result_set(t, &uid, sizeof(uid));
    }
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

static int twice(gpud_task *t, void *state)
{
    size_t size = gpud_task_size(t);
    void *to;
    int r = gpud_task_result_alloc(t, 2 * size, &to);

    (void)state;
    if (r)
        return r;
    memcpy(to, gpud_task_data(t), size);
    memcpy((char *)to + size, gpud_task_data(t), size);
    return 0;
}

extern const struct gpud_definition definitions[];
const struct gpud_definition definitions[] = {
    GPUD_DEFINITION("echo", NULL, process, NULL),
    GPUD_DEFINITION("twice", NULL, twice, NULL),
};

#if defined(NO_SYMBOL)
extern const void *const something_else;
const void *const something_else = definitions;
#elif defined(OTHER_ABI)
const struct gpud_plugin gpud_plugin = { (uint32_t)sizeof(struct gpud_plugin), 77, definitions, 2,
                                         0 };
#elif defined(BAD_SIZE)
const struct gpud_plugin gpud_plugin = { 8, GPUD_PLUGIN_ABI, definitions, 2, 0 };
#elif defined(NO_PROCESS)
static const struct gpud_definition empty[] = { GPUD_DEFINITION("empty", NULL, NULL, NULL) };
GPUD_PLUGIN(empty);
#elif defined(UNRESOLVED)
extern int nobody_has_this(void);
int uses_it(void);
int uses_it(void)
{
    return nobody_has_this();
}
GPUD_PLUGIN(definitions);
#elif defined(DIES)
__attribute__((constructor)) static void die(void)
{
    _exit(9);
}
GPUD_PLUGIN(definitions);
#else
GPUD_PLUGIN(definitions);
#endif
