#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the traces of a folder: their output, and what each is about.

usage: traces.py GPUDISPATCH_SIM FOLDER [--rewrite | --only NAME]

NAME.jsonl is a trace (lib/sim/trace.h), NAME.out the output that it must have, but for counters of
the plan's own work.  The function NAME below says what must be true of it, whatever else is in the
output.  --rewrite replaces the outputs by the current ones, which the author then reviews as a
diff.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

class Run:
    """The output of a trace, and the complaints about it."""

    def __init__(self, text):
        lines = [json.loads(line) for line in text.splitlines()]
        self.summary = lines[-1]
        self.tasks = {x["task"]: x for x in lines if "outcome" in x}
        self.promised = [x for x in lines if "promise" in x]
        self.changes = [x for x in lines if "state" in x]
        self.complaints = []

    def want(self, what, wanted, got):
        if wanted != got:
            self.complaints.append(f"{what} {got!r}, not {wanted!r}")

    def most(self, what, bound, got):
        if not 0 <= got <= bound:
            self.complaints.append(f"{what} {got!r}, at most {bound!r}")

    def start(self, task, at=None, on=None):
        """Returns when the task started; checks that, and its devices, if the caller names them."""
        got = self.tasks.get(task, {})
        if at is not None:
            self.want(f"{task} starts at", at, got.get("start"))
        if on is not None:
            self.want(f"{task} runs on", on, sorted(got.get("devices", [])))
        return got.get("start", float("inf"))

    def starts(self, prefix):
        return [x.get("start") for name, x in self.tasks.items() if name.startswith(prefix)]

    def outcome(self, task, wanted):
        self.want(f"{task} ends", wanted, self.tasks.get(task, {}).get("outcome"))

    def outcomes(self, **wanted):
        self.want("outcomes", wanted, self.summary["outcomes"])

    def state(self, device, state, at, of=None):
        """The device enters the state at this time."""
        known = [(x["t"], x.get("class")) for x in self.changes
                 if (x["device"], x["state"]) == (device, state)]
        if (at, of) not in known:
            self.complaints.append(f"{device} is not {state} ({of}) from {at}, but {known}")

    def never(self, device, state):
        self.want(f"{device} is {state} at", [],
                  [x["t"] for x in self.changes if (x["device"], x["state"]) == (device, state)])

    def promises(self, task):
        return [(x["t"], x["promise"], x["why"]) for x in self.promised if x["task"] == task]

    def kept_promises(self):
        """S2: a task starts by its last promise."""
        for name, promise in {x["task"]: x["promise"] for x in self.promised}.items():
            task = self.tasks[name]
            if promise is not None and task["attempt"] == 1:  # a later one has another place
                self.most(f"{name} starts at", promise, task["start"])

    def few_scans(self):
        """S5: little is examined that cannot start."""
        starts = self.summary["wait"].get("all", {"n": 0})["n"]
        if starts >= 100:
            self.most("scans", 3 * starts, self.summary["scans"])

    def at_once(self, device):
        """Returns the most tasks that ran at a time on the device."""
        steps = []
        for x in self.tasks.values():
            if device in x["devices"]:
                steps += [(x["start"], 1), (x["end"], -1)]
        most = now = 0
        for _, step in sorted(steps):
            now += step
            most = max(most, now)
        return most


# ---- what each scenario is about ----

def busy_client_keeps_draining_alive(r):
    r.state("g0", "draining", 70, "busy")
    cold = r.start("cold")
    r.most("cold starts at", 70 + 3 + 5 + 30, cold)
    r.want("tasks of busy that start while it drains", [],
           [t for t in r.starts("busy") if 70 < t < cold])
    r.outcomes(success=41)


def blocked_load_blocks_no_other_device(r):
    r.state("g1", "booting", 2, "small")
    r.start("small", 12, ["g1"])
    r.start("big", 135, ["g0"])


def foreign_memory_falls_during_evict(r):
    r.state("g0", "unloading", 40, "a")
    r.state("g0", "idle", 45)
    r.state("g0", "booting", 60, "b")
    r.start("b", 90)


def endless_narrow_one_wide(r):
    r.start("wide", 38)
    r.want("promises", [(30.5, 42, "first")], r.promises("wide"))


def endless_narrow_one_wide_without(r):
    r.start("wide", 38)
    r.want("promises", [], r.promises("wide"))


def endless_narrow_one_wide_24h(r):
    r.start("wide", 38)


def hundred_thousand_blocked_in_front(r):
    r.outcomes(success=100002)
    r.want("longest wait of small", 0, r.summary["wait"]["1"]["max"])


def burst_128_on_unused_memory(r):
    r.outcomes(success=128)
    r.want("at a time", [2, 2], [r.at_once("g0"), r.at_once("g1")])
    r.want("makespan", 320, r.summary["makespan"])


