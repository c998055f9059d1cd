/* SPDX-License-Identifier: MIT */
/* forget.c - removes the files of tasks that the store has forgotten, a few in each turn. */
#include "queue/agent/forget.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/lookup.h"
#include "queue/files/names.h"
#include "queue/files/numbers.h"
#include "queue/files/publish.h"
#include "queue/files/results.h"
#include "queue/grow.h"

#define NOTIFY "notify-" /* logs of notifications: notify.c */
/* Of one turn.  Each may be a directory with much below it. */
enum { SOME = 64 };
#define SOME_NS UINT64_C(5000000)
#define LAST_NS UINT64_C(1000000000) /* of an agent that ends */

struct forgotten {
    uint64_t task;
    uint32_t attempt; /* the last one */
};

struct gpq_forget {
    struct forgotten *task;
    size_t n, room, next; /* those before `next` are removed */
    bool marked;          /* the store may have the mark */
};

/* ---- The files of a task ---- */

/* The log of a notification goes with the batch. */
static void remove_notification(struct gpq_agent *a, uint32_t batch)
{
    char path[GPQ_PATH];
    struct gpq_error e;
    if (gpq_batch_read(a->store, batch, NULL, NULL, &e) == GPQ_ENOTFOUND &&
        gpq_path(path, "%s/logs/" NOTIFY "%u", a->state, batch) == 0)
        (void)unlink(path);
}

/* Files that cannot be removed now go when an agent starts, or by a check (fsck.h). */
static void remove_files(struct gpq_agent *a, const struct forgotten *f)
{
    struct gpq_error e;
    char path[GPQ_PATH], result[GPQ_RESULT_NAME];
    if (gpq_out_forget(&gpq_system_files, a->state, f->task, &e) < 0)
        gpq_log("outputs of %u.%u: %s", GPQ_BATCH_OF(f->task), GPQ_NUMBER_OF(f->task), e.text);
    for (uint32_t i = 1; i <= f->attempt; i++) {
        gpq_result_name(result, f->task, i);
        (void)gpq_result_drop(&gpq_system_files, a->state, result, &e);
        if (gpq_path(path, "%s/logs/%u.%u.%u", a->state, GPQ_BATCH_OF(f->task),
                     GPQ_NUMBER_OF(f->task), i) == 0)
            (void)unlink(path);
    }
}

/* ---- The list ---- */

static bool keep(struct gpq_forget *all, uint64_t task, uint32_t attempt)
{
    struct forgotten *larger = gpq_grown(all->task, all->n, &all->room, sizeof(*larger));
    if (!larger)
        return false;
    all->task = larger;
    all->task[all->n++] = (struct forgotten){ task, attempt };
    return true;
}

void gpq_forget_task(struct gpq_agent *a, const struct gpq_change *c)
{
    const struct forgotten now = { c->task, c->attempt };
    if (a->forget && keep(a->forget, c->task, c->attempt))
        return;
    remove_files(a, &now);
    remove_notification(a, GPQ_BATCH_OF(c->task));
}

bool gpq_forget_waits(const struct gpq_agent *a)
{
    return a->forget && a->forget->n != 0;
}

void gpq_forget_some(struct gpq_agent *a)
{
    struct gpq_forget *all = a->forget;
    uint64_t begun = all && all->n != 0 ? gpq_monotonic() : 0;
    for (int i = 0; all && i < SOME && all->next < all->n; i++) {
        if (i != 0 && gpq_monotonic() - begun > SOME_NS)
            break;
        const struct forgotten *f = &all->task[all->next++];
        bool last = all->next == all->n || GPQ_BATCH_OF(f[1].task) != GPQ_BATCH_OF(f->task);
        remove_files(a, f);
        if (last)
            remove_notification(a, GPQ_BATCH_OF(f->task));
    }
    if (all && all->next == all->n) {
        free(all->task);
        all->task = NULL;
        all->n = all->room = all->next = 0;
    }
}

void gpq_forget_last(struct gpq_agent *a)
{
    uint64_t begun = gpq_monotonic();
    while (gpq_forget_waits(a) && gpq_monotonic() - begun < LAST_NS)
        gpq_forget_some(a);
    if (gpq_forget_waits(a))
        gpq_log("files of %zu purged tasks are left: the next agent removes them",
                a->forget->n - a->forget->next);
}

void gpq_forget_close(struct gpq_agent *a)
{
    if (a->forget)
        free(a->forget->task);
    free(a->forget);
    a->forget = NULL;
}

/* ---- The mark ---- */

static bool forgets(const struct gpq_agent *a)
{
    for (size_t i = 0; i < a->store->n_changes; i++)
        if (a->store->changes[i].to == 0)
            return true;
    return false;
}

int gpq_forget_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e)
{
    struct gpq_forget *all = a->forget;
    const struct gpq_mark mark = { "forget", "", NULL, now };
    if (!all)
        return 0;
    if (forgets(a)) {
        all->marked = true;
        return a->store->engine->mark(a->store, &mark, e);
    }
    /* Only in a commit that happens anyway: it costs a search at the next start, no more. */
    if (!all->marked || all->n != 0 || a->store->n_changes == 0)
        return 0;
    all->marked = false;
    int code = a->store->engine->unmark(a->store, "forget", "", e);
    return code == GPQ_ENOTFOUND ? 0 : code;
}

/* ---- The start ---- */

/* A name such as 12.44 of outputs, 12.44.2 of a log, or notify-12. */
static int look_at(struct gpq_agent *a, const char *name, struct gpq_error *e)
{
    uint32_t n[3] = { 0 };
    const char *rest;
    size_t prefix = strlen(NOTIFY);
    if (strncmp(name, NOTIFY, prefix) == 0 && gpq_numbers_read(name + prefix, "", n, 1, NULL)) {
        remove_notification(a, n[0]);
        return 0;
    }
    if (!gpq_numbers_read(name, ".", n, 2, &rest) ||
        (*rest && !gpq_numbers_read(name, "..", n, 3, NULL)))
        return 0;
    struct gpq_task there;
    int code = gpq_task_look(a->store, GPQ_TASK(n[0], n[1]), &there, e);
    if (code == 0 && !keep(a->forget, GPQ_TASK(n[0], n[1]), n[2]))
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the files of forgotten tasks");
    return code < 0 ? code : 0;
}

static int look_through(struct gpq_agent *a, const char *folder, struct gpq_error *e)
{
    struct gpq_names names = { 0 };
    char path[GPQ_PATH];
    int code = 0;
    if (gpq_path(path, "%s/%s", a->state, folder) < 0 ||
        gpq_names_read(&gpq_system_files, path, &names) < 0)
        return 0;
    GPQ_EACH_NAME (&names, name)
        if (code == 0)
            code = look_at(a, name, e);
    gpq_names_free(&names);
    return code;
}

int gpq_forget_open(struct gpq_agent *a, struct gpq_error *e)
{
    uint64_t since;
    a->forget = calloc(1, sizeof(*a->forget));
    if (!a->forget)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    int code = gpq_mark_look(a->store, "forget", "", &since, e);
    a->forget->marked = code > 0;
    if (code <= 0)
        return code;
    code = look_through(a, "out", e);
    return code < 0 ? code : look_through(a, "logs", e);
}
