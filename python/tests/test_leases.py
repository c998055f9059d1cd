# SPDX-License-Identifier: MIT
"""Leases and commands: devices of a pool for the program's own work."""

from __future__ import annotations

import asyncio
import gc
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

import executor_tasks as tasks
from conftest import gone, until
from executor_tasks import FakeGpus, Gate
from programs import script

from gpudispatch import (
    DeviceError,
    Lease,
    Pool,
    TaskTimeout,
    WorkerCrashed,
    codec,
    ends,
)

LIMIT_S = 60.0

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def nothing_left(pool: Pool) -> bool:
    """No lease waits or has devices."""
    return all(not row["queued"] and not row["running"] for row in pool.classes())


# ---- the ways to have one ----


def test_with(pool: Pool) -> None:
    with pool.lease() as g:
        assert type(g) is Lease
        (name,) = g.devices
        rows = {row["name"]: row["uuid"] for row in pool.devices()}
        assert g.uuids == (rows[name],)
        assert repr(g) == f"<Lease of {name}>"
        assert not g.revoked.is_set()
        assert pool.explain(g) == []
        (row,) = pool.classes()
        assert (row["name"], row["running"]) == ("(lease)", 1)
        with pool.lease() as h:
            assert h.devices != g.devices
            with pytest.raises(TimeoutError):
                pool.lease(timeout=0).open()
    assert until(lambda: nothing_left(pool))
    with pool.lease(2) as both:
        assert sorted(both.devices) == ["fake:0", "fake:1"]
    with pytest.raises(KeyError), pool.lease(2):
        raise KeyError
    with pytest.raises(RuntimeError, match="opened before"), both:
        pass


def test_open_and_close(pool: Pool) -> None:
    lease = pool.lease(2)
    assert repr(lease) == "<Lease of no devices>"
    assert lease.devices == () == lease.uuids
    with pytest.raises(ValueError, match=r"^the lease is not open: open\(\)"):
        pool.explain(lease)
    lease.close()  # nothing to return
    lease = pool.lease(2)
    assert lease.open() is lease
    assert len(lease.devices) == 2
    lease.close()
    lease.close()
    with pytest.raises(RuntimeError, match="opened before"):
        lease.open()
    pool.lease(2).open().close()


def test_a_dropped_lease(pool: Pool) -> None:
    gc.disable()
    try:
        lease = pool.lease(2).open()
        assert lease.devices
        del lease
        with pool.lease(2, timeout=LIMIT_S):
            pass
    finally:
        gc.enable()