def sixteen_halves_on_eight_at_once(r):
    r.want("starts", [0] * 16, r.starts("half"))
    r.want("at a time", [2] * 8, [r.at_once(f"g{i}") for i in range(8)])


def half_free_twice_is_no_whole(r):
    r.start("whole", 10, ["g0"])


def ten_tenths_return_to_full(r):
    r.want("at a time", 10, r.at_once("g0"))
    r.start("a.10", 10)
    r.start("whole-a", 20)
    r.want("starts", [25] * 10, r.starts("b"))
    r.start("whole-b", 28)


def five_batches_same_cost(r):
    for i, batch in enumerate("abcde"):
        r.want(f"starts of {batch}", sorted(2 * list(range(20 * i, 20 * i + 20))),
               sorted(r.starts(batch)))
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as one:
        one.write('{"devices": [{"name": "g0"}, {"name": "g1"}], "write": []}\n'
                  '{"at": 0, "task": "a", "memory_gib": 10, "run_s": 1, "limit_s": 2, '
                  '"repeat": 200}\n')
        one.flush()
        same = json.loads(sim(one.name).stdout)["scans"]
    r.most("scans", same + 10, r.summary["scans"])


def sixteen_gpu_twelve_cpu(r):
    r.want("starts", [0] * 12, r.starts("cpu"))
    r.want("starts", [0] * 8 + [10] * 8, sorted(r.starts("gpu")))


def four_gpu_three_cpu_variants(r):
    r.want("starts", [0] * 7 + [10], sorted(r.starts("t")))
    r.want("on devices", 5, sum(1 for x in r.tasks.values() if x["devices"]))


def two_models_abab_max_wait(r):
    r.outcomes(success=200)
    r.most("longest wait", 300 + 10 + 5 + 60, r.summary["wait"]["all"]["max"])
    r.most("boots", 8, r.summary["boots"])


def third_model_does_not_fit(r):
    r.outcomes(success=123)
    r.most("c waits", 120 + 10 + 5 + 60, r.start("c.0") - 10)
    r.most("longest wait", 120 + 10 + 5 + 60, r.summary["wait"]["all"]["max"])


def pinned_all_refused_with_numbers(r):
    r.outcome("refused", "refused")
    r.outcome("refused-too", "refused")
    r.start("beside", 2)
    r.start("waits", 165)


def device_lost_under_promise(r):
    r.want("promises", [(1, 40, "first"), (5, None, "device")], r.promises("wide")[:2])
    r.start("lost", 50, ["g1"])
    r.want("attempts", 2, r.tasks["lost"]["attempt"])
    r.start("wide", 65, ["g0", "g1"])


def device_gone_ends_its_tasks(r):
    r.outcome("runs", "crashed")
    r.outcome("waits", "no_worker")
    r.outcome("wide", "no_worker")
    r.start("elsewhere", 6, ["g1"])


def boot_fails_three_times(r):
    r.outcomes(success=10, no_worker=4)
    r.want("boots", 3, r.summary["boots"])
    r.want("end of bad", [33] * 3, [r.tasks[f"bad.{i}"]["end"] for i in range(3)])
    r.outcome("bad-late", "no_worker")
    r.want("good waits", [0] * 10, [r.start(f"good.{i}") - 1 - 5 * i for i in range(10)])


def boot_fails_twice(r):
    r.start("t", 33)


def seat_reused_by_other_class(r):
    r.outcomes(success=4)
    r.state("g0", "booting", 22, "b")
    r.state("g0", "booting", 39, "c")
    r.want("starts", [10, 15, 32, 40], sorted(r.starts("")))


def cancel_during_boot(r):
    r.outcome("slow", "cancelled")
    r.state("g0", "unloading", 20, "slow")
    r.start("other", 32)


def no_gpu_machine(r):
    r.outcomes(success=2, refused=2)
    r.start("either", 0, [])
    r.outcome("gpu", "refused")
    r.outcome("too-many-cpus", "refused")


def limit_ends_early_head_not_later(r):
    r.start("wide", 50)
    r.start("narrow", 60)


def limit_ends_early_head_not_later_by_promise(r):
    r.start("narrow", 44)
    r.start("wide", 84)


def external_and_resident_share_a_device(r):
    r.want("starts", [1, 5, 9, 13], r.starts("model"))
    r.start("third", 45)
    r.start("late", 45)
    r.want("boots", 0, r.summary["boots"])


def two_wide_heads_no_hold_deadlock(r):
    r.outcomes(success=6)
    r.start("ab", 20)
    r.start("bc", 30)
    r.start("ca", 40)


def restart_with_blocked_queue(r):
    r.outcomes(success=7)
    r.start("wide.0", 40)
    r.start("wide.1", 45)
    r.want("starts", [10, 15, 20, 25, 30], r.starts("narrow"))


