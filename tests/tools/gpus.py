# SPDX-License-Identifier: MIT
"""Verb gpus: without a driver, with fake devices to which things happen, and while it watches."""
import contextlib
import fcntl
import json
import os
import pty
import pwd
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
from tool import PATIENCE, Skip, contains, equal, interrupted, patiently, run

HEALTH = {"UNKNOWN", "HEALTHY", "SUSPECT", "QUARANTINED", "LOST", "REVOKED"}


def no_driver():
    if os.path.exists("/proc/driver/nvidia/version"):
        raise Skip("this machine has a driver")


def fields(tool, struct):
    """Returns the names of a struct's fields in device.h, except its size and reserved fields."""
    with open(os.path.join(tool.root, "include/gpudispatch/device.h")) as f:
        body = re.search(rf"^struct {struct} \{{(.*?)^\}};", f.read(), flags=re.M | re.S).group(1)
    names = re.findall(r"^\s+(?:uint32_t|uint64_t|char) (\w+)(?:\[\d+\])?;", body, flags=re.M)
    return set(names) - {"struct_size", "reserved"}


# The use of a device by a dispatcher: always 0 in a monitor, and not printed.
USE = {"state", "workers", "state_since", "ready_at", "tasks_done", "task_id", "task_started",
       "pid", "slot", "class_name"}


# C14: without a driver it says so, and that is no failure.
def test_no_driver(tool):
    no_driver()
    status, out, err = tool.run("gpus")
    equal((status, err, out.count("\n")), (0, "", 1))
    assert out.startswith("No GPU: ") and len(out) > len("No GPU: \n"), out
    status, seen = tool.json("gpus")
    equal((status, seen["devices"], seen["driver"]["state"]), (0, [], "NONE"))
    contains(out, seen["driver"]["text"])


