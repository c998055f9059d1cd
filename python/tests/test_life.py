# SPDX-License-Identifier: MIT
"""The life of the host: Ctrl-C, exit, kill -9, fork, dropped executors, other parts of a program.

Programs of their own, since each ends in its own way.  They say "ready" where the test acts.
"""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import life_tasks as tasks
from conftest import gone, until
from programs import HERE, PACKAGE

from gpudispatch import Executor

LIMIT_S = 60.0

HEAD = """
import asyncio, concurrent.futures, os, signal, sys, threading, time
sys.path[:0] = [{tests!r}, {package!r}]
import life_tasks as tasks
from gpudispatch import Executor, ForkedError, WorkerCrashed

def say(*words):
    print(*words, flush=True)

def interrupted(body):
    # The time from the signal to the exception, in ms.
    try:
        body()
    except KeyboardInterrupt:
        return (time.monotonic() - float(sys.stdin.readline())) * 1e3
    say("not interrupted")

# The waits of the standard library do not see a signal that comes right before, until they end.
def wait_often(future):
    while concurrent.futures.wait([future], 0.01).not_done:
        pass

async def beating(work):
    async def beat():
        while True:
            await asyncio.sleep(0.01)
    beats = asyncio.create_task(beat())
    try:
        return await work
    finally:
        beats.cancel()

if __name__ == "__main__":
"""


