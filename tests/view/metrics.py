# SPDX-License-Identifier: MIT
"""The verb metrics: made-up nights in Prometheus' own parser, sums, labels, size, and files."""
import datetime
import functools
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
import recount  # noqa: E402
from tool import Skip, contains, equal, run  # noqa: E402

NAMES = [name for name in nights.NIGHTS if name not in ("any", "large")]
S = 10**9
DCGM = ["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"]
MIG = ["GPU_I_PROFILE", "GPU_I_ID"]
SIZE_MOST, TIME_MOST = 64 * 1024, 0.002
packages = tempfile.TemporaryDirectory()


@functools.cache
def prometheus_parser():
    """That of Prometheus' own client, from the index where it is not installed."""
    try:
        return importlib.import_module("prometheus_client.openmetrics.parser")
    except ImportError:
        pass
    fetch = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                            "--disable-pip-version-check", "--target", packages.name,
                            "prometheus_client==0.22.1"], stderr=subprocess.PIPE, text=True)
    if fetch.returncode:
        raise Skip("no prometheus_client: " + fetch.stderr.strip().split("\n")[-1])
    sys.path.insert(0, packages.name)
    return importlib.import_module("prometheus_client.openmetrics.parser")


def written(tool, text, *args):
    status, out, err = tool.run("metrics", "--from", tool.write("night.txt", text), *args)
    equal((status, err), (0, ""))
    return out


def samples_of(tool, text, *args):
    """All samples; the parser checks names, types, order, escapes, and that each is there once."""
    families = prometheus_parser().text_string_to_metric_families(written(tool, text, *args))
    return [s for f in families for s in f.samples]


def total(samples, name, **labels):
    return sum(s.value for s in samples
               if s.name == name and all(s.labels[k] == v for k, v in labels.items()))


def test_parsed(tool):
    for name in NAMES:
        assert samples_of(tool, nights.text(name)), name


def test_uses_add_up(tool):
    """The uses of each GPU are its time since the start, and those of a recount.  [V3]"""
    for name in NAMES:
        text = nights.text(name)
        samples, wanted = samples_of(tool, text), recount.recount(text)
        span = (wanted["to"] - wanted["since"]) / S
        seconds = [s for s in samples if s.name == "gpudispatch_gpu_seconds_total"]
        equal((name, len(seconds)), (name, 7 * len(wanted["gpus"])))
        assert abs(sum(s.value for s in seconds) - span * len(wanted["gpus"])) < 1e-3, name
        for use in ("loading", "kept", "out", "unknown", "limited", "idle"):
            again = sum(g["uses"][use] for g in wanted["gpus"]) / S
            seen = total(samples, "gpudispatch_gpu_seconds_total", use=use)
            assert abs(seen - again) < 1e-3, (name, use, seen, again)
        lost = sum(g["uses"]["lost"] for g in wanted["gpus"]) / S
        assert abs(total(samples, "gpudispatch_gpu_lost_seconds_total") - lost) < 1e-3, name


def test_ends_add_up(tool):
    """Each bad end counts once, of attempts and of tasks that had none.  [V4]"""
    for name in NAMES:
        text = nights.text(name)
        samples, wanted = samples_of(tool, text), recount.recount(text)
        for outcome, n in wanted["ended_by"].items():
            equal((name, outcome, total(samples, "gpudispatch_attempts_total", outcome=outcome)),
                  (name, outcome, n))
        bad = total(samples, "gpudispatch_attempts_total")
        bad -= total(samples, "gpudispatch_attempts_total", outcome="ok")
        equal((name, bad), (name, wanted["bad"]))
        ended = {k: v for k, v in wanted["tasks_by"].items() if k != "running"}
        equal((name, total(samples, "gpudispatch_tasks_total")), (name, sum(ended.values())))


def test_labels(tool):
    """Those of DCGM's exporter, and no task, batch or user."""
    allowed = {*DCGM, *MIG, "class", "outcome", "reason", "use", "le", "version",
               "gpudispatch_gpu_state"}
    for name in NAMES:
        for s in samples_of(tool, nights.text(name)):
            assert set(s.labels) <= allowed, s
            if s.name.startswith("gpudispatch_gpu_"):
                assert set(DCGM) <= set(s.labels), s
    mig = [s.labels for s in samples_of(tool, nights.text("mig"))
           if s.name == "gpudispatch_gpu_state" and "GPU_I_ID" in s.labels]
    assert mig and all(labels["UUID"].startswith("GPU-") and labels["GPU_I_ID"].isdigit()
                       for labels in mig), mig
    small = samples_of(tool, nights.text("small"))
    devices = {s.labels["device"] for s in small if s.name == "gpudispatch_gpu_state"}
    equal(devices, {f"nvidia{i}" for i in range(8)})
    states = [s for s in small if s.name == "gpudispatch_gpu_state" and s.value]
    equal(len(states), 8)


