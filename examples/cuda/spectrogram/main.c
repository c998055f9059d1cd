/* SPDX-License-Identifier: MIT */
/*
 * main.c - spectrogram turns recordings into pictures, on GPUs with cuFFT, or else on processors.
 * It is built with the tree and prints one line per file; --help lists its options.
 *
 * This file owns the run: the list of recordings, the dispatcher, and the files of the pictures.
 * It is the host's side, which calls neither CUDA nor cuFFT; work.c is the workers' side.
 */
#include <errno.h>
#include <gpudispatch/gpudispatch.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../transcribe/recordings.h"
#include "settings.h"
#include "work.h"

/* Rounding to single precision costs about 1e-7, a wrong formula far more. */
static const double error_allowed = 1e-4;

/* The first death of a worker may not be the fault of the file; the second counts as such.  The
 * failure of a device never does. */
enum { ATTEMPTS = 2 };

enum { LABEL_MAX = 63, PATH_BYTES = 4096, SLOTS_MAX = 64 };

struct run {
    const struct settings *settings;
    struct recordings list;
    size_t next; /* number in the list of the file that is submitted next */
    size_t written;
    double seconds; /* of sound */
    double worst;   /* the largest relative error */
    char label[LABEL_MAX + 1];
};

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

static void set_handlers(void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the list ---- */

/* Turns the name of a recording into that of its picture: without folders and suffix. */
static void name_picture(char *name, int is_file)
{
    static const char wave[] = ".wav";
    char *base = is_file ? strrchr(name, '/') : NULL;
    if (base != NULL)
        memmove(name, base + 1, strlen(base));
    size_t n = strlen(name), k = sizeof wave - 1;
    if (n > k && strcmp(name + n - k, wave) == 0)
        name[n - k] = '\0';
    for (char *p = strchr(name, '/'); p != NULL; p = strchr(p, '/'))
        *p = '-';
}

/* Refuses two pictures with one name, since the second would replace the first. */
static int check_names(const struct recordings *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->items[i].name, list->items[j].name) == 0) {
                fprintf(stderr, "spectrogram: %s and %s would both become %s.pgm\n",
                        list->items[j].path, list->items[i].path, list->items[i].name);
                return 1;
            }
    return 0;
}

static int make_list(struct recordings *list, const struct settings *s)
{
    int error = 0;
    for (int i = 0; i < s->n_files && error == 0; i++)
        error = recordings_add_file(list, s->files[i]);
    if (s->n_files == 0)
        error = recordings_add_fixed(list, s->sounds_dir);
    if (error != 0) {
        fprintf(stderr, "spectrogram: cannot read %s: %s\n", s->sounds_dir, strerror(error));
        if (error == ENOENT)
            fputs("Install the package asterisk-core-sounds-en-g722, use --sounds DIR, or name "
                  "files.\n",
                  stderr);
        return 1;
    }
    for (size_t i = 0; i < list->n; i++)
        name_picture(list->items[i].name, s->n_files > 0);
    return check_names(list);
}

/* ---- the results ---- */

static int write_picture(const char *path, const struct work_answer *a, const uint8_t *pixels)
{
    size_t n = (size_t)a->width * a->height;
    FILE *f = fopen(path, "wbe");
    if (f == NULL)
        return errno;
    int failed = fprintf(f, "P5\n%u %u\n255\n", (unsigned)a->width, (unsigned)a->height) < 0;
    failed |= fwrite(pixels, 1, n, f) != n;
    int error = failed ? errno : 0;
    if (fclose(f) != 0 && error == 0)
        error = errno;
    return error;
}

static void print_picture(struct run *run, const struct gpud_event *e, const struct work_answer *a,
                         const char *name)
{
    printf("%s: %u x %u, %s %s, %.2f ms", name, (unsigned)a->width, (unsigned)a->height, e->device,
           a->way, (double)(e->ended_at - e->started_at) / 1e6);
    if (a->compared > 0)
        printf(", relative error %.1e in %u frames", a->error, (unsigned)a->compared);
    putchar('\n');
    run->seconds += (double)a->samples / a->rate;
    run->worst = isnan(a->error) || a->error > run->worst ? a->error : run->worst;
    run->written++;
}

static int on_success(const struct gpud_event *e, void *user)
{
    struct run *run = user;
    const struct recording *rec = &run->list.items[e->tag];
    const struct work_answer *a = e->result;
    char path[PATH_BYTES];
    if (e->result_size < sizeof *a ||
        e->result_size - sizeof *a != (uint64_t)a->width * a->height) {
        fprintf(stderr, "spectrogram: %s: the worker's answer makes no sense\n", rec->path);
        return 0;
    }
    int n = snprintf(path, sizeof path, "%s/%s.pgm", run->settings->out_dir, rec->name);
    int error = n < PATH_BYTES ? write_picture(path, a, (const uint8_t *)(a + 1)) : ENAMETOOLONG;
    if (error != 0)
        fprintf(stderr, "spectrogram: cannot write %s: %s\n", path, strerror(error));
    else
        print_picture(run, e, a, rec->name);
    return 0;
}

static int on_error(const struct gpud_event *e, void *user)
{
    const struct run *run = user;
    fprintf(stderr, "spectrogram: %s: %s: %s\n", run->list.items[e->tag].path,
            gpud_outcome_name(e->outcome),
            e->text[0] != '\0' ? e->text
            : e->code != 0     ? gpud_error_text(e->code)
                               : gpud_phase_name(e->phase));
    return 0;
}

