#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input of the verbs: the exit status, and a text with field, value and remedy.

usage: refusals.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import sqlite3
import sys
import threading

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, equal, run, until  # noqa: E402

HELLO = {"hello": "gpudispatch-queue", "version": 1, "agent": "0", "pid": os.getpid(),
         "devices": 8}


def refused(q, status, args, parts, **more):
    """One line of standard error has all the parts; standard output has nothing."""
    out = q.run(*args, status=status, **more)
    equal(out, "")
    first = q.err.splitlines()[0]
    for part in parts:
        assert part in q.err, f"{args}: no '{part}' in: {q.err}"
    assert first.startswith(("gpudispatch: ", "gpudispatch-agent: ")) and len(q.err) < 2000, q.err
    return q.err


def usage(q):
    """Wrong command lines start no agent and make no state directory."""
    for args, parts in [
            (["sbumit"], ["'sbumit': did you mean submit?"]),
            (["status"], ["did you mean ls or agent status?"]),
            (["submit", "--state", "foo", "--", "true"], ["--state: did you mean --state-dir?"]),
            (["set", "1", "--limit", "30m", "--state", "ready"], ["did you mean --state-dir?"]),
            (["wait", "1", "--time", "3"], ["unknown option --time: did you mean --timeout?"]),
            (["log", "1.1", "--tail", "5"], ["unknown option --tail\n"]),
            (["set", "1", "--begin", "5"], ["unknown option --begin: it is an option of submit"]),
            ([], ["verb"]),
            (["submit", "--gpux=1", "--", "true"], ["--gpux"]),
            (["submit", "-Z", "--", "true"], ["-Z"]),
            (["submit", "--limit"], ["--limit", "TIME"]),
            (["submit", "--hold=1", "--", "true"], ["--hold", "no value"]),
            (["submit"], ["FILE", "--"]),
            (["submit", "--"], ["--"]),
            (["submit", "a", "b"], ["'b'", "one FILE", "--"]),
            (["submit", "echo hello"], ["echo hello: No such file", "command stands behind --"]),
            (["submit", "a", "--", "true"], ["'a'", "--each"]),
            (["submit", "--each", "a"], ["--each", "--"]),
            (["submit", "--array", "1-2"], ["--array", "--"]),
            (["submit", "--array", "1-2", "--each", "a", "--", "x{}"], ["--each", "--array"]),
            (["submit", "--files", "a"], ["--files", "--class"]),
            (["submit", "--class", "c", "--", "true"], ["--class", "command"]),
            (["submit", "--class", "c", "--files", "a", "--watch"], ["--class", "--watch"]),
            (["submit", "--array", "1-2", "--", "true"], ["--array", "{}", "--fresh"]),
            (["submit", "--watch", "--", "true"], ["--watch", "file"]),
            (["submit", "--fresh", "--join", "--", "true"], ["--fresh", "--join"]),
            (["submit", "--batch", "x" * 256, "--", "true"], ["--batch", "256", "255"]),
            (["submit", ""], ["FILE"]),
            (["run", "a", "b"], ["'b'"]),
            (["ls", "--last", "x"], ["--last", "'x'"]),
            (["ls", "-" + "j" * 20000, "--last", "x"], ["--last", "'x'"]),
            (["wait"], ["IDS"]),
            (["wait", "1", "--timeout", "soon"], ["--timeout", "'soon'"]),
            (["log"], ["TASK"]),
            (["log", "1", "2"], ["'2'"]),
            (["log", "-f", "--attempt", "1", "1.1"], ["--follow", "--attempt"]),
            (["set", "1"], ["set", "--priority"]),
            (["set", "1", "--limit", "x"], ["--limit", "'x'"]),
            (["purge"], ["--older"]),
            (["purge", "--older", "x"], ["--older", "'x'"]),
            (["purge", "--older", "5"], ["--older", "'5' has no unit", "5d", "5s"]),
            (["submit", "--batch", "12", "--", "true"], ["'12', reads as an id", "--batch"]),
            (["submit", "--batch", "12.4-9", "--", "true"], ["'12.4-9', reads as an id"]),
            (["submit", "--batch", "1,2", "--", "true"], ["'1,2', reads as an id"]),
            (["submit", "--no-check", "--", "./7.sh"], ["'7', reads as an id", "--batch"]),
            (["agent", "reload"], ["'reload'", "stop"]),
            (["agent", "stop", "--drain", "--cancel"], ["--drain", "--cancel"]),
            (["agent", "--drain"], ["--drain", "stop"])]:
        refused(q, 2, args, parts)
    equal(q.state.exists(), False)
    for args in (["ls"], ["wait", "1"], ["cancel", "1"], ["agent", "stop"], ["fsck"]):
        refused(q, 4, args, [str(q.state), "submit"])
    equal(q.state.exists(), False)


