/* SPDX-License-Identifier: MIT */
/*
 * life.h - a store that works on a simulated disk, and the judge of its remains.
 *
 * The store must show exactly the state of the last acknowledged commit, or that of the commit in
 * flight, if there was one.
 */
#ifndef T_LIFE_H
#define T_LIFE_H

#include "diskfiles.h"
#include "diskvfs.h"
#include "ledger.h"
#include "text.h"
#include "work.h"

enum harm {
    NO_HARM,
    LOST,       /* something acknowledged is not there */
    TORN,       /* a part of a transaction is there */
    UNCOUNTED,  /* a counter is wrong */
    UNRECORDED, /* an attempt was started, and the store has none of this number */
    NO_RESULT,  /* a result is not whole */
    UNREADABLE, /* the store does not open, or a reader fails */
    STUCK,      /* it does not work on */
    HARMS
};

extern const char *const harm_names[HARMS];

/* The syncs and the order that a control leaves out. */
struct control {
    enum diskvfs_syncs syncs;
    bool no_file_sync, no_directory_sync, start_early;
};

struct life {
    struct control control;
    struct disk *disk;
    struct diskfiles diskfiles;
    struct gpq_files files;
    struct ledger ledger;
    struct work work;
    struct text kept; /* the view of the store after the last acknowledged commit */
    bool kept_known;
    bool in_flight; /* the commit that work.shown precedes */
    bool arrived;   /* the judge has seen its state */
    uint64_t seed;
    char why[512]; /* of the harm */
};

struct life *life_make(const struct control *c, uint64_t seed);
void life_free(struct life *l);
/* Opens work.store.  Returns 0 or a GPQ_E code. */
int life_open(struct life *l, struct gpq_error *e);
void life_close(struct life *l);
/* Keeps the present view of the store as `kept`. */
void life_show(struct life *l);
/* Does one transaction, as work_transaction. */
int life_transact(struct life *l, struct gpq_error *e);
/* Cuts the power, and closes the store. */
void life_cut(struct life *l);
/* Opens the store on this disk and judges it.  On a copy of its disk the life can go on. */
enum harm life_judge(struct life *l, struct disk *d);

#endif
