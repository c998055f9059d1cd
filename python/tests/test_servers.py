# SPDX-License-Identifier: MIT
"""Workers that are servers, with a server that is slow, dies, hangs and replies with errors."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server_tasks as tasks
from conftest import gone, until
from executor_tasks import Gate

from gpudispatch import (
    Executor,
    NoWorker,
    ServerError,
    TaskTimeout,
    WorkerCrashed,
    errors,
    server_process,
    servers,
)
from gpudispatch.servers import ServerWorker

LIMIT_S = 60.0  # of anything that should take milliseconds
SERVER = str(pathlib.Path(tasks.__file__))


def command(*words: str) -> list[str]:
    return [sys.executable, SERVER, "{port}", *words]


def worker(*words: str, **options: Any) -> ServerWorker:
    return ServerWorker(command(*words), **options)


def number_in(body: str) -> int:
    n: int = json.loads(body)["n"]
    return n


def facts(pool: Executor, item: Any = None) -> dict[str, Any]:
    found = pool.submit({} if item is None else item).result(LIMIT_S)
    assert isinstance(found, dict)
    return found


def failure(pool: Any, item: Any) -> BaseException:
    error = pool.submit(item).exception(LIMIT_S)
    assert error is not None
    return error


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Executor]:
    with Executor(1, worker=worker(), grace=20.0, max_batch=1) as pool:
        yield pool


@pytest.fixture
def pool(shared_pool: Executor) -> Iterator[Executor]:
    """A pool whose worker and server outlive the test."""
    before = facts(shared_pool)
    yield shared_pool
    after = facts(shared_pool)
    assert (after["worker"], after["pid"]) == (before["worker"], before["pid"])


# --- items ---


def test_items(pool: Executor) -> None:
    found = facts(pool, {"a": "ä"})
    assert (found["path"], found["kind"]) == ("/v1/completions", "application/json")
    assert found["body"] == '{"a": "\\u00e4"}'
    found = facts(pool, "ä")
    assert (found["body"], found["kind"]) == ("ä", "text/plain; charset=utf-8")
    found = facts(pool, b"bytes")
    assert (found["body"], found["kind"]) == ("bytes", "application/octet-stream")
    found = facts(pool, ("/tokenize?x=1", {"b": 1}))
    assert (found["path"], found["body"]) == ("/tokenize?x=1", '{"b": 1}')
    found = facts(pool, ("/audio", b"sound"))
    assert (found["path"], found["body"]) == ("/audio", "sound")


def test_items_that_are_none(pool: Executor) -> None:
    for item, kind in ((5, TypeError), (["a"], TypeError), (("x", {}), ValueError),
                       ((1, {}), ValueError), ({"a": b""}, TypeError)):  # fmt: skip
        assert type(failure(pool, item)) is kind


def test_replies(pool: Executor) -> None:
    assert isinstance(pool.submit({"type": "text/plain"}).result(LIMIT_S), bytes)
    assert isinstance(pool.submit({"type": "application/problem+json"}).result(LIMIT_S), dict)
    assert facts(pool)["client"] == facts(pool)["client"]  # one connection


def test_status(pool: Executor) -> None:
    for status in (500, 404, 302):
        error = failure(pool, {"status": status})
        assert isinstance(error, ServerError)
        assert error.status == status
        assert b'"pid"' in error.body
        assert str(error).startswith(f"POST /v1/completions: status {status} ")


def test_connection_that_the_server_closes_between_two_requests() -> None:
    """In this process: no request is sent on it."""
    llm = worker()
    llm.setup("cpu:0", 1)
    try:
        (first,) = llm.process([{"bye": 1}])
        assert llm._live is not None
        assert until(lambda: llm._live and llm._live.links)
        (link,) = llm._live.links
        connection = link.connection
        assert connection is not None
        assert until(lambda: not link._is_fresh(connection))
        (second,) = llm.process([{}])
    finally:
        llm.cleanup()
    assert first["client"] != second["client"]


def test_errors_fail_their_item_alone() -> None:
    items = [{}, {"status": 500}, 5, {"close": 1}, "text"]
    with Executor(1, worker=worker(), batch_wait=0.05) as pool:
        kinds = [(r.kind, type(r.error)) for r in pool.outcomes(items, ordered=True)]
        assert kinds == [
            ("success", type(None)), ("error", ServerError), ("error", TypeError),
            ("error", ConnectionError), ("success", type(None)),
        ]  # fmt: skip
        results = pool.map([{}, "text", {"status": 500}, {}], chunksize=4)
        assert [next(results)["body"], next(results)["body"]] == ["{}", "text"]
        with pytest.raises(ServerError):
            next(results)


def test_failed_members() -> None:
    with Executor(1, worker=tasks.Picky, max_batch=4, batch_wait=0.2) as pool:
        found = [r.value if r.ok else str(r.error) for r in pool.outcomes(range(4), ordered=True)]
        assert found == [0, "1 is odd", 2, "3 is odd"]
        results = pool.map([0, 2, 4, 6, 8, 9], chunksize=6)
        assert [next(results) for _ in range(5)] == [0, 2, 4, 6, 8]
        with pytest.raises(ValueError, match="9 is odd"):
            next(results)
        with pytest.raises(ValueError, match="1 is odd"):
            pool.submit(1).result(LIMIT_S)
    with Executor(1, worker=tasks.PickyAlone) as pool:
        assert pool.submit(2).result(LIMIT_S) == 2
        with pytest.raises(ValueError, match="1 is odd"):
            pool.submit(1).result(LIMIT_S)


# --- concurrency ---


@pytest.mark.parametrize(("concurrency", "max_batch"), [(4, None), (2, 16)])
def test_concurrency(concurrency: int, max_batch: int | None) -> None:
    llm = worker(concurrency=concurrency)
    with Gate() as gate, Executor(1, worker=llm, max_batch=max_batch, batch_wait=1.0) as pool:
        futures = [pool.submit({"gate": gate.address.hex(), "n": n}) for n in range(12)]
        gate.arrivals(concurrency)
        gate.open()
        bodies = [f.result(LIMIT_S)["body"] for f in futures]
        assert [number_in(body) for body in bodies] == list(range(12))
        assert facts(pool)["most"] == concurrency


# --- start and end ---


def test_each_worker_has_a_server_and_a_port() -> None:
    with Gate() as gate, Executor(3, worker=worker()) as pool:
        pool.ready()
        futures = [pool.submit({"gate": gate.address.hex()}) for _ in range(3)]
        gate.arrivals(3)
        gate.open()
        found = [f.result(LIMIT_S) for f in futures]
    assert len({f["pid"] for f in found}) == len({f["argv"][0] for f in found}) == 3
    assert all(1024 <= int(f["argv"][0]) < 65536 for f in found)


def test_slow_start() -> None:
    with Gate() as gate, Executor(1, worker=worker("slow", gate.address.hex())) as pool:
        future = pool.submit({})
        gate.arrival()
        assert not pool.ready(timeout=0.2)
        assert not future.running()
        gate.open()
        assert future.result(LIMIT_S)["path"] == "/v1/completions"


def test_replies_while_it_loads() -> None:
    with Executor(1, worker=worker("loading")) as pool:
        assert facts(pool)["argv"][1:] == ["loading"]


def test_start_fails() -> None:
    with Executor(1, worker=worker("fails")) as pool:
        error = failure(pool, {})
    assert isinstance(error, NoWorker)
    assert "the server exited with status 9 before http://127.0.0.1:" in error.message
    assert "no such model" in str(error)
    with pytest.raises(FileNotFoundError, match="/no/such/program"):
        ServerWorker(["/no/such/program", "{port}"]).setup("cpu:0", 1)


def test_port_that_another_program_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the first port belongs to it."""
    monkeypatch.setattr(servers, "READY_S", 0.2)
    choose = server_process.free_port
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        choices = [(taken, socket.socket(socket.AF_UNIX))]
        monkeypatch.setattr(
            server_process, "free_port", lambda: choices.pop() if choices else choose()
        )
        llm = worker()
        llm.setup("cpu:0", 1)
        try:
            (found,) = llm.process([{}])
            assert found["argv"][0] not in ("0", str(taken))
        finally:
            llm.cleanup()
        assert gone(found["pid"])


