/* SPDX-License-Identifier: MIT */
/*
 * settings.h - what the agent is started with: its command line, the environment, the config file.
 */
#ifndef GPQ_AGENT_SETTINGS_H
#define GPQ_AGENT_SETTINGS_H

#include "queue/config/config.h"
#include "queue/files/files.h"

struct gpq_settings {
    struct gpq_config config; /* owns the texts */
    const char *config_file;  /* of --config; NULL = not given */
    char *own_state;          /* a path of the config file, made absolute */
    const char *state;        /* NULL: the place of files/places.h */
    const char *devices, *runner;
    char found[GPQ_PATH]; /* of the runner, where none is given */
    const char *notify;   /* NULL = none */
    const char *ports;    /* of {port}, FIRST-LAST; NULL = the usual ones */
    uint32_t cpus;        /* 0: those of the machine */
    uint64_t keep_age;    /* ns; 0: no limit */
    uint64_t keep_tasks;  /* 0: no limit */
    uint64_t log_limit;   /* bytes */
    bool allow_network;
    bool fsck, repair, json; /* fsck.h */
    bool records, names;     /* closed.h */
    uint64_t since;          /* ns since 1970 */
    char **batches;          /* operands */
    size_t n_batches;
};

/*
 * Reads them.  Each key of the agent before the first section of the config file is an option of
 * its command line, too; beside these there are --config FILE, --runner PROGRAM, --foreground, and
 * --fsck with --repair and --json, and --records with --since NS, --names and batches.
 * EINVAL: getopt_long has printed the fault of an option, or *e has a text.
 */
int gpq_settings_read(int argc, char **argv, struct gpq_settings *ret, struct gpq_error *e);
void gpq_settings_free(struct gpq_settings *s);

#endif
