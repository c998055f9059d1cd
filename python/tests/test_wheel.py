# SPDX-License-Identifier: MIT
"""The wheels that tools/wheel.sh builds, as their users meet them.

They are built once, from an archive of sources that is made from a clone of these sources; what is
changed here and not committed is in the clone, too.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable

import interpreters
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(ROOT / f"tests/{part}") for part in ("", "queue/agent", "view")]
import pages  # noqa: E402
from agent import InstalledAgent  # noqa: E402
from pty_program import Terminal  # noqa: E402

DOCUMENT = ROOT / "docs/design/0012-python-packaging.md"
IMPORTED = [version for version in interpreters.VERSIONS if not version.endswith("t")]
FREE_THREADED = [version for version in interpreters.VERSIONS if version.endswith("t")]
INSTALLED_PART = "gpudispatch/"
PROGRAMS = tuple(
    f"gpudispatch{part}" for part in ("", "-agent", "-runner", "-serve", "-worker")
)
RECORDING = ROOT / "tests/view/recordings/small.lines"
NO_COMPILER = "/nowhere"
KEPT = ROOT / "build-python/libmicrohttpd_0.9.75.orig.tar.xz"  # fetched once, not by each run
LICENCES = (
    "LICENSE",
    *(f"python/licenses/{name}.txt" for name in ("jansson", "libmicrohttpd", "ncurses")),
)
# The fixture that all wait for compiles the library, with all optimization and beside other tests.
pytestmark = pytest.mark.timeout(540)


def run(
    *command: str | os.PathLike[str],
    cwd: pathlib.Path = ROOT,
    env: dict[str, str] | None = None,
) -> str:
    """What it prints; an exit status other than 0 fails the test."""
    words = [str(word) for word in command]
    ran = subprocess.run(
        words, cwd=cwd, env=env, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ran.returncode == 0, f"{words} exits {ran.returncode}:\n{ran.stdout[-8000:]}"
    return ran.stdout


def clean_environment(**more: str) -> dict[str, str]:
    """That of a user: nothing that finds the sources or a build tree."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GPUD_", "MESON", "PYTEST", "T_")) and name != "PYTHONPATH"
    }
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def clone(to: pathlib.Path) -> pathlib.Path:
    """A repository with the files of this tree as they are now."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    run("git", "init", "--quiet", cwd=to)
    run("git", "add", "--all", cwd=to)
    run("git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet",
        "--message", "the tree under test", cwd=to)  # fmt: skip
    return to


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of the archive, the two wheels and the sources of libmicrohttpd."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("the archive of sources is made from a clone by git")
    folder = tmp_path_factory.mktemp("built")
    source = clone(tmp_path_factory.mktemp("clone"))
    if KEPT.exists():
        shutil.copy2(KEPT, folder)
    try:
        run("sh", "tools/wheel.sh", folder, "--no-isolation", cwd=source, env=clean_environment())
    except AssertionError as failed:
        if "wheel.sh: cannot fetch" not in str(failed):
            raise
        pytest.skip("the sources of libmicrohttpd could not be fetched")
    if not KEPT.exists():
        new = KEPT.with_suffix(".new")
        shutil.copy2(folder / KEPT.name, new)
        new.replace(KEPT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: pathlib.Path) -> pathlib.Path:
    (found,) = built.glob("*-abi3-*.whl")
    return found


@pytest.fixture(scope="module")
def pure_wheel(built: pathlib.Path) -> pathlib.Path:
    (found,) = built.glob("*-none-*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def names_in(archive: pathlib.Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return {name for name in opened.namelist() if not name.endswith("/")}


def sources() -> set[str]:
    package = ROOT / "python/gpudispatch"
    return {
        f"gpudispatch/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.suffix in (".py", ".pyi", ".typed")
    }


def release() -> str:
    (found,) = re.findall(r"^  version: '(.*)',", (ROOT / "meson.build").read_text(), flags=re.M)
    return str(found)


def metadata() -> set[str]:
    names = ("METADATA", "RECORD", "WHEEL", *(f"licenses/{name}" for name in LICENCES))
    return {f"gpudispatch-{release()}.dist-info/{name}" for name in names}


def binaries() -> set[str]:
    """Files of machine code.  pip installs those of the folder scripts into bin."""
    scripts = f"gpudispatch-{release()}.data/scripts"
    inside = {"gpudispatch/_core.abi3.so", "gpudispatch/gpudispatch-worker"}
    return inside | {f"{scripts}/{name}" for name in PROGRAMS}


# ---- what lies in them ----


def test_contents(wheel: pathlib.Path) -> None:
    assert names_in(wheel) == sources() | metadata() | binaries()


def test_pure_contents(pure_wheel: pathlib.Path) -> None:
    assert names_in(pure_wheel) == sources() | metadata()


def test_licence(unpacked: pathlib.Path) -> None:
    """One licence but for libmicrohttpd, and SQLite, which is in the public domain."""
    (info,) = unpacked.glob("*.dist-info")
    text = (info / "METADATA").read_text()
    files = "".join(f"License-File: {name}\n" for name in LICENCES)
    assert f"\nLicense-Expression: MIT AND LGPL-2.1-or-later\n{files}" in text
    assert "Requires-Dist" not in text
    for name in LICENCES:
        assert (info / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()


def test_archive_has_the_library(built: pathlib.Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    listed = run("tar", "tzf", archive)
    for name in ("lib/api/init.c", "include/gpudispatch/dispatch.h", "python/src/module.c"):
        assert f"/{name}\n" in listed


# ---- what they say of themselves ----


def on_debian_12() -> bool:
    """There the document's figures were taken."""
    return "bookworm" in pathlib.Path("/etc/os-release").read_text()