def test_ports_are_claimed() -> None:
    port, claim = server_process.free_port()
    with claim, socket.socket(socket.AF_UNIX) as other, pytest.raises(OSError, match="in use"):
        other.bind(f"\0gpudispatch-port-{port}")


def test_server_ends_with_the_pool(tmp_path: pathlib.Path) -> None:
    with Executor(1, worker=worker("tidy", str(tmp_path / "ended"))) as pool:
        pid = facts(pool)["pid"]
    assert gone(pid)
    assert (tmp_path / "ended").exists()  # by SIGTERM


def test_server_that_ignores_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "TERMINATE_S", 0.2)
    llm = worker("stubborn")
    llm.setup("cpu:0", 1)
    (found,) = llm.process([{}])
    assert llm._live is not None
    server = llm._live.server
    llm.cleanup()
    assert server.status == -signal.SIGKILL
    assert gone(found["pid"])


def test_worker_is_killed() -> None:
    with Executor(1, worker=worker()) as pool:
        before = facts(pool)
        os.kill(before["worker"], signal.SIGKILL)
        assert until(lambda: gone(before["pid"]), LIMIT_S)
        assert facts(pool)["pid"] != before["pid"]


# --- deaths ---


def test_death_in_a_request() -> None:
    with Executor(1, worker=worker()) as pool:
        before = facts(pool)
        error = failure(pool, {"die": 3})
        assert isinstance(error, WorkerCrashed)
        assert error.exitcode == servers.EXIT_STATUS
        assert "the last line" in error.log_tail
        assert "the server exited with status 3 during 1 of 1 requests" in error.log_tail
        assert facts(pool)["worker"] != before["worker"]