def classes(n, names=None):
    """A recording of 8 GPUs and many classes, each with tasks of four outcomes."""
    start = 1794596400 * S
    rows = ["records\t1\tada-box"]
    rows += [f"gpu\tgpu:{g}\tGPU-6995493e-d1c4-4a51-9c3e-7b0f1e2d000{g}\t{g}\tNVIDIA H200\t"
             f"00000000:1{g}:00.0\t\t" for g in range(8)]
    for c in range(n):
        name = names[c] if names else f"class-{c:02}"
        rows.append(f"shape\t{c + 1}\t{name}\t1\t1 GPU")
        rows.append(f"batch\t{c + 1}\tb{c}\t{start}\t\t0\t\t100\t0\t0\t80\t0\t"
                    f"ok=10,error=5,crashed=3,timeout=2\t21\t{c + 1}")
        for i, outcome in enumerate(["ok"] * 10 + ["error"] * 5 + ["crashed"] * 3 +
                                    ["timeout"] * 2):
            at = start + (i * 40 + c) * S
            rows.append(f"attempt\t{c + 1}.{i + 1}\t1\t{c + 1}\tgpu:{c % 8}\t{start}\t{at}\t"
                        f"{at + (i + 1) * 5 * S}\t{outcome}\t0\t\t")
    return "\n".join([*rows, f"now\t{start + 3600 * S}", ""]).encode()


def test_many_classes(tool):
    """32 classes and `other`, in 64 KiB."""
    text = classes(40)
    out = written(tool, text)
    assert len(out) <= SIZE_MOST, len(out)
    samples = samples_of(tool, text)
    seen = {s.labels["class"] for s in samples if s.name == "gpudispatch_tasks_total"}
    equal(seen, {f"class-{c:02}" for c in range(32)} | {"other"})
    equal(total(samples, "gpudispatch_tasks_total"), 40 * 20)
    equal(total(samples, "gpudispatch_tasks_total", **{"class": "other"}), 8 * 20)
    seen = {s.labels["class"] for s in samples if s.name == "gpudispatch_task_run_seconds_sum"}
    equal(len(seen), 9)
    equal(total(samples, "gpudispatch_task_run_seconds_count"), 40 * 20)


def test_held(tool):
    """Tasks that a person holds wait, too, for a reason of their own."""
    samples = samples_of(tool, nights.text("waiting"))
    equal(total(samples, "gpudispatch_waiting_tasks"), 50)
    equal(total(samples, "gpudispatch_waiting_tasks", reason="held"), 7)


def test_turns(tool):
    """Tasks that wait for their turn are held by a limit of their batch."""
    samples = samples_of(tool, nights.text("at-once"))
    equal(total(samples, "gpudispatch_waiting_tasks"), 6)
    equal(total(samples, "gpudispatch_waiting_tasks", reason="limit"), 6)


def cpu_time(*command):
    """The least of some runs, in s."""
    least = 1e9
    for _ in range(40):
        ran = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(ran.pid, 0)
        ran.returncode = os.waitstatus_to_exitcode(status)
        equal(ran.returncode, 0)
        least = min(least, used.ru_utime + used.ru_stime)
    return least


def test_time(tool):
    """2 ms beyond the start of a program; a build that is not optimized may take 6."""
    if tool.sanitizer != "none":
        raise Skip("a sanitizer is slower")
    path = tool.write("night.txt", classes(32))
    took = cpu_time(tool.program, "metrics", "--from", path)
    empty = cpu_time(tool.program, "version")
    assert took - empty < 3 * TIME_MOST, (took, empty)


