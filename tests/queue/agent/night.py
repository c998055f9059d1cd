#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an agent does beside running commands.

usage: night.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from agent import Agent, Client, Refused, until, words  # noqa: E402
from cases import Skip, equal, run  # noqa: E402


def submit(client, commands, **batch):
    """One batch of shell lines.  Returns its id."""
    spec = {"cwd": "/", "environment": [f"PATH={os.environ['PATH']}"]}
    return client.ask("submit", batch=batch, specs=[spec], tasks=[
        {"argv": ["/bin/sh", "-c", c]} for c in commands])["batch"]


def is_quiet(agent):
    """No batch has an end that nobody was told of."""
    with contextlib.closing(sqlite3.connect(os.path.join(agent.state, "queue.db"))) as file:
        return not file.execute("SELECT 1 FROM mark WHERE kind = 'notify'").fetchall()


def saved_socket(agent):
    """The state directory names the socket, wherever XDG_RUNTIME_DIR has put it."""
    saved = pathlib.Path(agent.state, "socket-path")
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))
    equal(agent.stop(), 0)
    equal(saved.exists(), False)
    runtime = os.path.join(agent.directory, "run")
    os.mkdir(runtime, 0o700)
    agent.environment["XDG_RUNTIME_DIR"] = runtime
    agent.start()
    path = saved.read_text()
    equal(os.path.dirname(path), os.path.join(runtime, "gpudispatch"))
    equal(Client(path).ask("status")["state"], agent.state)
    agent.kill()
    del agent.environment["XDG_RUNTIME_DIR"]
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))


def notified(agent):
    """The end of a batch runs its command once, with the facts in its environment."""
    told = pathlib.Path(agent.directory, "told")
    agent.options = ["--notify", f"echo default $GPUDISPATCH_BATCH >> {told}"]
    c = agent.start().client()
    tell = (f"env | grep ^GPUDISPATCH_ | sort > {told}.new; pwd >> {told}.new; echo said;"
            f" mv {told}.new {told}.1; exit 3")
    submit(c, ["true", "exit 7", "exit 8"], name="night", notify=tell)
    until(lambda: pathlib.Path(f"{told}.1").exists(), "a notification")
    equal(pathlib.Path(f"{told}.1").read_text().splitlines(),
          ["GPUDISPATCH_BAD=2", "GPUDISPATCH_BATCH=1",
           "GPUDISPATCH_FIRST_FAILURE=1.2 exited with status 7", "GPUDISPATCH_NAME=night",
           "GPUDISPATCH_OK=1", f"GPUDISPATCH_STATE={agent.state}", "GPUDISPATCH_TOTAL=3",
           agent.state])
    until(lambda: "batch 1 exited with status 3" in agent.said(), "its end in the log")
    equal(pathlib.Path(agent.state, "logs/notify-1").read_text(), "said\n")
    row = c.ask("batches")["batches"][0]
    equal((row["notify"], row.get("options")), (tell, None))
    submit(c, ["true"], notify="")
    submit(c, ["exit 1"], options={"x": 1})
    until(lambda: words(told) == ["default", "3"], "the default")
    equal(c.ask("retry", batch="3")["count"], 1)
    until(lambda: words(told) == ["default", "3"] * 2, "a second end")
    equal(c.ask("status")["marks"], [])
    equal(agent.stop(), 0)
    equal(is_quiet(agent), True)
    agent.start()
    agent.client().ask("pause")
    equal(words(told), ["default", "3"] * 2)


