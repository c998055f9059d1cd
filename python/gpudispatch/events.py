# SPDX-License-Identifier: MIT
"""The numbers of the library: kinds of events, outcomes, what is asked of classes, ways to end."""

OUTCOME, PROGRESS, SETUP_FAILURE = 1, 2, 3
CLEANUP_FAILURE, LOG, STARTED = 5, 6, 8
CLASS, GRANTED, REVOKED = 9, 11, 12
REFUSED = -1  # none of the library: a task that has waited in the backlog ends there

SUCCESS, ERROR, TIMEOUT, CRASHED, CANCELLED, NO_WORKER = 1, 2, 3, 4, 5, 6

FINISH_ALL, FINISH_RUNNING, FINISH_NOW = 0, 1, 2  # enum gpud_finish

PAUSE, RESUME, DRAIN, LOAD, UNLOAD, PIN, UNPIN = range(7)  # enum gpud_class_what
CLASS_FAILED, CLASS_REMOVED = 3, 6  # enum gpud_class_change