def test_coroutines(pool: Pool) -> None:
    async def main() -> None:
        async with pool.lease() as g, pool.lease() as h:
            assert {*g.devices, *h.devices} == {"fake:0", "fake:1"}
            with pytest.raises(TimeoutError, match="no devices within 0.01 s"):
                async with pool.lease(timeout=0.01):
                    raise AssertionError
            waiting = asyncio.create_task(enter())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with pool.lease(2) as both:
            assert len(both.devices) == 2

    async def enter() -> None:
        async with pool.lease():
            raise AssertionError

    asyncio.run(main())
    assert until(lambda: nothing_left(pool))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"devices": -1}, ValueError, "devices"),
        ({"timeout": "1"}, TypeError, "timeout"),
        ({"priority": 1.5}, TypeError, "priority"),
        ({"label": "x" * 64}, ValueError, "label"),
        ({"visible": "all"}, ValueError, "visible"),
    ],
)
def test_bad_arguments(
    pool: Pool, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        pool.lease(**arguments)


def test_what_never_fits(pool: Pool) -> None:
    for arguments in ({"devices": 3}, {"memory": "17GiB"}, {"on": "fake:9"}):
        with pytest.raises(DeviceError):
            pool.lease(**arguments).open()
    assert not pool._engine.grants
    assert not pool._engine.futures


def test_a_timeout_has_the_reason(pool: Pool) -> None:
    with pool.lease(2, label="first"):
        with pytest.raises(TimeoutError, match=r"within 0.05 s \(timeout\): .*fake:") as caught:
            pool.lease(timeout=0.05).open()
        assert "(lease)" in str(caught.value)
    pool.device_pause("fake:0")
    pool.device_pause("fake:1")
    with pytest.raises(TimeoutError, match="PAUSED"):
        pool.lease(timeout=0.01).open()


def test_env(pool: Pool) -> None:
    with pool.lease(2) as g:
        assert g.env == {
            "CUDA_VISIBLE_DEVICES": ",".join(g.uuids),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "GPUD_DEVICE_UUIDS": ",".join(g.uuids),
        }
    with pool.lease(2, visible="index") as g:
        indexes = [name.removeprefix("fake:") for name in g.devices]
        assert g.env["CUDA_VISIBLE_DEVICES"] == ",".join(indexes)
    with pool.lease(0, cpus=2) as g:
        assert (g.devices, g.uuids, g.env) == ((), (), {})
        with pytest.raises(TimeoutError, match="CPUS"):
            pool.lease(0, cpus=1, timeout=0.01).open()


def test_beside_a_resident_class(pool: Pool) -> None:
    """Threads and a coroutine take turns with a class that has both devices."""
    a = pool.add("a", memory="10GiB", min_residence=0)
    lock, busy, most, count = threading.Lock(), set[str](), [0], [0]

    def use(g: Lease) -> None:
        with lock:
            assert not busy & {*g.devices}
            busy.update(g.devices)
            most[0] = max(most[0], len(busy))
            count[0] += 1

    def release(g: Lease) -> None:
        with lock:
            busy.difference_update(g.devices)

    def work(n: int) -> None:
        for _ in range(10):
            with pool.lease(n) as g:
                use(g)
                release(g)

    async def main() -> None:
        for _ in range(10):
            async with pool.lease() as g:
                use(g)
                await asyncio.sleep(0)
                release(g)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]
    threads.append(threading.Thread(target=lambda: asyncio.run(main())))
    for thread in threads:
        thread.start()
    ends = list(a.outcomes(range(50), fn=tasks.same))
    for thread in threads:
        thread.join(LIMIT_S)
    assert all(r.ok for r in ends)
    assert count == [30]
    assert most[0] >= 1
    assert until(lambda: nothing_left(pool))


def test_a_thousand(pool: Pool) -> None:
    for n in range(1000):
        lease = pool.lease()
        if n % 3 == 0:
            with lease:
                pass
        elif n % 3 == 1:
            lease.open()
        else:
            lease.open().close()
    del lease
    assert until(lambda: nothing_left(pool))
    assert not pool._engine.grants
    assert until(lambda: not pool._engine.futures)
    with pool.lease(2, timeout=LIMIT_S):
        pass


def test_priority(pool: Pool) -> None:
    order: list[int] = []

    def take(priority: int) -> None:
        with pool.lease(2, priority=priority):
            order.append(priority)

    threads = []
    with pool.lease(2):
        for n, priority in enumerate((0, 5, 9), 1):
            threads.append(threading.Thread(target=take, args=(priority,)))
            threads[-1].start()
            assert until(lambda: pool.classes()[0]["queued"] == n)  # noqa: B023
    for thread in threads:
        thread.join(LIMIT_S)
    assert order == [9, 5, 0]


# ---- revoked ----


def test_a_busy_model_leaves_after_max_wait() -> None:
    with Pool("fake:1") as pool, Gate() as gate:
        model = pool.add("model", min_residence=0)
        futures = [model.submit(tasks.through, gate.address, n) for n in range(3)]
        assert gate.arrivals(1) == ["0"]
        command = pool.run(["true"], priority=2, max_wait=0)
        with ThreadPoolExecutor(1) as thread:
            lease = thread.submit(pool.lease(priority=1, max_wait=0).open)
            assert until(lambda: [r["queued"] for r in pool.classes()] == [2, 1, 1])
            gate.let_one_go()  # the others of the model wait
            assert command.result(LIMIT_S).returncode == 0
            granted = lease.result(LIMIT_S)
        assert not gate.has_news()
        granted.close()
        gate.open()
        assert [f.result(LIMIT_S) for f in futures] == [0, 1, 2]
        names = [row["name"] for row in pool.classes()]
        assert names == ["model", "(run, max_wait 0 s)", "(lease, max_wait 0 s)"]