class Program:
    """A host in a process of its own."""

    def __init__(self, tmp_path: pathlib.Path, body: str, *flags: str) -> None:
        self.path = tmp_path / "program.py"
        head = HEAD.format(tests=HERE, package=PACKAGE)
        self.path.write_text(head + textwrap.indent(textwrap.dedent(body), "    "))
        self.process = subprocess.Popen(
            [sys.executable, *flags, str(self.path)],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def expect(self, word: str) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(word), line + self.process.stdout.read()
        return line

    def interrupt(self) -> None:
        """Ctrl-C for this process alone, and the time at which it was sent."""
        assert self.process.stdin is not None
        sent = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.stdin.write(f"{sent}\n")
        self.process.stdin.flush()

    def end(self, status: int = 0) -> str:
        out, _ = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == status, out
        return out


def family(leader: int) -> set[int]:
    """The living processes that have this one among their ancestors, or had."""
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            mark = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"LIFE_TEST={leader}\0".encode() in mark + b"\0" and state not in "ZX":
            found.add(int(entry.name))
    return found


# ---- Ctrl-C ----

WAITS = {
    "result": "pool.submit(tasks.hold, 'started', 'fifo').result()",
    "exception": "pool.submit(tasks.hold, 'started', 'fifo').exception()",
    "outcomes": "list(pool.outcomes(['started'], fn=hold))",
    "map": "list(pool.map(tasks.hold, ['started'], ['fifo']))",
    "asyncio": "asyncio.run(beating(pool.arun(tasks.hold, 'started', 'fifo')))",
    "wait": "wait_often(pool.submit(tasks.hold, 'started', 'fifo'))",
    "ready": "Executor(1, initializer=tasks.hold, initargs=('started', 'fifo')).ready()",
}


@pytest.mark.parametrize("where", WAITS)
def test_ctrl_c_reaches_a_waiting_main_thread(tmp_path: pathlib.Path, where: str) -> None:
    took = [latency(tmp_path / "0", where)]
    while min(took) >= 50 and len(took) < 4:  # a busy machine may keep a thread from its CPU
        took.append(latency(tmp_path / str(len(took)), where))
    assert min(took) < 50, took


def latency(directory: pathlib.Path, where: str) -> float:
    """The time from Ctrl-C to the exception, in ms."""
    directory.mkdir()
    os.mkfifo(directory / "fifo")
    program = Program(
        directory,
        f"""
        import functools
        hold = functools.partial(tasks.hold, fifo='fifo')
        pool = Executor(2)
        pool.ready()
        say("ready")
        took = interrupted(lambda: {WAITS[where]})
        say("took", took)
        say("value", pool.submit(tasks.same, 7).result())  # the pool stays usable
        pool.kill_workers()
        say("end")
        """,
    )
    program.expect("ready")
    assert until((directory / "started").exists)
    program.interrupt()
    took = float(program.expect("took").split()[1])
    program.expect("value 7")
    program.expect("end")
    program.end()
    return took


UNSEEN = {
    "shutdown": "pool.shutdown()",
    "room": "[pool.options(block=True).submit(tasks.same, n) for n in range(9)]",
    "result": "pool.submit(tasks.same, 1).result()",
    "exception": "pool.submit(tasks.same, 1).exception()",
}


@pytest.mark.parametrize("where", UNSEEN)
def test_ctrl_c_that_wakes_no_wait(tmp_path: pathlib.Path, where: str) -> None:
    """The signal comes right before the wait, or another thread gets it, as here."""
    os.mkfifo(tmp_path / "fifo")
    program = Program(
        tmp_path,
        f"""
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # for the main thread
        pool = Executor(1, queue_size=2)
        first = pool.submit(tasks.hold, "started", "fifo")
        loop = pool.outcomes([1], fn=tasks.same)  # so the pool's thread reads
        while first.attempt == 0:
            time.sleep(0.001)  # its event would wake the main thread
        try:
            say("ready")
            {UNSEEN[where]}
        except KeyboardInterrupt:
            say("interrupted")
        pool.kill_workers()
        """,
    )
    program.expect("ready")
    program.interrupt()
    program.expect("interrupted")
    program.end()


def test_leaving_with_after_ctrl_c_cancels_what_has_not_started(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    program = Program(
        tmp_path,
        """
        import gpudispatch.engine
        join = gpudispatch.engine.Engine.join
        gpudispatch.engine.Engine.join = lambda pool: (say("joins"), join(pool))
        try:
            with Executor(1) as pool:
                futures = [pool.submit(tasks.hold, "started", "fifo") for _ in range(100)]
                say("ready")
                futures[0].result()
        except KeyboardInterrupt:
            say("cancelled", sum(f.cancelled() for f in futures), futures[0].result())
        """,
    )
    program.expect("ready")
    assert until((tmp_path / "started").exists)
    program.interrupt()
    program.expect("joins")  # the others are cancelled: none starts behind the one that ends now
    (tmp_path / "fifo").write_text("done")  # the one that runs ends in its own way
    program.expect("cancelled 99 done")
    program.end()


@pytest.mark.parametrize("where", ["result", "outcomes", "map", "asyncio"])
def test_a_second_ctrl_c_kills(tmp_path: pathlib.Path, where: str) -> None:
    """At once: neither an exception ends this task, nor the grace."""
    os.mkfifo(tmp_path / "fifo")
    program = Program(
        tmp_path,
        f"""
        import functools
        import gpudispatch.engine
        hold_anyway = functools.partial(tasks.hold_anyway, fifo='fifo')
        join = gpudispatch.engine.Engine.join
        gpudispatch.engine.Engine.join = lambda pool: (say("joins"), join(pool))
        try:
            with Executor(1, grace=3600) as pool:
                say("ready")
                {WAITS[where].replace("hold", "hold_anyway")}
        except KeyboardInterrupt:
            say("killed", pool.stats()["cancelled"])
        """,
    )
    program.expect("ready")
    assert until((tmp_path / "started").exists)
    program.interrupt()
    program.expect("joins")
    began = time.monotonic()
    program.process.send_signal(signal.SIGINT)
    program.expect("joins")
    program.expect("killed 1")
    assert time.monotonic() - began < 15  # tasks that are to end have 30 s
    program.end()


# ---- exit ----


@pytest.mark.parametrize("way", ["sys.exit(3)", "raise SystemExit(3)", "os._exit(3)"])
def test_exit_with_work_in_flight(tmp_path: pathlib.Path, way: str) -> None:
    program = Program(
        tmp_path,
        f"""
        pool = Executor(2)
        many = [pool.submit(tasks.same, n) for n in range(3000)]
        {way}
        """,
    )
    assert program.end(3) == ""


def test_exit_inside_a_loop_and_a_daemon_thread(tmp_path: pathlib.Path) -> None:
    program = Program(
        tmp_path,
        """
        pool = Executor(2)
        def endless():
            for r in pool.outcomes(iter(int, 1), fn=tasks.same):
                pass
        threading.Thread(target=endless, daemon=True).start()
        pool.submit(tasks.same, 1).result()
        say("main ends")
        pool.shutdown(cancel_futures=True)
        """,
    )
    program.expect("main ends")
    program.end()


def test_kill_9_of_the_host_leaves_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFE_TEST", str(os.getpid()))
    os.mkfifo(tmp_path / "fifo")
    program = Program(
        tmp_path,
        """
        pool = Executor(3)
        many = [pool.submit(tasks.hold, "started", "fifo") for n in range(10)]
        say("ready")
        many[0].result()
        """,
    )
    program.expect("ready")
    assert until((tmp_path / "started").exists)
    program.process.kill()
    program.process.communicate(timeout=LIMIT_S)
    assert until(lambda: not family(os.getpid()) - {os.getpid()}, 1.0)


# ---- fork ----


def test_fork_while_busy(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    os.mkfifo(tmp_path / "fifo of map")
    program = Program(
        tmp_path,
        """
        import asyncio, gc
        pool = Executor(3)
        loop = pool.outcomes(range(10), fn=tasks.same)
        next(loop)
        held = pool.submit(tasks.hold, "started", "fifo")
        mapped = pool.map(tasks.hold, ["started"], ["fifo of map"])
        async def aoutcomes():
            return [r async for r in pool.aoutcomes([1], fn=tasks.same)]
        many = [pool.submit(tasks.same, n) for n in range(2000)]
        calls = {
            "submit": lambda: pool.submit(tasks.same, 1),
            "map": lambda: list(pool.map(tasks.same, [1])),
            "outcomes": lambda: list(pool.outcomes([1], fn=tasks.same)),
            "stats": lambda: pool.stats(),
            "slots": lambda: pool.slots(),
            "devices": lambda: pool.devices(),
            "ready": lambda: pool.ready(),
            "options": lambda: pool.options(priority=1).submit(tasks.same, 1),
            "next of map": lambda: next(mapped),
            "arun": lambda: asyncio.run(pool.arun(tasks.same, 1)),
            "aoutcomes": lambda: asyncio.run(aoutcomes()),
            "result in time": lambda: held.result(0),
            "result": lambda: held.result(),
            "exception": lambda: held.exception(),
            "running": lambda: held.running(),
            "cancel": lambda: held.cancel(),
            "stop": lambda: held.stop(),
            "shutdown": lambda: pool.shutdown(),
            "terminate": lambda: pool.terminate_workers(),
            "kill": lambda: pool.kill_workers(),
        }
        for way in ("os._exit", "sys.exit"):
            child = os.fork()
            if child == 0:
                for name, call in calls.items():
                    try:
                        call()
                        say("no error:", name)
                    except ForkedError:
                        pass
                if way == "os._exit":
                    os._exit(7)
                del loop, mapped, pool
                gc.collect()
                sys.exit(7)
            say(way, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        for fifo in ("fifo", "fifo of map"):
            with open(fifo, "w") as words:
                words.write("goes on")
        total = sum(f.result() for f in many)
        say(held.result(), *mapped, total == sum(range(2000)), len(list(loop)))
        say(pool.submit(tasks.same, 1).result())
        pool.shutdown()
        """,
    )
    program.expect("os._exit 7")
    program.expect("sys.exit 7")
    program.expect("goes on goes on True 9")
    program.expect("1")
    program.end()


# ---- dropped ----


def test_a_dropped_executor_that_only_looped_frees_all() -> None:
    before = set(os.listdir("/proc/self/fd"))
    pool = Executor(1)
    assert len(list(pool.outcomes(range(10), fn=tasks.same))) == 10
    worker = pool.slots()[0]["pid"]
    del pool
    gc.collect()
    assert until(lambda: gone(worker))
    assert len(set(os.listdir("/proc/self/fd")) - before) == 0


# ---- beside others ----


def test_cancelled_futures_do_not_stop_the_thread() -> None:
    with Executor(1) as pool:
        for _ in range(300):
            future = pool.submit(tasks.same, 1)
            future.add_done_callback(lambda f: 1 / 0)  # logged by the standard library
            future.cancel()
        assert pool.submit(tasks.same, 2).result(LIMIT_S) == 2


def test_pools_made_in_threads() -> None:
    sums = []

    def run() -> None:
        with Executor(1) as pool:
            sums.append(sum(pool.map(tasks.same, range(100))))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert sums == [4950] * 4


def test_handlers_of_the_host_are_its_own(tmp_path: pathlib.Path) -> None:
    program = Program(
        tmp_path,
        """
        seen = []
        for number in (signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda n, frame: seen.append(n))
        before = {n: signal.getsignal(n) for n in signal.valid_signals()}
        with Executor(2, task_timeout=0.05) as pool:
            futures = [pool.submit(time.sleep, 60) for _ in range(2)]
            os.kill(os.getpid(), signal.SIGUSR1)
            say(*(type(f.exception()).__name__ for f in futures))
            try:
                pool.submit(tasks.kill_self).result()
            except WorkerCrashed as e:
                say(e.signal)
        say(seen == [signal.SIGUSR1], before == {n: signal.getsignal(n) for n in before})
        """,
    )
    assert program.end() == "TaskTimeout TaskTimeout\n9\nTrue True\n"


def test_the_first_result_imports_few() -> None:
    """Not cloudpickle, for one, which takes 15 ms, though `__main__` is no file."""
    program = f"""if True:
        import sys
        sys.path.insert(0, {PACKAGE!r})
        from gpudispatch import Executor
        with Executor(1) as ex:
            assert ex.submit(abs, -1).result() == 1
            print(*sys.modules)
    """
    done = subprocess.run([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, check=True)
    found = set(done.stdout.decode().split())
    assert "gpudispatch.executor" in found
    assert not found & {"cloudpickle", "sysconfig", "subprocess", "inspect", "typing", "asyncio"}
