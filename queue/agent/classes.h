/* SPDX-License-Identifier: MIT */
/*
 * classes.h - the classes of workers that the config file names.
 */
#ifndef GPQ_AGENT_CLASSES_H
#define GPQ_AGENT_CLASSES_H

#include "queue/agent/agent.h"
#include "queue/config/config.h"

struct gpq_class {
    const char *name;
    uint32_t batch;  /* tasks that a worker takes at a time */
    uint32_t fit;    /* workers that there may be at a time, about */
    uint32_t gpus;   /* of a worker */
    uint32_t inside; /* tasks that the dispatcher has */
    uint32_t most;   /* bounds them, since it had no room for more; 0 = no bound */
    bool there;      /* the dispatcher has it */
    bool paused;     /* by a mark: none of its tasks starts */
    bool pausing;    /* the same, by a mark of the present transaction */
    bool failed;     /* its workers fail: the tasks that wait end NO_WORKER */
    char text[256];  /* why it is not there, or has failed */
};

struct gpq_classes {
    const char *path; /* of the config file; NULL = it has none */
    struct gpq_class *list;
    size_t n;
};

/* Whether tasks of a class of this name can run here.  If not, `text` says why, without its name:
 * the config file has no such class, and has these; or the dispatcher has refused it. */
bool gpq_class_usable(const struct gpq_agent *a, const char *name, char *text, size_t size);

/* The dispatcher's numbers of a class.  False: it has none, and they are 0. */
bool gpq_class_stats(const struct gpq_agent *a, const char *name, struct gpud_class_stats *ret);

/* The class of this name; NULL: the config file has none, or the agent has read none. */
struct gpq_class *gpq_class_find(const struct gpq_agent *a, const char *name);

#endif
