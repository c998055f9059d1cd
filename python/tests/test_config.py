# SPDX-License-Identifier: MIT
"""load_pool() and the classes that only it and plugin= make: plugins, and servers from a file."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

from gpudispatch import GpuDispatchError, JournalMismatch, Pool, WorkerCrashed, load_pool

LIMIT_S = 60.0
PLUGIN = pathlib.Path(os.environ["GPUD_TEST_BUILD"]) / "tests/programs/plugin_good.so"
CPUS = "devices = 0\ncpus = 1\n"
WORKER = '[class.a]\nworker = "MODULE:Outer.Scale"\n'


def plugin() -> str:
    if not PLUGIN.exists():
        pytest.skip("needs a build with the programs of the tests")
    return str(PLUGIN)


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A directory with a module of workers, which load_pool() finds there."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    name = f"workers_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "class Outer:\n"
        "    class Scale:\n"
        "        def setup(self, device, seed, by=1):\n"
        "            self.by = by\n"
        "        def process(self, item):\n"
        "            return item * self.by\n"
    )
    yield tmp_path
    sys.modules.pop(name, None)


def written(folder: pathlib.Path, text: str) -> pathlib.Path:
    file = folder / "pool.toml"
    file.write_text(text.replace("MODULE", f"workers_of_{folder.name}"))
    return file


# ---- a whole file ----


def test_worker_of_a_module_beside_the_file(folder: pathlib.Path) -> None:
    file = written(
        folder,
        '[pool]\ndevices = "fake:4"\ncpus = 2\nmode = "strict"\n'
        '[class."qwen2.5:14b"]\nworker = "MODULE:Outer.Scale"\nsetup = { by = 3 }\n'
        'devices = 2\nmemory = "4GiB"\nvariants = [ { devices = 4, memory = "2GiB" } ]\n'
        f'[class.plain]\nworker = "MODULE:Outer.Scale"\n{CPUS}',
    )
    with load_pool(file) as pool:
        assert pool["qwen2.5:14b"].submit(5).result(LIMIT_S) == 15
        assert pool["plain"].submit(5).result(LIMIT_S) == 5
        assert [row["name"] for row in pool.classes()] == ["qwen2.5:14b", "plain"]
        with pytest.raises(KeyError):
            pool["llama"]


def test_arguments_replace_those_of_the_file(folder: pathlib.Path) -> None:
    text = '[pool]\ndevices = "fake:4"\n[class.a]\nworker = "MODULE:Outer.Scale"\n'
    with load_pool(written(folder, text), devices="fake:2") as pool:
        assert len(pool.devices()) == 2


ECHO = """\
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        size = int(self.headers.get('Content-Length', 0))
        body = self.rfile.read(size)[::-1]
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""


def test_server(folder: pathlib.Path) -> None:
    (folder / "server.py").write_text(ECHO)
    command = [sys.executable, str(folder / "server.py"), "{port}"]
    file = written(
        folder,
        f"[class.echo]\nserver = {{ command = {command!r}, concurrency = 2 }}\n{CPUS}",
    )
    with load_pool(file, devices=None) as pool:
        assert pool["echo"].submit(b"abc").result(LIMIT_S) == b"cba"


# ---- what is relative to the directory of the file ----


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs in a directory that is not that of the file."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.parametrize("cwd", ["", 'cwd = "bin"\n'])
def test_program_of_a_server_beside_the_file(
    folder: pathlib.Path, elsewhere: None, cwd: str
) -> None:
    program = folder / "bin" / "server"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{ECHO}")
    program.chmod(0o755)
    server = 'server = { command = ["bin/server", "{port}"] }\n'
    with load_pool(written(folder, f"[class.echo]\n{server}{cwd}{CPUS}"), devices=None) as pool:
        assert pool["echo"].submit(b"abc").result(LIMIT_S) == b"cba"


def test_a_program_without_a_directory_is_searched(folder: pathlib.Path, elsewhere: None) -> None:
    (folder / "server.py").write_text(ECHO)
    (folder / "env").write_text("never run")
    command = ["env", sys.executable, "server.py", "{port}"]  # a further word: relative to cwd
    server = f'server = {{ command = {command!r} }}\ncwd = "."\n'
    with load_pool(written(folder, f"[class.echo]\n{server}{CPUS}"), devices=None) as pool:
        assert pool["echo"].submit(b"abc").result(LIMIT_S) == b"cba"


def test_plugin_beside_the_file(folder: pathlib.Path, elsewhere: None) -> None:
    path = os.path.relpath(plugin(), folder)
    text = f'[class.echo]\nplugin = "{path}"\ndefinition = "echo"\n{CPUS}'
    with load_pool(written(folder, text), devices=None) as pool:
        assert pool["echo"].submit(b"abc").result(LIMIT_S) == b"abc"


def test_files_that_a_pool_writes_beside_its_file(folder: pathlib.Path, elsewhere: None) -> None:
    (folder / "logs").mkdir()
    text = '[pool]\ndecision_log = "logs/decisions"\n' + WORKER + CPUS
    with load_pool(written(folder, text + 'output = "logs/{slot}.log"\n'), devices=None) as pool:
        assert pool["a"].submit(5).result(LIMIT_S) == 5
    assert {file.name for file in (folder / "logs").iterdir()} >= {"decisions", "0.log"}


def test_a_word_for_output_is_no_file(folder: pathlib.Path) -> None:
    with load_pool(written(folder, WORKER + CPUS + 'output = "discard"\n'), devices=None) as pool:
        assert pool["a"].submit(5).result(LIMIT_S) == 5
    with pytest.raises(ValueError, match="output is 'discrad', expected tail"):
        load_pool(written(folder, WORKER + CPUS + 'output = "discrad"\n'), devices=None)


def test_module_beside_the_file_comes_first(
    folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / f"workers_of_{folder.name}.py").write_text("class Outer:\n    pass\n")
    monkeypatch.syspath_prepend(other)
    with load_pool(written(folder, WORKER + CPUS), devices=None) as pool:
        assert pool["a"].submit(5).result(LIMIT_S) == 5


# ---- plugins ----


def test_plugin(folder: pathlib.Path) -> None:
    file = written(
        folder,
        f'[class.echo]\nplugin = "{plugin()}"\ndefinition = "echo"\n{CPUS}'
        f'[class.twice]\nplugin = "{plugin()}"\ndefinition = "twice"\nsetup = "x"\n{CPUS}',
    )
    large = os.urandom(200_000)
    with load_pool(file, devices=None) as pool:
        echo, twice = pool["echo"], pool["twice"]
        assert echo.submit(b"abc").result(LIMIT_S) == b"abc"
        assert echo.submit(b"").result(LIMIT_S) == b""
        assert twice.submit(memoryview(large)).result(LIMIT_S) == large * 2
        assert list(twice.map([b"a", bytearray(b"b")], timeout=LIMIT_S)) == [b"aa", b"bb"]
        values = [r.value for r in echo.outcomes([b"1", b"2"], ordered=True)]
        assert values == [b"1", b"2"]
        assert sorted(
            (r.name, r.value) for r in pool.outcomes({"echo": [b"1"], "twice": [b"2"]})
        ) == [("echo", b"1"), ("twice", b"22")]


def test_plugin_takes_bytes_only() -> None:
    with Pool(None, cpus=1) as pool:
        echo = pool.add("echo", plugin=plugin(), definition="echo", devices=0, cpus=1)
        future = echo.submit("text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="^an item of a plugin must be bytes, not str$"):
            future.result(LIMIT_S)
        kinds = [r.kind for r in echo.outcomes([b"a", 1], ordered=True)]
        assert kinds == ["success", "error"]
        with pytest.raises(ValueError, match="chunksize"):
            echo.map([b"a"], chunksize=2)
        with pytest.raises(TypeError, match="^plugin= of class 'echo' takes one item, not 2$"):
            echo.submit(len, b"a")
        with pytest.raises(TypeError, match="^fn does not go with plugin= of class 'echo'"):
            echo.outcomes([b"a"], fn=len)  # type: ignore[call-overload]


def test_plugin_that_dies() -> None:
    with Pool(None, cpus=1) as pool:
        echo = pool.add("echo", plugin=plugin(), definition="echo", devices=0, cpus=1)
        with pytest.raises(WorkerCrashed):
            echo.options(label="die").submit(b"a").result(LIMIT_S)
        assert echo.submit(b"b").result(LIMIT_S) == b"b"


def test_plugin_with_a_journal(tmp_path: pathlib.Path) -> None:
    path, large = tmp_path / "night.gdj", os.urandom(50_000)
    items = [b"a", b"", large]

    def run(definition: str) -> list[tuple[Any, bool]]:
        with Pool(None, cpus=1) as pool:
            made = pool.add("p", plugin=plugin(), definition=definition, devices=0, cpus=1)
            loop = made.outcomes(items, journal=path, ordered=True)
            return [(r.value, r.replayed) for r in loop]

    assert run("echo") == [(item, False) for item in items]
    assert run("echo") == [(item, True) for item in items]
    with pytest.raises(JournalMismatch):
        run("twice")


def test_plugin_in_coroutines() -> None:
    import asyncio

    async def main() -> list[bytes]:
        with Pool(None, cpus=1) as pool:
            echo = pool.add("echo", plugin=plugin(), definition="echo", devices=0, cpus=1)
            return list(await asyncio.gather(*(echo.arun(b"%d" % n) for n in range(20))))

    assert asyncio.run(main()) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"plugin": "a.so", "worker": object}, TypeError, "plugin goes without worker"),
        ({"plugin": "a.so", "setup": {"a": 1}}, TypeError, "^setup of a plugin must be bytes"),
        ({"definition": "a"}, TypeError, "go with plugin="),
        ({"setup": b"a"}, TypeError, "go with plugin="),
        ({"plugin": "/none/a.so"}, GpuDispatchError, "/none/a.so"),
    ],
)
def test_bad_arguments_of_a_plugin(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with Pool(None, cpus=1) as pool, pytest.raises(error, match=text):
        pool.add("p", **{"devices": 0, "cpus": 1, **arguments})


# ---- bad files ----


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("[class.a", ValueError, "pool.toml: "),
        ("", ValueError, r"no \[class.NAME\]"),
        ("[classes.a]\n", ValueError, "the file has 'classes'; did you mean class"),
        ("pool = 1\n" + WORKER, ValueError, "pool is 1, expected a table"),
        ("class.a = 1\n", ValueError, "a is 1, expected a table"),
        ('[pool]\nmode = "lax"\n' + WORKER, ValueError, "pool: mode is 'lax'"),
        ("[pool]\non_class = 1\n" + WORKER, ValueError, "pool has 'on_class'"),
        ("[pool]\nqueue = 1\n" + WORKER, ValueError, "did you mean queue_size"),
        ("[class.a]\ndevices = 1\n", ValueError, "class.a has none of worker, plugin, server"),
        (WORKER + 'plugin = "a"\n', ValueError, "worker and plugin of"),
        (WORKER + "memroy = 1\n", ValueError, "class.a has 'memroy'; did you mean memory"),
        (WORKER + "gpus = 2\n", ValueError, "class.a has 'gpus'; did you mean devices"),
        (WORKER + 'memory = "60 gigs"\n', ValueError, "class.a: memory is '60 gigs'"),
        (WORKER + "name = 'b'\n", ValueError, "class.a has 'name'"),
        (WORKER + "cwd = 1\n", TypeError, "class.a: cwd must be a str or path"),
        (WORKER + "max_batch = 'b'\n", TypeError, "class.a: max_batch must be an int"),
        ("[class.a]\nworker = 'module'\n", ValueError, 'expected "module:Class"'),
        ("[class.a]\nserver = 1\n", TypeError, "server must be a table"),
        ("[class.a]\nserver = {}\n", ValueError, "server has no command"),
        ("[class.a]\nserver = {command='a'}\n", TypeError, "server: command must be a list"),
        ("[class.a]\nserver = {command=[1]}\n", TypeError, "server: command must be"),
        ("[class.a]\nplugin = 1\n", TypeError, "class.a: plugin must be a str or path"),
        ("[class.a]\nserver = {command=['a'], port=1}\n", ValueError, "server has 'port'"),
        ("[class.a]\nserver = {command=['a']}\n", ValueError, "server: command has no"),
    ],
)
def test_bad_files(
    folder: pathlib.Path, text: str, error: type[Exception], told: str, leaves_nothing: None
) -> None:
    with pytest.raises(error, match=told):
        load_pool(written(folder, text), devices=None, cpus=1)


@pytest.mark.parametrize("name", ["none_such:Class", "MODULE:None_such"])
def test_a_worker_that_is_not_there(folder: pathlib.Path, name: str) -> None:
    file = written(folder, f'[class.a]\nworker = "{name}"\n')
    with pytest.raises((ImportError, AttributeError)) as caught:
        load_pool(file, devices=None, cpus=1)
    assert "in class.a of" in caught.value.__notes__[0]


def test_a_class_that_fits_nowhere(folder: pathlib.Path, leaves_nothing: None) -> None:
    with pytest.raises(GpuDispatchError) as caught:
        load_pool(written(folder, WORKER + "devices = 9\n"), devices="fake:2")
    assert "in class.a of" in caught.value.__notes__[0]


def test_no_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_pool(tmp_path / "none.toml")
