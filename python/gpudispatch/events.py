# SPDX-License-Identifier: MIT
"""The numbers of the library's events: their kinds, and the outcomes of tasks."""

OUTCOME, PROGRESS, SETUP_FAILURE = 1, 2, 3
CLEANUP_FAILURE, LOG, STARTED = 5, 6, 8
CLASS, GRANTED, REVOKED = 9, 11, 12

SUCCESS, ERROR, TIMEOUT, CRASHED, CANCELLED, NO_WORKER = 1, 2, 3, 4, 5, 6
