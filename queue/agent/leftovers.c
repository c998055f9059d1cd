/* SPDX-License-Identifier: MIT */
/* leftovers.c - the files of a state directory against the rows of its store, for a check. */
#include "queue/agent/leftovers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/agent/belongs.h"
#include "queue/agent/lookup.h"
#include "queue/files/fault.h"
#include "queue/files/lock.h"
#include "queue/files/names.h"
#include "queue/files/numbers.h"
#include "queue/files/publish.h"
#include "queue/files/reserve.h"
#include "queue/files/results.h"
#include "queue/files/save.h"
#include "queue/files/socket.h"
#include "queue/files/statedir.h"
#include "queue/grow.h"

#define FILES (&gpq_system_files)

struct leftovers {
    struct gpq_store *s;
    const char *state;
    bool repair;
    gpq_finding_fn fn;
    void *user;
    int64_t left;
    int stopped;
    struct gpq_error *e;
    struct running *running; /* attempts with the identity of a run */
    size_t n_running, room_running;
};

struct running {
    uint64_t task;
    uint32_t attempt;
};

static void report(struct leftovers *l, uint32_t kind, const char *place, const char *text,
                   bool repairable, bool repaired)
{
    const struct gpq_finding f = { kind, place, text, repairable, repaired };
    l->left += !repaired;
    if (l->stopped == 0)
        l->stopped = l->fn(&f, l->user);
}

/* ---- Folders ---- */

/* What is wrong with a folder; NULL: nothing.  *ret_mendable: a mode, or nothing there. */
static const char *judge_folder(const char *path, char text[128], bool *ret_mendable)
{
    struct stat st;
    *ret_mendable = false;
    if (lstat(path, &st) < 0) {
        *ret_mendable = errno == ENOENT;
        snprintf(text, 128, "%s", errno == ENOENT ? "is not there" : strerror(errno));
        return text;
    }
    if (!S_ISDIR(st.st_mode))
        return "is no directory: move it away";
    if (st.st_uid != geteuid()) {
        snprintf(text, 128, "its owner is uid %u, expected %u", (unsigned)st.st_uid,
                 (unsigned)geteuid());
        return text;
    }
    *ret_mendable = true;
    if ((st.st_mode & 07777) != 0700) {
        snprintf(text, 128, "its mode is %04o, expected 0700", (unsigned)st.st_mode & 07777);
        return text;
    }
    return NULL;
}

static void check_folder(struct leftovers *l, const char *name)
{
    char path[GPQ_PATH], text[128], place[64];
    struct gpq_error e;
    bool mendable, mended = false;
    if (gpq_path(path, "%s/%s", l->state, name) < 0)
        return;
    const char *why = judge_folder(path, text, &mendable);
    if (!why)
        return;
    if (l->repair && mendable) {
        (void)chmod(path, 0700);
        mended = gpq_private_directory(path, "folder", &e) == 0;
    }
    snprintf(place, sizeof(place), "%.50s/", name);
    report(l, GPQ_FINDING_FOLDER, place, why, mendable, mended);
}

int64_t gpq_folders_check(const char *state, bool repair, gpq_finding_fn fn, void *user)
{
    struct leftovers l = { .state = state, .repair = repair, .fn = fn, .user = user };
    for (size_t i = 0; gpq_folders[i]; i++)
        check_folder(&l, gpq_folders[i]);
    return l.left;
}

/* ---- One folder ---- */

/* One kind of files, by the names in a folder. */
struct sort {
    const char *folder;
    uint32_t kind;
    /* What is wrong with a file; NULL: nothing.  *ret_mendable is true before. */
    const char *(*judge)(struct leftovers *l, const char *name, bool *ret_mendable);
    /* Repairs one file, or all of the folder; 0, or a GPQ_E code with *e filled. */
    int (*one)(struct leftovers *l, const struct sort *sort, const char *name, struct gpq_error *e);
    int (*all)(struct leftovers *l, struct gpq_error *e);
};

/* A file that is wrong, until its repair is reported. */
struct wrong {
    char *name;
    const char *text;
    bool mendable;
};

struct list {
    struct wrong *wrong;
    size_t n, room;
};

static int add(struct list *list, const char *name, const char *text, bool mendable)
{
    struct wrong *larger = gpq_grown(list->wrong, list->n, &list->room, sizeof(*larger));
    if (!larger)
        return GPQ_ENOMEM;
    list->wrong = larger;
    struct wrong *w = &list->wrong[list->n];
    *w = (struct wrong){ strdup(name), text, mendable };
    list->n += w->name != NULL;
    return w->name ? 0 : GPQ_ENOMEM;
}

static void drop(struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->wrong[i].name);
    free(list->wrong);
}