def idle_unloads_after_keep_alive(r):
    r.state("g0", "unloading", 35, "a")
    r.state("g0", "unloading", 118, "b")
    r.never("g2", "unloading")
    r.never("g3", "unloading")


def keep_alive_races_new_task(r):
    r.start("second", 35)
    r.state("g0", "unloading", 60, "a")
    r.state("g0", "booting", 64, "a")
    r.start("third", 74)


def device_drained(r):
    r.state("g0", "unloading", 10, "a")
    r.state("g0", "drained", 12)
    r.start("a.1", 60)
    r.start("b.1", 50)
    r.never("g1", "unloading")


def class_orders(r):
    r.start("second", 30)
    r.state("g0", "unloading", 40, "a")
    r.start("third", 70)
    r.state("g0", "unloading", 100, "a")
    r.state("g0", "booting", 110, "a")
    r.start("fourth", 150)


def foreign_use_is_passed_over(r):
    r.start("whole.0", 1, ["g2"])
    r.start("named", 2, ["g0"])
    r.start("whole.1", 20, ["g1"])


def strict_first_stops_only_its_devices(r):
    r.start("other", 2)
    r.start("cpu", 2)
    r.start("wide", 10)
    r.start("behind", 20)


def higher_priority_renews_promise(r):
    r.want("promises", [(1, 20, "first"), (2, None, "order"), (10, 30, "first")],
           r.promises("first"))
    r.start("urgent", 10)
    r.start("first", 20)


def second_worker_beyond_a_boot(r):
    r.want("starts", [0, 5, 10, 15], r.starts("few"))
    r.state("g1", "booting", 100, "m")
    r.want("starts", [100, 105, 110, 115, 120, 120, 125], sorted(r.starts("many")))
    r.want("boots", 1, r.summary["boots"])


def min_workers_are_kept(r):
    r.state("g0", "booting", 0, "m")
    r.state("g1", "booting", 0, "m")
    r.start("crashes", 55)
    r.outcome("crashes", "crashed")
    r.want("boots", 4, r.summary["boots"])
    r.never("g0", "unloading")
    r.never("g1", "unloading")


def warm_worker_sooner_than_a_boot(r):
    r.want("starts", [1, 6, 11], sorted(r.starts("m")))
    r.start("small", 0, ["h0"])
    r.start("large", 2, ["g0"])
    r.want("boots", 0, r.summary["boots"])


def keep_alive_behind_a_head(r):
    r.start("wide", 100)
    r.start("a", 105)
    r.want("boots", 1, r.summary["boots"])


def transient_worker_of_another_need(r):
    r.start("all", 5)
    r.start("part", 26)
    r.start("part-again", 40)
    r.want("boots", 2, r.summary["boots"])


def eviction_behind_a_head(r):
    r.start("wide", 1000)
    r.want("boots", 1, r.summary["boots"])


def idle_workers_of_a_full_class(r):
    r.outcomes(success=6)
    r.start("ab", 21)
    r.start("bc", 33)
    r.start("ca", 43)


def impossible_load_holds_nothing(r):
    r.start("t", 2)
    r.outcome("refused", "refused")


def older_tasks_of_the_victim_come_first(r):
    r.want("boots", 1, r.summary["boots"])
    r.want("starts", [5 + 100 * i for i in range(6)], r.starts("a"))
    r.start("whole", 606)


# ---- what the reader refuses ----