def test_all_fields(tool):
    status, seen = tool.json("gpus", *tool.fake(3))
    equal((status, len(seen["devices"])), (0, 3))
    equal(set(seen), {"version", "time", "now", "driver", "devices"})
    equal(set(seen["driver"]), fields(tool, "gpud_driver_info"))
    for i, device in enumerate(seen["devices"]):
        equal(set(device), fields(tool, "gpud_device_info") - USE | {"processes"})
        equal((device["name"], device["kind"], device["health"]), (f"fake:{i}", "FAKE", "HEALTHY"))
        assert 0 < device["sampled_at"] <= seen["now"]
        equal(device["last_xid"], None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", seen["time"])
    equal(len({device["uuid"] for device in seen["devices"]}), 3)


def test_table(tool):
    status, out, err = tool.run("gpus", *tool.fake(3))
    equal((status, err), (0, ""))
    versions, head, *rows = out.splitlines()
    equal(versions, "Driver 570.86.15, CUDA up to 12.8")
    equal(re.split(r"  +", head), ["DEVICE", "UUID", "MODEL", "USED MiB", "TOTAL MiB", "UTIL %",
                                   "TEMP C", "POWER W", "HEALTH", "WORKERS", "OTHERS", "XID",
                                   "AGE s"])
    equal([re.split(r"  +", row)[0] for row in rows], ["fake:0", "fake:1", "fake:2"])
    uuids = [re.split(r"  +", row)[1] for row in rows]
    equal(len(set(uuids)), 3)
    whole = [device["uuid"] for device in tool.json("gpus", *tool.fake(3))[1]["devices"]]
    assert all(long.startswith(short) for long, short in zip(whole, uuids)), (whole, uuids)


# A script, and the fields that must show it: name to value, or to a test of the value.
FAULTS = (
    ("gpu 1 lost", {"health": "LOST"}),
    ("gpu 1 needs-reset", {"health": "QUARANTINED"}),
    ("gpu 1 revoked", {"health": "REVOKED"}),
    ("gpu 1 fail sample 15", {"health": "LOST"}),
    ("gpu 1 fail sample 999", {"health": {"UNKNOWN", "REVOKED"}.__contains__}),
    ("gpu 1 hang sample", {"health": "UNKNOWN", "sampled_at": None}),
    ("gpu 1 remap-failed=yes", {"health": "QUARANTINED", "remap_failed": True}),
    ("gpu 1 remap-pending=yes remapped=3", {"remap_pending": True, "remapped_rows": 3}),
    ("gpu 1 recovery=reset", {"health": "QUARANTINED", "recovery": "RESET"}),
    ("gpu 1 recovery=reboot", {"health": "QUARANTINED", "recovery": "REBOOT"}),
    ("gpu 1 recovery=system-reboot", {"health": "QUARANTINED", "recovery": "SYSTEM_REBOOT"}),
    ("gpu 1 recovery=23", {"health": "QUARANTINED", "recovery": 23}),
    ("gpu 1 used=100%", {"memory_free": 0}),
    ("gpu 1 foreign 4321 2GiB",
     {"foreign_processes": 1, "foreign_pid": 4321, "memory_foreign": 2 << 30}),
    ("gpu 1 temperature=91 throttle=hw-thermal+sw-thermal",
     {"temperature": 91, "throttle": ["SW_THERMAL", "HW_THERMAL"]}),
    ("gpu 1 temperature=unknown power=unknown utilization=unknown",
     {"temperature": None, "power": None, "utilization": None}),
    ("gpu 1 power=250 power-limit=700 utilization=97",
     {"power": 250000, "power_limit": 700000, "utilization": 97}),
    ("gpu 1 mode=prohibited", {"compute_mode": "PROHIBITED"}),
    ("gpu 1 mode=exclusive", {"compute_mode": "EXCLUSIVE_PROCESS"}),
    ("gpu 1 ecc-corrected=7 ecc-uncorrected=2", {"ecc_corrected": 7, "ecc_uncorrected": 2}),
    ("gpu 1 ecc-corrected=unknown", {"ecc_corrected": None}),
    ("gpu 1 cc=8.6 memory=24GiB numa=1",
     {"compute_major": 8, "compute_minor": 6, "memory_total": 24 << 30, "numa_node": 1}),
    ('gpu 1 model="a \\ b"', {"model": "a \\ b"}),
)


def timeless(text):
    return re.sub(r"\b\d+ s\b", "N s", text)


# One of three devices hangs: the library counts it as silent a second after its request.
def hung_document(tool, spec):
    def enough(seen):
        return len(seen[1]["devices"]) == 3 and seen[1]["driver"]["state"] == "HUNG"

    return patiently(lambda wait: tool.json("gpus", *spec, wait), enough)


def hung_table(tool, spec, evidence):
    return patiently(lambda wait: tool.run("gpus", *spec, wait),
                     lambda seen: evidence in timeless(seen[1]))


def test_each_fault(tool):
    for script, wanted in FAULTS:
        spec, hangs = tool.fake(3, script), "hang" in script
        status, seen = hung_document(tool, spec) if hangs else tool.json("gpus", *spec, "--wait=20")
        device = seen["devices"][1]
        bad = hangs or device["health"] in ("LOST", "QUARANTINED")
        equal((script, status, len(seen["devices"])), (script, 3 if bad else 0, 3))
        for name, value in wanted.items():
            right = value(device[name]) if callable(value) else device[name] == value
            assert right, f"{script}: {name} is {device[name]!r}, not {value!r}"
        # One monitor thread reads them all.
        assert hangs or seen["devices"][0]["health"] == "HEALTHY", script
        evidence = "" if device["health"] == "HEALTHY" else timeless(device["evidence"])
        assert evidence or device["health"] == "HEALTHY", script
        if hangs:
            again, out, _ = hung_table(tool, spec, evidence)
        else:
            again, out, _ = tool.run("gpus", *spec, "--wait=20")
        equal((script, again), (script, status))
        contains(timeless(out), evidence)


def test_mig(tool):
    status, seen = tool.json("gpus", *tool.fake(1, "gpu 0 mig=1g.10gb*2"))
    parts = [device for device in seen["devices"] if device["parent_uuid"]]
    equal((status, len(parts)), (0, 2))
    equal({part["mig_profile"] for part in parts}, {"1g.10gb"})
    contains(tool.run("gpus", *tool.fake(1, "gpu 0 mig=1g.10gb*2"))[1], "MIG 1g.10gb")


def test_denied(tool):
    status, seen = tool.json("gpus", *tool.fake(3, "gpu 1 denied"))
    equal((status, len(seen["devices"]), seen["driver"]["unreadable"]), (0, 2, 1))
    contains(tool.run("gpus", *tool.fake(3, "gpu 1 denied"))[1],
             "1 of 3 GPUs cannot be opened: number 1 denies access (NVML 4)")
    status, out, _ = tool.run("gpus", *tool.fake(1, "gpu 0 denied"))
    equal(status, 3)
    contains(out, "No GPU: permission denied on /dev/nvidia*: check file modes")


# Lost or in need of a reset, from the beginning or later: the text names it, the exit status is 3.
def test_lost_and_reset_are_named(tool):
    for script, said in (
        ("gpu 1 lost", "fake:1 .* LOST .*\n    the driver reports that it is lost"),
        ("gpu 1 needs-reset",
         "fake:1 .* QUARANTINED .*\n    the driver reports that it must be reset"),
        ("gpu 1 recovery=reboot",
         "fake:1 .* QUARANTINED .*\n    the driver reports that the machine must be rebooted"),
        ("gpu 1 fail enumerate 15",
         "1 of 3 GPUs cannot be opened: number 1 is gone from the bus .NVML 15."),
        ("gpu 0 fail enumerate 16\ngpu 1-2 fail enumerate 15",
         "No GPU: .*number 0 must be reset .NVML 16., number 1 is gone .*, and 1 more"),
    ):
        spec = tool.fake(3, script)
        status, out, _ = tool.run("gpus", *spec)
        equal((script, status, tool.json("gpus", *spec)[0]), (script, 3, 3))
        assert re.search(said, out), (script, out)


# The table shows facts that wear a GPU down, though it is HEALTHY.
def test_facts_of_healthy_rows(tool):
    script = ("gpu 1 temperature=91 throttle=hw-thermal+sw-thermal ecc-uncorrected=2"
              " remap-pending=yes")
    status, out, _ = tool.run("gpus", *tool.fake(3, script))
    row = re.search(r"^fake:1 .* HEALTHY .*\n((?:    .*\n)*)fake:2", out, flags=re.M).group(1)
    equal((status, row.splitlines()),
          (0, ["    its clocks are held down (SW_THERMAL, HW_THERMAL) at 91 C",
               "    2 uncorrected memory errors since the driver was loaded",
               "    a remap of memory rows waits for a reset; work may go on"]))
    equal(out.count("\n    "), 3)


# Its main thread has this name, as a worker's has.
NAMED = ("import ctypes, sys, time; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); "
         "print('', flush=True); time.sleep(3600)")


def user_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


# Workers are counted; of all others one sees who they are.
def test_processes(tool):
    def started(name):
        process = subprocess.Popen([sys.executable, "-c", NAMED, name], stdout=subprocess.PIPE)
        process.stdout.readline()
        return process

    worker, other = started("gpud-w7"), started("other")
    try:
        script = (f"gpu 1 foreign {worker.pid} 3GiB foreign {other.pid} 2GiB foreign 4194303 1GiB\n"
                  f"gpu 2 memory=unknown foreign {worker.pid} 1GiB")
        spec = tool.fake(3, script)
        status, out, _ = tool.run("gpus", *spec)
        _, seen = tool.json("gpus", *spec)
        _, looked = tool.json("doctor", "--quick", *spec)
    finally:
        for process in (worker, other):
            process.kill()
            process.communicate()
    equal(status, 0)
    user = user_name()
    others = [check["text"] for check in looked["checks"] if "other process" in check["text"]]
    equal(len(others), 1)  # a worker is none
    most = f"pid {other.pid}, {user}, 2048 MiB: "
    assert others[0].startswith(f"2 other processes use it; most memory: {most}"), others
    rows = {row.split()[0]: row for row in out.splitlines() if row.startswith("fake:")}
    equal([re.split(r"  +", rows[f"fake:{i}"])[-4:-2] for i in range(3)],
          [["0", "0"], ["1", "2"], ["1", "0"]])
    notes = [line for line in out.splitlines() if line.startswith("    ")]
    equal(len(notes), 2)
    contains(notes[0], f"    {most}" + f"{sys.executable} -c {NAMED}"[:60])
    equal(notes[1], "    pid 4194303, 1024 MiB: ended, or not visible from here")
    used = seen["devices"][1]["processes"]
    equal([(p["pid"], p["worker"], p["user"], p["memory"] >> 30) for p in used],
          [(worker.pid, True, user, 3), (other.pid, False, user, 2), (4194303, False, None, 1)])
    equal((used[2]["command"], seen["devices"][0]["processes"]), (None, []))


# The state of the driver as a whole, and the exit status.
def test_driver_states(tool):
    for word, status in (("none", 0), ("not-loaded", 0), ("mismatch", 3), ("too-old", 3),
                         ("no-permission", 3), ("revoked", 3), ("failed", 3)):
        script = f"driver state={word}"
        seen, document = tool.json("gpus", *tool.fake(2, script))
        state = word.upper().replace("-", "_")
        equal((word, seen, document["driver"]["state"]), (word, status, state))
        seen, out, _ = tool.run("gpus", *tool.fake(2, script))
        equal((word, seen), (word, status))
        contains(out, document["driver"]["text"])


# T13: a driver that hangs is waited for as long as was said, and not longer.
def test_driver_that_hangs(tool):
    for script in ("driver hang open", "driver state=hung"):
        begun = time.monotonic()
        status, seen = tool.json("gpus", *tool.fake(2, script), "--wait=0.2")
        assert time.monotonic() - begun < PATIENCE / 2
        equal((script, status, seen["driver"]["state"]), (script, 3, "HUNG"))


# The same through the real provider, on a fake libnvidia-ml.so.1.
def test_nvml(tool):
    if not os.path.exists(os.path.join(tool.fakes, "libnvidia-ml.so.1")):
        raise Skip("no fake libnvidia-ml.so.1 was built")

    def seen(script, *args):
        script = tool.write("nvml.txt", "gpus 3\n" + script)
        env = {"LD_LIBRARY_PATH": tool.fakes, "FAKE_SCRIPT": script}
        return tool.json("gpus", *args, env=env)

    status, document = seen("")
    equal((status, [device["name"] for device in document["devices"]]),
          (0, ["gpu:0", "gpu:1", "gpu:2"]))
    equal({device["health"] for device in document["devices"]}, {"HEALTHY"})
    equal({device["kind"] for device in document["devices"]}, {"GPU"})
    status, document = seen("gpu 1 lost")
    driver = document["driver"]
    equal((status, driver["unreadable"], driver["lost"], len(document["devices"])), (3, 1, 1, 2))
    status, document = seen("gpu 1 denied")
    driver = document["driver"]
    equal((status, driver["unreadable"], driver["lost"], len(document["devices"])), (0, 1, 0, 2))
    status, document = seen("gpu 2 foreign 4321 2GiB")
    device = document["devices"][2]
    equal((device["foreign_processes"], device["memory_foreign"]), (1, 2 << 30))
    status, document = seen("gpu 2 mig=1g.10gb*2")
    equal([device["name"] for device in document["devices"]],
          ["gpu:0", "gpu:1", "gpu:2", "gpu:2:0", "gpu:2:1"])
    for word, wanted in (("none", 0), ("not-loaded", 0), ("mismatch", 3), ("no-permission", 3),
                         ("revoked", 3), ("failed", 3)):
        status, document = seen(f"driver state={word}")
        equal((word, status, document["devices"]), (word, wanted, []))
        driver = document["driver"]
        assert word == "none" or driver["state"] == word.upper().replace("-", "_"), driver
    status, document = seen("driver hang nvmlInit_v2", "--wait=0.3")
    equal((status, document["driver"]["state"]), (3, "HUNG"))
    status, document = patiently(lambda wait: seen("gpu 1 hang nvmlDeviceGetMemoryInfo_v2", wait),
                                 lambda answer: len(answer[1]["devices"]) == 3)
    equal(document["devices"][1]["health"], "UNKNOWN")


# The sample in docs/reference/gpudispatch.1.md: its script yields its lines; ages differ.
def test_document(tool):
    with open(os.path.join(tool.root, "docs/reference/gpudispatch.1.md")) as f:
        text = f.read()
    quoted = re.search(r"and the script\n\n```\n(.*?)```\n.*?```text\n(.*?)```", text, flags=re.S)
    script, sample = quoted.groups()
    status, out, _ = tool.run("gpus", *tool.fake(3, script))

    def shape(table):
        table = re.sub(r" +\d+\.\d$", " AGE", table, flags=re.M)
        return re.sub(r"(?<=^    pid 1).*$", ", ...", table, flags=re.M)

    equal((status, shape(out)), (3, shape(sample)))


# ---- --watch ----


def documents(process, n):
    return [json.loads(process.stdout.readline()) for _ in range(n)]


def test_watch_gives_a_document_per_line(tool):
    for number in (signal.SIGINT, signal.SIGTERM):
        with tool.start("gpus", *tool.fake(2), "--json", "--watch=0.1", stdout=-1) as process:
            seen = documents(process, 3)
            times = [document["now"] for document in seen]
            assert times == sorted(set(times)), times
            equal(interrupted(process, number), 0)
            rest = process.stdout.read()
            assert not rest or rest.endswith(b"\n"), rest  # none is cut off


def test_watch_in_the_background(tool):
    with tool.start("gpus", *tool.fake(1), "--json", "--watch=0.1", stdout=-1,
                    interrupt=signal.SIG_IGN) as process:
        documents(process, 1)
        process.send_signal(signal.SIGINT)  # a script's, and not meant for it
        documents(process, 3)
        equal(interrupted(process, signal.SIGTERM), 0)


def test_watch_sees_what_happens(tool):
    script = f"when {tool.path('now')} gpu 1 lost\n"
    with tool.start("gpus", *tool.fake(2, script), "--json", "--watch=0.1", stdout=-1) as process:
        equal(documents(process, 1)[0]["devices"][1]["health"], "HEALTHY")
        tool.write("now", "")
        until = time.monotonic() + PATIENCE
        while documents(process, 1)[0]["devices"][1]["health"] != "LOST":
            assert time.monotonic() < until
        equal(interrupted(process), 0)


def test_watch_ends_with_its_reader(tool):
    for form in ((), ("--json",)):
        process = tool.start("gpus", *tool.fake(1), *form, "--watch", "3600", stdout=-1)
        assert process.stdout.readline()
        process.stdout.close()  # while it waits for its next turn
        equal((form, process.wait(PATIENCE)), (form, 0))


def test_watch_ends_while_a_driver_hangs(tool):
    spec = tool.fake(1, "driver hang open")
    process = tool.start("gpus", *spec, "--watch", "--wait=3600", stdout=-1)
    with open(f"/proc/{process.pid}/status") as f:
        assert "SigCgt" in f.read()
    until = time.monotonic() + PATIENCE
    while True:  # until it has begun to wait: then both signals are caught
        with open(f"/proc/{process.pid}/status") as f:
            caught = int(re.search(r"SigCgt:\s*(\w+)", f.read()).group(1), 16)
        if caught >> (signal.SIGTERM - 1) & 1 and caught >> (signal.SIGINT - 1) & 1:
            break
        assert time.monotonic() < until
    equal(interrupted(process, signal.SIGTERM), 0)
    equal(process.stdout.read(), b"")
    process.stdout.close()


def test_watch_appends_to_a_file(tool):
    with tool.start("gpus", *tool.fake(1), "-w0.1", stdout=-1, env={"TERM": "xterm"}) as process:
        lines = [process.stdout.readline().decode() for _ in range(10)]
        equal(interrupted(process), 0)
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", lines[0]), lines
    equal((lines[4], lines[9], lines[1:3]), ("\n", "\n", lines[6:8]))
    assert "\033" not in "".join(lines)


def seen_on_terminal(tool, term):
    """What --watch prints there, up to the second table."""
    try:
        ours, theirs = pty.openpty()
    except OSError as e:
        raise Skip(f"no terminal can be made here: {e}") from e
    text = b""
    with tool.start("gpus", *tool.fake(1), "--watch=0.1", stdout=theirs, stdin=theirs,
                    env={"TERM": term}) as process:
        os.close(theirs)
        while text.count(b"fake:0") < 2:
            assert select.select([ours], [], [], PATIENCE)[0]
            text += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                if not os.read(ours, 65536):
                    break
            except OSError:  # the other side is closed
                break
        equal(process.wait(PATIENCE), 0)
    os.close(ours)
    return text


def test_narrow_terminal(tool):
    """The table leaves out columns rather than wrap, and has all of them where there is room."""
    for columns, last in ((80, "OTHERS"), (100, "XID"), (200, "AGE s")):
        try:
            ours, theirs = pty.openpty()
        except OSError as e:
            raise Skip(f"no terminal can be made here: {e}") from e
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        with tool.start("gpus", *tool.fake(2), stdout=theirs, stdin=theirs) as process:
            os.close(theirs)
            text = b""
            with contextlib.suppress(OSError):  # the other side is closed
                while data := os.read(ours, 65536):
                    text += data
            equal(process.wait(PATIENCE), 0)
        os.close(ours)
        lines = text.decode().splitlines()
        assert max(map(len, lines)) <= columns, lines
        equal((columns, lines[1].rstrip()[-len(last):], lines[1][:6]), (columns, last, "DEVICE"))
        contains(text.decode(), "HEALTHY")


def test_watch_clears_a_terminal(tool):
    contains(seen_on_terminal(tool, "xterm"), b"\033[H\033[2J")
    assert b"\033" not in seen_on_terminal(tool, "dumb")


run(globals())