/* Judges the names in a folder, with `above` before each. */
static int judge_names(struct leftovers *l, const struct sort *sort, const char *above,
                       struct list *list)
{
    char path[GPQ_PATH], name[GPQ_PATH];
    struct gpq_names names = { 0 };
    int code = gpq_path(path, "%s/%s/%s", l->state, sort->folder, above);
    if (code == 0)
        code = gpq_names_read(FILES, path, &names);
    if (code < 0)
        return gpq_fault(l->e, code, "%s/%s/%s", l->state, sort->folder, above);
    GPQ_EACH_NAME (&names, file) {
        bool mendable = true;
        if (code < 0 || gpq_path(name, "%s%s", above, file) < 0)
            continue;
        const char *text = sort->judge(l, name, &mendable);
        if (text)
            code = add(list, name, text, mendable);
    }
    gpq_names_free(&names);
    return code < 0 ? gpq_fail(l->e, code, "no memory") : 0;
}

/* A repair is done when the file has left its folder. */
static bool is_gone(const struct leftovers *l, const struct sort *sort, const char *name)
{
    char path[GPQ_PATH];
    struct stat st;
    return gpq_path(path, "%s/%s/%s", l->state, sort->folder, name) == 0 && lstat(path, &st) < 0 &&
           errno == ENOENT;
}

static int sync_folder(struct leftovers *l, const struct sort *sort, struct gpq_error *e)
{
    char path[GPQ_PATH];
    int ret = gpq_path(path, "%s/%s", l->state, sort->folder);
    if (ret == 0)
        ret = gpq_sync_directory(FILES, path);
    return ret < 0 ? gpq_fault(e, ret, "%s/%s: sync", l->state, sort->folder) : 0;
}

static void mend(struct leftovers *l, const struct sort *sort, const struct list *list,
                 struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; sort->one && i < list->n; i++)
        if (list->wrong[i].mendable && sort->one(l, sort, list->wrong[i].name, e) < 0)
            code = e->code;
    if (sort->all && sort->all(l, e) < 0)
        code = e->code;
    struct gpq_error later;
    (void)sync_folder(l, sort, code < 0 ? &later : e);
}

static void report_all(struct leftovers *l, const struct sort *sort, const struct list *list,
                       const struct gpq_error *e)
{
    char place[128], text[700];
    for (size_t i = 0; i < list->n; i++) {
        const struct wrong *w = &list->wrong[i];
        bool mended = l->repair && w->mendable && is_gone(l, sort, w->name);
        bool failed = l->repair && w->mendable && !mended && e->code < 0;
        snprintf(place, sizeof(place), "%s/%.100s", sort->folder, w->name);
        snprintf(text, sizeof(text), "%s%s%s", w->text, failed ? "; the repair failed: " : "",
                 failed ? e->text : "");
        report(l, sort->kind, place, text, w->mendable, mended);
    }
}

static int judge_batches(struct leftovers *l, const struct sort *sort, struct list *list)
{
    char path[GPQ_PATH], above[32];
    struct gpq_names names = { 0 };
    uint32_t batch;
    int code = gpq_path(path, "%s/%s", l->state, sort->folder);
    if (code == 0)
        code = gpq_names_read(FILES, path, &names);
    if (code < 0)
        return gpq_fault(l->e, code, "%s/%s", l->state, sort->folder);
    GPQ_EACH_NAME (&names, name) {
        if (code < 0 || !gpq_numbers_read(name, "", &batch, 1, NULL))
            continue;
        snprintf(above, sizeof(above), "%u/", batch);
        code = judge_names(l, sort, above, list);
    }
    gpq_names_free(&names);
    return code;
}

static int check_sort(struct leftovers *l, const struct sort *sort, bool by_batch)
{
    struct list list = { 0 };
    struct gpq_error e = { 0 };
    int code = by_batch ? judge_batches(l, sort, &list) : judge_names(l, sort, "", &list);
    if (code == 0 && l->repair && list.n != 0)
        mend(l, sort, &list, &e);
    if (code == 0)
        report_all(l, sort, &list, &e);
    drop(&list);
    return code;
}

/* ---- run/ ---- */

static int keep_running(const struct gpq_attempt *a, void *user)
{
    struct leftovers *l = user;
    if (!a->run)
        return 0;
    struct running *larger =
        gpq_grown(l->running, l->n_running, &l->room_running, sizeof(*larger));
    if (!larger)
        return gpq_fail(l->e, GPQ_ENOMEM, "no memory");
    l->running = larger;
    l->running[l->n_running++] = (struct running){ a->task, a->number };
    return 0;
}