def test_another_attempt_after_a_death() -> None:
    """The item that kills the server has crashed; those beside it succeed in a new worker."""
    items = [{"n": n} for n in range(5)] + [{"die": 1}]
    with Executor(1, worker=worker(), batch_wait=0.05, max_attempts=3) as pool:
        kinds = [r.kind for r in pool.outcomes(items, ordered=True)]
    assert kinds == ["success"] * 5 + ["crash"]


def test_death_between_tasks() -> None:
    """The worker leaves, and no task is lost."""
    with Executor(1, worker=worker()) as pool:
        before = facts(pool)
        os.kill(before["pid"], signal.SIGKILL)
        assert until(lambda: gone(before["worker"]), LIMIT_S)
        assert facts(pool)["worker"] != before["worker"]


def test_death_just_before_a_call() -> None:
    """The server starts again in the same worker."""
    with Executor(1, worker=tasks.Patient(command()), max_batch=1) as pool:
        first, _, second = pool.map([{"last": 1}, "wait", {}], chunksize=3)
    assert first["worker"] == second["worker"]
    assert first["pid"] != second["pid"]


def test_death_that_a_signal_causes() -> None:
    with Gate() as gate, Executor(1, worker=worker()) as pool:
        pid = facts(pool)["pid"]
        future = pool.submit({"gate": gate.address.hex()})
        gate.arrival()
        os.kill(pid, signal.SIGKILL)
        error = future.exception(LIMIT_S)
        assert isinstance(error, WorkerCrashed)
        assert "was killed by signal 9 (SIGKILL) during 1 of 1" in error.log_tail


# --- hangs ---


def test_connection_that_breaks(pool: Executor) -> None:
    error = failure(pool, {"close": 1})
    assert type(error) is ConnectionError
    assert "POST /v1/completions: the connection to the server broke" in str(error)


def test_task_timeout(pool: Executor) -> None:
    error = failure(pool.options(task_timeout=0.3), {"hang": 1})
    assert isinstance(error, TaskTimeout)
    assert error.phase == "process"


def test_stop(pool: Executor) -> None:
    with Gate() as gate:
        future = pool.submit({"gate": gate.address.hex()})
        gate.arrival()
        assert future.stop()
        with pytest.raises(CancelledError):
            future.result(LIMIT_S)


