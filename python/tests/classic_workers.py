# SPDX-License-Identifier: MIT
"""Workers of test_classic.py: in a module that worker processes can import."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from typing import Any

from gpudispatch import BaseWorker, current_task, current_worker


class Worker(BaseWorker):
    """Does what the item says: (verb, argument...)."""

    def setup(self, gpu_id: int, seed: int, **kwargs: Any) -> None:
        self.gpu_id = gpu_id
        self.seed = seed
        self.kwargs = kwargs

    def process(self, data: Any) -> Any:
        if not isinstance(data, tuple):
            return data
        return getattr(self, data[0])(*data[1:])

    def whoami(self) -> dict[str, Any]:
        worker = current_worker()
        assert worker is not None
        return {
            "gpu_id": self.gpu_id, "seed": self.seed, "kwargs": self.kwargs, "pid": os.getpid(),
            "slot": worker.slot, "device": worker.device,
        }  # fmt: skip

    def double(self, x: int) -> int:
        return 2 * x

    def nap(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def swallow(self, seconds: float) -> str:
        """Four naps, whatever interrupts them."""
        for _ in range(4):
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                try:
                    time.sleep(left)
                except BaseException:
                    pass
        return "done"

    def native(self) -> bytes:
        """One call of native code, of a minute or so, which nothing interrupts."""
        return hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000_000)

    def fail(self, text: str) -> None:
        raise ValueError(text)

    def time_out(self) -> None:
        raise TimeoutError("my own")

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self, status: int) -> None:
        print("last words", file=sys.stderr)
        os._exit(status)

    def leave_softly(self, status: int) -> None:
        sys.exit(status)

    def unpicklable(self) -> object:
        return threading.Lock()

    def tell(self, fifo: str) -> str:
        """Ends when the test has seen the report."""
        task = current_task()
        assert task is not None
        task.progress(0.5, "half of it")
        with open(fifo, "rb") as gate:
            gate.read()
        return "told"

    def wait(self, fifo: str) -> bytes:
        """Waits until the test opens the gate."""
        with open(fifo, "rb") as gate:
            return gate.read()

    def whoami_behind(self, fifo: str) -> dict[str, Any]:
        self.wait(fifo)
        return self.whoami()

    def mark(self, fifo: str, seconds: float) -> str:
        """Opens a gate for the test, then takes its time."""
        with open(fifo, "wb") as gate:
            gate.write(b"%d" % os.getpid())
        time.sleep(seconds)
        return "marked"

    def say(self, out: str, err: str) -> None:
        print(out)
        print(err, file=sys.stderr)


class BadSetup(Worker):
    """The setup of these GPUs fails, or hangs."""

    def setup(
        self, gpu_id: int, seed: int, bad: tuple[int, ...] = (), how: str = "raise", **kwargs: Any
    ) -> None:
        super().setup(gpu_id, seed, **kwargs)
        if gpu_id not in bad:
            return
        if how == "hang":
            time.sleep(600)
        if how == "exit":
            os._exit(3)
        if how == "cuda":
            raise RuntimeError("CUDA error: invalid device ordinal")
        raise OSError(f"no model for {gpu_id}")


class SecondTry(Worker):
    """Its setup fails once."""

    def setup(self, gpu_id: int, seed: int, flag: str = "", **kwargs: Any) -> None:
        super().setup(gpu_id, seed, **kwargs)
        if not os.path.exists(flag):
            open(flag, "w").close()
            raise OSError("not yet")


class BadCleanup(Worker):
    def cleanup(self) -> None:
        raise RuntimeError(f"cannot put GPU {self.gpu_id} away")


class Frugal(BaseWorker):
    """Nothing but what must be there."""

    def setup(self, gpu_id: int, seed: int) -> None:
        pass

    def process(self, data: Any) -> Any:
        return data
