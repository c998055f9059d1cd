#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the examples of one file as a new user meets them: builds each with the line in its
comment, runs it and checks its output.

usage: examples.py BUILD [CASE...]        installs BUILD in a place that is not its prefix
       examples.py --installed [CASE...]  the installed library that pkg-config finds
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
MOST_LINES = {"hello.c": 30}  # of each; the others
FEWER_THAN = 100
PACKAGES = {"cc": "gcc", "c++": "g++"}
PATIENCE = 120  # seconds, for any one thing on a busy machine
LAST_64_BIT_PRIME = 18446744073709551557


class Wrong(Exception):
    pass


class Missing(Exception):
    pass


def wrong_unless(condition, what):
    if not condition:
        raise Wrong(what)


def files():
    return sorted([*SOURCE.glob("*.c"), *SOURCE.glob("*.cpp"), *SOURCE.glob("*.py")])


def build_line(file):
    """The one line of its comment that compiles it."""
    lines = [line.strip(" */\n") for line in file.read_text().splitlines()[:20]]
    found = [line for line in lines if re.match(r"c(c|\+\+) .*\b" + re.escape(file.name), line)]
    wrong_unless(len(found) == 1, f"{file.name} has {len(found)} lines that build it")
    return found[0]


class Place:
    """A directory with all examples, built or to be built, and how they find the library."""

    def __init__(self, where, environment):
        self.where, self.environment = where, environment

    def run(self, command, status=0, text=""):
        """Returns the command's stdout and stderr.  Its exit status must be `status`."""
        ran = subprocess.run(["sh", "-c", command], cwd=self.where, env=self.environment,
                             input=text, text=True, timeout=PATIENCE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wrong_unless(ran.returncode == status, f"{command}\nexits {ran.returncode}, not {status}:\n"
                                               f"{ran.stdout}{ran.stderr}")
        return ran.stdout, ran.stderr

    def lines(self, command, status=0, text=""):
        return self.run(command, status, text)[0].splitlines()

    def start(self, *command, **pipes):
        return subprocess.Popen(command, cwd=self.where, env=self.environment, text=True, **pipes)

    def build(self, file):
        compiler = build_line(file).split()[0]
        if not shutil.which(compiler):
            raise Missing(f"needs the package {PACKAGES[compiler]}")
        said = "".join(self.run(build_line(file)))
        wrong_unless(not said, f"{build_line(file)}\nprints:\n{said}")


def expect(lines, *patterns):
    """Each line is one of the patterns, each pattern is one line, in any order."""
    rest = list(lines)
    for pattern in patterns:
        fits = [line for line in rest if re.fullmatch(pattern, line)]
        wrong_unless(fits, f"no line is {pattern!r} in\n" + "\n".join(lines))
        rest.remove(fits[0])
    wrong_unless(not rest, f"more than expected: {rest}")


# ---- one for each ----


def hello(place):
    expect(place.lines("./hello"), *(f"hello {n}" for n in range(1, 5)))


def timeout(place):
    expect(place.lines("./timeout"), r"quick +SUCCESS +PROCESS +all 5 steps",
           r"polite +TIMEOUT +PROCESS +\d+ steps, then the limit",
           r"stubborn +TIMEOUT +HARD .*killed by signal 9 \(SIGKILL\)",
           r"waiting +TIMEOUT +QUEUED .*", r"workers killed: 1")


def retry(place):
    expect(place.lines("./retry"), r"good +SUCCESS after 1 attempt",
           r"shaky +SUCCESS after 3 attempts: .*status 7.*status 7",
           r"broken +CRASHED after 3 attempts: (.*signal 6 \(SIGABRT\)){3}",
           r" +the worker's last words: assertion failed: weights != NULL",
           r"refused +ERROR +after 1 attempt: no such customer",
           r"workers lost 5, attempts repeated 4")


def batching(place):
    *failed, last = place.lines("./batching")
    expect(failed, "input 13: ERROR, unlucky")
    counted = re.fullmatch(r"(\d+) of (\d+) right, in (\d+) calls of up to 8", last)
    right, of, calls = counted.groups()
    wrong_unless((right, of) == ("39", "40") and 5 <= int(calls) < 40, last)


def progress(place):
    for _attempt in range(5):  # a line may find both workers at the beginning of a film
        out, line = place.run("./progress")
        expect(out.splitlines(), "23 good, 1 failed")
        wrong_unless("24/24 done, 1 failed" in line.splitlines()[-1],
                     f"the end is missing in\n{line}")
        if re.search(r"^\d+/24 done, .*\| cpu:[01] film \d+ [1-9]\d*%", line, flags=re.M):
            return
    raise Wrong(f"no worker at work in\n{line}")


def ask(port, n):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        s.sendall(b"%d\n" % n)
        return s.makefile().readline().strip()


def server(place):
    process = place.start("./server", stdout=subprocess.PIPE)
    try:
        port = int(re.fullmatch(r"port (\d+)\n", process.stdout.readline()).group(1))
        asked = [8633, 60, 97, 1000003 * 1000033, LAST_64_BIT_PRIME] * 6
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(lambda n: ask(port, n), asked))
        for n, answer in zip(asked, answers):
            factors = {8633: "89", 60: "2", 97: "97", 1000003 * 1000033: "1000003"}
            wanted = factors.get(n, "TIMEOUT exceeded its time limit of 1.000 s (task_limit)")
            wrong_unless(answer == wanted, f"{n} is answered with {answer!r}, not {wanted!r}")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=PATIENCE)[0]
        wrong_unless((process.returncode, rest) == (0, f"{len(asked)} requests\n"),
                     f"ends {process.returncode}: {rest}")
    finally:
        process.kill()


