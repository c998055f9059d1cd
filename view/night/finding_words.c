/* SPDX-License-Identifier: MIT */
/* finding_words.c - a finding in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view/names.h"
#include "view/night/findings.h"
#include "view/words.h"

/* "NO WORKER" of "no worker". */
static const char *upper(const char *word, char ret[GPV_WORD])
{
    size_t i = 0;
    for (; i < GPV_WORD - 1 && word[i] != 0; i++)
        ret[i] = (char)(word[i] >= 'a' && word[i] <= 'z' ? word[i] - 'a' + 'A' : word[i]);
    ret[i] = 0;
    return ret;
}

static void put_status(int32_t status, char *ret, size_t size)
{
    *ret = 0;
    if (status > 0)
        (void)snprintf(ret, size, " exit %" PRIi32, status);
    else if (status < 0)
        (void)snprintf(ret, size, " signal %" PRIi64, -(int64_t)status);
}

static const char *class_of(const struct gpv_night *n, const struct gpv_finding *f)
{
    uint32_t class = f->row < n->tenancies.n ? n->tenancies.row[f->row].class : GPV_NONE;
    return class < n->classes.n ? gpv_text(n, n->classes.row[class].name) : "a worker";
}

/* Takes the bytes of a character away that was cut. */
static void end_at_character(char *text)
{
    size_t size = strlen(text), at = size;
    while (at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0)
        return;
    unsigned char lead = (unsigned char)text[at - 1];
    size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (size - (at - 1) < whole)
        text[at - 1] = 0;
}

char *gpv_finding_how(const struct gpv_finding *f, char ret[GPV_WORD])
{
    char word[GPV_WORD], status[GPV_WORD];
    put_status(f->status, status, sizeof(status));
    (void)snprintf(ret, GPV_WORD, "%.16s%.20s", upper(gpv_outcome_text(f->outcome), word), status);
    return ret;
}

/* "22 tasks CRASHED signal 11 (44x)" */
static int put_ends(const struct gpv_finding *f, char *ret, size_t size)
{
    char tasks[GPV_WORD], count[GPV_WORD], how[GPV_WORD];
    int length = snprintf(ret, size, "%s task%s %s", gpv_count(f->n_tasks, tasks),
                          f->n_tasks == 1 ? "" : "s", gpv_finding_how(f, how));
    if (f->count > f->n_tasks && length >= 0 && (size_t)length < size)
        length +=
            snprintf(ret + length, size - (size_t)length, " (%sx)", gpv_count(f->count, count));
    return length;
}

/* "whisper left GPU 0, 3 for shell", of the text "evicted for shell". */
static int put_eviction(const struct gpv_night *n, const struct gpv_finding *f, const char *times,
                        char *ret, size_t size)
{
    static const char evicted[] = "evicted";
    const char *text = gpv_text(n, f->text);
    char gpus[GPV_NAME];
    bool names = strncmp(text, "evicted for ", sizeof("evicted for ") - 1) == 0;
    return snprintf(ret, size, "%s%s left %s%s", times, class_of(n, f),
                    gpv_gpu_labels(n, gpv_set(n, f->set), gpus),
                    names ? text + sizeof(evicted) - 1 : "");
}

char *gpv_finding_text(const struct gpv_night *n, const struct gpv_finding *f, char *ret,
                       size_t size)
{
    char count[GPV_WORD], word[GPV_WORD], times[GPV_WORD + 4] = "", name[GPV_NAME];
    const char *gpu = gpv_gpu_label(n, f->gpu, name);
    int length = 0;
    /* A worker of several GPUs leaves all of them at once. */
    if (f->count != 1 && (f->kind != GPV_FINDING_EVICTED || f->count > gpv_set(n, f->set).n))
        (void)snprintf(times, sizeof(times), "%sx ", gpv_count(f->count, count));
    switch (f->kind) {
    case GPV_FINDING_BAD:
        length = put_ends(f, ret, size);
        break;
    case GPV_FINDING_OUT:
        length = snprintf(ret, size, "%s%s %s", times, gpu,
                          upper(gpv_out_word(n->outs.row[f->row].kind), word));
        break;
    case GPV_FINDING_KEPT:
        length = snprintf(ret, size, "%s%s kept free", times, gpu);
        break;
    case GPV_FINDING_LIMITED:
        length = snprintf(ret, size, "%s%s idle although tasks waited", times, gpu);
        break;
    case GPV_FINDING_EVICTED:
        length = put_eviction(n, f, times, ret, size);
        break;
    case GPV_FINDING_UNKNOWN:
        length = snprintf(ret, size, "%sno agent ran", times);
        break;
    default:
        length = snprintf(ret, size, "%sclock set", times);
        break;
    }
    if (length >= 0 && (size_t)length >= size)
        end_at_character(ret);
    return ret;
}

char *gpv_finding_detail(const struct gpv_night *n, const struct gpv_finding *f, char *ret,
                         size_t size)
{
    const char *text = gpv_text(n, f->text), *colon = strstr(text, ": ");
    if (f->kind == GPV_FINDING_EVICTED && strncmp(text, "evicted for ", 12) == 0)
        text = "";
    if (f->kind == GPV_FINDING_KEPT && colon)
        text = colon + 2;
    int length = snprintf(ret, size, "%s%s", text, f->varied ? ", others with other numbers" : "");
    if (length >= 0 && (size_t)length >= size)
        end_at_character(ret);
    return ret;
}