def options(q):
    """Options of tasks: none of them reaches an agent."""
    for option, value, parts in [
            ("--gpus", "17", ["16"]), ("--gpus", "1.5", ["GPU"]), ("--memory", "40", ["40"]),
            ("--memory", "4Q", ["4Q"]), ("--cpus", "-1", ["-1"]), ("--compute", "8", None),
            ("--or", "--limit 3", ["--gpus"]), ("--needs", "big", ["[needs big]"]),
            ("--priority", "high", ["whole number"]),
            ("--priority", "99999999999", ["-2147483648 to 2147483647"]),
            ("--limit", "12x", ["1h30m"]),
            ("--begin", "noon", ["noon"]), ("--expires", "2020-13-01", ["2020-13-01"]),
            ("--after", "soon:1", ["failed"]), ("--after", "1.2.3", ["12.44"]),
            ("--retries", "2:rain", ["rain"]), ("--backoff", "1s:x", ["x"]),
            ("--env", "NONE_SUCH", ["NONE_SUCH", "NAME=VALUE"]), ("--unset", "A=B", ["A=B"]),
            ("--max-fails", "x%", ["x"]), ("--max-fails", "101%", ["100"]),
            ("--at-once", "0", ["0"])]:
        if parts:
            refused(q, 2, ["submit", option, value, "--", "true"], [option, *parts])
    refused(q, 2, ["submit", "--", "no-such-program"], ["'no-such-program'", "PATH", "--no-check"])
    refused(q, 2, ["submit", "--", "./none"], ["'./none'", "--no-check"])
    q.write("t.sh", "true\n")
    refused(q, 2, ["submit", "--", "./t.sh"], ["'./t.sh' is not executable", "--no-check"])
    for option in ("--name", "--key", "--batch", "--cwd", "--notify"):
        refused(q, 2, ["submit", option, b"\xff".decode(errors="surrogateescape"), "--", "true"],
                [option.strip("-"), "UTF-8"])
    refused(q, 2, ["submit", "--", "echo", b"\xff".decode(errors="surrogateescape")], ["UTF-8"])
    refused(q, 2, ["submit", "--config", "none", "--", "true"], ["none"])
    q.write("config", "[needs x]\ngpus = many\n")
    refused(q, 2, ["submit", "--config", "config", "--", "true"], ["config:2", "gpus", "many"])
    for args in (["submit", "--", "true"], ["set", "1", "--priority", "1"], ["config"]):
        refused(q, 75, [args[0], "--config", ".", *args[1:]], ["Is a directory"])
    refused(q, 2, ["submit", "none.txt"], ["none.txt", "No such file"])
    refused(q, 2, ["submit", "."], ["directory"])


