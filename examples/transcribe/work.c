/* SPDX-License-Identifier: MIT */
/*
 * work.c - owns the three functions of the definition, all of which run in workers.
 */
#include "work.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "engine.h"

/* The codes of tasks that end ERROR; each of them has a text, too. */
enum { FAIL_READ = 1, FAIL_ENGINE = 2 };

int work_setup(gpud_worker *w, void **ret_state)
{
    size_t size;
    const char *model_dir = gpud_worker_setup_data(w, &size);
    struct engine *engine;
    if (engine_open(&engine, model_dir) != 0)
        return gpud_worker_fail(w, 1, "the speech engine does not load");
    *ret_state = engine;
    return 0;
}

int work_process(gpud_task *t, void *state)
{
    struct sound sound;
    const char *text;
    char path[PATH_MAX];
    size_t size = gpud_task_size(t);
    if (size >= sizeof(path))
        return gpud_task_fail(t, FAIL_READ, strerror(ENAMETOOLONG));
    memcpy(path, gpud_task_data(t), size);
    path[size] = '\0';
    int error = sound_read_g722(&sound, path);
    if (error != 0)
        return gpud_task_fail(t, FAIL_READ, strerror(error));
    int refused = engine_recognise(state, &sound, &text);
    sound_free(&sound);
    if (refused)
        return gpud_task_fail(t, FAIL_ENGINE, "the speech engine refuses this recording");
    return gpud_task_result_set(t, text, strlen(text));
}

void work_cleanup(gpud_worker *w, void *state)
{
    (void)w;
    engine_close(state);
}
