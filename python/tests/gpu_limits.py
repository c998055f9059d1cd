# SPDX-License-Identifier: MIT
"""A program on a GPU that is a fake of the driver: how tasks end at their limit there.

test_worker.py runs it with the fakes of NVML and libcuda in LD_LIBRARY_PATH. It prints a line for
each task: its name, the phase in which it ended, and whether its stack names it.
"""

from __future__ import annotations

import worker_tasks as tasks

from gpudispatch import Executor, errors

LIMIT_S = 30.0


def main() -> None:
    with Executor(devices="all", task_timeout=0.15, grace=0.4, initializer=tasks.pid) as pool:
        print(pool.submit(tasks.device_facts).result(LIMIT_S))
        for function in (tasks.spin, tasks.usleep_loop, tasks.deadlock, tasks.wait_for_a_lock):
            error = pool.submit(function).exception(LIMIT_S)
            assert isinstance(error, errors.TaskTimeout)
            print(function.__name__, error.phase, f"in {function.__name__}" in error.stack)


if __name__ == "__main__":
    main()
