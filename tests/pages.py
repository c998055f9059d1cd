#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the pages of docs/start and docs/howto: writes their programs, runs their commands, compares
the output.

usage: pages.py [--build DIRECTORY] (PAGE | FOLDER)...

With --build the pages use the library of a build tree, else the installed one that pkg-config and
the loader find.  Of a FOLDER every page is taken; a file in it that is none is a failure.

Each page has a directory of its own.  A block "```LANGUAGE NAME" is the file NAME, "```sh" are
commands, "```text" is the output of the commands before it, in any order; in it "..." stands for
anything, and alone on a line for any lines.  A file that is data for another program (YAML, JSON, a
Dockerfile, a unit of systemd) goes through its checker, too.

The last line of a page in a folder "howto" is one of

    Run by the tests.
    Not run: needs X; checked: Y.

X is free text.  Nothing of such a page is run: each block goes through the checker that its name or
language selects, and Y lists exactly these checkers, with commas between them (CHECKERS below).

"<!-- needs: gdb, ptrace -->" at the top of a page lists programs, and conditions of the table
CONDITIONS, without which the page is skipped.  It is also skipped where the program of one of its
checkers is missing.  "<!-- only with: CONDITION -->" and "<!-- always -->" enclose a part that is
left out where the condition does not hold.

The durable queue of a page has a state directory of its own, and eight fake GPUs by the file
"config" (QUEUE below), which the page may replace.  Its agent is stopped at the end, and so are the
commands that it still runs.
Exit status: 0; 1 if a page fails; 77 if all are skipped.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