def files(q):
    """A bad line refuses the whole file, with its number."""
    for name, text, parts in [
            ("l.txt", b"true\n\xff\n", ["line 2", "UTF-8"]),
            ("n.txt", b"true\nfalse\0\n", ["line 2", "NUL"]),
            ("b.txt", b"true \\\n  --lr 1\n", ["line 1", "a task is one line"]),
            ("e.txt", b"# nothing\n\n", ["no tasks"]),
            ("h.csv", b"command,limit,limit\ntrue,1,1\n", ["line 1", "limit"]),
            ("q.csv", b"command\ntrue\n\"false\n", ["line 3", "quote"]),
            ("f.csv", b"command,limit\ntrue,1\ntrue\n", ["line 3"]),
            ("k.csv", b"Command\ntrue\n", ["'Command'", "did you mean command?"]),
            ("b.csv", b"command, gpus\ntrue,1\n", ["' gpus'", "did you mean gpus?"]),
            ("t.csv", b"command;gpus\ntrue;1\n", ["'command;gpus'", "commas", "semicolons"]),
            ("t.jsonl", b'{"argv":["true"],"gpu":1}\n', ["'gpu': did you mean gpus?"]),
            ("o.csv", b"command,lr\ntrue,1\n", ["lr"]),
            ("c.csv", b"limit\n1\n", ["command"]),
            ("v.csv", b"command,limit\ntrue,1\ntrue,soon\n", ["line 3", "--limit", "'soon'"]),
            ("p.csv", b"command,gpus\ntrue,99\n", ["line 2", "--gpus", "'99'"]),
            ("j.jsonl", b'{"argv":["true"]}\n{"argv":[}\n', ["line 2"]),
            ("d.jsonl", b'{"argv":["true"],"argv":["false"]}\n', ["line 1", "argv"]),
            ("m.jsonl", b'{"argv":["true"],"colour":1}\n', ["line 1", "colour"]),
            ("a.jsonl", b'{"argv":[]}\n', ["line 1"]),
            ("g.jsonl", b'{"argv":["none-such"]}\n', ["line 1", "'none-such'", "--no-check"]),
            ("w.txt", b"x" * (17 << 20), ["line 1", "MiB"])]:
        q.write(name, text)
        refused(q, 2, ["submit", name], [name, *parts])
    q.write("s.csv", "lr,seed\n1,2\n")
    refused(q, 2, ["submit", "--each", "s.csv", "--", "echo", "{lrr}"], ["{lrr}", "lr, seed"])
    q.write("s2.csv", "lr;seed\n1;2\n")
    refused(q, 2, ["submit", "--each", "s2.csv", "--", "echo", "{lr}"], ["lr;seed; commas"])
    refused(q, 2, ["submit", "--format", "xml", "s.csv"], ["'xml'", "csv"])
    refused(q, 2, ["submit", "--array", "5-1", "--", "x{}"], [": --array: '5-1': "])
    refused(q, 2, ["submit", "--array", "1-9999999", "--", "x{}"], ["--array", "1000000"])
    q.agent()
    q.write("mib.txt", "true " + "x" * (1 << 20) + "\n")
    equal(q.submit("mib.txt")["added"], 1)
    q.run("wait", "mib")
    equal(q.submit("-", stdin=b"echo a\\\\\n# a comment \\\n")["added"], 1)
    equal(q.submit("--each", "-", "--", "echo", "{}", stdin=b"a \\\nb\n")["added"], 2)
    equal(q.submit("-", stdin=b"\xef\xbb\xbftrue\r\nfalse\r\n# c\n")["added"], 2)