def test_hostile_names(tool):
    """Names of any bytes make no label, no line and no second row.  [V5]"""
    names = ['a",evil="1', "b\\\\", "c\\n# TYPE x counter\\nx 1", "d\\x1b[31m", "d\\x02[31m", "d}",
             "\u202eabc", "other", "é" * 40]
    out = written(tool, classes(len(names), names))
    assert not any(c in out for c in ("\x1b", "\u202e", "\n# TYPE x", "\r")), out
    samples = samples_of(tool, classes(len(names), names))
    assert all(set(s.labels) <= {"class", "outcome"} for s in samples
               if s.name == "gpudispatch_tasks_total"), samples
    seen = {s.labels["class"] for s in samples if s.name == "gpudispatch_tasks_total"}
    assert {'a",evil="1', "d}", "d\ufffd[31m"} <= seen, seen
    equal(total(samples, "gpudispatch_tasks_total", **{"class": "d\ufffd[31m"}), 40)
    equal(total(samples, "gpudispatch_tasks_total"), 20 * len(names))


def test_promtool(tool):
    """The rules, and each night in the parser of Prometheus itself, which demands a time."""
    if not shutil.which("promtool"):
        raise Skip("no promtool")
    rules = os.path.join(tool.root, "docs/monitoring/alerts.yml")
    checks = [("check", "rules", rules)]
    for name in NAMES:
        text = re.sub(r"^([^#].*)$", r"\1 1794596400", written(tool, nights.text(name)), flags=re.M)
        checks.append(("tsdb", "create-blocks-from", "openmetrics",
                       tool.write(name + ".om", text), tool.path(name)))
    for check in checks:
        ended = subprocess.run(["promtool", *check], capture_output=True, text=True)
        equal((check, ended.returncode, ended.stderr), (check, 0, ""))


def test_monitoring_files(tool):
    """Alert rules and dashboard are those that tools/make_monitoring.py makes."""
    made = subprocess.run([sys.executable, os.path.join(tool.root, "tools/make_monitoring.py"),
                           "--check"], capture_output=True, text=True)
    equal((made.returncode, made.stdout + made.stderr), (0, ""))


def test_file(tool):
    path = tool.path("gpu.prom")
    equal(tool.run("metrics", "--from", tool.write("night.txt", nights.text("small")), "--file",
                   path), (0, "", ""))
    with open(path) as f:
        contains(f.read(), "\n# EOF\n")
    equal(os.stat(path).st_mode & 0o777, 0o644)
    equal([n for n in os.listdir(tool.scratch.name) if n.startswith("gpu.prom.")], [])
    status, _, err = tool.run("metrics", "--from", tool.path("night.txt"), "--file",
                              tool.path("none/gpu.prom"))
    equal(status, 1)
    contains(err, "No such file or directory")


def test_job_map(tool):
    """A file for each GPU that runs a task, and none of another one."""
    folder = tool.path("map")
    os.mkdir(folder)
    night = tool.write("night.txt", nights.text("small"))
    equal(tool.run("metrics", "--from", night, "--job-map", folder), (0, "", ""))
    seen = {name: pathlib.Path(folder, name).read_text() for name in os.listdir(folder)}
    running = {s.labels["gpu"] for s in samples_of(tool, nights.text("small"))
               if s.name == "gpudispatch_gpu_state" and s.value
               and s.labels["gpudispatch_gpu_state"] == "run"}
    equal(set(seen), running)
    for text in seen.values():
        batch, _, number = text.partition(".")
        assert batch.isdigit() and number[:-1].isdigit() and number[-1] == "\n", text
    mig = tool.path("mig")
    os.mkdir(mig)
    text = nights.text("mig")
    begun = re.search(rb"^attempt\t(\S+)\t.*\tMIG-\S+\t\d+\t(\d+)\t", text, re.M)
    at = datetime.datetime.fromtimestamp(int(begun[2]) // S + 1, datetime.timezone.utc)
    equal(tool.run("metrics", "--from", tool.write("mig.txt", text), "--job-map", mig, "--at",
                   at.isoformat()), (0, "", ""))
    seen = {name: pathlib.Path(mig, name).read_text() for name in os.listdir(mig)}
    contains(seen.values(), begun[1].decode() + "\n")
    assert any(re.fullmatch(r"1\.\d", name) for name in seen), seen


def test_wrong_usage(tool):
    night = tool.write("night.txt", nights.text("small"))
    for args, text in ((("--every", "5s"), "--every needs --file or --job-map"),
                       (("--from", night, "--every", "5s", "--file", "x"), "without --from"),
                       (("--file", "x", "--every", "10ms"), "expected 1s or more"),
                       (("--at", "02:17"), "--at needs --from FILE")):
        status, _, err = tool.run("metrics", *args)
        equal(status, 2)
        contains(err, text)
    status, _, err = tool.run("metrics", "--from", night, "--job-map", tool.path("none"))
    equal(status, 1)
    contains(err, "No such file or directory")


run(globals(), suite="view")