PATIENCE = 120  # seconds for one block of commands, or one run of a checker
WARNINGS = "-std=gnu11 -Wall -Wextra -Werror"
CXX_WARNINGS = "-std=c++17 -Wall -Wextra -Werror"
SKIPPED = 77
QUEUE = "devices = fake:8\ncpus = 16\n"
NO_AGENT = 4  # exit status of gpudispatch where no agent runs
ENDS = {"run": "run", "checked": "only checked", "skipped": "skipped", "failed": "failed"}
# The Debian package of a program, where it has another name.
PACKAGES = {"c++": "g++", "go": "golang-go", "pgrep": "procps", "systemd-analyze": "systemd"}
INSTRUCTIONS = set("ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER "
                   "ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split())


class Missing(Exception):
    """The page needs something that this machine does not have."""


class Wrong(Exception):
    """The page does not keep its word."""


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def missing_program(program, variables):
    if not shutil.which(program, path=variables["PATH"]):
        return f"needs the package {PACKAGES.get(program, program)}"
    return None


def no_ptrace(_variables):
    """Where a debugger may not even attach to its own child."""
    import ctypes
    libc, seize = ctypes.CDLL(None, use_errno=True), 0x4206
    child = subprocess.Popen(["sleep", str(PATIENCE)])
    refused = libc.ptrace(seize, child.pid, None, None)
    child.kill()
    child.wait()
    return f"a debugger may not attach ({os.strerror(ctypes.get_errno())})" if refused else None


def no_core_dumps(_variables):
    """Where a crash leaves no file in the directory of the process."""
    import resource
    pattern = read("/proc/sys/kernel/core_pattern")
    if not pattern.startswith("core"):
        return f"core dumps go elsewhere (kernel.core_pattern is {pattern})"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        return "core dumps are limited (ulimit -H -c)"
    return None


def no_package(variables):
    """Where python3 has no extension of the package."""
    found = subprocess.run(["python3", "-c", "import gpudispatch._core"], env=variables,
                           stderr=subprocess.DEVNULL)
    return "needs the Python package: -Dpython=enabled" if found.returncode else None


def no_torch(variables):
    found = subprocess.run(["python3", "-c", "import torch"], env=variables,
                           stderr=subprocess.DEVNULL)
    return "needs PyTorch" if found.returncode else None


def no_queue(variables):
    """Where the program was built without the queue."""
    gone = missing_program("gpudispatch", variables)
    if gone:
        return gone
    status = start(["gpudispatch", "agent", "status"], None, variables)[1]
    return None if status == NO_AGENT else "needs the durable queue: -Dqueue=enabled"


CONDITIONS = {"ptrace": no_ptrace, "core dumps": no_core_dumps, "durable queue": no_queue,
              "gpudispatch for Python": no_package, "PyTorch": no_torch}


def blocks(text):
    """Language, name and contents of each block of code."""
    found = re.findall(r"^```([\w+-]+)(?: (\S+))?\n(.*?)^```$", text, flags=re.M | re.S)
    if text.count("```") != 2 * len(found):
        raise Wrong("a block of code without a language or an end, or indented")
    return found


def environment(build, scratch):
    """That of a user who has installed what lies in the build tree."""
    found = {name: value for name, value in os.environ.items()
             if not name.startswith(("GPUD_", "GPUDISPATCH_")) and name != "XDG_RUNTIME_DIR"}
    found["GPUDISPATCH_STATE"] = f"{scratch}/.queue"
    found["GPUDISPATCH_CONFIG"] = f"{scratch}/config"
    pathlib.Path(scratch, "config").write_text(QUEUE)
    if build:
        found["GPUD_AGENT_PROGRAM"] = str(build / "queue/gpudispatch-agent")
        headers = pathlib.Path(__file__).resolve().parent.parent / "include"
        pathlib.Path(scratch, "gpudispatch.pc").write_text(
            f"worker_program={build}/lib/gpudispatch-worker\n"
            "Name: gpudispatch\nDescription: not installed\nVersion: 0\n"
            f"Cflags: -I{headers}\nLibs: -L{build}/lib -lgpudispatch\n")
        for name, folder in (("PKG_CONFIG_PATH", scratch), ("LD_LIBRARY_PATH", build / "lib"),
                             ("PATH", build / "tools/gpudispatch"),
                             ("PYTHONPATH", build / "python")):
            found[name] = os.pathsep.join([str(folder), *filter(None, [found.get(name)])])
    return found


def start(command, where, variables):
    """Output and status of a command.  If it takes too long, its whole group is killed."""
    process = subprocess.Popen(command, cwd=where, env=variables, text=True, errors="replace",
                               start_new_session=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=PATIENCE)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"(killed after {PATIENCE} s)\n", process.returncode


# ---- pages that are run ----


def differs(wanted, said):
    """The first difference between these lines; None when there is none."""
    left = [line.rstrip() for line in said.splitlines()]
    for line in wanted.splitlines():
        if line == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")))
        match = next((i for i, have in enumerate(left) if pattern.fullmatch(have)), None)
        if match is None:
            return f"is not printed: {line}"
        del left[match]
    if left and "..." not in wanted.splitlines():
        return f"is printed as well: {left[0]}"
    return None


def stop_agent(variables):
    """Ends the agent of the page's queue, and its commands."""
    if pathlib.Path(variables["GPUDISPATCH_STATE"]).exists():
        start(["gpudispatch", "agent", "stop", "--cancel"], None, variables)


def with_warnings(commands):
    """The same commands, with which compilers find more."""
    commands = re.sub(r"^cc ", f"${{CC:-cc}} {WARNINGS} ", commands, flags=re.M)
    return re.sub(r"^c\+\+ ", f"${{CXX:-c++}} {CXX_WARNINGS} ", commands, flags=re.M)


def run(found, scratch, variables):
    """Runs the blocks of a page; says what it has done."""
    said, shown, count = "", "", 0
    for language, name, contents in found:
        if name:
            file = pathlib.Path(scratch, name)
            file.write_text(contents)
            if is_data(language, name):
                refuse(checker_of(language, name), file, variables)
        elif language == "sh":
            shown, count = contents, count + 1
            said, status = start(["sh", "-eu", "-c", with_warnings(contents)], scratch, variables)
            if status:
                raise Wrong(f"{shown}exits {status} and prints:\n{said}")
        elif language == "text":
            wrong = differs(contents, said)
            if wrong:
                raise Wrong(f"{shown}{wrong}\nIt prints:\n{said}")
        else:
            raise Wrong(f"a block of {language} without a name")
    if not count:
        raise Wrong("there are no commands")
    return f"{count} blocks of commands do what it says"


# ---- pages that are only checked ----


def command(*words, needs=None):
    """A checker that is a command on the block's file."""
    def check(path, variables):
        gone = missing_program(needs or words[0], variables)
        if gone:
            raise Missing(gone)
        said, status = start([*words, path.name], path.parent, variables)
        return said or f"exit status {status}" if status else None
    return check


def check_c(path, variables):
    """C by the suffixes .c and .h, else C++."""
    is_c = path.suffix in (".c", ".h")
    gone = None if is_c or variables.get("CXX") else missing_program("c++", variables)
    if gone:
        raise Missing(gone)
    compiler = "cc -x c" if is_c else "c++ -x c++"
    line = with_warnings(f'{compiler} -fsyntax-only $(pkg-config --cflags gpudispatch) "$0"')
    said, status = start(["sh", "-eu", "-c", line, path.name], path.parent, variables)
    return said if status else None


def check_unit(path, variables):
    """A unit of systemd.  The programs that it starts need not be there.  An unknown key is a
    failure, for which systemd-analyze alone does not exit with an error."""
    gone = missing_program("systemd-analyze", variables)
    if gone:
        raise Missing(gone)
    path.write_text(re.sub(r"^(Exec\w+=[-@:+!]*)\S+", r"\1/bin/true", path.read_text(), flags=re.M))
    verify = ["systemd-analyze", "verify", "--man=no", str(path)]
    said, status = start(verify, path.parent, variables)
    return said if status or path.name in said else None


def check_json(path, _variables):
    try:
        json.loads(path.read_text())
    except ValueError as e:
        return str(e)
    return None


def check_yaml(path, _variables):
    try:
        import yaml
    except ImportError as e:
        raise Missing("needs the package python3-yaml") from e
    try:
        list(yaml.safe_load_all(path.read_text()))
    except yaml.YAMLError as e:
        return str(e)
    return None


def check_rust(path, variables):
    kind = "bin" if re.search(r"^fn main\(", path.read_text(), flags=re.M) else "lib"
    flags = ("--edition=2021", "-Dwarnings", f"--crate-type={kind}", "--emit=metadata")
    return command("rustc", *flags)(path, variables)


def check_go(path, variables):
    caches = {name: str(path.parent / name.lower()) for name in ("GOCACHE", "GOPATH")}
    return command("go", "vet")(path, dict(variables, **caches))


def check_dockerfile(path, _variables):
    lines = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M)
    for line in re.sub(r"\\\n", " ", lines).splitlines():
        if line.split() and line.split()[0].upper() not in INSTRUCTIONS:
            return f"unknown instruction: {line.split()[0]}"
    return None


