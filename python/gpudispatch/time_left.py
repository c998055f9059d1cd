# SPDX-License-Identifier: MIT
"""The time left of a loop over several classes: a range, computed from counts alone.

A class needs its rest divided by its pace: the tasks that have ended per second of a worker, times
its present workers.  Seconds without a worker do not count, so setup and the wait for devices are
no slowness.  The tasks that run now may be just begun or nearly done: the upper end counts none of
them, the lower end all.  The loop ends with its slowest class.  If the devices of a class that is
done serve other classes, it ends earlier, so its lower end is that of work divided evenly.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

LEAST = 5  # tasks of a class that must have ended before its time left is known
ROUGH = 0.1  # the least width of a range, to each side

Range = tuple[float, float]  # seconds, from and to


class Course(NamedTuple):
    """How far a class is."""

    rest: int  # items without an outcome
    ran: int  # tasks that have ended
    running: int  # tasks that run now
    workers: int  # that it has now
    served: float  # seconds of its workers so far, added up
    mean: float  # seconds from the start of a task to its end
    error: float  # the standard error of the mean


def of_class(c: Course) -> Range | None:
    """The time that one class needs with its present workers; None = unknown."""
    if not c.rest:
        return 0.0, 0.0
    if c.ran < LEAST or not c.workers or c.served <= 0 or c.mean <= 0:
        return None
    width = max(ROUGH, min(1.0, 2 * c.error / c.mean))
    running = min(c.running, c.rest)
    low = (c.rest - running) * c.served / (c.ran + running) / c.workers
    high = max(c.rest * c.served / c.ran / c.workers, c.mean)  # no task is divided
    return low * (1 - width), high * (1 + width)


def of_all(courses: Collection[Course]) -> Range | None:
    """The time until the last class ends; None = one with items left is unknown."""
    work, workers, latest = 0.0, 0, 0.0
    for course in courses:
        needs = of_class(course)
        if needs is None:
            return None
        if course.rest:
            work += needs[0] * course.workers
            workers += course.workers
            latest = max(latest, needs[1])
    return (work / workers if workers else 0.0), latest