def test_a_device_that_fails(tmp_path: pathlib.Path) -> None:
    gpus = FakeGpus(tmp_path)
    with Pool(gpus.devices) as pool, pool.lease() as g, pool.lease() as h:
        gpus.lose(g.devices[0])
        assert g.revoked.wait(LIMIT_S)
        assert (g.revoked.reason, g.revoked.hard) == ("DEVICE", True)
        assert repr(g.revoked) == "<Revoked DEVICE>"
        assert not h.revoked.is_set()
        assert repr(h.revoked) == "<Revoked: not yet>"


# ---- the end of the pool ----


def test_one_that_was_opened_is_returned_at_shutdown() -> None:
    pool = Pool("fake:1")
    lease = pool.lease().open()
    assert not lease.revoked.is_set()
    pool.shutdown()
    assert (lease.revoked.is_set(), lease.revoked.reason, lease.revoked.hard) == (
        True, "CLOSE", True,
    )  # fmt: skip
    lease.close()


def test_a_block_is_waited_for() -> None:
    pool = Pool("fake:1")
    inside, go_on, seen = threading.Event(), threading.Event(), []

    def work() -> None:
        with pool.lease() as g:
            inside.set()
            assert go_on.wait(LIMIT_S)
            seen.append(g.devices)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(LIMIT_S)
    ender = threading.Thread(target=pool.shutdown)
    ender.start()
    assert until(lambda: pool._engine.closing is not None)
    assert not pool._engine.gone.is_set()
    go_on.set()
    thread.join(LIMIT_S)
    ender.join(LIMIT_S)
    assert seen == [("fake:0",)]


def test_terminate_revokes() -> None:
    pool = Pool("fake:1")
    with pool.lease() as g:
        pool.terminate_workers()
        assert g.revoked.wait(LIMIT_S)
        assert g.revoked.reason in ("CLOSE", "CANCEL")
        assert not g.revoked.hard
    pool.shutdown()


def test_left_open_at_exit(tmp_path: pathlib.Path) -> None:
    body = """
        pool = Pool("fake:2")
        one = pool.lease().open()
        two = pool.lease().__enter__()
        print(len(one.devices + two.devices))
    """
    assert script(tmp_path, body) == (0, "2\n", "")


def test_ctrl_c_in_a_cell(tmp_path: pathlib.Path) -> None:
    """Inside of the block, and while it waits for devices."""
    body = """
        pool = Pool("fake:1")
        try:
            with pool.lease() as g:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
        except KeyboardInterrupt:
            print("inside")
        held = pool.lease(timeout=30).open()
        def interrupt():
            while not pool.classes()[0]["queued"]:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            with pool.lease():
                print("never")
        except KeyboardInterrupt:
            print("waiting")
        held.close()
        with pool.lease(timeout=30) as g:
            print(*g.devices, len(pool._engine.grants))
    """
    assert script(tmp_path, body) == (0, "inside\nwaiting\nfake:0 1\n", "")


# ---- commands ----