def test_tag(wheel: pathlib.Path) -> None:
    """auditwheel has named the oldest glibc, and grafted nothing: see test_needed."""
    matched = re.fullmatch(r"gpudispatch-[^-]*-cp311-abi3-manylinux_2_(\d+)_(\w+)\.whl", wheel.name)
    assert matched, wheel.name
    assert matched[2] == platform.machine()
    if on_debian_12():
        assert int(matched[1]) <= 34, wheel.name


def test_auditwheel(wheel: pathlib.Path) -> None:
    said = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r"manylinux_2_\d+", wheel.name)
    assert tag
    assert f'platform tag: "{tag[0]}_' in said
    assert "external shared libraries" not in said, "something would have to be grafted"


@pytest.mark.parametrize("name", sorted(binaries()))
def test_needed(unpacked: pathlib.Path, name: str) -> None:
    listed = run("readelf", "-d", unpacked / name)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
    glibc = r"(libc|libm|libpthread|librt|libdl|ld-linux.*)\.so\.\d"
    assert [library for library in needed if not re.fullmatch(glibc, library)] == []
    assert "PATH" not in listed


def exported(file: pathlib.Path) -> set[str]:
    return set(run("nm", "-D", "--defined-only", "--format=just-symbols", file).split())


def test_extension_exports(unpacked: pathlib.Path) -> None:
    assert exported(unpacked / "gpudispatch/_core.abi3.so") == {"PyInit__core"}


def test_program_exports(unpacked: pathlib.Path) -> None:
    """A plugin finds all of the library in the program that loads it."""
    library = set((ROOT / "tests/abi/symbols.txt").read_text().split())
    assert exported(unpacked / "gpudispatch/gpudispatch-worker") >= library


def test_symbols_after_2_28(unpacked: pathlib.Path) -> None:
    """The document lists the symbols for which manylinux_2_28 is too old."""
    late = set()
    for name in binaries():
        undefined = run("nm", "-D", "--undefined-only", unpacked / name)
        for symbol, minor in re.findall(r" (\w+)@GLIBC_2\.(\d+)", undefined):
            if int(minor) > 28:
                late.add(f"{symbol} 2.{minor}")
    told = set(re.findall(r"^\| `(\w+)` \| (2\.\d+) \|", DOCUMENT.read_text(), flags=re.M))
    if not on_debian_12():
        pytest.skip("the document's list is that of a build on Debian 12")
    assert {f"{symbol} {version}" for symbol, version in told} == late


def test_abi3audit(wheel: pathlib.Path) -> None:
    run(sys.executable, "-m", "abi3audit", "--strict", "--verbose", wheel)


# ---- installed ----


def interpreter(version: str) -> str:
    found = interpreters.at_hand().get(version)
    if found is None:
        pytest.skip(f"no Python {version} at hand")
    return found.program


def smoke(python: pathlib.Path) -> str:
    """Runs without a compiler, without PATH even, and with each warning an error."""
    return run(python, "-I", "-W", "error", HERE / "smoke.py",
               env=clean_environment(PATH=NO_COMPILER))  # fmt: skip