def epoll(place):
    process = place.start("./epoll", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdin.write("first\n")
        process.stdin.flush()
        first = process.stdout.readline()  # while stdin is open
        wrong_unless(first == "5 first\n", first)
        numbers = "".join(f"{n}\n" for n in range(300))
        rest, _ = process.communicate(numbers + "no newline", timeout=PATIENCE)
        expect(rest.splitlines(), "10 no newline", *(f"{len(str(n))} {n}" for n in range(300)))
        wrong_unless(process.returncode == 0, f"exits {process.returncode}")
    finally:
        process.kill()
    wrong_unless("must be a pipe" in place.run("./epoll < epoll", status=1)[1],
                 "a file as stdin is not refused")


def plugin_host(place):
    expect(place.lines("$(pkg-config --variable=worker_program gpudispatch) ./plugin.so"),
           r"\./plugin\.so: in order")
    counts("./plugin_host", place)


def counts(program, place):
    """The two programs that use plugin.c."""
    expect(place.lines(f"{program} ./plugin.so 'ca(t|r)$' ./two ./none ./missing", 1),
           r"2 \./two", r"0 \./none", r"\./missing: ERROR No such file or directory")
    expect(place.lines(f"{program} ./plugin.so cat ./two"), r"2 \./two")
    out, bad = place.run(f"{program} ./plugin.so 'ca(t' ./two", status=1)
    wrong_unless("NO_WORKER" in out and "cannot start: " in bad, f"a bad pattern gives {out}{bad}")


def plugin_missing(place):
    for program, status in (("./plugin_host", 2), ("python3 ctypes_batch.py", 1)):
        wrong_unless("No such file" in place.run(f"{program} ./nothing.so cat ./two", status)[1],
                     f"{program} without a plugin")


def ctypes_batch(place):
    counts("python3 ctypes_batch.py", place)


def asyncio_host(place):
    """The command in its comment prints the lines in its comment.

    There, " ..." stands for any rest of a line.  A relative directory of the library works, too.
    """
    text = (SOURCE / "asyncio_host.py").read_text()
    command = re.search(r"^python3 asyncio_host.py .*", text, flags=re.M).group()
    wanted = re.search(r"^It prints .*\n\n((?:    .*\n)+)", text, flags=re.M).group(1).splitlines()
    patterns = [re.escape(line.strip()).replace(r"\ \.\.\.", ".*") for line in wanted]
    wrong_unless(len(patterns) == 4, f"the comment has {wanted}, not four lines")
    libraries = place.environment.get("LD_LIBRARY_PATH")
    prefixes = [""]
    if libraries:
        prefixes.append(f"LD_LIBRARY_PATH={os.path.relpath(libraries, place.where)} ")
    for prefix in prefixes:
        lines = place.lines(prefix + command)
        wrong_unless(len(lines) == 4 and all(map(re.fullmatch, patterns, lines)),
                     f"{lines}, not {wanted}")


def device_sets(place):
    for devices, name in (("", "cpu"), ("cpu:4", "cpu"), ("fake:4", "fake")):
        for _attempt in range(20):  # the second worker may be ready too late
            lines = place.lines(f"./device_sets {devices}")
            if len({re.search(r"worker \d", line).group() for line in lines}) == 2:
                break
        for thousands in range(1, 7):
            n = 1000 * thousands
            first = rf"0\.\.{n // 2 - 1}"
            workers = rf"(?:0: {name}:0 {first}, {name}:1 |1: {name}:2 {first}, {name}:3 )"
            halves = rf"by worker {workers}{n // 2}\.\.{n - 1}"
            whole = rf"sum 0\.\.{n - 1} = {n * (n - 1) // 2} {halves}"
            wrong_unless(any(re.fullmatch(whole, line) for line in lines), f"{n} is not in {lines}")
        wrong_unless(len({re.search(r"worker \d", line).group() for line in lines}) == 2,
                     f"one worker has done all: {lines}")
    wrong_unless("expected a multiple of 2" in place.run("./device_sets cpu:3", status=1)[1],
                 "three devices are not refused")


def mixed(place):
    expect(place.lines("./mixed"), "shrink: 40 done", "label: 40 done", "sum of 40 labels: 230")


def models(place):
    expect(place.lines("./models"), *(f"{name}: 100 of 100 answers right"
                                      for name in ("double", "triple", "square")))


def jobs(place):
    eight = ",".join(f"fake:{i}" for i in range(8))
    lines = place.lines("./jobs")
    wrong_unless(len(lines) == 4, f"not four lines: {lines}")
    for line in (rf"sleep 0.8: SUCCESS on {eight}", r"sleep 0.1: SUCCESS on a CPU",
                 r"exit 3: ERROR on fake:\d: exited with status 3",
                 r"sleep 60; exit 0: TIMEOUT on fake:\d: exceeded its time limit of 1\.000 s .*"):
        wrong_unless(any(re.fullmatch(line, given) for given in lines), f"no {line} in {lines}")


def cxx(place):
    if not (place.where / "cxx").exists() and not shutil.which("c++"):
        raise Missing("needs the package g++")
    expect(place.lines("./cxx"), r'"dispatch" has 8 letters', r'"" ERROR 1: an empty word',
           r'"super\w+" ERROR 1: too long')


# ---- tinybatch ----


def check_summary(place, name, **wanted):
    found = json.loads((place.where / name).read_text())
    wanted = dict(error=0, timeout=0, crashed=0, cancelled=0, retried=0) | wanted
    wrong_unless(found == wanted, f"{name}: {found}")


def tinybatch(place):
    numbers = "".join(f"{n}\n" for n in range(1500))
    out, _ = place.run("./tinybatch -j 3 -s summary 'echo $((LINE * 2))'", text=numbers)
    wrong_unless(sorted(map(int, out.split())) == [2 * n for n in range(1500)],
                 "not each number doubled, once")
    check_summary(place, "summary", lines=1500, success=1500)


def tinybatch_failures(place):
    marker = f"sleep 9{os.getpid()}"  # nobody else's
    mark = os.fsencode(marker.replace(" ", "\0") + "\0")
    lines = f"echo good\nexit 3\n{marker} & {marker}\necho whole; kill $$\necho last"
    out, told = place.run("./tinybatch -t 2 -r 1 -s summary.failures", status=1, text=lines)
    expect(out.splitlines(), "good", "whole", "last")
    expect(told.splitlines(), "line 2: ERROR, .* returned 3: exit 3",
           "line 3: TIMEOUT, .*attempt 2: .*", "line 4: ERROR, .* returned 143: .*")
    check_summary(place, "summary.failures", lines=5, success=2, error=2, timeout=1, retried=3)
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            wrong_unless(mark not in (directory / "cmdline").read_bytes(),
                         "what a late command started still runs")
        except OSError:
            pass


def tinybatch_interrupt(place):
    """SIGINT: the running line completes, the waiting one does not start, stdin may stay open."""
    for name in ("begun", "gate"):
        os.mkfifo(place.where / name)
    # The first line may start before the second is submitted.
    for _attempt in range(5):
        if interrupted(place):
            return
    raise Wrong("the second line is always refused")


def interrupted(place):
    """False: the second line came too late."""
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    process = place.start("./tinybatch", "-j", "1", "-s", "summary.interrupt", **pipes)
    try:
        process.stdin.write("echo > begun; cat gate\necho never\n")
        process.stdin.flush()
        (place.where / "begun").read_text()
        process.send_signal(signal.SIGINT)
        told = process.stderr.readline()
        late = "takes no more tasks" in told
        wrong_unless(late or told.startswith("line 2: CANCELLED"), told)
        (place.where / "gate").write_text("open\n")
        wrong_unless(process.stdout.read() == "open\n" and process.wait(PATIENCE) == 1,
                     f"exits {process.returncode}")
        if not late:
            check_summary(place, "summary.interrupt", lines=2, success=1, cancelled=1)
        return not late
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def tinybatch_progress(place):
    """On a terminal there is a progress line."""
    try:
        ours, theirs = pty.openpty()
    except OSError as e:
        raise Missing(f"no terminal can be made here: {e}") from e
    shown = []
    reader = threading.Thread(target=lambda: drain(ours, shown))
    reader.start()
    process = place.start("./tinybatch", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=theirs)
    os.close(theirs)
    process.communicate("echo 1\necho 2\nexit 1\n", timeout=PATIENCE)
    reader.join()
    os.close(ours)
    text = b"".join(shown).decode()
    progressed = re.search(r"3 of 3, [\d.]+/s, [\d.]+ s left", text)
    wrong_unless(progressed and "line 3: ERROR" in text, f"the terminal shows {text!r}")


def drain(terminal, shown):
    try:
        while piece := os.read(terminal, 4096):
            shown.append(piece)
    except OSError:  # the other side is closed
        pass


def tinybatch_usage(place):
    for arguments, word in (("-x", "usage: "), ("-j many", "many"),
                            ("-s /nowhere/summary", "No such file"), ("-t never", "task_limit")):
        out, told = place.run(f"./tinybatch {arguments}", status=2)
        wrong_unless(word in told and not out, f"{arguments} gives {told}")


def short(place):
    """Each example keeps to its number of lines, has a case here and a link in README.md."""
    tested = {case.__name__ for case in CASES}
    for file in files():
        lines = len(file.read_text().splitlines())
        wrong_unless(lines <= MOST_LINES.get(file.name, FEWER_THAN - 1),
                     f"{file.name} has {lines} lines")
        wrong_unless(file.stem in tested or file.stem in ("plugin", "worker"),
                     f"{file.name} has no case here")
        wrong_unless(f"({file.name})" in (SOURCE / "README.md").read_text(),
                     f"README.md does not name {file.name}")


CASES = [server, progress, tinybatch_failures, tinybatch, hello, timeout, retry, batching, epoll,
         plugin_host, ctypes_batch, asyncio_host, plugin_missing, device_sets, jobs, mixed, models,
         cxx, tinybatch_interrupt, tinybatch_progress, tinybatch_usage, short]


# ---- the whole ----


def clean_environment():
    left_out = ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS")
    return {name: value for name, value in os.environ.items()
            if not name.startswith("GPUD_") and name not in left_out}


def install(build, to):
    """Installs BUILD in another place than its prefix.  Returns the environment to use it there."""
    command = ["meson", "install", "-C", build, "--no-rebuild", "--quiet",
               "--tags", "runtime,devel", "--destdir", str(to)]
    ran = subprocess.run(command, text=True, timeout=PATIENCE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wrong_unless(ran.returncode == 0, f"{shlex.join(command)}\n{ran.stdout}")
    directory, = (file.parent for file in to.rglob("gpudispatch.pc"))
    return dict(clean_environment(), LD_LIBRARY_PATH=str(directory.parent),
                PKG_CONFIG_PATH=str(directory), PKG_CONFIG_SYSROOT_DIR=str(to),
                PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")


def attempt(function, argument):
    """Returns the verdict in one word, and the reason."""
    try:
        function(argument)
        return "pass", ""
    except Missing as reason:
        return "skip", f": {reason}"
    except (Wrong, OSError, ValueError, AttributeError, subprocess.SubprocessError) as reason:
        return "FAIL", f": {type(reason).__name__}: {reason}"


def run_all(place, wanted):
    """Builds all examples, two at a time, then runs the cases.  Returns whether all pass."""
    sources = [file for file in files() if file.suffix != ".py"]
    for file in files():
        shutil.copy(file, place.where)
    (place.where / "two").write_text("a cat\na dog\nanother cat\n")
    (place.where / "none").write_text("nothing\n")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        built = pool.map(functools.partial(attempt, place.build), sources)
        results = list(zip([f"build_{file.name}" for file in sources], built))
    cases = [case for case in CASES if not wanted or case.__name__ in wanted]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ran = pool.map(lambda case: attempt(case, place), cases)
        results += zip([case.__name__ for case in cases], ran)
    for name, (result, why) in results:
        print(f"{result} {name}{why}")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            for name, (result, why) in results:
                out.write(f"{result.lower()} examples/{name}{why if result == 'skip' else ''}\n")
    return all(result != "FAIL" for _, (result, _) in results)


def main(library, *wanted):
    with tempfile.TemporaryDirectory(prefix="examples-") as scratch:
        scratch = pathlib.Path(scratch).resolve()
        installed = library == "--installed"
        environment = clean_environment() if installed else install(library, scratch / "moved")
        where = scratch / "work"
        where.mkdir()
        return 0 if run_all(Place(where, environment), wanted) else 1


if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.exit(main(*sys.argv[1:]))
