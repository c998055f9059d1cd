# SPDX-License-Identifier: MIT
"""queue.py: the work of a durable queue, by the socket of its agent.  The agent here is a stand-in
that sends the lines of docs/reference/queue-protocol.md; it keeps each request."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from gpudispatch import Queue, moment, picture, queue
from gpudispatch.moment import SECONDS

NS = 1_000_000_000
NOW = 1_800_000_030 * NS  # in the middle of a minute
HELLO = {"hello": "gpudispatch-queue", "version": 1, "agent": "0.1.0", "pid": 1, "devices": 2}
Answer = Callable[[dict[str, Any]], Any]


class Agent:
    """Answers on the socket of a state directory, on a thread."""

    def __init__(self, path: pathlib.Path, answer: Answer, hello: object = None) -> None:
        self.answer = answer
        self.hello = HELLO if hello is None else hello
        self.asked: list[dict[str, Any]] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self.socket.bind(str(path))
        self.socket.listen()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with contextlib.suppress(ConnectionError), client, client.makefile("rwb") as file:
                self._serve(file)

    def _serve(self, file: Any) -> None:
        first = file.readline()
        if not first:
            return  # the client does not trust this agent
        assert json.loads(first) == {"hello": "gpudispatch-queue", "version": 1}
        self._send(file, self.hello)
        for line in file:
            self.asked.append(json.loads(line))
            for reply in self.answer(self.asked[-1]):
                self._send(file, reply)

    def _send(self, file: Any, reply: object) -> None:
        file.write(reply if isinstance(reply, bytes) else json.dumps(reply).encode() + b"\n")
        file.flush()

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


@pytest.fixture
def start(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Agent]]:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("GPUDISPATCH_STATE", str(tmp_path))
    agents = []

    def made(answer: Answer, **more: Any) -> Agent:
        agents.append(Agent(tmp_path / "socket", answer, **more))
        return agents[-1]

    yield made
    for agent in agents:
        with contextlib.suppress(OSError):
            agent.close()


def snapshot(**members: Any) -> dict[str, Any]:
    """Eight minutes of two GPUs: gpu:0 worked for a minute and was out of use for one."""
    minute, half = 60_000, 30_000
    return {
        "snapshot": 1, "sequence": 1, "time": NOW, "since": NOW - 3600 * NS, "bad_24h": 4,
        "least": 60 * NS, "most": 90 * NS,
        "gpus": [
            {"gpu": "gpu:0", "index": 0, "does": "run", "since": NOW - 86 * NS, "class": "whisper",
             "task": "12.44", "tasks": 1},
            {"gpu": "gpu:1", "index": 1, "does": "out", "text": "quarantined: XID 79"},
        ],
        "classes": [{"class": "whisper"}],
        "batches": [
            {"batch": 12, "name": "night", "made": 1, "total": 50, "ok": 30, "bad": 3, "running": 1,
             "ready": 10, "held": 6, "least": 120 * NS, "most": 120 * NS},
            {"batch": 9, "name": "old", "made": 1, "ended": 5, "total": 2, "ok": 1, "bad": 1},
        ],
        "findings": [{"kind": "bad", "what": "3 tasks CRASHED signal 11", "whose": "12 night 1-3",
                      "gpus": "1", "command": "gpudispatch show 12.1"}],
        "ends": [
            {"time": NOW - 5 * NS, "task": "12.3", "batch": "night", "outcome": "crashed",
             "gpus": "1"},
            {"time": NOW - 6 * NS, "task": "12.2", "batch": "night", "outcome": "ok", "gpus": "0"},
            {"time": NOW - 7 * NS, "task": "12.1", "batch": "night", "outcome": "crashed",
             "gpus": "1, 4-5"},
        ],
        "minutes": 3,
        "history": [
            {"ok": [minute, 0, half], "out": [0, minute, 0]},
            {"loading": [0, half, 0], "idle": [minute, half, half]},
        ],
        "more": {},
        **members,
    }  # fmt: skip


def watch(s: Any) -> Answer:
    """The answers of an agent that has the request `watch`."""

    def answer(request: dict[str, Any]) -> Any:
        assert request["do"] == "watch"
        assert request.keys() == {"id", "do", "what"}
        head = {"id": request["id"], "ok": True}
        return [{**head, "event": "later"}, {**head, "event": "snapshot", "snapshot": s}]

    return answer


def look(batch: int | str | None = None) -> moment.Moment:
    found: moment.Moment = Queue().progress(batch)._look()
    return found


def textures(m: moment.Moment, name: str, i: int) -> dict[str, float]:
    (found,) = [lane for lane in m.lanes if lane.name == name]
    return dict(found.seconds[i].parts)


# ---- of a snapshot ----


def test_a_snapshot(start: Callable[..., Agent]) -> None:
    agent = start(watch(snapshot()))
    m = look()
    assert m.line == "1 running, 16 waiting, 31 ended well, 4 ended badly, 1:00-1:30 left"
    assert [lane.name for lane in m.lanes] == ["gpu:0", "gpu:1"]
    assert m.lanes[0].does == "run whisper 1:26"
    assert m.lanes[0].runs
    assert m.lanes[1].does == "out: quarantined: XID 79"
    assert textures(m, "gpu:0", SECONDS - 1) == {"WORKED": 1.0}
    assert textures(m, "gpu:0", SECONDS - 1 - 30) == {"WORKED": 1.0}
    assert textures(m, "gpu:0", SECONDS - 1 - 31) == {"OUT": 1.0}
    assert textures(m, "gpu:0", SECONDS - 1 - 91) == {"WORKED": 1.0}
    assert textures(m, "gpu:0", SECONDS - 1 - 151) == {"UNKNOWN": 1.0}
    assert textures(m, "gpu:1", SECONDS - 1 - 31) == {"LOADING": 0.5}
    assert m.lanes[1].seconds[-6].bad == (("crashed", 1),)
    assert m.lanes[1].seconds[-8].bad == (("crashed", 1),)
    assert not moment.bad_of(m.lanes[0])
    assert [end.whose for end in m.ends] == ["12.1 night", "12.3 night"]
    assert m.notes == (
        "3 tasks CRASHED signal 11, 12 night 1-3, on GPU 1; see: gpudispatch show 12.1",
    )
    assert m.bad == 4
    assert m.works
    assert not m.over
    assert [request["do"] for request in agent.asked] == ["watch"]
    ElementTree.fromstring(picture.html(m, "n"))


def test_one_batch(start: Callable[..., Agent]) -> None:
    start(watch(snapshot()))
    for name in (12, "12", "night"):
        m = look(name)
        assert m.line == "1 running, 16 waiting, 30 ended well, 3 ended badly, 2:00 left"
        assert not m.over
    assert look(9).over
    assert look(9).line.startswith("0 running, 0 waiting, 1 ended well, 1 ended badly")
    missing = look("nought")
    assert missing.notes[-1] == "there is no batch nought"
    assert not missing.over


def test_what_a_snapshot_does_not_list(start: Callable[..., Agent]) -> None:
    more = {"batches": 3, "total": 30, "ok": 20, "bad": 5, "running": 2, "ready": 3}
    start(watch(snapshot(more=more, notice="paused: the machine is hot")))
    m = look()
    assert m.line.startswith("3 running, 19 waiting, 51 ended well, 9 ended badly")
    assert m.notes[0] == "paused: the machine is hot"
    assert look(12).line.startswith("1 running")


def test_a_later_version(start: Callable[..., Agent]) -> None:
    """Members, words and types that are not known count as left out."""
    s = snapshot(later={"x": 1})
    s["gpus"][0] |= {"does": "dreams", "since": "x", "class": 3}
    s["ends"].append({"time": NOW, "outcome": "vanished", "gpus": "0"})
    s["history"][0]["sleeping"] = [1, 2, 3]
    start(watch(s))
    m = look()
    assert m.lanes[0].does == "dreams"
    assert len(m.ends) == 2


def wrecked(value: Any, chosen: random.Random) -> Any:
    """A value with a part that has another type, or is gone."""
    if chosen.random() < 0.08:
        return chosen.choice([None, -1, 1 << 80, "x\x1b<b>", [], {}, True, 1.5, [[{}]], {"": {}}])
    if isinstance(value, dict):
        return {k: wrecked(v, chosen) for k, v in value.items() if chosen.random() > 0.05}
    if isinstance(value, list):
        return [wrecked(v, chosen) for v in value]
    return value


def test_any_snapshot_is_shown() -> None:
    """[V5] Of any types and texts: the picture is well formed, the lines are plain."""
    chosen = random.Random(7)
    for _ in range(300):
        s = wrecked(snapshot(), chosen)
        m = queue._of_snapshot(s if isinstance(s, dict) else {}, None)
        ElementTree.fromstring(picture.html(m, "n"))
        assert all(line.isprintable() for line in moment.lines(m))


# ---- of an agent without snapshots ----


def rows_of(request: dict[str, Any]) -> Any:
    refused = {"id": 1, "ok": False, "code": "EINVAL", "error": "do is watch: no such request"}
    batches = [
        {"batch": "12", "name": "night", "total": 5,
         "states": {"running": 2, "ready": 3, "done": 9}, "outcomes": {"ok": 7, "crashed": 2}},
        {"batch": "13", "name": "day", "total": 1, "states": {"held": 1}, "outcomes": {}},
    ]  # fmt: skip
    started = time.time_ns() - 102 * NS
    tasks = [
        {"task": "12.1", "state": "running", "devices": "gpu:0,gpu:1", "started": started},
        {"task": "12.2", "state": "running", "devices": "gpu:1", "started": started + 50 * NS},
        {"task": "12.3", "state": "running"},
    ]
    if request["do"] == "watch":
        return [refused]
    if request["do"] == "tasks":
        return [{"id": 3, "ok": True, "tasks": tasks}]
    if request.get("name"):
        batches = [row for row in batches if row["name"] == request["name"]]
        if not batches:
            return [{"id": 2, "ok": False, "code": "ENOTFOUND", "error": "there is none"}]
    elif request.get("after") in ("0", "-1"):
        return [{"id": 2, "ok": False, "code": "EINVAL", "error": "after: expected an id"}]
    elif request.get("most"):
        after = int(request.get("after", 0))
        batches = [row for row in batches if int(str(row["batch"])) > after][:1]
    return [{"id": 2, "ok": True, "batches": batches}]


def test_rows(start: Callable[..., Agent]) -> None:
    agent = start(rows_of)
    m = look()
    assert m.line == "2 running, 4 waiting, 7 ended well, 2 ended badly (2 crashed)"
    assert [lane.name for lane in m.lanes] == ["gpu:0", "gpu:1"]
    assert m.lanes[0].does.startswith("run 12.1 1:4")
    assert m.lanes[1].does.endswith(", 1 further task")
    assert textures(m, "gpu:0", SECONDS - 50) == {"CLASS_0": 1.0}
    assert textures(m, "gpu:0", 300) == {"UNKNOWN": 1.0}
    assert m.works
    assert [request["do"] for request in agent.asked] == ["watch", "batches", "tasks"]
    assert look("day").line == "0 running, 1 waiting, 0 ended well"
    assert look(13).line == "0 running, 1 waiting, 0 ended well"
    for missing in (14, 1, 0, "nought"):
        assert look(missing).notes == (f"there is no batch {missing}",)


# ---- the connection ----


def test_without_an_agent(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    m: moment.Moment = Queue(tmp_path).progress()._look()
    assert m.line == f"no agent answers: no agent runs for {os.path.realpath(tmp_path)}"
    assert m.bad == -1
    assert not m.works
    assert not m.over
    assert str(Queue(tmp_path).progress()) == m.line


def test_it_goes_on_with_the_next_agent(start: Callable[..., Agent]) -> None:
    """Each look has the state: nothing is kept of an agent that has ended."""
    start(watch(snapshot())).close()
    assert look().line.startswith("no agent answers")
    start(watch(snapshot(batches=[])))
    assert look().line.startswith("0 running")


@pytest.mark.parametrize(
    ("hello", "reply", "words"),
    [
        ({"id": None, "ok": False, "code": "EVERSION", "error": "version 1"}, b"", "version 1"),
        (HELLO, {"id": 1, "ok": False, "code": "EIO", "error": "the disk"}, "the disk"),
        (HELLO, b"[]\n", "no object"),
        (HELLO, b"{\n", "no agent answers"),
        (HELLO, b"\xff\xfe\n", "no agent answers"),
        (b"\n", b"", "no agent answers"),
    ],
)
def test_an_agent_that_refuses(
    hello: object, reply: object, words: str, start: Callable[..., Agent]
) -> None:
    start(lambda request: [reply], hello=hello)
    m = look()
    assert words in m.line
    assert m.line.isprintable()


def test_an_agent_that_ends_meanwhile(start: Callable[..., Agent]) -> None:
    made: list[Agent] = []

    def answer(request: dict[str, Any]) -> Any:
        made[0].socket.shutdown(socket.SHUT_RDWR)
        raise ConnectionError

    made.append(start(answer))
    assert look().line == "no agent answers: the agent has closed the connection"


def test_the_place_of_the_socket(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As queue/files/socket.c: a hash of the directory, then the path that its agent has left."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert list(queue.socket_paths("/a")) == ["/run/user/7/gpudispatch/socket-07d66707b49cd92d"]
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    (tmp_path / "socket-path").write_bytes(b"/elsewhere/socket\n")
    assert list(queue.socket_paths(str(tmp_path))) == [f"{tmp_path}/socket", "/elsewhere/socket"]


def test_an_agent_of_another_session(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its socket is where its XDG_RUNTIME_DIR was."""
    agent = Agent(tmp_path / "there/socket-1", watch(snapshot()))
    try:
        (tmp_path / "socket-path").write_text(str(tmp_path / "there/socket-1"))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "here"))
        m: moment.Moment = Queue(tmp_path).progress()._look()
        assert m.line.startswith("1 running")
    finally:
        agent.close()


