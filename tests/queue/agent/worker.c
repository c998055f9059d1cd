/* SPDX-License-Identifier: MIT */
/*
 * worker.c - workers of classes for the agent's tests.  The setup bytes name a directory; each task
 * adds a line with its id to the file `started` there.  Where that directory has a fifo `loads`,
 * or `leaves`, a worker waits in its setup, or cleanup, until a process opens it for writing.
 *
 * Payloads: "say TEXT", "print TEXT", "big BYTES", "bytes", "sleep MS", "wait" (until the fifo
 * `gate` has a byte), "fail STATUS", "crash", "kill PID"; any other one is returned.
 */
#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int in_directory(const char *directory, const char *name, int flags)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static void note(const char *directory, const char *name, const char *text)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "%s\n", text);
    int fd = in_directory(directory, name, O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void wait_at(const char *directory, const char *name)
{
    char byte;
    int fd = in_directory(directory, name, O_RDONLY);
    if (fd < 0)
        return;
    (void)!read(fd, &byte, 1);
    close(fd);
}

static int setup(gpud_worker *w, void **ret_state)
{
    const char *directory = gpud_worker_setup_data(w, NULL);
    *ret_state = strdup(directory);
    note(directory, "setups", "1");
    wait_at(directory, "loads");
    return 0;
}

/* Until the file `mended` is there. */
static int broken_setup(gpud_worker *w, void **ret_state)
{
    int fd = in_directory(gpud_worker_setup_data(w, NULL), "mended", O_RDONLY);
    if (fd < 0)
        return gpud_worker_fail(w, 17, "no such model");
    close(fd);
    return setup(w, ret_state);
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w;
    wait_at(state, "leaves");
    free(state);
}

static int pause_for(gpud_task *t, long ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) && errno == EINTR)
        if (gpud_task_expired(t) || gpud_task_cancelled(t))
            return GPUD_ECANCELLED;
    return 0;
}

static int wait_at_gate(const char *directory)
{
    char byte;
    int fd = in_directory(directory, "gate", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
    if (fd >= 0)
        close(fd);
    return n == 1 ? 0 : 5;
}

static int large_result(gpud_task *t, size_t size)
{
    void *to;
    int code = gpud_task_result_alloc(t, size, &to);
    if (code == 0)
        memset(to, 'x', size);
    return code;
}

static int run(gpud_task *t, const char *directory, char *text)
{
    char *word = strtok(text, " "), *rest = strtok(NULL, "");
    word = word ? word : text;
    rest = rest ? rest : text + strlen(text);
    if (!strcmp(word, "crash"))
        abort();
    if (!strcmp(word, "kill")) {
        (void)kill((pid_t)atoi(rest), SIGKILL);
        return 0;
    }
    if (!strcmp(word, "fail"))
        return gpud_task_fail(t, atoi(rest), "as it was told");
    if (!strcmp(word, "sleep"))
        return pause_for(t, atol(rest));
    if (!strcmp(word, "wait"))
        return wait_at_gate(directory);
    if (!strcmp(word, "big"))
        return large_result(t, (size_t)atol(rest));
    if (!strcmp(word, "bytes"))
        return gpud_task_result_set(t, "\0\xff", 2);
    if (!strcmp(word, "print"))
        return printf("%s\n", rest) < 0 || fflush(stdout);
    if (!strcmp(word, "say"))
        return gpud_task_result_set(t, rest, strlen(rest));
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

static int process(gpud_task *t, void *state)
{
    size_t size = gpud_task_size(t);
    char *text = malloc(size + 1);
    if (!text)
        return 6;
    memcpy(text, gpud_task_data(t), size);
    text[size] = '\0';
    note(state, "started", gpud_task_label(t));
    int code = run(t, state, text);
    free(text);
    return code;
}

static int process_batch(gpud_task *const *t, size_t n, void *state)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%zu", n);
    note(state, "batches", text);
    for (size_t i = 0; i < n; i++)
        if (process(t[i], state) != 0)
            (void)gpud_task_fail(t[i], 7, "one of a batch");
    return 0;
}

static const struct gpud_definition definitions[] = {
    GPUD_DEFINITION("work", setup, process, cleanup),
    GPUD_DEFINITION("broken", broken_setup, process, cleanup),
    GPUD_DEFINITION_BATCH("batch", setup, process_batch, cleanup),
};
GPUD_PLUGIN(definitions);
