/* SPDX-License-Identifier: MIT */
/* run.c - the names of one run of a command. */
#include "queue/runner/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "queue/files/numbers.h"
#include "queue/store.h"

#define HEX "0123456789abcdef"

void gpq_run_name(char ret[GPQ_RUN_NAME], const struct gpq_run_id *id)
{
    (void)snprintf(ret, GPQ_RUN_NAME, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, GPQ_BATCH_OF(id->task),
                   GPQ_NUMBER_OF(id->task), id->attempt);
}

void gpq_run_tag(char ret[GPQ_RUN_TAG], const struct gpq_run_id *id)
{
    char name[GPQ_RUN_NAME];

    gpq_run_name(name, id);
    (void)snprintf(ret, GPQ_RUN_TAG, "%s.%s", name, id->nonce);
}

bool gpq_run_tag_read(const char *text, struct gpq_run_id *ret)
{
    uint32_t n[3];
    const char *nonce;

    if (!gpq_numbers_read(text, "..", n, 3, &nonce) || *nonce++ != '.' ||
        strspn(nonce, HEX) != GPQ_NONCE || nonce[GPQ_NONCE])
        return false;
    ret->task = GPQ_TASK(n[0], n[1]);
    ret->attempt = n[2];
    memcpy(ret->nonce, nonce, GPQ_NONCE + 1);
    return true;
}

bool gpq_run_same(const struct gpq_run_id *a, const struct gpq_run_id *b)
{
    return a->task == b->task && a->attempt == b->attempt && !strcmp(a->nonce, b->nonce);
}

int gpq_run_nonce(char ret[GPQ_NONCE + 1])
{
    unsigned char bytes[GPQ_NONCE / 2];

    while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        if (errno != EINTR)
            return -errno;
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int gpq_run_path(char path[GPQ_PATH], const char *state, const struct gpq_run_id *id)
{
    return gpq_run_beside(path, state, id, "");
}

bool gpq_boot_valid(const char *text)
{
    return strspn(text, HEX "-") == GPQ_BOOT && !text[GPQ_BOOT];
}

int gpq_run_beside(char path[GPQ_PATH], const char *state, const struct gpq_run_id *id,
                   const char *suffix)
{
    char name[GPQ_RUN_NAME];

    gpq_run_name(name, id);
    return gpq_path(path, "%s/run/%s%s", state, name, suffix);
}

int gpq_boot_read(char ret[GPQ_BOOT + 1])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, ret, GPQ_BOOT);
    (void)close(fd);
    ret[n > 0 ? n : 0] = 0;
    return gpq_boot_valid(ret) ? 0 : -EIO;
}