def ids(q):
    """Ids of none, keys of others, and conditions that cannot be met."""
    q.agent()
    q.submit("--hold", "--", "true")
    for verb in ("wait", "cancel", "hold", "release", "show", "log", "explain", "results", "ls"):
        refused(q, 4, [verb, "7"], ["7"])
        refused(q, 4, [verb, "1.2"], ["1.2"])
        refused(q, 4, [verb, "night"], ["night"])
        refused(q, 4, [verb, "night.1"], ["night"])
        refused(q, 4, [verb, "true.2"], ["task 2", '"true"'])
        if verb != "ls":
            refused(q, 2, [verb, b"\xff".decode(errors="surrogateescape")], ["UTF-8"])
    refused(q, 2, ["log", "1.1-2"], ["1.1-2", "12.44"])
    refused(q, 2, ["ls", "1", "--state", "dead"], ["'dead'", "running"])
    for verb in ("ls", "retry"):
        refused(q, 2, [verb, "1", "--failed", "--state", "ok"], ["--failed and --state", "exclude"])
        refused(q, 2, [verb, "1", "--lost", "--state", "ok"], ["--lost and --state", "exclude"])
    equal(q.json("ls", "1", "--state", "no worker,no-worker"), [])
    refused(q, 4, ["show", ".1"], ['named ".1"'])
    refused(q, 2, ["show", ""], ["IDS"])
    refused(q, 2, ["log", ""], ["expected ids"])
    refused(q, 2, ["ls", "--config", "/nosuch"], ["/nosuch", "No such file"])
    refused(q, 2, ["cancel"], ["IDS", "--all"])
    refused(q, 2, ["results"], ["IDS", "--all"])
    q.run("results", "--all")
    refused(q, 2, ["cancel", "1", "--all"], ["--all"])
    for after in ("7", "1.2", "none", "none.1"):
        refused(q, 4, ["submit", "--after", after, "--", "true"], [after.removesuffix(".1")])
    refused(q, 4, ["submit", "--after", "2", "--", "true"], ["2"])  # itself
    q.submit("--key", "k", "--", "true")
    refused(q, 6, ["submit", "--key", "k", "--", "true", "x"],
            ["the key belongs to task 2.1", "another --key"])
    refused(q, 6, ["submit", "--gpus", "9", "--", "true"], ["9", "8", "--allow-wait"])
    q.write("p.csv", "command,gpus\ntrue,1\ntrue,9\n")
    refused(q, 6, ["submit", "p.csv"], ["line 3", "9", "8"])
    refused(q, 4, ["drain", "8"], ["8"])
    refused(q, 4, ["log", "2", "--attempt", "9"], ["9"])
    q.run("wait", "2")
    (q.state / "logs/2.1.1").unlink()
    refused(q, 4, ["log", "2"], ["2.1", "logs/2.1.1", "No such file"])
    (q.state / "logs/2.1.1").symlink_to("/dev/null")
    refused(q, 1, ["log", "2"], ["logs/2.1.1", "symbolic links"])
    q.run("log", "1")
    assert "no output yet" in q.err, q.err
    q.run("purge", "--older", "0")
    refused(q, 4, ["show", "2.1"], ["2.1", "purge"])
    q.write("config", "")
    gone = q.path("gone")
    gone.mkdir()
    q.submit("--cwd", "gone", "--hold", "--", "true")
    gone.rmdir()
    refused(q, 2, ["submit", "--cwd", "gone", "--", "true"],
            ["--cwd", str(gone), "No such file", "--no-check"])
    refused(q, 2, ["submit", "--cwd", "config", "--", "true"], ["--cwd", "Not a directory"])
    refused(q, 2, ["submit", q.write("c.csv", "command,cwd\ntrue,\ntrue,gone\n")],
            ["line 3", "--cwd", "--no-check"])
    q.run("submit", "--no-check", "--cwd", "gone", "--hold", "--", "true")
    q.run("release", "3")
    said = q.run("wait", "3", status=3)
    assert "gone" in said or "gone" in q.run("show", "3.1"), said
    equal(q.states("1"), ["held"])
    q.run("run", "--batch", "ended", "--", "true")
    refused(q, 6, ["set", "ended", "--priority", "1"], ["nothing was changed", "waits"])


def devices(q):
    """Devices that an agent cannot have, with the options that it has."""
    for devices, parts in [
            ("cpu:4", ["--devices cpu:4: CPU slots are no devices", "--cpus N", "--gpus 0"]),
            ("fake:1,cpu:4", ["--devices fake:1,cpu:4: CPU slots are no devices"])]:
        refused(q, 6, ["agent", "start", "--devices", devices], parts)
    if not os.path.exists("/dev/nvidiactl"):
        text = refused(q, 6, ["agent", "start", "--devices", "0"], ["--devices 0: ", "fake:N"])
        assert "cpu:N" not in text, text