def readme(python: pathlib.Path, folder: pathlib.Path) -> None:
    """README's program in Python, and its command, word for word: with no compiler in PATH."""
    found = pages.blocks((ROOT / "README.md").read_text())
    at = [language for language, _, _ in found].index("python")
    (_, name, program), (_, _, commands), (_, _, output) = found[at : at + 3]
    (folder / name).write_text(program)
    said = run("/bin/sh", "-eu", "-c", commands, cwd=folder,
               env=clean_environment(PATH=str(python.parent)))  # fmt: skip
    wrong = pages.differs(output, said)
    assert wrong is None, f"{wrong}\n{said}"


def bench(python: pathlib.Path, folder: pathlib.Path) -> None:
    said = run(python, "-I", "-m", "gpudispatch.bench", "--quick", cwd=folder,
               env=clean_environment(PATH=NO_COMPILER))  # fmt: skip
    assert "goals met" in said, said


def new_environment(version: str, home: pathlib.Path) -> pathlib.Path:
    """The interpreter of an empty environment that has pip."""
    run(interpreter(version), "-m", "venv", home, env=clean_environment())
    return home / "bin/python"


def install(python: pathlib.Path, *what: str | os.PathLike[str], cwd: pathlib.Path = ROOT) -> None:
    """As a user does: pip compiles, with what it fetches itself."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what,
        cwd=cwd, env=clean_environment())  # fmt: skip


@pytest.fixture(scope="module")
def environments(
    wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], pathlib.Path]:
    """By version of Python: a fresh environment with the wheel alone; no compiler is in PATH."""

    @functools.cache
    def environment(version: str) -> pathlib.Path:
        home = tmp_path_factory.mktemp("installed") / "environment"
        run(interpreter(version), "-m", "venv", "--without-pip", home, env=clean_environment())
        run(sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--quiet",
            "--no-index", "--no-deps", "--disable-pip-version-check", wheel,
            env=clean_environment(PATH=NO_COMPILER))  # fmt: skip
        return home

    return environment


@pytest.mark.parametrize("version", IMPORTED)
def test_installed(
    environments: Callable[[str], pathlib.Path], version: str, tmp_path: pathlib.Path
) -> None:
    """It runs tasks, README's among them, and still does when the environment was moved."""
    home = environments(version)
    (program,) = home.glob("lib/python3*/site-packages/gpudispatch/gpudispatch-worker")
    assert os.access(program, os.X_OK)
    smoke(home / "bin/python")
    readme(home / "bin/python", tmp_path)
    moved = home.rename(home.with_name("moved"))
    smoke(moved / "bin/python")
    moved.rename(home)


def command(folder: pathlib.Path, agent: InstalledAgent) -> list[str | None]:
    """The outcomes of one command, submitted through the socket of an agent."""
    try:
        with contextlib.closing(agent.start().client()) as client:
            client.submit(["echo done > $GPUDISPATCH_OUT/said"])
            client.ask("wait", batch="1")
            assert (folder / "state/out/1.1/said").read_text() == "done\n"
            return [task.get("outcome") for task in client.tasks(1)]
    finally:
        agent.end()


