/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - a snapshot as OpenMetrics text, for Prometheus.
 *
 * Labels of GPUs are spelled as NVIDIA's DCGM exporter spells them, so that `* on(UUID) group_left`
 * joins both.  No task, batch or user is a label.  At most 32 classes have rows of their own, and 8
 * in histograms, which have 9 rows each; the others are one class `other`.  So 8 GPUs and 32
 * classes have 64 KiB at most.
 *
 * Counters count from the start of the agent.  The uses of a GPU add up to the time since then, to
 * the millisecond.  Time that turned out to be in vain is part of `work`, since a counter never
 * falls, and counts in gpu_lost_seconds once it is known.                                   [V3]
 */
#ifndef GPV_METRICS_H
#define GPV_METRICS_H

#include <stdio.h>

#include "view/now/snapshot.h"

/* Each family: id, name, type, unit, help. */
#define GPV_FAMILY_MAP(X)                                                                         \
    X(TASKS, "gpudispatch_tasks", "counter", "",                                                  \
      "Tasks that ended, by class and outcome; a repeated task counts once.")                     \
    X(ATTEMPTS, "gpudispatch_attempts", "counter", "",                                            \
      "Ends of attempts, and of tasks without one, by class and outcome.")                        \
    X(WAITING, "gpudispatch_waiting_tasks", "gauge", "",                                          \
      "Tasks that wait, by class and by the reason of the first one with their needs, or held.")  \
    X(STATE, "gpudispatch_gpu_state", "stateset", "", "What each GPU does.")                      \
    X(SECONDS, "gpudispatch_gpu_seconds", "counter", "seconds",                                   \
      "Time of each GPU by its use; the uses add up to the time since the agent started.")        \
    X(LOST, "gpudispatch_gpu_lost_seconds", "counter", "seconds",                                 \
      "The part of the use work whose attempts did not end ok.")                                  \
    X(EVICTIONS, "gpudispatch_evictions", "counter", "",                                          \
      "Workers that left for another class, by their class.")                                     \
    X(RESTARTS, "gpudispatch_restarts", "counter", "",                                            \
      "Workers that started after one had died, by class.")                                       \
    X(RUN, "gpudispatch_task_run_seconds", "histogram", "seconds", "Run time of attempts.")       \
    X(WAIT, "gpudispatch_task_wait_seconds", "histogram", "seconds",                              \
      "Time from ready to start, of attempts.")                                                   \
    X(BUILD, "gpudispatch_build", "info", "", "The version of the agent.")

enum { GPV_METRIC_CLASSES = 32, GPV_METRIC_HISTOGRAMS = 8 };

/* Writes all families, up to `# EOF`.  The caller checks the stream's error flag. */
void gpv_metrics_write(const struct gpv_snapshot *s, FILE *f);

#endif