static bool runs(const struct leftovers *l, uint64_t task, uint32_t attempt)
{
    for (size_t i = 0; i < l->n_running; i++)
        if (l->running[i].task == task && l->running[i].attempt == attempt)
            return true;
    return false;
}

/* A record, or a file beside it such as "12.44.3.stamp", which goes and stays with it. */
static const char *judge_record(struct leftovers *l, const char *name, bool *ret_mendable)
{
    char path[GPQ_PATH];
    const char *rest;
    uint32_t n[3];
    if (!gpq_numbers_read(name, "..", n, 3, &rest) || (*rest && *rest != '.'))
        return "this file is of no attempt";
    if (runs(l, GPQ_TASK(n[0], n[1]), n[2]))
        return NULL;
    if (gpq_path(path, "%s/run/%.*s", l->state, (int)(rest - name), name) < 0 ||
        gpq_lock_check(path) == 0)
        return "no task runs this attempt";
    *ret_mendable = false;
    return "no task runs this attempt, and its runner lives: wait for its end or kill it, and "
           "repair then";
}

/* Whether a record is locked that is of no attempt in l->running. */
static int find_locked(struct leftovers *l)
{
    char folder[GPQ_PATH], path[GPQ_PATH];
    struct gpq_names names = { 0 };
    uint32_t n[3];
    int found = 0, code = gpq_path(folder, "%s/run", l->state);
    if (code == 0)
        code = gpq_names_read(FILES, folder, &names);
    if (code < 0)
        return gpq_fault(l->e, code, "%s/run", l->state);
    GPQ_EACH_NAME (&names, name) {
        if (gpq_numbers_read(name, "..", n, 3, NULL) && !runs(l, GPQ_TASK(n[0], n[1]), n[2]) &&
            gpq_path(path, "%s/%s", folder, name) == 0 && gpq_lock_check(path) == -EBUSY)
            found = 1;
    }
    gpq_names_free(&names);
    return found;
}

int gpq_any_runner(const char *state, struct gpq_error *e)
{
    struct leftovers l = { .state = state, .e = e };
    return find_locked(&l);
}

int gpq_stray_runner(struct gpq_store *s, const char *state, struct gpq_error *e)
{
    struct leftovers l = { .state = state, .e = e };
    int code = s->engine->running(s, keep_running, &l, e);
    if (code == 0)
        code = find_locked(&l);
    free(l.running);
    return code;
}

static int remove_file(struct leftovers *l, const struct sort *sort, const char *name,
                       struct gpq_error *e)
{
    char path[GPQ_PATH];
    int ret = gpq_path(path, "%s/%s/%s", l->state, sort->folder, name);
    if (ret == 0 && unlink(path) < 0 && errno != ENOENT)
        ret = -errno;
    return ret < 0 ? gpq_fault(e, ret, "%s/%s/%s: remove", l->state, sort->folder, name) : 0;
}

/* ---- logs/ ---- */

static const char *judge_log(struct leftovers *l, const char *name, bool *ret_mendable)
{
    struct gpq_task t;
    struct gpq_error e;
    uint32_t n[3];
    (void)ret_mendable;
    if (!gpq_numbers_read(name, "..", n, 3, NULL))
        return NULL;
    int found = gpq_task_look(l->s, GPQ_TASK(n[0], n[1]), &t, &e);
    if (found < 0)
        return NULL;
    if (found == 0)
        return "its task is not there";
    return n[2] > t.attempt ? "its task has no such attempt" : NULL;
}

/* ---- work/ and out/ ---- */

static const char *judge_work(struct leftovers *l, const char *name, bool *ret_mendable)
{
    const char *rest;
    uint32_t n[3];
    (void)ret_mendable;
    if (gpq_numbers_read(name, "..", n, 3, NULL))
        switch (gpq_fate_of(GPQ_TASK(n[0], n[1]), n[2], l->s)) {
        case GPQ_OUT_PUBLISH:
            return "outputs of a success that are not published";
        case GPQ_OUT_DROP:
            return "outputs of an attempt that neither runs nor succeeded";
        default:
            return NULL;
        }
    if (gpq_numbers_read(name, ".", n, 2, &rest) &&
        (strcmp(rest, ".old") == 0 || strcmp(rest, ".gone") == 0))
        return "older outputs that were to be removed";
    return NULL;
}

static int finish_outputs(struct leftovers *l, struct gpq_error *e)
{
    return gpq_out_recover(FILES, l->state, gpq_fate_of, l->s, e);
}

static const char *judge_out(struct leftovers *l, const char *name, bool *ret_mendable)
{
    struct gpq_task t;
    struct gpq_error e;
    uint32_t n[2];
    (void)ret_mendable;
    if (!gpq_numbers_read(name, ".", n, 2, NULL))
        return NULL;
    return gpq_task_look(l->s, GPQ_TASK(n[0], n[1]), &t, &e) == 0 ? "its task is not there" : NULL;
}