WORLD = '{"devices": [{"name": "g0"}], "classes": {"m": {"resident": true, "boot_s": 1}}}'
TASK = '{"at": 0, "task": "a", '
REFUSED = {
    "no_json": ([WORLD, "{"], ":2: "),
    "no_world": (["# nothing"], ": the trace has no world"),
    "type": ([WORLD, TASK + '"run_s": "9"}'], ':2: "run_s" is not a number of seconds'),
    "negative": ([WORLD, TASK + '"limit_s": -1}'], ':2: "limit_s" is not a number of seconds'),
    "unknown_field": ([WORLD, TASK + '"runs": 9}'], ':2: "runs" is no field'),
    "no_at": ([WORLD, "", '{"task": "a"}'], ':3: "at" is missing'),
    "earlier": ([WORLD, '{"at": 5, "task": "a"}', '{"at": 4, "task": "b"}'],
                ':3: "at" is earlier'),
    "twice": ([WORLD, TASK + '"run_s": 1}', TASK + '"run_s": 1}'],
              ':3: "a" is the id of two tasks'),
    "twice_by_repeat": ([WORLD, TASK + '"repeat": 3}', '{"at": 0, "task": "a.2"}'],
                        ':3: "a.2" is the id of two tasks'),
    "unknown_class": ([WORLD, TASK + '"class": "n"}'], ':2: "class" names n, which is unknown'),
    "unknown_device": ([WORLD, '{"at": 0, "device": "g1", "state": "offline"}'],
                       ':2: "device" names g1, which is unknown'),
    "unknown_place": ([WORLD, TASK + '"on": ["g7"]}'], ':2: "on" names g7, which is unknown'),
    "unknown_task": ([WORLD, '{"at": 0, "cancel": "a"}'],
                     ':2: "cancel" names a, which is unknown'),
    "unknown_state": ([WORLD, '{"at": 0, "device": "g0", "state": "off"}'],
                      ':2: "state" is not one of offline, online,'),
    "own_request": ([WORLD, TASK + '"class": "m", "devices": 2}'], ':2: "class" is resident'),
    "share_of_two": ([WORLD, TASK + '"devices": 2, "share": 0.5}'], ':2: "share" is of a single'),
    "too_wide": ([WORLD, TASK + '"devices": 17}'], ':2: "devices" of one task'),
    "five_variants": ([WORLD, TASK + '"variants": [{}, {}, {}, {}, {}]}'],
                      ':2: "variants" are not 1 to 4'),
    "batch": ([WORLD, '{"at": 0, "batch": "b", "exclusive": true}'],
              ':2: "batch" is not supported'),
    "task_of_batch": ([WORLD, TASK + '"batch": "b"}'], ':2: "batch" is not supported'),
    "no_event": ([WORLD, '{"at": 0}'], ":2: is no task, cancel, device"),
    "policy": (['{"policy": {"queue": "lifo"}}'], ':1: "queue" is not one of backfill, strict'),
    "compute": (['{"devices": [{"name": "g0", "cc": "nine"}]}'], ':1: "cc" is no compute'),
    "warm_external": (['{"devices": [{"name": "g0", "resident": "e"}], "classes": {"e": {}}}'],
                      ':1: "resident" names a class that is not resident'),
}


# ---- the test ----

def record(name, passed, text):
    path = os.environ.get("GPUD_TEST_RESULTS")
    if path:
        with open(path, "a") as out:
            out.write(f"{'pass' if passed else 'fail'} traces/{name}\n")
    if not passed:
        print(f"{name}: {text}")
    return not passed


def sim(*args):
    return subprocess.run([SIM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def difference(wanted, got):
    """Returns the first line that differs."""
    a, b = wanted.splitlines(), got.splitlines()
    n = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return (f"line {n + 1}: wanted {a[n] if n < len(a) else 'nothing'}\n"
            f"line {n + 1}: got    {b[n] if n < len(b) else 'nothing'}")


def without_work(text):
    """A faster plan may examine less: that is no other output."""
    return re.sub(r', "decisions": \d+, "scans": \d+\}$', "}", text.rstrip()) + "\n"


def check_output(path, text, rewrite):
    golden = path.with_suffix(".out")
    text = without_work(text)
    if rewrite:
        golden.write_text(text)
    if not golden.exists():
        return f"{golden.name} is missing: --rewrite"
    return "" if golden.read_text() == text else difference(golden.read_text(), text)


def check_scenario(path, rewrite):
    name = path.stem
    done = sim(path)
    if done.returncode or name not in globals():
        return record(name, False, done.stderr or "it has no function in traces.py")
    run = Run(done.stdout)
    globals()[name](run)
    run.kept_promises()
    run.few_scans()
    if run.complaints:
        return record(name, False, "; ".join(run.complaints))
    text = check_output(path, done.stdout, rewrite)
    return record(name, not text, text)


def check_refused(name, lines, wanted, scratch):
    path = pathlib.Path(scratch, name + ".jsonl")
    path.write_text("\n".join(lines) + "\n")
    done = sim(path)
    passed = done.returncode == 1 and not done.stdout and wanted in done.stderr and \
        done.stderr.startswith(f"{path}:")
    return record("refused_" + name, passed, f"wanted {wanted}, got {done.stderr}{done.stdout}")


def main():
    failed = 0
    only = sys.argv[4] if sys.argv[3:4] == ["--only"] else "*"
    for path in sorted(pathlib.Path(sys.argv[2]).glob(only + ".jsonl")):
        failed += check_scenario(path, "--rewrite" in sys.argv[3:])
    if only != "*":
        return 1 if failed else 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, (lines, wanted) in REFUSED.items():
            failed += check_refused(name, lines, wanted, scratch)
        timed = pathlib.Path(scratch, "timed.jsonl")
        timed.write_text(WORLD + "\n" + TASK + '"run_s": 1}\n')
        failed += record("time", "ns_per_decision" in sim("--time", timed).stdout and
                         "ns_per_decision" not in sim(timed).stdout, "--time")
    return 1 if failed else 0


SIM = os.path.abspath(sys.argv[1])
sys.exit(main())
