#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the same jobs on Python's pools and on the library, in one run, in turns, on the same CPUs.

usage: compare.py BUILD_FOLDER [--place split|one|free] [--workers N] [--rounds N] [--json]

split: the host on the first CPU, the workers on the second; one: everything on the first; free:
nothing is pinned beyond what `taskset` allows.  Needs Python 3.8 and its standard library; xargs
and GNU parallel are measured where they are installed.

Each system is a process of its own that reads lines and does one job per line (jobs.c lists the
jobs).  So all systems are timed alike, and one that hangs can be killed.  A figure is the median of
the rounds, a ratio the median of the rounds' ratios.  Exit status: 0 when all was measured,
whatever the figures; 1 when the library failed at a job.
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
WATCHDOG = 20.0  # seconds for one job
PATIENCE = 4.0   # seconds until a system that says nothing about a death counts as hung

# ---- what the workers of the pools do ----

killed_at = None


def begin(cpu, shared):
    global killed_at
    killed_at = shared
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})


def noop(data):
    return data[:1]


def noop_many(chunk):
    return [noop(data) for data in chunk]


def echo(data):
    return data


def hang():
    time.sleep(1000)


def die():
    killed_at.value = time.monotonic()
    os.kill(os.getpid(), signal.SIGKILL)


# ---- the systems: noop, small, echo, give, crash, hang, close ----

class Pool:
    """multiprocessing.Pool, tasks one by one."""
    chunk = 1

    def __init__(self, workers, cpu):
        self.shared = multiprocessing.Value("d", 0.0)
        self.pool = multiprocessing.Pool(workers, begin, (cpu, self.shared))

    def noop(self):
        self.pool.apply(noop, (b"n",))

    def small(self, n):
        assert len(self.pool.map(noop, [b"n"] * n, self.chunk)) == n

    def echo(self, payload):
        return self.pool.apply(echo, (payload,))

    def give(self, payload):
        self.pool.apply(noop, (payload,))

    def crash(self):
        try:
            self.pool.apply_async(die).get(PATIENCE)
        except multiprocessing.TimeoutError:
            return "hangs"
        return "?"

    def hang(self, limit):
        try:
            self.pool.apply_async(hang).get(limit)
        except multiprocessing.TimeoutError:
            return "worker lost"  # the caller is told; the task goes on and keeps its worker
        return "?"

    def close(self):
        self.pool.terminate()


class Chunks(Pool):
    """The same in chunks of 64."""
    chunk = 64


class Executor:
    """concurrent.futures.ProcessPoolExecutor."""

    def __init__(self, workers, cpu):
        self.shared = multiprocessing.Value("d", 0.0)
        self.pool = concurrent.futures.ProcessPoolExecutor(workers, initializer=begin,
                                                           initargs=(cpu, self.shared))

    def noop(self):
        self.pool.submit(noop, b"n").result()

    def small(self, n):
        assert len(list(self.pool.map(noop, [b"n"] * n))) == n

    def echo(self, payload):
        return self.pool.submit(echo, payload).result()

    def give(self, payload):
        self.pool.submit(noop, payload).result()

    def crash(self):
        other = self.pool.submit(hang)
        try:
            self.pool.submit(die).result(PATIENCE)
        except concurrent.futures.process.BrokenProcessPool:
            took = (time.monotonic() - self.shared.value) * 1e3
            try:
                other.result(PATIENCE)
            except concurrent.futures.process.BrokenProcessPool:
                return "%.3f all fail" % took  # and the executor takes no task any more
        except concurrent.futures.TimeoutError:
            return "hangs"
        return "?"

    def hang(self, limit):
        try:
            self.pool.submit(hang).result(limit)
        except concurrent.futures.TimeoutError:
            return "worker lost"
        return "?"

    def close(self):
        self.pool.shutdown(wait=False, cancel_futures=True)


class OursInPython:
    """The library through ctypes."""

    def __init__(self, workers, cpu, library):
        sys.path.insert(0, str(HERE))
        import ours
        self.ours = ours.Ours(library, workers, cpu)
        self.small, self.noop = self.ours.small, self.ours.noop
        self.echo, self.give = self.ours.echo, self.ours.give
        self.close = self.ours.close

    def crash(self):
        start = time.monotonic()
        self.ours.crash()
        return "%.3f" % ((time.monotonic() - start) * 1e3)

    def hang(self, limit):
        start = time.monotonic()
        self.ours.hang(limit)
        return "%.3f" % ((time.monotonic() - start - limit) * 1e3)


PEERS = {"pool": Pool, "chunks": Chunks, "executor": Executor, "ctypes": OursInPython}

# ---- one system, told by lines what to do ----


