/* SPDX-License-Identifier: MIT */
/*
 * recordings.c - owns the fixed list of prompts and the search for files.
 */
#include "recordings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The 60 fixed prompts, chosen by rule and not by the quality of their texts:
 *   - the 568 files of asterisk-core-sounds-en-g722 1.6.1, names in byte order;
 *   - without the files that have no speech: silence/ (10), beep, beeperr, ascending-2tone,
 *     descending-2tone, confbridge-join, confbridge-leave, tt-monkeys;
 *   - `transfer` and `vm-deleted`, whose text the demonstration checks;
 *   - of the other 549, number i * 549 / 58 (rounded down, from 0), i = 0..57.
 */
static const char *const fixed_names[] = {
    "activated", "all-circuits-busy-now", "call-fwd-unconditional", "conf-enteringno",
    "conf-invalid", "conf-now-recording", "conf-unmuted", "confbridge-binaural-off",
    "confbridge-has-left", "confbridge-lock-no-join", "confbridge-only-one",
    "confbridge-rest-talk-vol-in", "demo-echotest", "dictate/pause", "digits/0", "digits/17",
    "digits/50", "digits/a-m", "digits/dollars", "digits/h-17", "digits/h-50", "digits/h-billion",
    "digits/mon-11", "digits/oclock", "dir-firstlast", "dir-nomatch", "extension",
    "from-unknown-caller", "is-set-to", "letters/ascii37", "letters/ascii60", "letters/at",
    "letters/exclaimation-point", "letters/o", "letters/u", "minutes", "phonetic/9_p",
    "phonetic/j_p", "phonetic/s_p", "pls-hold-while-try", "privacy-to-blacklist-last-caller",
    "queue-reporthold", "simul-call-limit-reached", "spy-iax", "spy-skinny", "to-listen-to-it",
    "transfer", "vm-Cust3", "vm-advopts", "vm-deleted", "vm-for", "vm-incorrect-mailbox",
    "vm-login", "vm-msginstruct", "vm-num-i-have", "vm-press", "vm-repeat", "vm-sorry",
    "vm-tocallback", "vm-toreply",
};

enum { PATH_BYTES = 4096, DEPTH_MAX = 16 };

static const char suffix[] = ".g722";

static int has_suffix(const char *name)
{
    size_t n = strlen(name), k = sizeof suffix - 1;
    return n > k && strcmp(name + n - k, suffix) == 0;
}

static int make_room(struct recordings *list)
{
    if (list->n < list->room)
        return 0;
    size_t room = list->room == 0 ? 64 : list->room * 2;
    struct recording *items = realloc(list->items, room * sizeof *items);
    if (items == NULL)
        return ENOMEM;
    list->items = items;
    list->room = room;
    return 0;
}

/* Adds a path under a name, without the name's suffix. */
static int add(struct recordings *list, const char *path, const char *name)
{
    if (make_room(list) != 0)
        return ENOMEM;
    struct stat st;
    struct recording r = { .path = strdup(path), .name = strdup(name) };
    if (r.path == NULL || r.name == NULL) {
        free(r.path);
        free(r.name);
        return ENOMEM;
    }
    if (has_suffix(r.name))
        r.name[strlen(r.name) - (sizeof suffix - 1)] = '\0';
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        r.bytes = (uint64_t)st.st_size;
    list->items[list->n++] = r;
    return 0;
}

int recordings_add_file(struct recordings *list, const char *path)
{
    return add(list, path, path);
}

int recordings_add_fixed(struct recordings *list, const char *dir)
{
    char path[PATH_BYTES];
    if (access(dir, X_OK) != 0)
        return errno; /* one error instead of one per file */
    for (size_t i = 0; i < sizeof fixed_names / sizeof *fixed_names; i++) {
        if (snprintf(path, sizeof path, "%s/%s%s", dir, fixed_names[i], suffix) >= PATH_BYTES)
            return ENAMETOOLONG;
        int error = add(list, path, fixed_names[i]);
        if (error != 0)
            return error;
    }
    return 0;
}

static int scan(struct recordings *list, const char *dir, size_t root_length, int depth);

/* Searches an entry that is a folder, adds one that is a recording, skips any other. */
static int scan_entry(struct recordings *list, const char *dir, const char *entry,
                      size_t root_length, int depth)
{
    char path[PATH_BYTES];
    struct stat st;
    if (entry[0] == '.')
        return 0;
    if (snprintf(path, sizeof path, "%s/%s", dir, entry) >= PATH_BYTES)
        return ENAMETOOLONG;
    if (stat(path, &st) != 0)
        return 0; /* a dangling link, or gone since readdir */
    if (S_ISDIR(st.st_mode))
        return depth < DEPTH_MAX ? scan(list, path, root_length, depth + 1) : ELOOP;
    if (S_ISREG(st.st_mode) && has_suffix(entry))
        return add(list, path, path + root_length + 1);
    return 0;
}

static int scan(struct recordings *list, const char *dir, size_t root_length, int depth)
{
    DIR *stream = opendir(dir);
    if (stream == NULL)
        return errno;
    int error = 0;
    const struct dirent *entry;
    while (error == 0 && (entry = readdir(stream)) != NULL)
        error = scan_entry(list, dir, entry->d_name, root_length, depth);
    closedir(stream);
    return error;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct recording *)a)->path, ((const struct recording *)b)->path);
}

int recordings_add_all(struct recordings *list, const char *dir)
{
    size_t before = list->n;
    int error = scan(list, dir, strlen(dir), 0);
    if (list->n > before)
        qsort(list->items + before, list->n - before, sizeof *list->items, by_path);
    return error;
}

void recordings_free(struct recordings *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].path);
        free(list->items[i].name);
    }
    free(list->items);
    *list = (struct recordings){ 0 };
}