def test_task_timeout_of_a_server_that_hangs() -> None:
    """The worker is killed after the grace, so the task was late and has not crashed."""
    with Executor(1, worker=worker(), max_attempts=2) as pool:
        before = facts(pool)
        error = failure(pool.options(task_timeout=0.3), {"hang all": 1})
        assert isinstance(error, TaskTimeout)
        assert error.phase == "hard"
        assert "sends no reply within 1 s after a task ended" in error.log_tail
        after = facts(pool)
        assert after["worker"] != before["worker"]
        assert until(lambda: gone(before["pid"]), LIMIT_S)


def test_stop_of_a_server_that_hangs() -> None:
    with Gate() as gate, Executor(1, worker=worker(), grace=20.0) as pool:
        before = facts(pool)
        future = pool.submit({"hang all": 1, "gate": gate.address.hex()})
        gate.arrival()
        gate.let_one_go()
        with socket.create_connection(("127.0.0.1", int(before["argv"][0]))) as health:
            # Until the health URL hangs, too.
            health.settimeout(0.3)
            with pytest.raises(TimeoutError):
                while True:
                    health.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                    assert health.recv(4096)
        assert future.stop()
        with pytest.raises(CancelledError):
            future.result(LIMIT_S)
        assert facts(pool)["worker"] != before["worker"]


def test_timeout_of_a_request() -> None:
    items = [{"hang": 1}, {"trickle": 1}, {}]
    with Executor(1, worker=worker(timeout=2.0), batch_wait=0.05) as pool:
        before = facts(pool)
        hangs, trickles, fine = pool.outcomes(items, ordered=True)
        for outcome in (hangs, trickles):
            assert (outcome.kind, type(outcome.error)) == ("error", TimeoutError)
            assert str(outcome.error) == "POST /v1/completions: no reply within 2 s (timeout)"
        assert fine.ok
        assert facts(pool)["pid"] == before["pid"]


def test_timeout_of_a_server_that_hangs() -> None:
    with Executor(1, worker=worker(timeout=1.0)) as pool:
        before = facts(pool)
        assert type(failure(pool, {"hang all": 1})) is TimeoutError
        assert facts(pool)["pid"] != before["pid"]


# --- arguments ---


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ("llama-server", {}, TypeError, "command must be a list of str"),
        ([1, "{port}"], {}, TypeError, "command must be a str, not int"),
        (["llama-server"], {}, ValueError, 'command has no "{port}"'),
        (None, {"ready": "http://127.0.0.1:80/"}, ValueError, "ready is 'http"),
        (None, {"ready": "https://127.0.0.1:{port}/"}, ValueError, "ready is 'https"),
        (None, {"post": "v1"}, ValueError, "post is 'v1', expected a path"),
        (None, {"timeout": 0}, ValueError, "timeout is 0"),
        (None, {"concurrency": 65}, ValueError, "concurrency is 65, expected 1 to 64"),
    ],
)
def test_arguments(
    arguments: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}"):
        ServerWorker(command() if arguments is None else arguments, **options)


def test_address() -> None:
    assert servers.address("http://127.0.0.1:{port}") == ("127.0.0.1", "/")
    assert servers.address("http://[::1]:{port}/a?b=1") == ("::1", "/a?b=1")


def test_objects_as_workers() -> None:
    with Executor(1, worker=worker(concurrency=3)) as pool:
        assert pool._home.settings.max_batch == 3
    with pytest.raises(TypeError, match="^worker must be a class, not an object: write Picky"):
        Executor(1, worker=tasks.Picky())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^worker has no process"):
        Executor(1, worker=print)  # type: ignore[arg-type]


def test_pickles() -> None:
    llm = pickle.loads(pickle.dumps(worker("a", concurrency=2, timeout=None)))
    assert (llm.command, llm.concurrency, llm.timeout) == (command("a"), 2, None)
    error = pickle.loads(pickle.dumps(errors.ServerError("text", status=500, body=b"why")))
    assert (str(error), error.status, error.body) == ("text", 500, b"why")


def test_import_is_cheap() -> None:
    """A program that makes a ServerWorker imports no HTTP client."""
    program = (
        "import sys; from gpudispatch.servers import ServerWorker; ServerWorker(['{port}']); "
        "print([m for m in ('http.client', 'subprocess', 'typing', 'ssl') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr
