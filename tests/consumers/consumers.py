#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that use the library as a stranger does: by docs/installing.md.

usage: consumers.py SOURCE          a copy of SOURCE is installed into a prefix; the copy goes, the
                                    prefix moves
       consumers.py --installed     the installed library that pkg-config finds

Every block of commands in docs/installing.md is run as it stands there, with PREFIX set, in a
directory that holds program.c, program.cc, program.py and plugin.c (here: host.c, plugin.c; the
others from tests/hosts).  A case that cannot run is skipped and prints the missing package.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
from reference import headers  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "queue/agent"))
from agent import InstalledAgent  # noqa: E402

DOCUMENT = HERE.parent.parent / "docs/installing.md"
PROGRAMS = {"program.c": HERE / "host.c", "plugin.c": HERE / "plugin.c",
            "program.cc": HERE.parent / "hosts/cxx.cc", "program.py": HERE.parent / "hosts/host.py"}
# Where documents are below a prefix; Debian's package has its own folder.
DOCUMENTS, PLACES = "share/doc", ("gpudispatch", "libgpudispatch-dev")
# These tests need glibc, as NVIDIA's libraries do: its loader finds a loaded fake by its soname.
NEED_GLIBC = re.compile("tests/unit_(cuda|nvml)")
# These only compute, without a call of the C library but for memory: they run at length elsewhere.
PURE = re.compile("tests/unit_(soon|tree)$")
ALL_RIGHT = "20 of 20, version "
PATIENCE = 900  # seconds, for one block, on a busy machine
QUICKLY = "-O0"  # where a case is about what is built, not about what the compiler makes of it


class Wrong(Exception):
    pass


class Missing(Exception):
    pass