def job(system, words):
    """Does one job; returns what is to be printed."""
    numbers = [int(word) for word in words[1:]]
    if words[0] == "crash":
        return system.crash()
    if words[0] == "hang":
        return system.hang(numbers[0] / 1e3)
    if words[0] == "trip":
        took = []
        for _ in range(numbers[0]):
            start = time.perf_counter()
            system.noop()
            took.append(time.perf_counter() - start)
        return "%.3f" % (statistics.median(took) * 1e6)
    start = time.perf_counter()
    if words[0] == "small":
        system.small(numbers[0])
        return "%.0f" % (numbers[0] / (time.perf_counter() - start))
    payload = b"n" * numbers[1]
    start = time.perf_counter()
    for _ in range(numbers[0]):
        if words[0] == "echo":
            assert len(system.echo(payload)) == numbers[1]
        else:
            system.give(payload)
    both = 2 if words[0] == "echo" else 1
    return "%.4f" % (both * numbers[0] * numbers[1] / (time.perf_counter() - start) / 1e9)


def serve(name, workers, host_cpu, worker_cpu, library):
    """The main program of a child: one job a line."""
    if name == "ctypes":
        system = OursInPython(workers, worker_cpu, library)  # gpud_init comes first
    if host_cpu >= 0:
        os.sched_setaffinity(0, {host_cpu})  # threads and workers made from here on inherit it
    if name == "ctypes":
        system.ours.create()
    else:
        system = PEERS[name](workers, worker_cpu)
    system.noop()
    for line in sys.stdin:
        print(job(system, line.split()), flush=True)
    system.close()
    sys.stdout.flush()
    os._exit(0)  # a pool with a hung worker would wait for it


# ---- the driver ----

class Side:
    """A system in a process group of its own."""

    def __init__(self, name, command):
        self.name, self.command, self.child = name, command, None

    def ask(self, line, watchdog=WATCHDOG):
        """Gives the answer as text: a number, "hangs", or "failed"."""
        if self.child is None:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True, bufsize=1,
                                          start_new_session=True)
        try:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass
        ready, _, _ = select.select([self.child.stdout], [], [], watchdog)
        answer = self.child.stdout.readline().strip() if ready else "hangs"
        if answer in ("", "hangs"):
            self.end()
        return answer or "failed"

    def end(self):
        if self.child is None:
            return
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()
        self.child = None


# name, unit, what it means; the jobs of each side; goal: (over whom, at least)
ROWS = (
    ("trip_1cpu", "us", "round trip of a task that does nothing, everything on one CPU",
     {"ours": "trip 5000", "ctypes": "trip 2000", "pool": "trip 300", "executor": "trip 300"},
     ("executor", 30)),
    ("trip", "us", "the same as placed",
     {"ours": "trip 2000", "ctypes": "trip 1000", "pool": "trip 300", "executor": "trip 300"},
     None),
    ("small", "tasks/s", "tasks that do nothing",
     {"ours": "small 400000", "ctypes": "small 30000", "pool": "small 8000",
      "chunks": "small 200000", "executor": "small 2500"}, (("executor", 800), ("chunks", 3.5))),
    ("many", "tasks/s", "the same; ours by submit_many, 64 at a time",
     {"ours": "many 400000", "chunks": "small 200000"}, ("chunks", 3.5)),
    ("echo_1m", "GB/s", "1 MiB to a worker and back, both ways counted",
     {"ours": "echo 200 %d" % MIB, "ctypes": "echo 100 %d" % MIB, "pool": "echo 50 %d" % MIB,
      "executor": "echo 50 %d" % MIB}, None),
    ("give_16m", "GB/s", "16 MiB to a worker, a byte back; ours writes them into a lent buffer",
     {"ours": "give 20 %d" % (16 * MIB), "ctypes": "give 20 %d" % (16 * MIB),
      "pool": "give 6 %d" % (16 * MIB), "executor": "give 6 %d" % (16 * MIB)}, ("best pool", 4)),
    ("crash", "ms", "kill -9 of a worker inside a task, until its caller knows",
     {"ours": "crash", "ctypes": "crash", "pool": "crash", "executor": "crash"}, None),
    ("hang", "ms",
     "a task that never ends, limit 200 ms and for ours 50 ms grace: how late it ends",
     {"ours": "hang 200", "ctypes": "hang 200", "pool": "hang 200", "executor": "hang 200"}, None),
)
ON_ONE_CPU = ("trip_1cpu",)  # whatever the place
ONCE = ("crash", "hang")  # these end a system, or leave it with less: a fresh one each time


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def measure(placed, alone, rounds):
    """Gives {row: {side: answer of each round}}.  `placed` are the systems as asked for, `alone`
    those on one CPU."""
    answers = {}
    for key, _unit, _what, jobs, _goal in ROWS:
        sides = alone if key in ON_ONE_CPU else placed
        answers[key] = {name: [] for name in jobs}
        for _ in range(min(rounds, 3) if key in ONCE else rounds):
            for name, line in jobs.items():
                answers[key][name].append(sides[name].ask(line))
                if key in ONCE:
                    sides[name].end()
        if key in ONCE or key in ON_ONE_CPU:
            for side in sides.values():
                side.end()
    return answers


def settle(texts):
    """The median of the figures; the words where there are no figures."""
    figures = [number(text) for text in texts]
    if None not in figures:
        return statistics.median(figures)
    return next(text for text, figure in zip(texts, figures) if figure is None)