CHECKERS = {
    "sh -n": command("sh", "-n"),
    "cc -fsyntax-only": check_c,
    "systemd-analyze verify": check_unit,
    "JSON": check_json,
    "YAML": check_yaml,
    "rustc": check_rust,
    "go vet": check_go,
    "python -m py_compile": command(sys.executable, "-m", "py_compile"),
    "dockerfile": check_dockerfile,
}
# By the name of a block, then by its language; that also has the suffix of a block without a name.
CHECKED_NAMES = (
    (r".*\.(?:service|socket|timer|target)", "systemd-analyze verify"),
    (r"(?:.*\.)?Dockerfile(?:\..*)?", "dockerfile"),
)
CHECKED_LANGUAGES = {
    "sh": ("sh -n", ".sh"),
    "c": ("cc -fsyntax-only", ".c"),
    "cpp": ("cc -fsyntax-only", ".cpp"),
    "c++": ("cc -fsyntax-only", ".cpp"),
    "json": ("JSON", ".json"),
    "yaml": ("YAML", ".yaml"),
    "rust": ("rustc", ".rs"),
    "rs": ("rustc", ".rs"),
    "go": ("go vet", ".go"),
    "python": ("python -m py_compile", ".py"),
    "dockerfile": ("dockerfile", ".dockerfile"),
}


def checker_of(language, name):
    for pattern, checker in CHECKED_NAMES:
        if re.fullmatch(pattern, name):
            return checker
    if language not in CHECKED_LANGUAGES:
        raise Wrong(f"a block of {language}, which no checker reads")
    return CHECKED_LANGUAGES[language][0]


def is_data(language, name):
    """Whether a block is for another program than the commands of its page."""
    data = ("dockerfile", "JSON", "systemd-analyze verify", "YAML")
    named = any(re.fullmatch(pattern, name) for pattern, _ in CHECKED_NAMES)
    return named or CHECKED_LANGUAGES.get(language, ("",))[0] in data


def refuse(checker, file, variables):
    """Fails the page if the checker finds a fault."""
    wrong = CHECKERS[checker](file, variables)
    if wrong:
        raise Wrong(f"{checker} refuses {file.name}:\n{wrong}")


def file_of(number, language, name):
    return name or f"block{number}{CHECKED_LANGUAGES[language][1]}"


