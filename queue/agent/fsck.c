/* SPDX-License-Identifier: MIT */
/* fsck.c - checks a state directory, and prints what it finds. */
#include "queue/agent/fsck.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/agent.h"
#include "queue/agent/leftovers.h"
#include "queue/files/lock.h"
#include "queue/files/statedir.h"

enum { LEFT = 3, FAILED = 1 }; /* exit status */

struct fsck {
    const struct gpq_fsck *how;
    char state[GPQ_PATH];
    struct gpq_store *store;
    int lock;
    uint64_t found, repaired;
};

/* Names from a damaged file may have any bytes. */
static void clean(char *ret, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        ret[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    ret[n] = 0;
}

/* Prints one object, and frees it. */
static void print_json(json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    puts(text ? text : "{\"error\":\"ENOMEM\",\"text\":\"no memory\"}");
    free(text);
    json_decref(line);
}

static int print_finding(const struct gpq_finding *f, void *user)
{
    struct fsck *k = user;
    char id[16], place[160], text[768];
    snprintf(id, sizeof(id), "F%u", f->kind);
    clean(place, sizeof(place), f->place);
    clean(text, sizeof(text), f->text);
    k->found++;
    k->repaired += f->repaired;
    if (k->how->json)
        print_json(json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "finding", id, "name",
                             gpq_finding_text(f->kind), "place", place, "text", text, "repairable",
                             f->repairable, "repaired", f->repaired));
    else
        printf("%s %s: %s: %s%s\n", id, gpq_finding_text(f->kind), place, text,
               f->repaired     ? " (repaired)"
               : f->repairable ? " (--repair mends it)"
                               : "");
    return 0;
}

static int print_error(const struct fsck *k, const struct gpq_error *e)
{
    char text[sizeof(e->text)];
    clean(text, sizeof(text), e->text);
    if (k->how->json)
        print_json(json_pack("{s:s, s:s}", "error", gpq_error_name(e->code), "text", text));
    else
        fprintf(stderr, "gpudispatch-agent: %s\n", text);
    if (e->code == GPQ_EDAMAGED && !k->how->json)
        fprintf(stderr,
                "gpudispatch-agent: nothing was written; copy the whole directory %s first, and "
                "then take the readable rows to a new file: sqlite3 COPY/queue.db .recover | "
                "sqlite3 NEW.db (docs/reference/fsck.md)\n",
                k->state);
    return gpq_error_status(e->code);
}

static int print_summary(const struct fsck *k, bool files)
{
    unsigned long long found = k->found, repaired = k->repaired, left = found - repaired;
    if (k->how->json)
        print_json(json_pack("{s:I, s:I, s:I, s:b}", "findings", (json_int_t)found, "repaired",
                             (json_int_t)repaired, "left", (json_int_t)left, "files", files));
    else if (found == 0)
        printf("%s: nothing found\n", k->state);
    else
        printf("%s: %llu findings, %llu repaired, %llu left%s\n", k->state, found, repaired, left,
               files ? "" : "; mend the folders and check again for the files in them");
    if (fflush(stdout) != 0 || ferror(stdout))
        return FAILED;
    return left != 0 ? LEFT : 0;
}

/* The shared lock of a directory that cannot be written keeps agents of others out.  Without the
 * file no agent was there since the last one has ended. */
static int take_lock(const char *state, int *ret_lock, bool *ret_read_only, struct gpq_error *e)
{
    char path[GPQ_PATH];
    *ret_read_only = access(state, W_OK) != 0 && (errno == EROFS || errno == EACCES);
    if (!*ret_read_only)
        return gpq_statedir_own(state, ret_lock, e);
    int ret = gpq_path(path, "%s/lock", state);
    if (ret == 0)
        ret = gpq_lock_share(path, ret_lock);
    if (ret == 0 || ret == -ENOENT)
        return 0;
    return gpq_fail(e, ret == -EBUSY ? GPQ_EBUSY : GPQ_EIO, "%.300s: lock: %s", state,
                    strerror(-ret));
}

int gpq_closed_open(const char *given, char state[GPQ_PATH], int *ret_lock, struct gpq_store **ret,
                    struct gpq_error *e)
{
    struct gpq_places places;
    char path[GPQ_PATH];
    bool read_only = false;
    gpq_places_read(given, &places);
    int code = gpq_places_find(&places, path, e);
    if (code == 0)
        code = gpq_statedir_check(path, state, e);
    if (code == 0)
        code = take_lock(state, ret_lock, &read_only, e);
    if (code == GPQ_EBUSY)
        return gpq_fail(e, code,
                        "%.300s: an agent runs, which has the store to itself; `gpudispatch agent "
                        "stop` ends it and leaves its commands running",
                        state);
    if (code < 0)
        return code;
    return gpq_sqlite_open(
        &(struct gpq_options){ .directory = state, .only_check = true, .read_only = read_only },
        ret, e);
}

/* The findings of a damaged file are the only ones that a check makes before it fails. */
static int print_damage(const struct gpq_finding *f, void *user)
{
    return f->kind == GPQ_FINDING_DAMAGE ? print_finding(f, user) : 0;
}

/* 1: the repairs may be made.  While a runner lives of which the store does not know, nothing is
 * repaired; the rows are asked only if the file that has them is not damaged. */
static int may_repair(struct fsck *k, struct gpq_error *e)
{
    int lives = gpq_any_runner(k->state, e);
    if (lives <= 0)
        return lives < 0 ? lives : 1;
    int64_t code = k->store->engine->check(k->store, gpq_wall(), false, print_damage, k, e);
    if (code < 0)
        return (int)code;
    lives = gpq_stray_runner(k->store, k->state, e);
    return lives < 0 ? lives : lives == 0;
}

/* The files are judged by the rows, so the store comes first. */
static int check(struct fsck *k, bool *ret_files, struct gpq_error *e)
{
    int64_t code = gpq_folders_check(k->state, k->how->repair, print_finding, k);
    *ret_files = code == 0;
    int repair = k->how->repair && code == 0 ? may_repair(k, e) : 0;
    if (repair < 0)
        return repair;
    code = k->store->engine->check(k->store, gpq_wall(), repair, print_finding, k, e);
    if (code >= 0 && *ret_files)
        code = gpq_leftovers_check(k->store, k->state, repair, print_finding, k, e);
    return code < 0 ? (int)code : 0;
}

static int check_writable(const struct fsck *k, struct gpq_error *e)
{
    if (access(k->state, W_OK) == 0)
        return 0;
    return gpq_fail(e, GPQ_EUNUSABLE,
                    "state directory %.300s: cannot be written: %s; check it without --repair, or "
                    "repair a copy",
                    k->state, strerror(errno));
}

int gpq_fsck(const struct gpq_fsck *how)
{
    struct fsck k = { .how = how, .lock = -1 };
    struct gpq_error e = { 0 };
    bool files = false;
    int code = gpq_closed_open(how->state_dir, k.state, &k.lock, &k.store, &e);
    if (code == 0 && how->repair)
        code = check_writable(&k, &e);
    if (code == 0)
        code = check(&k, &files, &e);
    int status = code < 0 ? print_error(&k, &e) : print_summary(&k, files);
    if (k.store)
        k.store->engine->close(k.store);
    gpq_lock_close(k.lock);
    return status;
}