def test_run(pool: Pool, tmp_path: pathlib.Path) -> None:
    done = pool.run(
        ["sh", "-c", 'cat; pwd; echo "$A_WORD $HOME" >&2; exit 3'],
        env={"A_WORD": "b", "HOME": None}, cwd=tmp_path, input=b"in\n", capture_output=True,
    ).result(LIMIT_S)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (3, f"in\n{tmp_path}\n".encode(), b"b \n")
    failed = pool.run(["false"], check=True).exception(LIMIT_S)
    assert isinstance(failed, subprocess.CalledProcessError)
    assert failed.returncode == 1
    assert isinstance(pool.run(["/no/such/program"]).exception(LIMIT_S), FileNotFoundError)
    quiet = pool.run([sys.executable, "-c", "print(input())"], check=False).result(LIMIT_S)
    assert quiet.returncode == 1  # its input is empty
    assert quiet.stdout is None
    with pytest.raises(KeyError):
        pool["(run)"]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"argv": "true"}, TypeError, "argv"),
        ({"argv": []}, ValueError, "argv"),
        ({"argv": ["sh", 3]}, TypeError, r"^argv\[1\] must be a str or path, not int$"),
        ({"input": "text"}, TypeError, "input"),
        ({"env": 5}, TypeError, "env"),
        ({"env": {"A": 5}}, TypeError, "env"),
        ({"cwd": 5}, TypeError, "cwd"),
        ({"capture_output": 1}, TypeError, "capture_output"),
        ({"check": "yes"}, TypeError, "check"),
        ({"timeout": -1}, ValueError, "^timeout"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"retry": "oom"}, ValueError, "retry"),
        ({"priority": "1"}, TypeError, "priority"),
        ({"label": "x" * 64}, ValueError, "label"),
        ({"devices": -1}, ValueError, "devices"),
    ],
)
def test_bad_arguments_of_run(
    pool: Pool, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        pool.run(**{"argv": ["true"]} | arguments)


def test_a_command_has_its_devices(pool: Pool) -> None:
    future = pool.run(["sh", "-c", "echo $GPUD_DEVICE_UUIDS"], devices=2, capture_output=True)
    shown = future.result(LIMIT_S).stdout.decode().split()[0].split(",")
    names = (future.device or "").split(",")
    rows = {row["name"]: row["uuid"] for row in pool.devices()}
    assert shown == [rows[name] for name in names]
    assert len(shown) == 2
    assert future.log_tail == ""
    said = pool.run(["echo", "words"])
    said.result(LIMIT_S)
    assert "words" in said.log_tail
    with pytest.raises(DeviceError):
        pool.run(["true"], devices=3)


def test_a_timeout_kills_all_that_the_command_has_started(
    pool: Pool, tmp_path: pathlib.Path
) -> None:
    pids = tmp_path / "pids"
    body = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    error = pool.run(["sh", "-c", body], timeout=0.5).exception(LIMIT_S)
    assert isinstance(error, TaskTimeout)
    assert "0.5" in str(error)
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 2
    assert until(lambda: all(map(gone, found)))


def late(pool: Pool, body: str, said: bytes, capture: bool) -> TaskTimeout:
    """The time limit of a command that writes and then sleeps; it has had the time to write."""
    for limit in (0.2, 2, 20):
        future = pool.run(["sh", "-c", body], timeout=limit, input=b"in\n", capture_output=capture)
        error = future.exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        if said in (error.stdout or b"") + future.log_tail.encode():
            break
    return error


def test_a_timeout_has_what_the_command_has_written(pool: Pool) -> None:
    body = "cat; echo err >&2; printf more; sleep 600 & wait"
    captured = late(pool, body, b"more", capture=True)
    assert (captured.stdout, captured.stderr) == (b"in\nmore", b"err\n")
    shown = late(pool, body, b"more", capture=False)
    assert (shown.stdout, shown.stderr) == (None, None)
    assert "more" in shown.log_tail
    assert (shown.field, shown.message.endswith(" s (timeout)")) == ("timeout", True)
    assert str(shown).endswith("more")  # and no stack of the worker, which is in `stack`
    assert "commands.py" in shown.stack
    silent = pool.run(["sleep", "600"], capture_output=True, timeout=0.2).exception(LIMIT_S)
    assert isinstance(silent, TaskTimeout)
    assert (silent.stdout, silent.stderr) == (b"", b"")


def test_a_command_that_ends_at_its_limit() -> None:
    """The worker sends its end, and the host decides that it was late."""
    ends_of_a_command = [
        subprocess.CompletedProcess(["a"], 0, b"out", b"err"),
        subprocess.CalledProcessError(1, ["a"], b"out", b"err"),
    ]
    for end in ends_of_a_command:
        if isinstance(end, Exception):
            frame = codec.encode_exception(end)
        else:
            frame = bytes(codec.join(codec.encode(codec.VALUE, end)))
        event: Any = SimpleNamespace(take=lambda frame=frame: frame)
        assert ends.written(event) == {"stdout": b"out", "stderr": b"err"}
    broken: Any = SimpleNamespace(take=lambda: b"\xff")
    assert ends.written(broken) == {}


def test_a_limit_during_the_end_of_a_command_leaves_no_process(tmp_path: pathlib.Path) -> None:
    """A process of its own, which commands.run() makes a subreaper as it does a worker."""
    body = """
    from gpudispatch import commands, worker
    sweep, sweeps = commands._sweep, []
    def late(process):
        sweeps.append(process)
        if len(sweeps) == 1:
            raise worker.TaskTimeout
        sweep(process)
    commands._sweep = late
    call = commands.checked(["sh", "-c", "sleep 600 & echo $!"], None, None, None, True, False)
    try:
        commands.run(call)
    except worker.TaskTimeout as error:
        print(len(sweeps), os.path.exists(f"/proc/{int(error.stdout)}"))
    """
    assert script(tmp_path, body) == (0, "2 False\n", "")


@pytest.mark.parametrize(
    ("late", "written"),
    [("process", (b"", b"")), ("stdout", (b"out", b"err")), ("stderr", (b"out", b"err"))],
)
def test_a_limit_during_the_start_of_a_command(
    tmp_path: pathlib.Path, late: str, written: tuple[bytes, bytes]
) -> None:
    """It comes as the process, or the thread that reads one of its streams, is about to start."""
    body = f"""
    from gpudispatch import commands, worker
    wrote = {str(tmp_path / "wrote")!r}
    os.mkfifo(wrote)
    started, start = commands._start, threading.Thread.start
    def start_process(call):
        if {late == "process"}:
            raise worker.TaskTimeout
        process = started(call)
        open(wrote).close()
        return process
    def start_thread(self):
        if self._args[0] == {late!r}:
            raise worker.TaskTimeout
        start(self)
    commands._start, threading.Thread.start = start_process, start_thread
    script = f"printf out; printf err >&2; : > {{wrote}}; sleep 600 & wait"
    call = commands.checked(["sh", "-c", script], None, None, None, True, False)
    try:
        commands.run(call)
    except worker.TaskTimeout as error:
        print((error.stdout, error.stderr), commands._children())
    """
    assert script(tmp_path, body) == (0, f"{written} []\n", "")


def test_what_a_command_leaves_is_gone_with_its_result(pool: Pool) -> None:
    """Also where the worker runs another one; and what it has inherited does not delay the end."""
    script = "echo start $1; sleep 1000 & echo $!"
    futures = [
        pool.run(["sh", "-c", script, "sh", str(n)], capture_output=n % 2 == 0) for n in range(8)
    ]
    for n, future in enumerate(futures):
        done = future.result(LIMIT_S)
        text = (done.stdout or b"").decode() if n % 2 == 0 else future.log_tail
        assert text.split()[:2] == ["start", str(n)], text
        assert not pathlib.Path(f"/proc/{int(text.split()[-1])}").exists()
        assert text.count("start") == 1


def test_a_daemon_does_not_outlive_its_command(pool: Pool, tmp_path: pathlib.Path) -> None:
    pids = tmp_path / "pids"
    body = (
        f"setsid sh -c 'echo $$ >> {pids}; exec sleep 600' > /dev/null 2>&1 &"
        f" while ! [ -s {pids} ]; do :; done"
    )
    assert pool.run(["sh", "-c", body]).result(LIMIT_S).returncode == 0
    (pid,) = map(int, pids.read_text().split())
    assert until(lambda: gone(pid))


def test_a_command_is_cancelled(pool: Pool) -> None:
    with Gate() as gate:
        body = f"import executor_tasks as t; t.through({gate.address!r})"
        running = pool.run([sys.executable, "-c", body])
        pid, _ = gate.arrival()
        assert running.stop()
        assert until(lambda: gone(pid))
        assert until(running.done)
        assert running.cancelled() or isinstance(running.exception(0), WorkerCrashed)


def test_twenty_commands_on_four_devices(tmp_path: pathlib.Path) -> None:
    """No device has two at a time."""
    body = (
        f'd={tmp_path}/$GPUD_DEVICE_UUIDS; mkdir "$d" || exit 9;'
        ' echo $GPUD_DEVICE_UUIDS; rmdir "$d"'
    )
    with Pool("fake:4") as pool:
        futures = [pool.run(["sh", "-c", body], capture_output=True) for _ in range(20)]
        ends = [f.result(LIMIT_S) for f in futures]
        assert [end.returncode for end in ends] == [0] * 20
        uuids = {row["uuid"] for row in pool.devices()}
        assert {end.stdout.decode().strip() for end in ends} <= uuids
        assert [row["done"] for row in pool.classes()] == [20]