def check(found, listed, scratch, variables):
    """Checks the blocks of a page by exactly the checkers that it lists; says what it has done."""
    used = [checker_of(language, name) for language, name, _ in found]
    if sorted(set(used)) != sorted(listed):
        raise Wrong(f"the last line lists {', '.join(listed)}; "
                    f"the blocks need {', '.join(sorted(set(used))) or 'none'}")
    files, gone = [], []
    for number, (language, name, contents) in enumerate(found):
        files.append(pathlib.Path(scratch, file_of(number, language, name)))
        files[-1].write_text(contents)
    for checker, file in zip(used, files):
        try:
            refuse(checker, file, variables)
        except Missing as e:
            gone.append(str(e))
    if gone:
        raise Missing(gone[0])
    return f"{len(used)} blocks pass {', '.join(listed)}"


# ---- all pages ----


def checkers_listed(page, text):
    """Those of the last line, where it says that the page is not run; None where it is."""
    last = text.rstrip("\n").rsplit("\n", 1)[-1]
    listed = re.fullmatch(r"Not run: needs \S.*; checked: ([^;]+)\.", last)
    if listed:
        return listed.group(1).split(", ")
    if page.resolve().parent.name == "howto" and last != "Run by the tests.":
        raise Wrong('the last line is neither "Run by the tests." nor '
                    '"Not run: needs X; checked: Y."')
    return None


def possible_parts(text, variables):
    """The page without the parts whose condition does not hold."""
    def part(found):
        return "" if CONDITIONS[found.group(1)](variables) else found.group(2)
    return re.sub(r"^<!-- only with: ([^\n]*) -->$(.*?)^<!-- always -->$", part, text,
                  flags=re.M | re.S)


def needs(text, variables):
    """Why the page must be skipped, or None."""
    for line in re.findall(r"^<!-- needs: (.*) -->$", text, flags=re.M):
        for need in line.split(", "):
            if need in CONDITIONS:
                gone = CONDITIONS[need](variables)
            else:
                gone = missing_program(need, variables)
            if gone:
                return gone
    return None


def judge(page, build):
    """What has become of a page (run, checked, skipped, failed), and why."""
    text = page.read_text()
    with tempfile.TemporaryDirectory(prefix="page-") as scratch:
        variables = environment(build, scratch)
        text = possible_parts(text, variables)
        try:
            found, listed = blocks(text), checkers_listed(page, text)
            gone = needs(text, variables)
            if gone:
                raise Missing(gone)
            if listed is None:
                try:
                    return "run", run(found, scratch, variables)
                finally:
                    stop_agent(variables)
            return "checked", check(found, listed, scratch, variables)
        except Missing as e:
            return "skipped", str(e)
        except Wrong as e:
            return "failed", str(e)


def report(line):
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(line + "\n")


def pages_of(arguments):
    """The pages, and what is wrong with the folders among the arguments."""
    pages, wrong = [], []
    for path in map(pathlib.Path, arguments):
        if not path.is_dir():
            pages.append(path)
            continue
        here = sorted(path.glob("*.md"))
        pages += here
        strays = sorted(p for p in path.rglob("*") if p.is_file() and p not in here)
        wrong += [f"{path.name}: {stray.relative_to(path)} is no page" for stray in strays]
        if not here:
            wrong.append(f"{path.name}: there are no pages")
    return pages, wrong


def main():
    args, build = sys.argv[1:], None
    if args and args[0] == "--build":
        build, args = pathlib.Path(args[1]).resolve(), args[2:]
    pages, wrong = pages_of(args)
    ended = []
    for page in pages:
        end, text = judge(page, build)
        ended.append(end)
        name = f"docs/{page.resolve().parent.name}/{page.stem}"
        lines = {"failed": f"fail {name}", "skipped": f"skip {name}: {text}"}
        report(lines.get(end, f"pass {name}"))
        print(f"{page.name}: {'skipped: ' if end == 'skipped' else ''}{text}", flush=True)
    for line in wrong:
        print(line)
        report(f"fail docs/{line}")
    counted = ((ended.count(end), words) for end, words in ENDS.items())
    print(f"{len(pages)} pages: {', '.join(f'{n} {words}' for n, words in counted if n)}")
    if wrong or not pages or "failed" in ended:
        return 1
    return SKIPPED if set(ended) == {"skipped"} else 0


if __name__ == "__main__":
    sys.exit(main())
