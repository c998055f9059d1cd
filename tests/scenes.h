/* SPDX-License-Identifier: MIT */
/*
 * scenes.h - what the workers of a scenario do: they count, and wait at gates.  Each class of a
 * scene has a number, by which its workers find their words.
 */
#ifndef T_SCENES_H
#define T_SCENES_H

#include "pooled.h"
#include "replayed.h"

enum { T_SCENE_CLASSES = 8, T_SCENE_DEVICES = 16 };
/* Words. */
enum {
    T_STARTS,                                /* tasks that have begun */
    T_BOOTS = 8,                             /* + class: workers that have begun setup */
    T_UPS = T_BOOTS + T_SCENE_CLASSES,       /* + class: workers that have ended setup */
    T_DOWNS = T_UPS + T_SCENE_CLASSES,       /* + class: workers that have begun cleanup */
    T_BOOT_GATE = T_DOWNS + T_SCENE_CLASSES, /* + class: setup waits while it is T_CLOSED */
    T_DOWN_GATE = T_BOOT_GATE + T_SCENE_CLASSES, /* + class: the same for cleanup */
    T_NOW = T_DOWN_GATE + T_SCENE_CLASSES,   /* + device: tasks that run there */
    T_MOST = T_NOW + T_SCENE_DEVICES,        /* + device: the most of them at a time */
    T_TASK_GATE = T_WORDS - 1
};
enum { T_CLOSED = 1, T_OPEN = 2 };
/* A task of tag T_GATED + n runs until word T_TASK_GATE is n or more.  One of tag T_SLOW + n takes
 * 2 ms at least. */
enum { T_GATED = 100000, T_SLOW = 200000 };

/* gpud_init with the definition of scenes. */
void t_scene_init(void);
/* Options of the dispatcher of a scene. */
#define T_SCENE(...) \
    T_OPTIONS(.pooled = 1, .queue_size = 2000, .decision_log = T_DECISIONS, __VA_ARGS__)
/* Adds class number n, such as T_SCENE_CLASS(d, 2, "cold", .max_wait = T_MS(50)). */
#define T_SCENE_CLASS(d, n, class, ...)                                                   \
    add((d), T_CLASS(.name = (class),                                                     \
                     .options = T_OPTIONS(.definition = "test", .sent_ahead = 1,          \
                                          .max_attempts = 2,                              \
                                          .retry_causes = GPUD_RETRY_DEVICE,              \
                                          .setup_data = &"01234567"[n], .setup_size = 1), \
                     __VA_ARGS__))
/* Memory of each device, in GiB, for a worker whose tasks have this share of one device. */
#define T_PART(gib, of)                                                   \
    T_REQUEST(.devices = 1, .memory = (uint64_t)(gib) << 30, .share = (of))
#define T_ALL_OF(gib) T_PART((gib), 10000)

/* Waits until the first reason of explain is of this kind, and returns that row. */
struct gpud_reason t_waits_for(gpud_dispatcher *d, uint64_t id, uint32_t kind);
#define T_WAITS_FOR(d, id, name) t_waits_for((d), (id), GPUD_REASON_##name)

/* Of a task that has succeeded: the how manyth of all it began, and the devices of its worker. */
uint32_t t_start_of(const struct t_log *log, uint64_t tag);
const char *t_devices_of(const struct t_log *log, uint64_t tag);
/* Opens the gate of the tasks, and collects all n outcomes. */
void t_open_all(gpud_dispatcher *d, struct t_log *log, size_t n);
/* Polls until the log has this many events with this change of the class, and returns the last. */
const struct gpud_event *t_changed(gpud_dispatcher *d, struct t_log *log, const char *name,
                                   uint32_t change, size_t n);

#endif