def notified_later(agent):
    """An end that is committed is told, whenever the agent is killed: those whose command had not
    started are told once, and those whose command ran, again."""
    told, gate = pathlib.Path(agent.directory, "told"), agent.gate()
    c = agent.start().client()
    tell = f"echo $GPUDISPATCH_BATCH >> {told}; read x < {gate}"
    for _ in range(6):
        submit(c, ["true"], notify=tell)
    for i in range(6):
        c.ask("wait", batch=str(i + 1))
    until(lambda: len(words(told)) == 4, "four notifications")
    c.ask("pause")
    agent.kill()
    for pid in agent.processes("sh"):
        os.kill(pid, 9)
    told.unlink()
    agent.start()
    until(lambda: len(words(told)) == 4, "four of the next agent")
    equal(agent.stop(), 0)
    agent.start()
    until(lambda: len(words(told)) == 6, "the others")
    equal(sorted(words(told)), ["1", "2", "3", "4", "5", "6"])
    equal(agent.stop(), 0)
    equal(is_quiet(agent), True)


def notified_twice(agent):
    """A batch that ends again while its command runs is told of a second time."""
    told, gate = pathlib.Path(agent.directory, "told"), agent.gate()
    c = agent.start().client()
    submit(c, ["test $GPUDISPATCH_ATTEMPT = 2"],
           notify=f"echo $GPUDISPATCH_OK >> {told}; read x < {gate}")
    until(lambda: words(told) == ["0"], "the first end")
    c.ask("retry", batch="1")
    c.ask("wait", batch="1")
    gate.open()
    until(lambda: words(told) == ["0", "1"], "the second end")


DAY = 24 * 3600 * 10**9


def change_file(agent, *statements):
    """Changes the store of an agent that does not run."""
    with contextlib.closing(sqlite3.connect(os.path.join(agent.state, "queue.db"))) as file, file:
        for statement in statements:
            file.execute(*statement)


def age(days, *batches):
    """Statements that let the tasks of these batches have ended days ago."""
    ago = time.time_ns() - days * DAY
    for batch in batches:
        yield "UPDATE task SET ended = ? WHERE id >> 32 = ? AND state = 4", [ago, batch]
        yield "UPDATE batch SET ended = ? WHERE id = ? AND ended > 0", [ago, batch]


def last_round(days):
    return ("INSERT OR REPLACE INTO mark VALUES('retention', '', NULL, ?)",
            [time.time_ns() - days * DAY])


def names(client):
    return [b.get("name") for b in client.ask("batches")["batches"]]


def files(agent, folder):
    return sorted(p.name for p in pathlib.Path(agent.state, folder).iterdir())


def kept(agent):
    """Tasks that ended long ago are forgotten, with their files; none that waits, and none of a
    batch that goes on."""
    c = agent.start().client()
    submit(c, ["echo x > $GPUDISPATCH_OUT/x"] * 3, name="old", notify="true")
    submit(c, ["true"] * 3, name="young")
    submit(c, ["true"], name="open", open=True)
    for batch in "12":
        c.ask("wait", batch=batch)
    c.ask("wait", tasks=["3.1"])
    until(lambda: pathlib.Path(agent.state, "logs/notify-1").exists(), "a notification")
    c.ask("pause")
    submit(c, ["true"], name="waits")
    equal(agent.stop(), 0)
    change_file(agent, *age(91, 1, 3), *age(89, 2), last_round(1))
    c = agent.start().client()
    until(lambda: names(c) == ["young", "open", "waits"], "the end of old tasks")
    until(lambda: files(agent, "out") == ["2.1", "2.2", "2.3", "3.1"], "the end of their outputs")
    until(lambda: files(agent, "logs") == ["2.1.1", "2.2.1", "2.3.1", "3.1.1"],
          "the end of their logs")
    equal([t["state"] for t in c.ask("tasks", all=True)["tasks"]], ["done"] * 4 + ["ready"])
    equal(agent.stop(), 0)
    agent.options = ["--keep-age", "0", "--keep-tasks", "0"]
    change_file(agent, *age(900, 2), last_round(1))
    c = agent.start().client()
    c.ask("seal", batch="3")
    equal(names(c), ["young", "open", "waits"])