static int forget_out(struct leftovers *l, const struct sort *sort, const char *name,
                      struct gpq_error *e)
{
    (void)sort;
    uint32_t n[2];
    if (!gpq_numbers_read(name, ".", n, 2, NULL))
        return 0;
    return gpq_out_forget(FILES, l->state, GPQ_TASK(n[0], n[1]), e);
}

/* ---- results/ ---- */

static const char *judge_result(struct leftovers *l, const char *name, bool *ret_mendable)
{
    const char *rest;
    uint32_t n[3];
    (void)ret_mendable;
    if (!gpq_numbers_read(name, "/.", n, 3, &rest))
        return NULL;
    if (*rest)
        return gpq_is_temporary(rest - 1) ? "a result whose writing was cut off" : NULL;
    return gpq_result_used(GPQ_TASK(n[0], n[1]), n[2], name, l->s) == 0 ? "no task has this result"
                                                                        : NULL;
}

static int sweep_results(struct leftovers *l, struct gpq_error *e)
{
    return gpq_results_sweep(FILES, l->state, gpq_result_used, l->s, e);
}

/* One row whose result is a file. */
static int check_row(const struct gpq_result *r, void *user)
{
    struct leftovers *l = user;
    char name[GPQ_RESULT_NAME], path[GPQ_PATH], place[64], text[160];
    struct stat st;
    gpq_result_name(name, r->task, r->attempt);
    snprintf(place, sizeof(place), "task %u.%u", GPQ_BATCH_OF(r->task), GPQ_NUMBER_OF(r->task));
    if (!r->file || strcmp(r->file, name) != 0)
        snprintf(text, sizeof(text), "its result is another file than results/%s", name);
    else if (gpq_path(path, "%s/results/%s", l->state, name) < 0 || lstat(path, &st) < 0 ||
             !S_ISREG(st.st_mode))
        snprintf(text, sizeof(text), "its result results/%s is not there", name);
    else if ((uint64_t)st.st_size != r->size)
        snprintf(text, sizeof(text), "its result results/%s has %llu bytes, expected %llu", name,
                 (unsigned long long)st.st_size, (unsigned long long)r->size);
    else
        return 0;
    report(l, GPQ_FINDING_FILE, place, text, false, false);
    return l->stopped;
}

/* ---- The whole ---- */

static void check_reserve(struct leftovers *l)
{
    if (gpq_reserve_there(FILES, l->state, GPQ_RESERVE))
        return;
    bool made = l->repair && gpq_reserve_make(FILES, l->state, GPQ_RESERVE) == 0;
    report(l, GPQ_FINDING_RESERVE, "reserve",
           l->repair && !made ? "is not there or too small, and there is no space for it"
                              : "is not there, or has not the size that an agent keeps",
           true, made);
}

static void check_socket(struct leftovers *l)
{
    struct gpq_places places;
    struct gpq_error e = { 0 };
    char path[GPQ_SOCKET_PATH + 1];
    gpq_places_read(NULL, &places);
    if (gpq_socket_find(&places, l->state, path, &e) < 0)
        report(l, GPQ_FINDING_SOCKET, "socket", e.text, false, false);
}

int64_t gpq_leftovers_check(struct gpq_store *s, const char *state, bool repair, gpq_finding_fn fn,
                            void *user, struct gpq_error *e)
{
    static const struct sort sorts[] = {
        { "run", GPQ_FINDING_RECORD, judge_record, remove_file, NULL },
        { "logs", GPQ_FINDING_LOG, judge_log, remove_file, NULL },
        { "work", GPQ_FINDING_OUTPUTS, judge_work, NULL, finish_outputs },
        { "out", GPQ_FINDING_OUTPUTS, judge_out, forget_out, NULL },
    };
    static const struct sort results = { "results", GPQ_FINDING_FILE, judge_result, NULL,
                                         sweep_results };
    struct leftovers l = {
        .s = s, .state = state, .repair = repair, .fn = fn, .user = user, .e = e
    };
    int code = s->engine->running(s, keep_running, &l, e);
    for (size_t i = 0; code == 0 && i < sizeof(sorts) / sizeof(sorts[0]); i++)
        code = check_sort(&l, &sorts[i], false);
    if (code == 0)
        code = check_sort(&l, &results, true);
    if (code == 0)
        code = s->engine->result_files(s, check_row, &l, e);
    if (code == 0) {
        check_reserve(&l);
        check_socket(&l);
    }
    free(l.running);
    if (l.stopped != 0)
        return l.stopped;
    return code != 0 ? code : l.left;
}