def test_queue(
    environments: Callable[[str], pathlib.Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The agent of the wheel runs a command, also in an environment that was moved."""
    home = environments(min(interpreters.at_hand()))
    for place in (home, home.with_name("moved")):
        home = home.rename(place)
        folder = tmp_path_factory.mktemp("queue")
        agent = InstalledAgent(str(home / "bin/gpudispatch-agent"), str(folder))
        assert command(folder, agent) == ["ok"], agent.said()
    home.rename(home.with_name("environment"))


def test_submit(environments: Callable[[str], pathlib.Path], tmp_path: pathlib.Path) -> None:
    """The first command starts the agent, which finds its own programs."""
    tool = environments(min(interpreters.at_hand())) / "bin/gpudispatch"
    env = clean_environment(PATH=NO_COMPILER, GPUDISPATCH_STATE=str(tmp_path / "state"))
    env.pop("XDG_RUNTIME_DIR", None)
    try:
        assert "done\n" in run(tool, "run", "--", "/bin/echo", "done", env=env)
    finally:
        run(tool, "agent", "stop", env=env)


def test_tool(environments: Callable[[str], pathlib.Path]) -> None:
    """The program gpudispatch finds the worker program beside itself."""
    tool = environments(min(interpreters.at_hand())) / "bin/gpudispatch"
    nowhere = clean_environment(PATH=NO_COMPILER)
    assert f"gpudispatch {release()} " in run(tool, "version", env=nowhere)
    said = subprocess.run([tool, "doctor", "--json"], env=nowhere, capture_output=True, text=True)
    (found,) = [f for f in json.loads(said.stdout)["checks"] if f["name"] == "worker program"]
    assert found["verdict"] == "ok", found


# ---- views ----


@pytest.fixture
def view(
    environments: Callable[[str], pathlib.Path], tmp_path: pathlib.Path
) -> types.SimpleNamespace:
    """The program, and an environment without TERM and the variables of terminfo."""
    programs = environments(min(interpreters.at_hand())) / "bin"
    env = clean_environment(PATH=NO_COMPILER, HOME=str(tmp_path), LC_ALL="C.UTF-8")
    for name in [name for name in env if name.startswith("TERM")]:
        del env[name]
    return types.SimpleNamespace(program=programs / "gpudispatch", environment=env)


def test_views(view: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    """Verbs that read a recording."""
    begins = {
        "report": "<!doctype html>",
        "trace": '{"displayTimeUnit"',
        "metrics": "# TYPE ",
        "top": "",
    }
    shown = {verb: run(view.program, verb, "--from", RECORDING, env=view.environment)
             for verb in begins}  # fmt: skip
    for verb, begin in begins.items():
        assert shown[verb].startswith(begin), (verb, shown[verb][:80])
    assert "WENT WRONG" in shown["top"]
    run(view.program, "report", "--from", RECORDING, "-o", tmp_path / "page.html",
        env=view.environment)  # fmt: skip
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")


def top(view: types.SimpleNamespace, shows: bytes, **env: str) -> None:
    """Until it shows this on a terminal; then q ends it."""
    command = [str(view.program), "top", "--from", str(RECORDING)]
    shown = Terminal(command, view.environment, env=env)
    shown.read(lambda: shows in shown.seen)
    shown.press(b"q")
    assert shown.status() == 0
    shown.close()


DRAWN = b"\x1b["  # a control sequence comes from the entry alone


@pytest.mark.parametrize("kind", ["xterm-256color", "vt100"])
def test_top(view: types.SimpleNamespace, kind: str) -> None:
    """The screen: the entries of terminals are where a distribution has them."""
    top(view, DRAWN, TERM=kind)


def test_top_other_entries(view: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    """The user's TERMINFO_DIRS holds: of the entries there, and no others."""
    compiled = tmp_path / "entries"
    entry = run("infocmp", "-x", "vt100").replace("vt100|vt100-am|", "of-user|", 1)
    (tmp_path / "entry.ti").write_text(entry)
    run("tic", "-o", compiled, tmp_path / "entry.ti")
    top(view, DRAWN, TERM="of-user", TERMINFO_DIRS=str(compiled))
    top(view, b"no entry for the terminal 'of-user'", TERM="of-user", TERMINFO_DIRS=str(tmp_path))


class Connection(http.client.HTTPConnection):
    """Through a socket of the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def test_serve(view: types.SimpleNamespace, tmp_path: pathlib.Path) -> None:
    """The program finds the web server beside itself."""
    path = str(tmp_path / "live")
    with subprocess.Popen(
        [view.program, "serve", "--from", RECORDING, "--socket", path],
        env=view.environment, stdout=subprocess.PIPE, text=True,
    ) as serving:  # fmt: skip
        try:
            assert serving.stdout
            assert serving.stdout.readline() == f"live page: {path}\n"
            connection = Connection(path)
            for at, begin in ("/", b"<!doctype html>"), ("/data", b'{"'), ("/metrics", b"# TYPE"):
                connection.request("GET", at)
                reply = connection.getresponse()
                assert (at, reply.status) == (at, 200)
                assert reply.read().startswith(begin), at
            connection.close()
        finally:
            serving.terminate()


@pytest.mark.parametrize("version", [v for v in IMPORTED if v != "3.11"])
def test_isolated(environments: Callable[[str], pathlib.Path], version: str) -> None:
    python = environments(version) / "bin/python"
    said = run(python, "-I", HERE / "isolated.py", env=clean_environment())
    assert "isolated: in order" in said


@pytest.mark.slow
@pytest.mark.parametrize("version", IMPORTED)
def test_bench(
    environments: Callable[[str], pathlib.Path], version: str, tmp_path: pathlib.Path
) -> None:
    bench(environments(version) / "bin/python", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", IMPORTED)
def test_clone(tmp_path: pathlib.Path, version: str) -> None:
    """`pip install .` in a clone."""
    python = new_environment(version, tmp_path / "environment")
    (tmp_path / "clone").mkdir()
    install(python, ".", cwd=clone(tmp_path / "clone"))
    smoke(python)
    readme(python, tmp_path)
    bench(python, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_archive(built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """`pip install` of the archive of sources, as where there is no wheel for the machine."""
    (archive,) = built.glob("*.tar.gz")
    python = new_environment(min(interpreters.at_hand()), tmp_path / "environment")
    install(python, archive)
    smoke(python)
    readme(python, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", FREE_THREADED)
def test_free_threaded(tmp_path: pathlib.Path, version: str) -> None:
    """Built without the limited API; eight threads submit, and none has a lock that all share."""
    python = new_environment(version, tmp_path / "environment")
    (tmp_path / "clone").mkdir()
    install(python, "-Csetup-args=-Dpython.allow_limited_api=false", ".",
            cwd=clone(tmp_path / "clone"))  # fmt: skip
    listed = (HERE / "requirements.txt").read_text()
    install(python, *re.findall(r"^pytest(?:-timeout)?==.*", listed, flags=re.M))
    smoke(python)  # a warning, such as that the import has enabled the GIL, is an error
    test = f"{HERE / 'test_executor.py'}::test_many_threads_submit"
    said = run(python, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ROOT, test,
               env=clean_environment(PYTHONPATH=str(HERE)))  # fmt: skip
    assert "1 passed" in said


# ---- on other systems ----

PURE_CODE = """
import sys
{absent}
sys.platform = "{platform}"
import gpudispatch
assert not [name for name in sys.modules if name.endswith("._core")]
for name in gpudispatch.__all__:
    getattr(gpudispatch, name)
try:
    gpudispatch.Executor(1)
except gpudispatch.UnsupportedPlatform as error:
    assert "Linux only; use concurrent.futures here" in str(error), str(error)
else:
    raise SystemExit("an Executor was made")
"""

# What the standard library lacks there, once the package's own imports of it have been made.
ABSENT = """
import asyncio, concurrent.futures.thread, ctypes, dataclasses, logging, multiprocessing, os
import signal, socket, subprocess, tempfile, threading
for name in {names}.split():
    module, _, attribute = name.partition(".")
    if attribute:
        delattr(sys.modules[module], attribute)
    else:
        sys.modules[name] = None
"""
LINUX_ONLY = "os.eventfd os.memfd_create os.pidfd_open os.sched_getaffinity signal.sigtimedwait"
UNIX_ONLY = """fcntl grp pwd resource termios os.O_CLOEXEC os.O_DIRECTORY os.fork os.getuid
os.register_at_fork os.set_blocking os.setsid os.waitid signal.SIGALRM signal.SIGCHLD signal.SIGHUP
signal.SIGKILL signal.pthread_sigmask signal.setitimer signal.siginterrupt"""


@functools.cache
def platforms(name: str) -> tuple[str, ...]:
    return tuple(name.removesuffix(".whl").rpartition("-")[2].split("."))


@pytest.mark.parametrize("system", ["macosx_11_0_arm64", "win_amd64"])
def test_elsewhere(pure_wheel: pathlib.Path, tmp_path: pathlib.Path, system: str) -> None:
    """pip takes it for such a system; there it can be imported, and says what to use instead."""
    assert system in platforms(pure_wheel.name)
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--disable-pip-version-check", "--only-binary=:all:", f"--platform={system}",
        "--target", tmp_path / "site", pure_wheel, env=clean_environment())  # fmt: skip
    platform, names = "darwin", LINUX_ONLY
    if system.startswith("win"):
        platform, names = "win32", f"{LINUX_ONLY} {UNIX_ONLY}"
    code = PURE_CODE.format(platform=platform, absent=ABSENT.format(names=repr(names)))
    run(sys.executable, "-W", "error", "-c", code,
        env=clean_environment(PYTHONPATH=str(tmp_path / "site")))  # fmt: skip


def test_not_on_linux(built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """On Linux pip never chooses it: without a wheel for the machine it builds from the archive."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-index", "--no-deps", "--only-binary=:all:",
         "--platform=manylinux_2_34_s390x", "--find-links", str(built), "--dest", str(tmp_path),
         "gpudispatch"],
        env=clean_environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode != 0
    assert "No matching distribution" in said.stderr