def needs(q):
    """The text names the need that no device here can meet, and what there is."""
    q.agent()
    for need, text in [("--memory 9999G", "--memory 9999G: the largest GPU here has 14.4 GiB"),
                       ("--cpus 99", "--cpus 99: the agent has 64 CPU slots; --allow-wait"),
                       ("--host-memory 900T", "--host-memory 900T: the machine has "),
                       ("--compute 10.0", "--compute 10.0: the highest compute capability"),
                       ("--gpus 9", "--gpus 9: the agent has 8, with --devices fake:8;"),
                       ("--gpus 2 --on 0", '--gpus 2, --cpus 1, --on "fake:0": each of them can'),
                       ("--on 8", '--on "8": the agent has no such GPU, or several; it has '
                                  'fake:0 to fake:7;'),
                       ("--not-on GPU-fa", '--not-on "GPU-fa": the agent has no such GPU')]:
        refused(q, 6, ["submit", *need.split(), "--", "true"], [f"gpudispatch: {text}"])
    q.run("submit", "--gpus", "2", "--on", "0", "--allow-wait", "--batch", "never", "--", "true")
    assert "--gpus 2, --cpus 1, --on \"fake:0\": each of them" in q.run("explain", "never")
    refused(q, 4, ["pause", "--class", "foo"], ['class is "foo": no such class'])
    refused(q, 4, ["drain", "9"], ['"9"', "it has fake:0 to fake:7"])
    for name in ("3", "fake:3", "GPU-fa4e0003"):
        batch = q.submit("--on", name, "--", "sh", "-c", "echo $GPUDISPATCH_GPUS >> on")["batch"]
        q.run("wait", batch)
    equal(q.words("on"), ["fake:3"] * 3)
    q.run("drain", "GPU-fa4e0003")
    q.run("undrain", "fake:3")


def places(q):
    """State directories that cannot be used: status 75."""
    for env, parts in [
            ({"HOME": "", "GPUDISPATCH_STATE": ""}, ["HOME", "GPUDISPATCH_STATE"]),
            ({"HOME": "/proc", "GPUDISPATCH_STATE": ""}, ["/proc/.local", "--state-dir"]),
            ({"GPUDISPATCH_STATE": "/proc/none"}, ["/proc/none", "--state-dir"]),
            ({"GPUDISPATCH_STATE": "x" * 5000}, ["--state-dir"]),
            ({"GPUDISPATCH_STATE": "/dev/null"}, ["/dev/null"])]:
        refused(q, 75, ["submit", "--", "true"], parts, env=env)
    link = q.directory / "link"
    (q.directory / "real").mkdir(0o700)
    link.symlink_to(q.directory / "real")
    refused(q, 75, ["submit", "--", "true"], ["link"], env={"GPUDISPATCH_STATE": str(link)})
    q.state.mkdir()
    q.state.chmod(0o755)
    refused(q, 75, ["submit", "--", "true"], ["755", "chmod"])
    q.state.chmod(0o700)
    runtime = q.directory / ("r" * 100)
    runtime.mkdir(0o700)
    refused(q, 75, ["submit", "--", "true"], ["107", "XDG_RUNTIME_DIR"],
            env={"XDG_RUNTIME_DIR": str(runtime)})
    if os.geteuid() != 0:
        home = q.directory / "home"
        home.mkdir(0o500)
        refused(q, 75, ["submit", "--", "true"], [str(home)],
                env={"HOME": str(home), "GPUDISPATCH_STATE": ""})
    config = q.directory / "config"
    config.write_text("state-dir = own\n")
    refused(q, 4, ["ls", "--config", config], [str(q.directory / "own")],
            env={"GPUDISPATCH_STATE": ""})
    config.write_text("state = own\n")
    refused(q, 2, ["ls", "--config", config], ["config:1", "state"],
            env={"GPUDISPATCH_STATE": ""})
    said = q.run("doctor", "--quick", "--devices", "fake:1", status=3,
                 env={"GPUDISPATCH_STATE": "", "GPUDISPATCH_CONFIG": "/none"})
    assert "PROBLEM  state directory    /none: No such file" in said, said
    refused(q, 1, ["submit", "--", "true"], ["GPUD_AGENT_PROGRAM"],
            env={"GPUD_AGENT_PROGRAM": "/none"})