def kept_number(agent):
    """More ended tasks than are kept: the first ones go, but none that ended within a day."""
    agent.options = ["--keep-tasks", "40", "--keep-age", "0"]
    c = agent.start().client()
    for i in range(4):
        submit(c, ["true"] * 30, name=str(i + 1))
        c.ask("wait", batch=str(i + 1))
    equal(agent.stop(), 0)
    change_file(agent, *age(3, 1, 2), *age(2, 3), last_round(1))
    c = agent.start().client()
    until(lambda: len(c.ask("tasks", all=True)["tasks"]) == 40, "the end of 80 tasks")
    equal([t["task"] for t in c.tasks(3)], [f"3.{i}" for i in range(21, 31)])
    equal(agent.stop(), 0)
    agent.options[1] = "5"
    c = agent.start().client()
    until(lambda: len(c.ask("tasks", all=True)["tasks"]) == 30, "those of yesterday are kept")
    equal(names(c), ["4"])


def kept_clock(agent):
    """A clock that is years ahead for a while costs nothing: the round only notes its time."""
    c = agent.start().client()
    submit(c, ["true"], name="one")
    c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    for since in last_round(1000), last_round(-1000):
        change_file(agent, *age(1000, 1), since)
        agent.start()
        c = agent.client()
        c.ask("pause")
        c.ask("resume")
        equal(names(c), ["one"])
        equal(agent.stop(), 0)
    c = agent.start().client()
    until(lambda: names(c) == [], "the end of old tasks")


def forgotten_files(agent):
    """Files of tasks that a killed agent had forgotten go when the next one starts."""
    c = agent.start().client()
    submit(c, ["echo x > $GPUDISPATCH_OUT/x"])
    c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    state = pathlib.Path(agent.state)
    (state / "out/9.9/d").mkdir(parents=True)
    others = [state / "logs" / name for name in ("9.9.1", "9.9.2", "8.7.1", "notify-9")]
    for path in others:
        path.write_text("x")
    agent.start()
    agent.client().ask("pause")
    equal((state / "out/9.9").exists(), True)
    equal(agent.stop(), 0)
    change_file(agent, ["INSERT INTO mark VALUES('forget', '', NULL, 1)"])
    agent.start()
    until(lambda: not (state / "out/9.9").exists(), "the end of outputs")
    until(lambda: not any(path.exists() for path in others), "the end of logs")
    equal(files(agent, "out"), ["1.1"])
    equal((state / "logs/1.1.1").exists(), True)


class Clock:
    """The wall clock of an agent, and its jumps."""

    def __init__(self, agent):
        self.agent, self.path = agent, os.path.join(agent.directory, "clock")
        agent.program += "-points"
        agent.environment["GPQ_TEST_CLOCK"] = self.path
        self.ahead = 0

    def jump(self, seconds):
        self.ahead += seconds * 10**9
        with open(self.path + ".new", "w") as f:
            f.write(str(self.ahead))
        os.rename(self.path + ".new", self.path)
        self.agent.process.send_signal(signal.SIGUSR1)

    def now(self):
        return time.time_ns() + self.ahead


HOUR = 3600