def blocks():
    """The document's blocks of code by the name behind the language."""
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```", DOCUMENT.read_text(), flags=re.M | re.S))


def clean_environment():
    """That of a stranger: nothing of ours is set, and nothing that would find it."""
    dropped = ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "DESTDIR", "MAKEFLAGS",
               "MESON_TESTTHREADS", "T_EFFORT")
    return {name: value for name, value in os.environ.items()
            if not name.startswith("GPUD_") and name not in dropped}


def run(command, where, environment, script=False):
    """What it prints; anything but exit status 0 is wrong."""
    words = ["sh", "-eu", "-c", command] if script else [str(word) for word in command]
    ran = subprocess.run(words, cwd=where, env=environment, text=True, timeout=PATIENCE,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if ran.returncode:
        end = "\n".join(ran.stdout.splitlines()[-40:])
        raise Wrong(f"{command if script else shlex.join(words)}\nexits {ran.returncode}:\n{end}")
    return ran.stdout


def need(program, package):
    if not shutil.which(program):
        raise Missing(f"needs the package {package}")


def needed_libraries(program):
    """What the loader will look for, and where in the first place."""
    listed = subprocess.run(["readelf", "-d", str(program)], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    return re.findall(r"\((?:NEEDED|RPATH|RUNPATH)\).*\[(.*)\]", listed)


class Place:
    """A prefix that holds an installed library, and directories to use it from."""

    def __init__(self, scratch, prefix, environment, prelude=""):
        self.scratch, self.prefix, self.prelude = scratch, prefix, prelude
        self.environment = dict(environment, PREFIX=str(prefix))

    def room(self, name):
        """A directory with the programs, in which the case works."""
        where = self.scratch / name
        where.mkdir()
        for to, source in PROGRAMS.items():
            shutil.copyfile(source, where / to)
        return where

    def block(self, name, where):
        return run(self.prelude + blocks()[name], where, self.environment, script=True)

    def start(self, command, where):
        return run(self.prelude + command, where, self.environment, script=True)

    def expect(self, command, where, wanted=ALL_RIGHT):
        said = self.start(command, where)
        if wanted not in said:
            raise Wrong(f"{command} prints, without \"{wanted}\":\n{said}")


# ---- cases in any place ----


def shared(place):
    where = place.room("shared")
    place.block("shared", where)
    place.expect("./program", where)
    if "libgpudispatch.so.0" not in needed_libraries(where / "program"):
        raise Wrong("the program does not need libgpudispatch.so.0")
    place.start("./program-cc objects_and_exceptions", where)


def static(place):
    where = place.room("static")
    for name in ("archive", "static"):
        place.block(name, where)
        program = where / f"program-{name}"
        if any("gpudispatch" in library for library in needed_libraries(program)):
            raise Wrong(f"{program.name} needs the shared library")
        run([program], where, dict(place.environment, LD_LIBRARY_PATH=""))
        place.expect(f"./{program.name}", where)


def cmake(place):
    need("cmake", "cmake")
    need("make", "make")
    where = place.room("cmake")
    (where / "CMakeLists.txt").write_text(blocks()["CMakeLists.txt"])
    said = place.block("cmake", where)
    program = re.search(r"plugins run in (.*)", said).group(1)
    if not os.access(program, os.X_OK):
        raise Wrong(f"gpudispatch_WORKER_PROGRAM is {program}, which is no program")
    for command in ("build/program", "build/program-static", "build/program build/libplugin.so"):
        run(shlex.split(command), where, dict(place.environment, LD_LIBRARY_PATH=""))
    versions(place, where)


def versions(place, where):
    """Which wanted versions the package says to serve."""
    found = place.start("find \"$PREFIX/lib\"* -name gpudispatchConfigVersion.cmake", where)
    file, = {line.strip() for line in found.splitlines()}
    whole = place.start("pkg-config --modversion gpudispatch", where).strip()
    for wanted, answer in ((whole, "TRUE"), ("0.1", "TRUE"), ("0", "TRUE"), ("0.99", "FALSE"),
                           ("1.0", "FALSE")):
        script = where / "version.cmake"
        script.write_text(f'set(PACKAGE_FIND_VERSION {wanted})\n'
                          f'set(PACKAGE_FIND_VERSION_MAJOR {wanted.split(".")[0]})\n'
                          f'include("{file}")\n'
                          'message("serves ${PACKAGE_VERSION_COMPATIBLE}")\n')
        if f"serves {answer}" not in run(["cmake", "-P", script], where, place.environment):
            raise Wrong(f"the CMake package does not answer {answer} to version {wanted}")


def ctypes(place):
    place.block("ctypes", place.room("ctypes"))


def plugin(place):
    where = place.room("plugin")
    place.block("plugin", where)
    place.block("shared", where)
    place.expect("./program ./plugin.so", where)


def tutorial(place):
    """Its programs and commands, with the program gpudispatch of the prefix."""
    pages = sorted(str(page) for page in (DOCUMENT.parent / "start").glob("[0-9]*.md"))
    if not pages:
        raise Wrong("the tutorial has no pages")
    script = shlex.join([sys.executable, str(HERE.parent / "pages.py"), *pages])
    place.start(f"PATH=\"$PREFIX/bin:$PATH\" {script}", place.scratch)


def functions():
    return headers.Tree(DOCUMENT.parent.parent).functions()


def links(page):
    """The files to which a document links, as it names them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return [target for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]+)?\)", text)
            if "://" not in target]


def documents(place):
    """Each link of a document leads to a file that is installed, too, and each function has a
    manual page."""
    prefix = pathlib.Path(place.prefix)
    homes = [prefix / DOCUMENTS / name for name in PLACES
             if (prefix / DOCUMENTS / name / "docs/index.md").exists()]
    if not homes and prefix == pathlib.Path("/usr") and not (prefix / "share/man/man3").exists():
        raise Missing("this system installs packages without their documents")
    if not homes:
        raise Wrong(f"no docs/index.md below {prefix / DOCUMENTS}: {PLACES}")
    for name in ("README.md", "CHANGES.md", "LICENSE", "examples/hello.c",
                 "docs/reference/options.md"):
        if not (homes[0] / name).exists():
            raise Wrong(f"{homes[0]} has no {name}")
    broken = [f"{page.relative_to(homes[0])}: {target}" for page in sorted(homes[0].rglob("*.md"))
              for target in links(page) if not (page.parent / target).exists()]
    if broken:
        raise Wrong("links that lead nowhere among the installed documents:\n" + "\n".join(broken))
    names = [f"man3/{item.name}.3" for item in functions()]
    names += ["man3/gpudispatch.3", "man7/gpudispatch.7"]
    missing = [name for name in names if not any((prefix / "share/man").glob(f"{name}*"))]
    if missing:
        raise Wrong(f"no manual pages: {missing}")


def queue(place):
    """The agent runs a command, wherever its prefix is now."""
    found = sorted(path for folder in ("libexec", "lib")
                   for path in pathlib.Path(place.prefix, folder).rglob("gpudispatch-agent"))
    if not found:
        raise Missing("needs the package " + ("gpudispatch-queue" if place.prefix == "/usr"
                                              else "libsqlite3-dev"))
    agent = InstalledAgent(str(found[0]), str(place.room("queue")))
    try:
        client = agent.start().client()
        client.submit(["echo done > $GPUDISPATCH_OUT/said"])
        client.ask("wait", batch="1")
        outcomes = [task.get("outcome") for task in client.tasks(1)]
        said = pathlib.Path(agent.state, "out/1.1/said")
        if outcomes != ["ok"] or said.read_text() != "done\n":
            raise Wrong(f"a command of {found[0]} ends {outcomes}:\n{agent.said()}")
    except RuntimeError as reason:
        raise Wrong(str(reason)) from reason
    finally:
        agent.end()


# ---- what is installed ----


def contents(prefix, paths):
    """The expected files are installed.  No file of the build names the source folder; only the
    library, gpudispatch.pc and the units of systemd may name the prefix."""
    found = sorted(p for p in prefix.rglob("*") if p.is_file() and not p.is_symlink())
    names = {p.name for p in found}
    wanted = {p.name for p in (DOCUMENT.parent.parent / "include/gpudispatch").glob("*.h")} | {
        "libgpudispatch.so.0", "libgpudispatch.a", "gpudispatch.pc", "gpudispatchConfig.cmake",
        "gpudispatchConfigVersion.cmake", "gpudispatch-worker"}
    wanted |= {f"{item.name}.3" for item in functions()} | {
        "gpudispatch.1", "gpudispatch.3", "gpud_options.3", "gpudispatch.7", "README.md",
        "CHANGES.md", "LICENSE"}
    if queue_can_be_built():
        wanted |= {"gpudispatch-agent", "gpudispatch-runner", "gpudispatch-agent.service",
                   "gpudispatch-agent@.service"}
        if web_can_be_built():
            wanted.add("gpudispatch-serve")
    if wanted - names:
        raise Wrong(f"not installed: {sorted(wanted - names)}")
    for file in found:
        if file.is_relative_to(prefix / DOCUMENTS):
            continue
        for path in paths:
            if os.fsencode(path) in file.read_bytes():
                raise Wrong(f"{file} names {path}")
        knows_prefix = os.fsencode(prefix) in file.read_bytes()
        if knows_prefix and not (file.name.startswith(("libgpudispatch", "gpudispatch.pc"))
                                 or file.suffix == ".service"):
            raise Wrong(f"{file} names the prefix, which may move")
    for file in found:
        if file.read_bytes()[:4] == b"\x7fELF":
            for path in needed_libraries(file):
                if "/" in path and not path.startswith("$ORIGIN/"):
                    raise Wrong(f"{file} looks for libraries in {path}")


def queue_can_be_built():
    """Where these libraries are there, the option `queue` is on."""
    return subprocess.run(["pkg-config", "--exists", "sqlite3 >= 3.37", "jansson >= 2.13"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def web_can_be_built():
    """The same for the option `web`."""
    return subprocess.run(["pkg-config", "--exists", "libmicrohttpd >= 0.9.72"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def copy_tree(to):
    ignored = shutil.ignore_patterns("build*", "obj-*", ".*", "__pycache__", "shared")
    shutil.copytree(DOCUMENT.parent.parent, to, symlinks=True, ignore=ignored)


def subproject(scratch, environment):
    place = Place(scratch, scratch / "nothing", dict(environment, CFLAGS=QUICKLY))
    where = place.room("subproject")
    (where / "meson.build").write_text(blocks()["meson.build"])
    copy_tree(where / "subprojects/gpudispatch")
    (where / "subprojects/gpudispatch.wrap").write_text(blocks()["gpudispatch.wrap"])
    place.block("subproject", where)
    for command in ("build/program", "build/program-static", "build/program build/plugin.so"):
        place.expect(command, where)
    for folder in ("tests", "examples", "bench"):
        if (where / "build/subprojects/gpudispatch" / folder).exists():
            raise Wrong(f"{folder}/ is built in a subproject")


def musl(scratch, environment):
    """The library and a program with another C library; and the unit tests, which need headers of
    the kernel."""
    need("musl-gcc", "musl-tools")
    place = Place(scratch, scratch / "musl/prefix", environment)
    where = place.room("musl")
    copy_tree(where / "source")
    machine = run(["gcc", "-print-multiarch"], where, environment).strip()
    for name, target in (("linux", "linux"), ("asm-generic", "asm-generic"),
                         ("asm", f"{machine}/asm")):
        (where / "kernel").mkdir(exist_ok=True)
        (where / "kernel" / name).symlink_to(pathlib.Path("/usr/include", target))
    place.environment["CFLAGS"] = f"-idirafter {where / 'kernel'} {QUICKLY}"
    place.block("musl", where / "source")
    place.prelude = blocks()["environment"]
    command = ("musl-gcc {} program.c -o program"
               " $(pkg-config --define-variable=prefix=\"$PREFIX\" {} --cflags --libs gpudispatch)")
    for link, flags in (("", ""), ("-static", "--static")):
        place.start(command.format(link, flags), where)
        place.expect("./program", where)
    build = where / "source/build-musl"
    run(["meson", "setup", "--reconfigure", build, "-Dtests=true"], where / "source",
        place.environment)
    targets = run(["ninja", "-C", build, "-t", "targets", "all"], where, place.environment)
    units = sorted(unit for unit in set(re.findall(r"^(tests/unit_\w+): ", targets, flags=re.M))
                   if not NEED_GLIBC.match(unit) and not PURE.match(unit))
    run(["ninja", "-C", build, "tests/runner", *units], where, place.environment)
    if not units:
        raise Wrong("there are no unit tests")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plain = dict(place.environment, LD_LIBRARY_PATH="")
        list(pool.map(lambda unit: run(["tests/runner", unit], build, plain), units))


# ---- the whole ----


class Results:
    def __init__(self):
        self.failed = 0

    def case(self, name, function, *arguments):
        what, line = "pass", f"consumers/{name}"
        try:
            function(*arguments)
            print(f"pass {name}", flush=True)
        except Missing as reason:
            what, line = "skip", f"consumers/{name}: {reason}"
            print(f"skip {name}: {reason}", flush=True)
        except (Wrong, OSError, subprocess.SubprocessError) as reason:
            what = "fail"
            self.failed += 1
            print(f"FAIL {name}: {reason}", flush=True)
        if os.environ.get("GPUD_TEST_RESULTS"):
            with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
                out.write(f"{what} {line}\n")
        return what == "pass"


def install(scratch, environment, prefix):
    source = scratch / "source"
    copy_tree(source)
    # As a user installs it, but for the optimization: the wheel of python/tests has that.
    place = Place(scratch, prefix, dict(environment, CFLAGS=QUICKLY))
    place.block("install", source)
    contents(prefix, [source, DOCUMENT.parent.parent])
    shutil.rmtree(source)


def from_source(results, scratch, environment):
    first, second = scratch / "prefix", scratch / "elsewhere/moved"
    if results.case("install", install, scratch, environment, first):
        place = Place(scratch, first, environment, blocks()["environment"])
        for case in (shared, static, plugin, tutorial):
            results.case(case.__name__, case, place)
        second.parent.mkdir()
        first.rename(second)
        (scratch / "moved").mkdir()
        place = Place(scratch / "moved", second, environment, blocks()["environment"])
        for case in (moved, cmake, ctypes, documents, queue):
            results.case(case.__name__, case, place)
    results.case("subproject", subproject, scratch, environment)
    results.case("musl", musl, scratch, environment)


def moved(place):
    """Also the library's own worker program is found; the first place is gone."""
    where = place.room("moved")
    place.block("moved", where)
    place.start("cc -shared -fPIC plugin.c -o plugin.so -I\"$PREFIX/include\"", where)
    place.expect("./program", where)
    place.expect("./program ./plugin.so", where)


def from_system(results, scratch, environment):
    need("pkg-config", "pkg-config")
    prefix = run(["pkg-config", "--variable=prefix", "gpudispatch"], scratch, environment).strip()
    place = Place(scratch, prefix, environment)
    for case in (shared, static, plugin, cmake, ctypes, tutorial, documents, queue):
        results.case(case.__name__, case, place)


def main():
    results = Results()
    with tempfile.TemporaryDirectory(prefix="consumers-") as scratch:
        whole = from_system if "--installed" in sys.argv else from_source
        whole(results, pathlib.Path(scratch).resolve(), clean_environment())
    return 1 if results.failed else 0


sys.exit(main())
