# SPDX-License-Identifier: MIT
"""Verb doctor: its findings on this machine, on made-up ones, and about fake devices."""
import os
import re
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tool import PATIENCE, Skip, contains, equal, patiently, run

GROUPS = ["system", "limits", "queue", "driver", "devices", "environment", "tasks"]
PR_SET_CHILD_SUBREAPER = 36
# The program's parent inherits orphans and reaps them at once, since the first process of a machine
# may be slow.
INIT = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
while (ended := os.wait())[0] != child:
    pass
sys.exit(os.waitstatus_to_exitcode(ended[1]))
"""


def doctor(tool, *args, before=(), init=INIT, **more):
    """Returns the exit status, the findings by name (a list each) and the document, and checks the
    facts that hold for every document."""
    status, seen = tool.json("doctor", *args, before=(sys.executable, "-c", init, *before), **more)
    findings = {}
    for check in seen["checks"]:
        findings.setdefault(check["name"], []).append(check)
        assert check["verdict"] in ("ok", "note", "PROBLEM") and check["text"], check
        assert check["verdict"] != "PROBLEM" or check["remedy"], check
    equal(list(dict.fromkeys(check["group"] for check in seen["checks"])), GROUPS)
    counted = [sum(check["verdict"] == verdict for check in seen["checks"])
               for verdict in ("PROBLEM", "note", "ok")]
    equal([seen["problems"], seen["notes"], seen["ok"]], counted)
    equal(status, 3 if counted[0] else 0)
    return status, findings, seen


def one(findings, name):
    equal((name, len(findings.get(name, []))), (name, 1))
    return findings[name][0]


def verdict(findings, name):
    return one(findings, name)["verdict"]


def all_problems(findings):
    return [check for checks in findings.values() for check in checks
            if check["verdict"] == "PROBLEM"]


def no_sanitizer(tool, why):
    if tool.sanitizer != "none":
        raise Skip(f"a sanitizer {why}")


def no_driver():
    if os.path.exists("/proc/driver/nvidia/version"):
        raise Skip("this machine has a driver")


def machine(tool, gpus=0, module=None, files=()):
    """Returns --root for a machine with `gpus` GPUs on its bus."""
    for i in range(gpus):
        slot = f"root/sys/bus/pci/devices/0000:0{i}:00"
        tool.write(f"{slot}.0/vendor", "0x10de\n")
        tool.write(f"{slot}.0/class", "0x030200\n")
        tool.write(f"{slot}.1/vendor", "0x10de\n")  # its sound device
        tool.write(f"{slot}.1/class", "0x040300\n")
    if module:
        tool.write("root/proc/driver/nvidia/version",
                   f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {module}  "
                   "Thu Jan 1 00:00:00 UTC 2026\n")
    for name in files:
        tool.write(f"root/dev/{name}", "")
    tool.write("root/dev/null", "")
    return "--root", tool.path("root")


# A machine without a GPU is not wrong.
def test_no_gpu(tool):
    no_driver()
    status, findings, seen = doctor(tool, "--quick", *machine(tool))
    equal([verdict(findings, name) for name in ("driver", "GPUs", "hardware")],
          ["note", "note", "ok"])
    equal((seen["driver"]["state"], seen["devices"]), ("NONE", []))
    contains(one(findings, "driver")["text"], seen["driver"]["text"])


# Verdicts by what the machine has left at the moment, or by how busy it is: ok or note.
PASSING = ("memory", "processes", "payload budget", "crash")


def test_text_says_the_same(tool):
    status, out, err = tool.run("doctor", "--quick", *tool.fake(2),
                                before=(sys.executable, "-c", INIT))
    _, _, seen = doctor(tool, "--quick", *tool.fake(2))
    equal((status, err), (3 if seen["problems"] else 0, ""))
    for group in GROUPS:
        contains(out, f"\n{group}\n")
    findings = re.findall(r"^  (ok|note|PROBLEM) +(\S+(?: \S+)*) .*(?:\n +(do): )?", out,
                          flags=re.M)
    told = [finding for finding in findings if finding[1] not in PASSING]
    equal(told, [(check["verdict"], check["name"], "do" if check["remedy"] else "")
                 for check in seen["checks"] if check["name"] not in PASSING])
    equal(len(findings), len(seen["checks"]))
    verdicts = [finding[0] for finding in findings]
    problems, notes, ok = (verdicts.count(verdict) for verdict in ("PROBLEM", "note", "ok"))
    equal(out.splitlines()[-1],
          f"{problems} problem{'s' * (problems != 1)}, {notes} note{'s' * (notes != 1)}, {ok} ok")


# C6 C8: a task, a crash, a limit, and the successors, really run.
def test_tasks(tool):
    _, findings, _ = doctor(tool, *machine(tool))
    for name in ("task", "crash", "after a crash", "hard limit", "after a kill", "payload budget",
                 "worker program", "executed worker"):
        check = one(findings, name)
        assert check["verdict"] == "ok" or name in ("crash", "payload budget"), check
    assert 0.1 <= one(findings, "hard limit")["seconds"] < PATIENCE
    contains(one(findings, "crash")["text"], "CRASHED")


# The sample in docs/reference/gpudispatch.1.md: groups, names and verdicts.
def test_document(tool):
    no_driver()
    with open(os.path.join(tool.root, "docs/reference/gpudispatch.1.md")) as f:
        sample = re.search(r"```text\n(driver\n.*?)```", f.read(), flags=re.S).group(1)
    _, out, _ = tool.run("doctor", *machine(tool))

    def shape(text):
        text = re.sub(rf"^  note    ( (?:{'|'.join(PASSING)}) )", r"  ok      \1", text, flags=re.M)
        return re.findall(r"^(?:\w+$|  (?:ok|note|PROBLEM) +(?:\S+ )+)", text, flags=re.M)

    equal(shape(out[out.index("\ndriver\n"):]), shape(sample))


def test_quick_runs_nothing(tool):
    _, findings, seen = doctor(tool, "--quick")
    equal([check["name"] for check in seen["checks"] if check["group"] == "tasks"], ["tasks"])


# ---- the system ----


def test_limits(tool):
    no_sanitizer(tool, "opens files of its own")

    def limited(which, value):
        limits = value, resource.getrlimit(which)[1]
        return {"preexec_fn": lambda: resource.setrlimit(which, limits)}

    _, findings, _ = doctor(tool, "--quick", **limited(resource.RLIMIT_NOFILE, 48))
    equal(verdict(findings, "open files"), "note")
    _, findings, _ = doctor(tool, "--quick", **limited(resource.RLIMIT_AS, 8 << 30))
    equal(verdict(findings, "address space"), "note")
    contains(one(findings, "address space")["text"], "8.0 GiB")
    _, findings, _ = doctor(tool, "--quick", **limited(resource.RLIMIT_FSIZE, 64 << 20))
    equal(verdict(findings, "file size"), "note")
    status, findings, _ = doctor(tool, **limited(resource.RLIMIT_FSIZE, 64 << 10))
    equal((status, *(verdict(findings, name)
                     for name in ("file size", "memory files", "dispatcher"))),
          (3, "PROBLEM", "PROBLEM", "PROBLEM"))


def test_core_files(tool):
    no_sanitizer(tool, "sets that limit itself")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    with open("/proc/sys/kernel/core_pattern") as f:
        if f.read().startswith("|"):
            raise Skip("core files go to a program here")

    def limited(soft):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))}

    _, findings, _ = doctor(tool, "--quick", **limited(0))
    equal(verdict(findings, "core files"), "ok")
    if hard != 0:
        _, findings, _ = doctor(tool, "--quick", **limited(1 << 20 if hard < 0 else hard))
        equal(verdict(findings, "core files"), "note")


# A call that a filter hides: it is said, and all works.
def test_seccomp(tool):
    without = os.path.join(os.path.dirname(tool.fakes), "without")
    for call in ("pidfd_open", "close_range"):
        ended = subprocess.run([without, call, "/bin/true"], timeout=PATIENCE)
        if ended.returncode == 77:
            raise Skip("the system refuses a filter")
        _, findings, _ = doctor(tool, *machine(tool), before=(without, call))
        equal((call, verdict(findings, call)), (call, "note"))
        contains(one(findings, call)["text"], "seccomp")
        contains(one(findings, "seccomp")["text"], "a filter is on")
        equal(verdict(findings, "task"), "ok")


def test_orphans(tool):
    equal(verdict(doctor(tool, "--quick")[1], "orphans"), "ok")
    lazy = INIT.replace("os.wait()", "os.waitpid(child, 0)")
    _, findings, _ = doctor(tool, "--quick", init=lazy)
    equal(verdict(findings, "orphans"), "note")
    contains(one(findings, "orphans")["remedy"], "--init")
    contains(one(findings, "orphans")["text"], "python")


# ---- the driver ----


def test_hardware_without_driver(tool):
    no_driver()
    status, findings, _ = doctor(tool, "--quick", *machine(tool, gpus=2))
    equal((status, verdict(findings, "kernel module"), verdict(findings, "driver")),
          (3, "PROBLEM", "PROBLEM"))
    contains(one(findings, "hardware")["text"], "2 NVIDIA GPUs")


def test_device_files(tool):
    no_driver()
    _, findings, _ = doctor(tool, "--quick", *machine(tool, gpus=1, module="570.86.15"))
    contains(one(findings, "kernel module")["text"], "570.86.15")
    for name in ("nvidiactl", "nvidia-uvm", "device files"):
        equal((name, verdict(findings, name)), (name, "PROBLEM"))
    root = machine(tool, gpus=1, module="570.86.15",
                   files=("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia-modeset"))
    _, findings, _ = doctor(tool, "--quick", *root)
    equal([verdict(findings, name) for name in ("nvidiactl", "nvidia-uvm", "nvidia0")], ["ok"] * 3)
    assert "device files" not in findings and "nvidia-modeset" not in findings
    equal(verdict(findings, "persistence"), "note")
    tool.write("root/run/nvidia-persistenced/socket", "")
    _, findings, _ = doctor(tool, "--quick", *root)
    equal(verdict(findings, "persistence"), "ok")


def test_device_files_of_others(tool):
    no_driver()
    root = machine(tool, gpus=1, module="570.86.15", files=("nvidiactl", "nvidia-uvm", "nvidia0"))
    os.chmod(tool.path("root/dev/nvidia0"), 0o600)
    if os.geteuid() != 0:
        os.chmod(tool.path("root/dev/nvidia0"), 0)
        _, findings, _ = doctor(tool, "--quick", *root)
    else:
        os.chmod(tool.scratch.name, 0o755)
        tried = subprocess.run([tool.program, "version"], timeout=PATIENCE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               user=65534, group=65534, extra_groups=[])
        if tried.returncode:
            raise Skip("another user may not run the program")
        as_another = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        _, findings, _ = doctor(tool, "--quick", *root,
                                init=INIT.replace("child =", as_another + "child ="))
    equal(verdict(findings, "nvidia0"), "PROBLEM")
    contains(one(findings, "nvidia0")["text"], "Permission denied")


def test_driver_states(tool):
    for word, wanted in (("none", "note"), ("not-loaded", "note"), ("mismatch", "PROBLEM"),
                         ("too-old", "PROBLEM"), ("no-permission", "PROBLEM"),
                         ("revoked", "PROBLEM"), ("failed", "PROBLEM")):
        _, findings, seen = doctor(tool, "--quick", *tool.fake(2, f"driver state={word}"))
        equal((word, verdict(findings, "driver")), (word, wanted))
        equal(seen["driver"]["state"], word.upper().replace("-", "_"))


def test_driver_that_hangs(tool):
    begun = time.monotonic()
    spec = tool.fake(2, "driver hang open")
    status, findings, seen = doctor(tool, "--quick", "--wait=0.2", *spec)
    assert time.monotonic() - begun < PATIENCE / 2
    equal((status, verdict(findings, "driver"), seen["driver"]["state"]), (3, "PROBLEM", "HUNG"))


# ---- devices ----

# A script about fake:1, the verdict, and a word of the finding.
FAULTS = (
    ("gpu 1 lost", "PROBLEM", "LOST"),
    ("gpu 1 needs-reset", "PROBLEM", "QUARANTINED"),
    ("gpu 1 revoked", "PROBLEM", "REVOKED"),
    ("gpu 1 hang sample", "note", "UNKNOWN"),
    ("gpu 1 remap-failed=yes", "PROBLEM", "remap"),
    ("gpu 1 remap-pending=yes", "note", "remap"),
    ("gpu 1 recovery=reset", "PROBLEM", "recovery: RESET"),
    ("gpu 1 recovery=imex", "note", "recovery: IMEX"),
    ("gpu 1 recovery=bus-reset", "PROBLEM", "recovery: BUS_RESET"),
    ("gpu 1 recovery=23", "PROBLEM", "recovery: action 23"),
    ("gpu 1 used=100%", "PROBLEM", "not enough for a CUDA context"),
    ("gpu 1 foreign 4321 2GiB", "note", "pid 4321"),
    ("gpu 1 temperature=91 throttle=hw-thermal", "note", "HW_THERMAL"),
    ("gpu 1 mode=prohibited", "PROBLEM", "PROHIBITED"),
    ("gpu 1 mode=exclusive", "note",
     "EXCLUSIVE_PROCESS: one process at a time, so a canary and a worker exclude each other"),
    ("gpu 1 ecc-uncorrected=2", "note", "2 uncorrected"),
    ("gpu 1 mig=1g.10gb*2", "ok", "2 instances"),
    ("gpu 1 denied", None, None),
)


def hung_findings(tool, spec):
    return patiently(lambda wait: doctor(tool, "--quick", wait, *spec)[1],
                     lambda findings: "fake:1" in findings)


def is_among(wanted, word, checks):
    return any(check["verdict"] == wanted and word in check["text"] for check in checks)


def test_each_fault(tool):
    for script, wanted, word in FAULTS:
        spec = tool.fake(3, script)
        if hangs := "hang" in script:
            findings = hung_findings(tool, spec)
        else:
            _, findings, _ = doctor(tool, "--quick", "--wait=20", *spec)
        assert hangs or all(c["verdict"] == "ok" for c in findings["fake:0"]), findings["fake:0"]
        if wanted is None:
            equal(verdict(findings, "access"), "note")
            continue
        assert is_among(wanted, word, findings["fake:1"]), (script, findings["fake:1"])


# --gpu: if no GPU can be used, that is a PROBLEM; the option adds no other.
def test_gpu_must_be_usable(tool):
    for script, good in (("", True), ("gpu 1 lost", True), ("gpu * lost", False),
                         ("gpu * needs-reset", False), ("gpu * revoked", False),
                         ("gpu * fail sample 27", False), ("gpu * mode=prohibited", False),
                         ("gpu * used=100%", False), ("gpu * memory=unknown", True),
                         ("gpu 0 lost\ngpu 1 mig=1g.10gb", True),
                         ("gpu 0 lost\ngpu 1 mode=prohibited", False),
                         ("driver state=none", False), ("gpu * denied", False)):
        spec = tool.fake(2, script)
        _, findings, seen = doctor(tool, "--quick", *spec)
        status, asked, told = doctor(tool, "--quick", "--gpu", *spec)
        missing = [check for check in asked.get("GPUs", []) if check["verdict"] == "PROBLEM"]
        equal((script, len(missing), told["problems"] - seen["problems"]),
              (script, int(not good), int(not good)))
        assert good or status == 3, script


def test_gpu_must_be_visible(tool):
    root, env = fake_driver(tool, "", CUDA_VISIBLE_DEVICES="")
    equal(verdict(doctor(tool, "--quick", *root, env=env)[1], "visible devices"), "note")
    status, findings, _ = doctor(tool, "--quick", "--gpu", *root, env=env)
    equal((status, verdict(findings, "visible devices")), (3, "PROBLEM"))


def runs_on_fakes(tool):
    _, findings, _ = doctor(tool, *tool.fake(1))
    if "GPU workers" in findings and "no dispatcher" in one(findings, "GPU workers")["text"]:
        raise Skip("this version has no workers on fake devices")


# C8 C9: on each device a task, a crash, and a task of the successor.
def test_tasks_on_devices(tool):
    runs_on_fakes(tool)
    status, findings, _ = doctor(tool, *tool.fake(2))
    contains(one(findings, "GPU workers")["text"], "2 of 2")
    contains(one(findings, "GPU hard limit")["text"], "2 killed")
    contains(one(findings, "GPU canary")["text"], "2 successors")
    equal(status, 3 if all_problems(findings) else 0)


def test_tasks_beside_a_fault(tool):
    runs_on_fakes(tool)
    status, findings, _ = doctor(tool, *tool.fake(2, "gpu 1 lost"))
    equal(status, 3)
    contains(one(findings, "GPU workers")["text"], "1 of 2")
    assert any(check["group"] == "tasks" for check in findings["fake:1"]), findings["fake:1"]
    contains(one(findings, "GPU canary")["text"], "1 successor passed")


def test_canary_that_fails(tool):
    runs_on_fakes(tool)
    status, findings, _ = doctor(tool, *tool.fake(2, "gpu 1 canary=fail"))
    equal(status, 3)
    contains(one(findings, "GPU workers")["text"], "2 of 2")
    contains(one(findings, "GPU canary")["text"], "1 successor passed")
    assert any(check["group"] == "tasks" and "canary failed" in check["text"]
               for check in findings["fake:1"]), findings["fake:1"]


# ---- through the real provider and the CUDA side of workers, on fake libraries ----


def fake_driver(tool, script, **more):
    """Environment with a driver that follows a script, and a machine that has its files."""
    if not os.path.exists(os.path.join(tool.fakes, "libnvidia-ml.so.1")):
        raise Skip("no fake libnvidia-ml.so.1 was built")
    files = [f"nvidia{i}" for i in range(3)] + ["nvidiactl", "nvidia-uvm"]
    root = machine(tool, gpus=3, module=more.pop("module", "570.86.15"), files=files)
    script = tool.write("nvml.txt", "gpus 3\n" + script)
    return root, {"LD_LIBRARY_PATH": tool.fakes, "FAKE_SCRIPT": script, **more}


def test_nvml(tool):
    root, env = fake_driver(tool, "")
    status, findings, seen = doctor(tool, *root, env=env)
    equal(all_problems(findings), [])
    equal((status, seen["driver"]["state"], [device["name"] for device in seen["devices"]]),
          (0, "OK", ["gpu:0", "gpu:1", "gpu:2"]))
    contains(one(findings, "versions")["text"], "driver 570.86.15")
    contains(one(findings, "GPU workers")["text"], "3 of 3")
    contains(one(findings, "GPU canary")["text"], "3 successors")


def test_nvml_faults(tool):
    for script, name, wanted, word in (
        ("gpu 1 lost", "lost", "PROBLEM", "1 of 3 GPUs are gone"),
        ("gpu 1 denied", "access", "note", "1 of 3 GPUs cannot be opened"),
        ("driver state=mismatch", "driver", "PROBLEM", "MISMATCH"),
        ("driver state=revoked", "driver", "PROBLEM", "REVOKED"),
        ("driver state=not-loaded", "driver", "PROBLEM", "NOT_LOADED"),  # there is hardware
        ("driver hang nvmlInit_v2", "driver", "PROBLEM", "HUNG"),
        ("gpu 1 remap-failed=yes", "gpu:1", "PROBLEM", "remap"),
        ("gpu 1 recovery=reset", "gpu:1", "PROBLEM", "recovery: RESET"),
        ("gpu 1 mode=prohibited", "gpu:1", "PROBLEM", "PROHIBITED"),
    ):
        root, env = fake_driver(tool, script)
        wait = "--wait=0.3" if "hang" in script else "--wait=20"
        _, findings, _ = doctor(tool, "--quick", wait, *root, env=env)
        assert is_among(wanted, word, findings.get(name, [])), (script, findings.get(name))


def test_module_of_another_version(tool):
    root, env = fake_driver(tool, "", module="575.51.03")
    status, findings, _ = doctor(tool, "--quick", *root, env=env)
    equal((status, verdict(findings, "module")), (3, "PROBLEM"))
    contains(one(findings, "module")["text"], "575.51.03")


def test_kernels_that_fail(tool):
    root, env = fake_driver(tool, "gpu 1 fail kernel 700")
    _, findings, _ = doctor(tool, *root, env=env)
    contains(one(findings, "GPU canary")["text"], "2 successors")
    found = findings["gpu:1"]
    assert any("cudaErrorIllegalAddress" in check["text"] for check in found), found
    root, env = fake_driver(tool, "gpu 1 fail cuDevicePrimaryCtxRetain 46")
    _, findings, _ = doctor(tool, *root, env=env)
    contains(one(findings, "GPU workers")["text"], "2 of 3")
    found = findings["gpu:1"]
    assert any("cudaErrorDevicesUnavailable" in check["text"] for check in found), found


# Entry by entry, as the library reads it.
def test_visible_devices_on_gpus(tool):
    for value, wanted, word in (
        ("2,0", "ok", "allows 2 of 3"),
        ("GPU-fa4e0001", "ok", "allows 1 of 3"),
        ("1,-1,7", "ok", "allows 1 of 3"),  # the list ends there
        ("-1", "note", "allows none"),
        ("", "note", "allows none"),
        ("0,7", "PROBLEM", "entry 2, '7', matches no device"),
        ("GPU-fa4e", "PROBLEM", "matches several"),
        ("GPU-00000000,1", "PROBLEM", "entry 1"),
        ("nonsense", "PROBLEM", "'nonsense'"),
    ):
        root, env = fake_driver(tool, "", CUDA_VISIBLE_DEVICES=value)
        quick = () if wanted == "PROBLEM" else ("--quick",)
        _, findings, _ = doctor(tool, *root, *quick, env=env)
        found = findings["visible devices"]
        assert is_among(wanted, word, found), (value, found)
        if wanted == "PROBLEM":  # and it refuses it, too
            contains(one(findings, "GPU workers")["text"], "CUDA_VISIBLE_DEVICES")


def test_order_of_unlike_devices(tool):
    root, env = fake_driver(tool, "gpu 1 model=Faster", CUDA_VISIBLE_DEVICES="1")
    equal(verdict(doctor(tool, "--quick", *root, env=env)[1], "device order"), "note")
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    assert "device order" not in doctor(tool, "--quick", *root, env=env)[1]


# ---- the environment ----


def test_mps(tool):
    equal(verdict(doctor(tool, "--quick", *machine(tool))[1], "MPS"), "ok")
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": tool.path("mps")}
    contains(one(doctor(tool, "--quick", env=pipe)[1], "MPS")["text"], "no MPS server listens")
    tool.write("mps/control", "")
    contains(one(doctor(tool, "--quick", env=pipe)[1], "MPS")["text"], "MPS is on")


def test_visible_devices(tool):
    no_driver()
    equal(verdict(doctor(tool, "--quick")[1], "visible devices"), "ok")
    check = one(doctor(tool, "--quick", env={"CUDA_VISIBLE_DEVICES": ""})[1], "visible devices")
    equal(check["verdict"], "note")
    contains(check["text"], "allows none")
    check = doctor(tool, "--quick", env={"CUDA_VISIBLE_DEVICES": "0,1"})[1]["visible devices"][0]
    equal(check["verdict"], "note")  # there is none that it could mean
    contains(check["text"], "entry 1, '0', matches no device")


def test_worker_program(tool):
    for name, code in ((tool.path("nothing"), "ENOPROGRAM"), (tool.write("file", "x"), "ENOTEXEC"),
                       ("/bin/true", "ENOANSWER")):
        status, findings, _ = doctor(tool, *machine(tool), env={"GPUD_WORKER_PROGRAM": name})
        check = one(findings, "worker program")
        equal((name, status, check["verdict"]), (name, 3, "PROBLEM"))
        contains(check["text"], code)
        equal(verdict(findings, "task"), "ok")  # forked ones need it not


run(globals())