static int on_event(const struct gpud_event *e, void *user)
{
    char line[512];
    (void)user;
    if (e->kind == GPUD_EVENT_PROGRESS ||
        (e->kind == GPUD_EVENT_LOG && e->level > GPUD_LEVEL_WARNING))
        return 0;
    (void)gpud_event_format(e, line, sizeof line);
    fprintf(stderr, "spectrogram: %s\n", line);
    return 0;
}

/* ---- the run ---- */

static int source(struct gpud_task_desc *task, size_t n, void *user)
{
    struct run *run = user;
    (void)n;
    if (run->next == run->list.n)
        return 0;
    const struct recording *rec = &run->list.items[run->next];
    (void)snprintf(run->label, sizeof run->label, "%.*s", LABEL_MAX, rec->name);
    task->data = rec->path;
    task->size = strlen(rec->path) + 1;
    task->label = run->label;
    task->tag = run->next++;
    task->cost = (uint32_t)(rec->bytes / 1000 + 1);
    return 1;
}

static int create_on(gpud_dispatcher **ret_d, const struct settings *s, const char *devices,
                     struct gpud_error *error)
{
    const struct work_order order = { s->cut, (uint32_t)s->compare };
    struct gpud_options o = GPUD_OPTIONS_INIT;
    o.devices = devices;
    o.setup_data = &order;
    o.setup_size = sizeof order;
    o.task_limit = s->limit;
    o.max_attempts = ATTEMPTS;
    o.retry_causes = GPUD_RETRY_CRASH | GPUD_RETRY_DEVICE;
    return gpud_dispatcher_create(ret_d, &o, error);
}

/* Uses the named devices, else all GPUs, else processors, and then prints the reason. */
static int create(gpud_dispatcher **ret_d, const struct settings *s)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    char devices[32];
    int code = GPUD_EDEVICE;
    if (s->devices != NULL)
        code = create_on(ret_d, s, s->devices, &error);
    else if (spectrum_gpu != NULL)
        code = create_on(ret_d, s, "all", &error);
    if (s->devices == NULL && code == GPUD_EDEVICE) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        fprintf(stderr, "spectrogram: on processors: %s\n",
                spectrum_gpu != NULL ? error.text : "built without the CUDA toolkit");
        (void)snprintf(devices, sizeof devices, "cpu:%ld",
                       n < 1           ? 1
                       : n > SLOTS_MAX ? SLOTS_MAX
                                       : n);
        code = create_on(ret_d, s, devices, &error);
    }
    if (code != 0)
        fprintf(stderr, "spectrogram: cannot make the dispatcher: %s\n", error.text);
    return code != 0;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Prints the last line.  Returns the exit status. */
static int summary(const struct run *run, double wall_s)
{
    int wrong = run->settings->compare && !(run->worst <= error_allowed);
    fprintf(stderr, "spectrogram: %zu of %zu pictures, %.1f s of sound in %.2f s", run->written,
            run->list.n, run->seconds, wall_s);
    if (run->settings->compare)
        fprintf(stderr, ", largest relative error %.1e%s", run->worst, wrong ? ": WRONG" : "");
    fputc('\n', stderr);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("spectrogram: not all output could be written\n", stderr);
        return 1;
    }
    return run->written == run->list.n && !wrong ? 0 : 1;
}

static int dispatch(struct run *run)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    gpud_dispatcher *d = NULL;
    double start = now_s();
    if (create(&d, run->settings) != 0)
        return 1;
    callbacks.on_success = on_success;
    callbacks.on_error = on_error;
    callbacks.on_event = on_event;
    interrupt_target = d;
    set_handlers(on_signal);
    int result = gpud_dispatcher_run(d, source, &callbacks, run, NULL);
    set_handlers(SIG_DFL); /* from here Ctrl-C ends the program and its workers */
    gpud_dispatcher_destroy(&d, NULL);
    if (result != 0 && result != GPUD_ESTOPPED)
        fprintf(stderr, "spectrogram: the run failed: %s\n", gpud_error_text(result));
    int status = summary(run, now_s() - start);
    return interrupt_count > 0 ? 128 + SIGINT : result != 0 ? 1 : status;
}

static int make_pictures(const struct settings *s)
{
    struct run run = { .settings = s };
    int status = make_list(&run.list, s);
    if (status == 0 && mkdir(s->out_dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "spectrogram: cannot make %s: %s\n", s->out_dir, strerror(errno));
        status = 1;
    }
    if (status == 0)
        status = dispatch(&run);
    recordings_free(&run.list);
    return status;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definitions[] = {
        GPUD_DEFINITION("spectrogram", work_setup, work_process, work_cleanup),
    };
    struct settings settings;
    struct gpud_error error = GPUD_ERROR_INIT;
    int done = settings_read(&settings, argc, argv);
    if (done != 0)
        return done == 1 ? 0 : done;
    if (gpud_init(definitions, 1, &error) != 0) { /* before lists and open files */
        fprintf(stderr, "spectrogram: %s\n", error.text);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines, also in a file shared with stderr */
    int status = make_pictures(&settings);
    gpud_fini();
    return status;
}