def versions(q):
    """A state of a newer version, and two agents."""
    q.agent()
    q.run("run", "--", "true")
    second = q.run("agent", "--foreground", "--devices", "fake:8", status=75)
    equal(second, "")
    assert "another agent" in q.err and str(q.state) in q.err, q.err
    assert "runs already" in q.run("agent")
    refused(q, 75, ["fsck"], ["agent stop"])
    q.run("agent", "stop")
    q.run("fsck")
    refused(q, 4, ["ls"], ["gpudispatch agent"])  # it was stopped
    with contextlib.closing(sqlite3.connect(q.state / "queue.db")) as file:
        file.execute("PRAGMA user_version = 999")
    q.run("submit", "--", "true", status=75, patience=50)  # less than that of a start
    assert "999" in q.err and "version" in q.err, q.err


def listen(q):
    """A process of the same user that listens for the agent's clients."""
    q.state.mkdir(0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(PATIENCE)
    listener.bind(str(q.state / "socket"))
    listener.listen(8)
    return listener


def serve(q, lines):
    """Sends lines to each client."""
    listener = listen(q)

    def answer():
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                peer.recv(65536)
                for line in lines:
                    peer.sendall(line if isinstance(line, bytes) else json.dumps(line).encode()
                                 + b"\n")
                    if len(lines) > 1:
                        peer.recv(65536)
                peer.close()

    threading.Thread(target=answer, daemon=True).start()
    return listener


def strangers(q):
    """Listeners that are no agent of this version."""
    for lines, status, parts in [
            ([{**HELLO, "version": 2}], 75, ["version 2", "1"]),
            ([{**HELLO, "hello": "other"}], 75, ["version"]),
            ([{"ok": False, "code": "EVERSION", "status": 75, "error": "use version 2"}], 75,
             ["use version 2"]),
            ([{"ok": False, "status": 4096, "error": "\x1b[31m"}], 1, []),
            ([b"SSH-2.0-x\r\n"], 1, ["agent?"]),
            ([b"[1]\n"], 1, ["agent?"]),
            ([b"\xff\xfe\0\n"], 1, ["agent?"]),
            ([HELLO, b"garbage\n"], 1, ["agent?"]),
            ([HELLO, {"ok": False}], 1, []),
            ([HELLO, {"ok": True, "batches": {"x": 1}}], 0, []),
            ([HELLO, {"ok": True, "batches": [1, {}, {"batch": 1, "outcomes": []}]}], 0, [])]:
        listener = serve(q, lines)
        q.run("ls", status=status)
        for part in parts:
            assert part in q.err, f"{lines}: {q.err}"
        assert "\x1b" not in q.err, q.err
        listener.close()
        shutil.rmtree(q.state)


def hung_agent(q):
    """An agent that sends no reply: the second SIGINT ends a submit --watch, which sends its
    request again after the first one."""
    listener = listen(q)
    child = q.start("submit", "--watch", q.write("grow", "true\n"))
    requests = []
    for _ in range(2):
        peer, _ = listener.accept()
        peer.recv(65536)
        peer.sendall(json.dumps(HELLO).encode() + b"\n")
        requests.append(peer.recv(65536))
        child.send_signal(signal.SIGINT)
    equal(child.wait(PATIENCE), 130)
    equal(*requests)
    listener.close()


def full_output(q):
    """Standard output that cannot be written, and one without a reader."""
    q.agent()
    q.run("submit", q.write("many", "true\n" * 3000), "--hold")
    with open("/dev/full", "w") as full:
        child = q.start("ls", "many", "--json", stdout=full)
        equal((child.wait(PATIENCE), b"cannot be written" in child.stderr.read()), (1, True))
    read, write = os.pipe()
    os.close(read)
    child = q.start("ls", "many", "--json", stdout=write)
    os.close(write)
    equal(child.wait(PATIENCE), 0)


if __name__ == "__main__":
    sys.exit(run("queue-refusals", [
        usage, options, files, ids, devices, needs, places, versions, strangers, hung_agent,
        full_output], Queue))