def clock_forward(agent):
    """After a jump of the clock what has become due starts at once, and once."""
    ran = pathlib.Path(agent.directory, "ran")
    clock = Clock(agent)
    c = agent.start().client()
    c.submit([f"echo $GPUDISPATCH_ATTEMPT >> {ran}"], begin=clock.now() + HOUR * 10**9)
    c.submit([f"echo a$GPUDISPATCH_ATTEMPT >> {ran}; test $GPUDISPATCH_ATTEMPT = 2"], batch="again",
             retries={"error": 1}, backoff=HOUR * 10**9)
    until(lambda: words(ran) == ["a1"], "a command")
    until(lambda: [t["state"] for t in c.tasks(2)] == ["held"], "its backoff")
    clock.jump(HOUR // 2)
    equal([t["state"] for t in c.tasks(1) + c.tasks(2)], ["held"] * 2)
    clock.jump(HOUR)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal(sorted(words(ran)), ["1", "a1", "a2"])


def clock_back(agent):
    """A clock that is set back lets no task start twice, and none that is ready wait.  What has a
    time waits as long as the clock was set back, and no longer."""
    gate, ran = agent.gate(), pathlib.Path(agent.directory, "ran")
    clock = Clock(agent)
    c = agent.start().client()
    c.submit([f"echo $GPUDISPATCH_TASK >> {ran}; read x < {gate}"] * 8)
    c.submit([f"echo $GPUDISPATCH_TASK >> {ran}"] * 30, batch="wait")
    c.submit([f"echo $GPUDISPATCH_TASK >> {ran}"], batch="later", begin=clock.now() + HOUR * 10**9)
    until(lambda: len(words(ran)) == 8, "eight commands")
    clock.jump(-10 * HOUR)
    with gate.opened(8):
        c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    c.submit([f"echo $GPUDISPATCH_TASK >> {ran}"], batch="new")
    c.ask("wait", batch="4")
    equal({t["attempt"] for b in (1, 2, 4) for t in c.tasks(b)}, {1})
    equal(len(set(words(ran))), 39)
    equal(len(words(ran)), 39)
    clock.jump(10 * HOUR)
    equal([t["state"] for t in c.tasks(3)], ["held"])
    clock.jump(HOUR + 1)
    c.ask("wait", batch="3")
    equal(len(words(ran)), 40)
    agent.kill()
    clock.ahead -= 100 * HOUR * 10**9
    agent.start()
    equal(len(words(ran)), 40)


def clock_of_retention(agent):
    """The round of each day comes by the timer."""
    clock = Clock(agent)
    c = agent.start().client()
    submit(c, ["true"], name="one")
    c.ask("wait", batch="1")
    for _ in range(89):
        clock.jump(DAY // 10**9)
        for _ in range(2):  # jumps that are heard together are one, of months
            c.ask("status")
    equal(names(c), ["one"])
    clock.jump(2 * DAY // 10**9)
    until(lambda: names(c) == [], "the end of an old task")


def notified_too_long(agent):
    """A notification that exceeds its limit is killed, with what it has started."""
    agent.program += "-points"
    agent.environment["GPQ_TEST_NOTIFY_MS"] = "300"
    agent.start()
    submit(agent.client(), ["true"], notify="sleep 600 & sleep 600")
    until(lambda: "exceeded its limit" in agent.said(), "its end")
    until(lambda: not agent.processes("sleep"), "the end of its processes")


def removed_directory(agent):
    """Q1: without its state directory the agent acknowledges nothing, and ends with status 75.
    Commands go on, and the next agent has an empty queue."""
    gate, ended = agent.gate(), pathlib.Path(agent.directory, "ended")
    c = agent.start().client()
    c.submit([f"read x < {gate}; echo $x > {ended}"])
    until(lambda: agent.processes("sh"), "a command")
    shutil.rmtree(agent.state)
    try:
        c.submit(["true"])
        raise AssertionError("the submit was acknowledged")
    except Refused as refused:
        equal(refused.code, "EIO")
        assert "queue.db was removed" in str(refused), refused
    equal(agent.process.wait(60), 75)
    equal(os.path.exists(agent.state), False)
    with open(gate, "w") as f:
        f.write("on\n")
    until(lambda: words(ended) == ["on"], "the end of the command")
    agent.start()
    equal(names(agent.client()), [])


def replaced_directory(agent):
    """Another agent of a new directory at the same place keeps its socket and its file."""
    c = agent.start().client()
    c.submit(["true"])
    c.ask("wait", batch="1")
    os.rename(agent.state, agent.state + ".old")
    other = Agent(sys.argv[1], agent.directory)
    other.start()
    try:
        other.client().submit(["true"], batch="other")
        c.send({"id": 1, "do": "pause"})
        equal(c.receive()["code"], "EIO")
        equal(agent.process.wait(60), 75)
        new = other.client()
        new.ask("wait", batch="1")
        equal(names(new), ["other"])
    finally:
        other.end()


def full_disk(agent):
    """Q9: on a full disk submits are refused, starts stop, and what runs ends with its outcome;
    then, with space, all goes on."""
    run = os.path.join(agent.directory, "xdg")
    gates = [agent.gate(f"gate{i}") for i in range(2)]
    os.mkdir(run, 0o700)
    os.mkdir(agent.state, 0o700)
    agent.environment["XDG_RUNTIME_DIR"] = run
    mount = 'mount -t tmpfs -o size=20m,mode=700 tmpfs "$0" && exec "$@"'
    agent.before = ["unshare", "-rm", "sh", "-c", mount, agent.state]
    if subprocess.run([*agent.before, "true"], capture_output=True).returncode != 0:
        raise Skip("this machine allows no mount in a user namespace")
    agent.start()
    path, = pathlib.Path(run, "gpudispatch").glob("socket-*")
    c = Client(str(path))
    fill = os.path.join(agent.state, "fill")
    c.submit([f"read x < {gates[0]}", f"read x < {gates[1]}; rm {fill}"], batch="run")
    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    c.submit([f"dd if=/dev/zero of={fill} bs=4096 2>/dev/null; true"], batch="fill")
    c.ask("wait", batch="2")
    try:
        c.submit(["true"] * 3 + ["x" * 100000] * 50, batch="big")
        raise AssertionError("the submit was not refused")
    except Refused as refused:
        equal(refused.code, "EFULL")
    gates[0].open()
    c.ask("wait", tasks=["1.1"])
    with contextlib.suppress(Refused):
        c.submit(["true"], batch="small")
    until(lambda: c.ask("status")["starts_wait"], "starts that wait")
    gates[1].open()
    c.ask("wait", batch="1")
    until(lambda: not c.ask("status")["starts_wait"], "starts that go on")
    batch = c.submit(["true"] * 3, batch="after")["batch"]
    for i in range(int(batch)):
        c.ask("wait", batch=str(i + 1))
    equal({t["outcome"] for t in c.ask("tasks", all=True)["tasks"]}, {"ok"})
    equal({t["attempt"] for t in c.ask("tasks", batch="1")["tasks"]}, {1})
    said = [line for line in agent.said().splitlines() if "nothing starts: the disk" in line]
    assert len(said) <= 2 * len(set(said)), said


def rows(client, kind, **fields):
    return client.ask("spans", kinds=[kind], **fields)["spans"]


def spans(agent):
    """Where the time went: why the first task waits, which device is out of use, when an agent ran.
    Rows are written with other commits, and those of a killed agent end at its last known time."""
    gate = agent.gate()
    agent.devices = "fake:2"
    begun = time.time_ns()
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 4)
    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    c.ask("drain", device="fake:1", reason="ECC")

    def written(kind, count):
        """Each look is written with a change of a task."""
        c.ask("cancel", tasks=[c.submit(["true"], batch="x", hold=True)["batch"] + ".1"])
        return len(rows(c, kind)) == count

    until(lambda: written("device", 1), "a row of a device")
    out, = rows(c, "device")
    equal((out["reason"], out["text"], "until" in out), ("drained", "fake:1: ECC", False))
    until(lambda: written("reason", 1), "a row of a reason")
    why, = rows(c, "reason")
    equal(why["text"].split(":")[0], "1.3")
    assert begun < why["since"] < time.time_ns() and why["since_boot"] > 0, why
    for task in ("1.1", "1.2"):
        c.ask("cancel", tasks=[task])
    c.ask("undrain", device="fake:1")
    c.ask("wait", tasks=["1.1", "1.2"])
    until(lambda: written("device", 1) and "until" in rows(c, "device")[0], "the device is back")
    until(lambda: written("reason", 1) and "until" in rows(c, "reason")[0], "nothing waits")
    why, = rows(c, "reason")
    both = why["until"] - why["since"], why["until_boot"] - why["since_boot"]
    assert abs(both[0] - both[1]) < 10**8, why
    life, = rows(c, "life")
    equal((life["reason"], "until" in life), ("opened", False))
    page = c.ask("spans", most=1)
    equal((page["next"], c.ask("spans", after=page["next"])["spans"][0]["span"] > page["next"]),
          (page["spans"][0]["span"], True))
    equal(rows(c, "device", since=time.time_ns()) + rows(c, "device", until=begun), [])
    agent.kill()
    c = agent.start().client()
    life = rows(c, "life")[0]
    assert begun < life["since"] <= life["until"] < time.time_ns(), life
    equal("until_boot" in life, False)
    equal(agent.stop(), 0)
    agent.start()
    equal(["until_boot" in r for r in rows(agent.client(), "life") if r["reason"] == "opened"],
          [False, True, False])


def spans_of_clock(agent):
    """A jump of the clock is one row without length.  No row ends before it begins, and durations
    are those of the boot."""
    clock = Clock(agent)
    c = agent.start().client()
    c.submit(["true"])
    c.ask("wait", batch="1")
    time_of = clock.now()
    clock.jump(-5 * HOUR)

    def jumps():
        c.submit(["true"], batch="x")
        return [r for r in rows(c, "life") if r["reason"] == "clock"]

    until(jumps, "a row of the clock")
    jump, = jumps()
    equal(jump["since"], jump["until"])
    assert abs(float(jump["text"].split()[2]) + 5 * HOUR) < 1, jump
    assert jump["since"] < time_of - 4 * HOUR * 10**9, jump
    equal(agent.stop(), 0)
    agent.start()
    life = [r for r in rows(agent.client(), "life") if r["reason"] == "opened"][0]
    equal(life["until"], life["since"])
    assert 0 < life["until_boot"] - life["since_boot"] < 60 * 10**9, life


def reason_of_clock(agent):
    """A clock that is set between a start and the next look changes no duration of the boot."""
    clock, gate = Clock(agent), agent.gate()
    agent.devices = "fake:2"
    c = agent.start().client()
    c.submit([f"read x < {gate}"], needs={"on": "fake:0"})
    c.submit(["sleep 600"], needs={"on": "fake:0"})

    def written(kind):
        c.submit(["true"], batch="x", hold=True)  # rows are written with other commits
        return rows(c, kind)

    until(lambda: written("reason"), "a reason")
    c.submit(["true"], needs={"gpus": 2})
    until(lambda: len(written("reason")) == 2, "a look, behind which the next waits for a second")
    with gate.opened(1):
        until(lambda: c.tasks(2)[0]["state"] == "running", "the start")
    clock.jump(HOUR)
    until(lambda: written("reason")[0].get("until"), "the end of the reason")
    row = rows(c, "reason")[0]
    assert row["since"] < row["until"] < clock.now() - HOUR * 10**9, row
    assert row["since_boot"] < row["until_boot"] < row["since_boot"] + 60 * 10**9, row


def idle(agent):
    """Q11: with commands that sleep, tasks that wait, notifications, retention and spans to come,
    the agent does not wake up."""
    agent.options = ["--notify", "true"]
    c = agent.start().client()
    submit(c, ["true"] * 10, name="over")
    c.ask("wait", batch="1")
    c.submit(["sleep 600"] * 8 + ["true"] * 20, batch="runs")
    c.submit(["true"], batch="later", begin=time.time_ns() + HOUR * 10**9)
    until(lambda: len(agent.processes("sleep")) == 8, "eight commands")

    def switches():
        for line in pathlib.Path(f"/proc/{agent.process.pid}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
        return None

    def is_quiet_for_a_while():
        before = switches()
        time.sleep(2.5)  # what is measured
        return switches() == before

    until(is_quiet_for_a_while, "an agent without wakeups")


CASES = [saved_socket, notified, notified_later, notified_twice, notified_too_long, kept,
         kept_number, kept_clock, forgotten_files, clock_forward, clock_back, clock_of_retention,
         removed_directory, replaced_directory, full_disk, spans, spans_of_clock, reason_of_clock,
         idle]

if __name__ == "__main__":
    sys.exit(run("queue-night", CASES))