def test_an_agent_of_another_user(
    start: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start(watch(snapshot()))
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert "expected 54321" in look().line
    assert not agent.asked


@pytest.mark.parametrize(
    ("variables", "directory"),
    [
        ({"GPUDISPATCH_STATE": "/s"}, "/s"),
        ({"XDG_STATE_HOME": "/x"}, "/x/gpudispatch"),
        ({"XDG_STATE_HOME": "x", "HOME": "/h"}, "/h/.local/state/gpudispatch"),
    ],
)
def test_the_state_directory(
    variables: dict[str, str], directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GPUDISPATCH_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert repr(Queue()) == f"<Queue in {directory}>"
    assert repr(Queue("/given")) == "<Queue in /given>"


def test_one_object_for_each_batch(tmp_path: pathlib.Path) -> None:
    """A cell that is run again has no second thread."""
    assert Queue(tmp_path).progress() is Queue(tmp_path).progress()
    assert Queue(tmp_path).progress(3) is Queue(tmp_path).progress("3")
    assert Queue(tmp_path).progress(3) is not Queue(tmp_path).progress()


@pytest.mark.parametrize("batch", [True, 1.5, b"x", []])
def test_bad_arguments(batch: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="batch must be an int or a str, not "):
        Queue(tmp_path).progress(batch)


def test_only_readers_are_sent() -> None:
    """[V6] No other request stands in the file."""
    text = pathlib.Path(queue.__file__).read_text()
    asked = {part.partition('"')[0] for part in text.split('"do": "')[1:]}
    assert asked == {"watch", "batches", "tasks"}
