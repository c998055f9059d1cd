/* SPDX-License-Identifier: MIT */
/*
 * main.c - transcribe turns recordings into text, with one speech engine per worker process.
 * It is built with the tree and prints one line per file; --help lists its options.
 *
 * This file owns the run: it makes the dispatcher, feeds it the list of recordings, passes each
 * event to the report, and ends in order.  It is the host's side; work.c is the workers' side.
 */
#include <errno.h>
#include <gpudispatch/gpudispatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recordings.h"
#include "report.h"
#include "settings.h"
#include "watch.h"
#include "work.h"

/* The first crash may not be the fault of the file; the second counts as such. */
enum { ATTEMPTS = 2 };

/* A short backoff: an engine loads in less than 1 s, and it fails always or never. */
static const uint64_t restart_pause = GPUD_MS(200);

/* How long the program waits at its end for the replacement of a worker that --kill-one killed. */
enum { RESTART_WAIT_MS = 10000, RESTART_LOOK_MS = 20 };

enum { LABEL_MAX = 63, PATH_BYTES = 4096 };

/* ---- Ctrl-C: a handler has no argument, so these two are global ---- */

static gpud_dispatcher *volatile interrupt_target;
static volatile sig_atomic_t interrupt_count;

static void on_signal(int number)
{
    int saved = errno;
    (void)number;
    if (interrupt_count < 2)
        interrupt_count++;
    gpud_dispatcher_stop(interrupt_target,
                         interrupt_count == 1 ? GPUD_FINISH_RUNNING : GPUD_FINISH_NOW);
    errno = saved;
}

static int interrupts(void)
{
    return (int)interrupt_count;
}

