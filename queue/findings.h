/* SPDX-License-Identifier: MIT */
/*
 * findings.h - what a check of a state directory can find, each kind listed once.
 *
 * Scripts know the numbers: append, and never renumber.  docs/reference/fsck.md explains each.
 */
#ifndef GPQ_FINDINGS_H
#define GPQ_FINDINGS_H

#include <stdint.h>

#define GPQ_FINDING_MAP(X)                                                            \
    X(DAMAGE, 1, "damage")     /* SQLite finds the file of the store damaged */       \
    X(SCHEMA, 2, "schema")     /* a table or an index is not that of the version */   \
    X(ORPHAN, 3, "orphan")     /* rows of a task or batch that is not there */        \
    X(TASK, 4, "task")         /* columns of a task that contradict each other */     \
    X(ATTEMPT, 5, "attempt")   /* attempts that contradict their task */              \
    X(ROUND, 6, "round")                                                              \
    X(RESULT, 7, "result")                                                            \
    X(EDGE, 8, "edge")         /* a condition of --after */                           \
    X(FLAG, 9, "flag")         /* a flag without which rows are not found */          \
    X(KEY, 10, "key")          /* the hash by which a task is joined */               \
    X(SHAPE, 11, "shape")                                                             \
    X(SPEC, 12, "spec")                                                               \
    X(COUNTER, 13, "counter")  /* a number would be used a second time */             \
    X(BATCH, 14, "batch")      /* the counts of a batch against its tasks */          \
    X(END, 15, "end")          /* an end from which something has not followed */     \
    X(FOLDER, 20, "folder")    /* a folder of the state directory */                  \
    X(RECORD, 21, "record")    /* the record of a run that no task runs */            \
    X(FILE, 22, "file")        /* files of results against the rows */                \
    X(OUTPUTS, 23, "outputs")  /* out/ and work/ against the rows */                  \
    X(LOG, 24, "log")          /* a log whose task is not there */                    \
    X(RESERVE, 25, "reserve")  /* space for the end of running tasks */               \
    X(SOCKET, 26, "socket")    /* the place of the socket */

#define GPQ_X_FINDING(name, number, text) GPQ_FINDING_##name = number,
enum gpq_finding_kind { GPQ_FINDING_MAP(GPQ_X_FINDING) };
#undef GPQ_X_FINDING

/* Returns a constant text, "?" for a value that is none. */
const char *gpq_finding_text(uint32_t kind);

#endif