def ratio(key, ours, theirs):
    """How many times better ours is: the median of the rounds' ratios; None where there is nothing
    to divide."""
    pairs = [(number(mine), number(other)) for mine, other in zip(ours, theirs)]
    if not pairs or not all(mine and other for mine, other in pairs):
        return None
    less_is_better = key in ("trip", "trip_1cpu", "crash", "hang")
    return statistics.median(other / mine if less_is_better else mine / other
                             for mine, other in pairs)


def goals(key, row, goal):
    """Yields (over whom, ratio, at least)."""
    for whom, least in (goal if goal and isinstance(goal[0], tuple) else (goal,) if goal else ()):
        names = ("pool", "executor") if whom == "best pool" else (whom,)
        ratios = [ratio(key, row.get("ours", []), row.get(name, [])) for name in names]
        yield whom, min((r for r in ratios if r is not None), default=None), least


def jobs_per_second(command, jobs, cpus):
    """A process per job, for scale."""
    start = time.perf_counter()
    lines = "".join("%d\n" % i for i in range(jobs))
    subprocess.run(command, input=lines, text=True, stdout=subprocess.DEVNULL, check=True,
                   preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    return jobs / (time.perf_counter() - start)


def processes_per_job(workers, cpus):
    true, found = shutil.which("true"), {}
    if shutil.which("xargs"):
        found["xargs -P %d" % workers] = jobs_per_second(
            ["xargs", "-n", "1", "-P", str(workers), true], 1000, cpus)
    if shutil.which("parallel"):
        found["parallel -j %d" % workers] = jobs_per_second(
            ["parallel", "-j", str(workers), true], 200, cpus)
    return found


def show(figure):
    return "-" if figure is None else "%.4g" % figure if isinstance(figure, float) else figure


def print_table(answers, result, others, place, workers):
    print("place %s, %d workers; medians\n" % (place, workers))
    print("%-9s %-8s %12s %12s %12s %12s %14s  %s" % (
        "job", "unit", "ours", "ctypes", "Pool", "chunks of 64", "Executor", "what"))
    columns = ("ours", "ctypes", "pool", "chunks", "executor")
    for key, unit, what, _jobs, _goal in ROWS:
        row = result[key]
        print("%-9s %-8s %12s %12s %12s %12s %14s  %s" % (
            (key, unit) + tuple(show(row.get(n)) for n in columns) + (what,)))
    print("\n%-9s %-24s %9s %9s  met" % ("job", "ours over", "ratio", "goal"))
    for key, _unit, _what, _jobs, goal in ROWS:
        for whom, value, least in goals(key, answers[key], goal):
            met = "-" if value is None else "yes" if value >= least else "no"
            print("%-9s %-24s %9s %9s  %s" % (key, whom, show(value), ">= %g" % least, met))
    for name, rate in others.items():
        print("\nA process per job: %s: %.0f jobs/s" % (name, rate))


def systems(args, place):
    """Makes a side for each system; none is started before its first job."""
    numbers = [str(args.workers)] + [str(cpu) for cpu in place]
    library = str(args.build.resolve() / "lib" / "libgpudispatch.so")
    sides = {"ours": Side("ours", [str(args.build / "bench" / "gpudispatch-jobs")] + numbers)}
    serve_one = [sys.executable, str(HERE / "compare.py"), "--serve"]
    for name in PEERS:
        sides[name] = Side(name, serve_one + [name] + numbers + [library])
    return sides


def main():
    parser = argparse.ArgumentParser(description="Compares the library with Python's pools.")
    parser.add_argument("build", type=pathlib.Path, help="the build folder (release)")
    parser.add_argument("--place", choices=("split", "one", "free"), default="split")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if args.place == "split" and len(cpus) < 2:
        parser.error("split needs two CPUs")
    places = {"split": (cpus[0], cpus[-1]), "one": (cpus[0], cpus[0]), "free": (-1, -1)}
    placed, alone = systems(args, places[args.place]), systems(args, places["one"])
    try:
        answers = measure(placed, alone, args.rounds)
    finally:
        for side in list(placed.values()) + list(alone.values()):
            side.end()
    result = {key: {name: settle(texts) for name, texts in row.items()}
              for key, row in answers.items()}
    others = processes_per_job(args.workers, set(cpus))
    if args.json:
        ratios = {"%s_over_%s" % (key, whom.replace(" ", "_")): {"ratio": value, "goal": least}
                  for key, _u, _w, _j, goal in ROWS
                  for whom, value, least in goals(key, answers[key], goal)}
        print(json.dumps({"place": args.place, "workers": args.workers, "rounds": args.rounds,
                          "result": result, "ratios": ratios, "jobs_per_second": others},
                         indent=2))
    else:
        print_table(answers, result, others, args.place, args.workers)
    return 0 if all(isinstance(row["ours"], float) for row in result.values()) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], *(int(word) for word in sys.argv[3:6]), sys.argv[6])
    else:
        sys.exit(main())