static void set_handlers(void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the host's callbacks ---- */

struct run {
    const struct settings *settings;
    struct recordings list;
    size_t next; /* number in the list of the file that is submitted next */
    struct report report;
    char label[LABEL_MAX + 1];
};

/* Cuts a long name at its start, since its end identifies the file better. */
static const char *make_label(struct run *run, const char *name)
{
    size_t n = strlen(name);
    snprintf(run->label, sizeof run->label, "%s", n > LABEL_MAX ? name + n - LABEL_MAX : name);
    return run->label;
}

static int source(struct gpud_task_desc *task, size_t n, void *user)
{
    struct run *run = user;
    (void)n;
    if (run->next == run->list.n)
        return 0;
    const struct recording *rec = &run->list.items[run->next];
    task->data = rec->path;
    task->size = strlen(rec->path) + 1;
    task->label = make_label(run, rec->name);
    task->tag = run->next++;
    task->cost = (uint32_t)(rec->bytes / 1000 + 1); /* the time of a file grows with its length */
    return 1;
}

static int on_outcome(const struct gpud_event *event, void *user)
{
    struct run *run = user;
    report_outcome(&run->report, event);
    return 0;
}

static int on_setup_failure(const struct gpud_event *event, void *user)
{
    struct run *run = user;
    report_setup_failure(&run->report, event);
    return 0;
}

static int on_event(const struct gpud_event *event, void *user)
{
    struct run *run = user;
    if (event->kind == GPUD_EVENT_LOG && event->level <= GPUD_LEVEL_WARNING)
        report_note(&run->report, "%s", event->text);
    return 0;
}

/* ---- the run ---- */

static int create(gpud_dispatcher **ret_d, const struct settings *s, size_t files)
{
    size_t workers = files < s->workers ? files : s->workers;
    char devices[32];
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    snprintf(devices, sizeof devices, "cpu:%u", (unsigned)workers);
    o.devices = devices;
    o.setup_data = s->model_dir;
    o.setup_size = strlen(s->model_dir) + 1;
    o.task_limit = s->limit;
    o.max_attempts = ATTEMPTS;
    o.backoff = restart_pause;
    if (gpud_dispatcher_create(ret_d, &o, &error) == 0)
        return 0;
    fprintf(stderr, "transcribe: cannot make the dispatcher: %s\n", error.text);
    return 1;
}

/*
 * Waits for the replacement of the killed worker, which a short run may not wait for: --kill-one
 * shows this restart, too.  Meanwhile the library thread drives.
 */
static void wait_for_restart(gpud_dispatcher *d)
{
    const struct timespec pause = { .tv_nsec = RESTART_LOOK_MS * 1000000L };
    for (int waited = 0; waited < RESTART_WAIT_MS && interrupt_count == 0;
         waited += RESTART_LOOK_MS) {
        struct gpud_stats s = GPUD_STATS_INIT;
        if (gpud_dispatcher_stats(d, &s) != 0 || s.restarts > 0)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Runs the list through the dispatcher.  Returns the exit status. */
static int run_list(struct run *run, gpud_dispatcher *d)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct watch watch;
    callbacks.on_success = callbacks.on_error = on_outcome;
    callbacks.on_setup_failure = on_setup_failure;
    callbacks.on_event = on_event;
    if (watch_start(&watch, d, &run->report, interrupts, run->settings->kill_one) != 0) {
        fputs("transcribe: cannot start a thread\n", stderr);
        return 1;
    }
    int result = gpud_dispatcher_run(d, source, &callbacks, run, &error);
    watch_stop(&watch);
    if (result != 0 && result != GPUD_ESTOPPED)
        report_note(&run->report, "the run failed: %s", gpud_error_text(result));
    if (watch.killed > 0)
        wait_for_restart(d);
    else if (run->settings->kill_one)
        report_note(&run->report, "--kill-one: the run was over before a busy worker was found");
    const struct report_end end = { watch.killed, interrupt_count > 0 };
    int status = report_summary(&run->report, d, &end);
    if (interrupt_count > 0)
        return 128 + SIGINT;
    return run->settings->kill_one && watch.killed == 0 ? 1 : status;
}

static int dispatch_list(struct run *run)
{
    gpud_dispatcher *d = NULL;
    if (create(&d, run->settings, run->list.n) != 0)
        return 1;
    interrupt_target = d;
    set_handlers(on_signal);
    int status = run_list(run, d);
    set_handlers(SIG_DFL); /* from here Ctrl-C ends the program and its workers */
    gpud_dispatcher_destroy(&d, NULL);
    return status;
}

/* ---- before and after ---- */

static int list_failed(const char *dir, int error)
{
    fprintf(stderr, "transcribe: cannot read %s: %s\n", dir, strerror(error));
    if (error == ENOENT)
        fputs("Install the package asterisk-core-sounds-en-g722, or use --sounds DIR.\n", stderr);
    return 1;
}

/* Checks once for all workers; otherwise each of them would fail three times. */
static int check_model(const char *dir)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/en-us", dir);
    if (access(path, X_OK) == 0)
        return 0;
    fprintf(stderr, "transcribe: no speech model in %s: %s\n"
            "Install the package pocketsphinx-en-us, or use --model DIR.\n", dir, strerror(errno));
    return 1;
}

static int make_list(struct recordings *list, const struct settings *s)
{
    int error = 0;
    for (int i = 0; i < s->n_files && error == 0; i++)
        error = recordings_add_file(list, s->files[i]);
    if (s->n_files == 0)
        error = s->all ? recordings_add_all(list, s->sounds_dir)
                       : recordings_add_fixed(list, s->sounds_dir);
    if (error != 0)
        return list_failed(s->sounds_dir, error);
    if (list->n == 0) {
        fprintf(stderr, "transcribe: no .g722 file below %s\n", s->sounds_dir);
        return 1;
    }
    return 0;
}

/* Opens the file for JSON.  Returns: 0 and *ret_json, NULL for none; 1 after an error message. */
static int open_json(FILE **ret_json, const char *path)
{
    *ret_json = NULL;
    if (path == NULL)
        return 0;
    *ret_json = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (*ret_json != NULL)
        return 0;
    fprintf(stderr, "transcribe: cannot write %s: %s\n", path, strerror(errno));
    return 1;
}

/* Closes the outputs, which reports a full disk.  Returns the exit status. */
static int close_outputs(FILE *json, int status)
{
    int failed = 0;
    if (json != NULL && json != stdout)
        failed = ferror(json) | fclose(json);
    failed |= ferror(stdout) | fflush(stdout);
    if (!failed)
        return status;
    fputs("transcribe: not all output could be written\n", stderr);
    return status != 0 ? status : 1;
}

static int transcribe(const struct settings *s)
{
    struct run run = { .settings = s };
    FILE *json;
    int status = check_model(s->model_dir);
    if (status == 0)
        status = make_list(&run.list, s);
    if (status == 0)
        status = open_json(&json, s->json_path);
    if (status == 0) {
        report_init(&run.report, &run.list, json, json != stdout);
        status = close_outputs(json, dispatch_list(&run));
        report_fini(&run.report);
    }
    recordings_free(&run.list);
    return status;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definitions[] = {
        GPUD_DEFINITION("transcribe", work_setup, work_process, work_cleanup),
    };
    struct settings settings;
    struct gpud_error error = GPUD_ERROR_INIT;
    int done = settings_read(&settings, argc, argv);
    if (done != 0)
        return done == 1 ? 0 : done;
    if (gpud_init(definitions, 1, &error) != 0) { /* before threads, models and open files */
        fprintf(stderr, "transcribe: %s\n", error.text);
        return 1;
    }
    int status = transcribe(&settings);
    gpud_fini();
    return status;
}
