# SPDX-License-Identifier: MIT
"""source.py: keys of callables, and how another process finds what they name."""

from __future__ import annotations

import functools
import gc
import math
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import types
import warnings
import weakref
import zipfile
from typing import Any

import pytest

import gpudispatch
from gpudispatch import codec, source

import data_tasks
from programs import PACKAGE

REFERENCE, CODE, FRESH = b"R", b"C", b"F"


def add_one(x: int) -> int:
    return x + 1


class Adder:
    def __init__(self, n: int) -> None:
        self.n = n

    def add(self, x: int) -> int:
        return self.n + x

    def __call__(self, x: int) -> int:
        return self.n + x

    @classmethod
    def make(cls, n: int) -> Adder:
        return cls(n)

    @staticmethod
    def double(x: int) -> int:
        return 2 * x

    class Inner:
        def __init__(self, x: int) -> None:
            self.x = x


@functools.lru_cache
def cached(x: int) -> int:
    return x + 5


def decorated_by(fn: Any) -> Any:
    @functools.wraps(fn)
    def inner(*args: Any) -> Any:
        return fn(*args)

    return inner


@decorated_by
def wrapped(x: int) -> int:
    return x + 7


adder = Adder(10)

CALLABLES = [
    (add_one, REFERENCE, 4),
    (math.sqrt, REFERENCE, math.sqrt(3)),
    (abs, REFERENCE, 3),
    (Adder.double, REFERENCE, 6),
    (Adder.Inner, REFERENCE, None),
    (int, REFERENCE, 3),
    (cached, REFERENCE, 8),
    (wrapped, REFERENCE, 10),
    (adder, FRESH, 13),
    (adder.add, FRESH, 13),
    (Adder.make, FRESH, None),
    (functools.partial(add_one), FRESH, 4),
    (functools.partial(Adder.add, adder), FRESH, 13),
    (functools.partial(adder.add), FRESH, 13),
    (float.__add__, FRESH, None),
    ([5, 6, 7, 8].__getitem__, FRESH, 8),
    (functools.partial(max, bytes(1 << 17) + b"\x93\x94.", key=len), FRESH, None),
]


@pytest.fixture(autouse=True)
def clean() -> Any:
    """No keys of other tests."""
    source._made.clear()
    source._by_value_keys.clear()
    yield
    source._made.clear()
    source._by_value_keys.clear()


@pytest.mark.parametrize(("fn", "kind", "of_3"), CALLABLES)
def test_keys(fn: Any, kind: bytes, of_3: Any) -> None:
    key = source.reference(fn)
    assert key[:1] == kind
    made = source.resolve(key)
    if of_3 is not None:
        assert made(3) == of_3
    if kind == REFERENCE:
        assert made is fn
        assert source.reference(fn) is key  # cached
        assert source.resolve(bytes(key)) is made
    else:
        assert source.resolve(key) is not made or made is fn


def test_objects_are_made_anew() -> None:
    """A worker does not see the state that another task has left in its callable."""
    own = Adder(1)
    first = source.reference(own)
    own.n = 2
    assert source.resolve(first)(1) == 2
    assert source.resolve(source.reference(own))(1) == 3
    assert source.resolve(source.reference(own.add))(1) == 3


def test_the_cache_keeps_no_function_alive() -> None:
    pytest.importorskip("cloudpickle")
    module = types.ModuleType("made_here")
    exec("def fn(): return 1", module.__dict__)
    sys.modules["made_here"] = module
    try:
        fn = module.fn
        fn.__module__ = "made_here"
        source.reference(fn)
        number = id(fn)
        assert number in source._keys
        gone = weakref.ref(fn)
        del module.fn, fn
        gc.collect()
        assert gone() is None and number not in source._keys
        exec("def fn(): return 2", module.__dict__)  # maybe at the same address
        assert source.resolve(source.reference(module.fn))() == 2
    finally:
        del sys.modules["made_here"]


def test_what_is_no_callable() -> None:
    for thing in (3, None, "text", [1]):
        with pytest.raises(TypeError, match="callable"):
            source.reference(thing)  # type: ignore[arg-type]


def test_by_value() -> None:
    pytest.importorskip("cloudpickle")
    n = 30

    def nested(x: int) -> int:
        return x + n

    assert source.reference(nested)[:1] == CODE
    assert source.resolve(source.reference(nested))(1) == 31
    n = 40  # what is captured is what it is at the call
    assert source.resolve(source.reference(nested))(1) == 41
    assert source.resolve(source.reference(lambda x: x * 2))(4) == 8
    partial = functools.partial(lambda x, y: x - y, 10)
    assert source.resolve(source.reference(partial))(3) == 7
    key = source.reference(lambda: 1)
    assert source.resolve(key) is source.resolve(bytes(key))  # kept by its bytes


def test_functions_by_value_are_bounded() -> None:
    pytest.importorskip("cloudpickle")
    for n in range(3 * source._KEPT):
        key = source.reference(lambda n=n: n)
        assert source.resolve(key)() == n
    assert len(source._by_value_keys) == source._KEPT
    assert sum(key[:1] == CODE for key in source._made) == source._KEPT
    large = bytes(2 << 20)
    key = source.reference(lambda: len(large))
    assert source.resolve(key)() == 2 << 20
    assert key not in source._made


def test_without_cloudpickle(no_cloudpickle: None) -> None:
    def nested() -> None:
        pass

    for fn in (lambda: 3, nested, functools.partial(lambda: 3), type("Local", (), {})):
        with pytest.raises(pickle.PicklingError) as caught:
            source.reference(fn)
        text = str(caught.value)
        assert "top level" in text and "pip install cloudpickle" in text


def test_what_cannot_be_sent() -> None:
    lock = __import__("threading").Lock()
    with pytest.raises(pickle.PicklingError, match="lock"):
        source.reference(functools.partial(add_one, lock))
    if "cloudpickle" in sys.modules:
        with pytest.raises(pickle.PicklingError, match=r"<lambda> by value.*lock"):
            source.reference(lambda: lock)


def test_a_gpu_tensor_in_a_callable(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu:
        def get(self) -> int:
            return 3

    numpy = pytest.importorskip("numpy")
    assert numpy
    cupy = types.ModuleType("cupy")
    cupy.ndarray = OnGpu  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        source.reference(functools.partial(str, OnGpu()))
    codec._forget_kinds()


def test_keys_of_strangers() -> None:
    for key in (b"", b"X", b"Xabc", b"R", b"R\x01\x80\x05N.", b"C\x01.", b"F", b"F\x77"):
        with pytest.raises((ValueError, TypeError, EOFError, pickle.UnpicklingError)):
            source.resolve(key)
    with pytest.raises(AttributeError) as caught:
        source.resolve(source.reference(add_one).replace(b"add_one", b"add_two"))
    assert "__main__" in caught.value.__notes__[0]


# --- __main__ -------------------------------------------------------------------------------------

ADOPT = """
import sys
sys.path.insert(0, {package!r})
from gpudispatch import codec, source
state, key, args = codec.decode(open({frame!r}, "rb").read())[1]
source.adopt(state)
lazy = type(sys.modules["__main__"]).__name__
out = source.resolve(key)(*codec.decode(args)[1])
print("worker:", out, lazy, *(sys.argv[1:] if out == "argv" else ()))
back = codec.join(codec.encode(codec.VALUE, out))
open({frame!r} + ".back", "wb").write(back)
"""

HOST = """
import sys
sys.path.insert(0, {package!r})
from gpudispatch import codec, source
import functools

def fn(x):
    return x + offset

offset = 100

class Own:
    def __init__(self, n): self.n = n
    def method(self, x): return self.n + x
    def __repr__(self): return f"Own({{self.n}})"

def give(x): return Own(x)
def take(own): return own.n
def name(): return (__name__, fn.__globals__ is sys.modules["__main__"].__dict__)
def count():
    global offset
    offset += 1
    return offset, sys.modules["__main__"].offset

def main():
    state = source.host_state()
    target, args = eval({target!r})
    value = state, source.reference(target), codec.join(codec.encode(codec.VALUE, args))
    frame = codec.join(codec.encode(codec.VALUE, value))
    open({frame!r}, "wb").write(frame)
    import subprocess
    subprocess.run([sys.executable, "-c", {adopt!r}], check=True)
    back = codec.decode(open({frame!r} + ".back", "rb").read())[1]
    print("host:", back, isinstance(back, Own))

{start}
"""
GUARDED = 'if __name__ == "__main__":\n    main()'


class Program:
    """A host and a worker, made of the same file."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def text(self, target: str, start: str = GUARDED) -> str:
        frame = str(self.folder / "frame")
        return HOST.format(
            package=PACKAGE,
            frame=frame,
            target=target,
            start=start,
            adopt=ADOPT.format(package=PACKAGE, frame=frame),
        )

    def run(self, *argv: str, text: str | None = None, fails: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=self.folder,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout


@pytest.fixture
def program(tmp_path: pathlib.Path) -> Program:
    return Program(tmp_path)


@pytest.mark.parametrize(
    ("target", "worker", "host"),
    [
        ("fn, (3,)", "103", "103 False"),
        ("give, (3,)", "Own(3)", "Own(3) True"),
        ("take, (Own(4),)", "4", "4 False"),
        ("Own, (5,)", "Own(5)", "Own(5) True"),
        ("Own(5).method, (1,)", "6", "6 False"),
        ("functools.partial(fn), (1,)", "101", "101 False"),
        ("name, ()", "('__mp_main__', True)", "('__mp_main__', True) False"),
        ("count, ()", "(101, 101)", "(101, 101) False"),
    ],
)
def test_a_script(program: Program, target: str, worker: str, host: str) -> None:
    (program.folder / "script.py").write_text(program.text(target))
    out = program.run("script.py")
    assert f"worker: {worker} module\n" in out
    assert f"host: {host}\n" in out


def test_a_script_without_suffix_is_imported_late(program: Program) -> None:
    (program.folder / "script").write_text(program.text("fn, (3,)"))
    assert "worker: 103 _LazyMain\n" in program.run("script")
    start = "1/0 if __name__ != '__main__' else main()"
    (program.folder / "script").write_text(program.text("len, ('abc',)", start))
    assert "worker: 3 _LazyMain\n" in program.run("script")


def test_modules_and_packages(program: Program) -> None:
    package = program.folder / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("value = 1000\n")
    (package / "tool.py").write_text(
        program.text("fn, (3,)").replace("offset = 100", "from .other import value as offset")
    )
    (package / "__main__.py").write_text(program.text("fn, (4,)"))
    assert "worker: 1003 module\n" in program.run("-m", "pack.tool")
    assert "worker: 104 _LazyMain\n" in program.run("-m", "pack")


def test_folders_and_archives(program: Program) -> None:
    folder = program.folder / "app"
    folder.mkdir()
    (folder / "__main__.py").write_text(program.text("fn, (5,)"))
    assert "worker: 105 _LazyMain\n" in program.run("app")
    with zipfile.ZipFile(program.folder / "app.zip", "w") as archive:
        archive.write(folder / "__main__.py", "__main__.py")
        archive.writestr("helper.py", "x = 1\n")
    assert "worker: 105 _LazyMain\n" in program.run("app.zip")


def test_runners_that_replace_main(program: Program) -> None:
    (program.folder / "script.py").write_text(program.text("fn, (3,)"))
    assert "worker: 103" in program.run("-m", "runpy", "script")
    (program.folder / "run.py").write_text(
        "import runpy; runpy.run_path('script.py', run_name='__main__')"
    )
    out = program.run("run.py")
    assert "worker: 103" in out
    assert "host: 103" in program.run("-i", "script.py", text="")


def test_no_file(program: Program) -> None:
    """python -c, a program on stdin and a prompt: by value, or an error at once."""
    text = program.text("fn, (3,)", "main()")
    for argv, given in ((("-c", text), None), (("-",), text)):
        if codec.can_by_value():
            out = program.run(*argv, text=given)
            assert "worker: 103" in out and "host: 103 False" in out
    own = program.text("take, (Own(4),)", "main()")
    if codec.can_by_value():
        assert "worker: 4" in program.run("-c", own)
        back = program.run("-c", program.text("give, (4,)", "main()"))
        assert "worker: Own(4)" in back and "host: Own(4) True" in back
        (program.folder / "script.py").write_text(program.text("late, (3,)", ""))
        typed = program.run(
            "-i", "script.py", text="def late(x): return x + offset\n\nmain()\n"
        )
        assert "worker: 103" in typed
    blocked = "import sys; sys.modules['cloudpickle'] = None\n"
    for target in ("fn, (3,)", "Own(5).method, (1,)", "functools.partial(fn), (1,)"):
        out = program.run("-c", blocked + program.text(target, "main()"), fails=True)
        assert "PicklingError" in out and "pip install cloudpickle" in out and "top level" in out


@pytest.mark.parametrize("start", ["main()", "raise SystemExit(main())", "raise KeyError('x')"])
def test_a_missing_guard(program: Program, start: str) -> None:
    text = program.text("fn, (3,)", "if __name__ == '__main__': main()\nelse:\n    " + start)
    refuse = "def main():\n    if __name__ != '__main__': raise SystemExit(source.GUARD)"
    (program.folder / "script.py").write_text(text.replace("def main():", refuse))
    out = program.run("script.py", fails=True)
    assert "the main file" in out and str(program.folder / "script.py") in out
    if "KeyError" not in start:
        assert 'if __name__ == "__main__":' in out


def test_what_is_under_the_guard(program: Program) -> None:
    start = "if __name__ == '__main__':\n    def late(): pass\n    main()"
    (program.folder / "script.py").write_text(program.text("late, ()", start))
    out = program.run("script.py", fails=True)
    assert "AttributeError" in out and "top level" in out


def test_a_lazy_main_that_fails_is_run_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "prog"
    path.write_text(f"open({str(tmp_path / 'log')!r}, 'a').write('run\\n')\n1/0\n")
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {PACKAGE!r})
        from gpudispatch import source
        state = source.host_state()
        state["main"] = {{"kind": "path", "value": {str(path)!r}}}
        source.adopt(state)
        import pickle
        for _ in range(3):
            try:
                pickle.loads(b"c__main__\\nfn\\n.")
            except (ZeroDivisionError, RuntimeError) as error:
                print(type(error).__name__, error)
    """)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[0] == "ZeroDivisionError division by zero"
    assert out.stdout.count("could not be imported") == 2
    assert (tmp_path / "log").read_text() == "run\n"


# --- the host's state -----------------------------------------------------------------------------


def in_worker(state: dict[str, Any], code: str, tmp_path: pathlib.Path) -> str:
    frame = tmp_path / "state"
    frame.write_bytes(codec.join(codec.encode(codec.VALUE, state)))
    start = (
        f"import sys; sys.path.insert(0, {PACKAGE!r}); from gpudispatch import codec, source; "
        f"source.adopt(codec.decode(open({str(frame)!r}, 'rb').read())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", start + code],
        cwd=tmp_path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def no_main(state: dict[str, Any]) -> dict[str, Any]:
    return state | {"main": {"kind": "none", "value": ""}}


def test_path_directory_and_arguments(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    monkeypatch.setattr(sys, "path", ["", "lib", "no_such_hook", *sys.path, pathlib.Path("x")])
    monkeypatch.setattr(sys, "argv", ["prog", "--flag"])
    state = no_main(source.host_state())
    out = in_worker(state, "import os; print(os.getcwd(), sys.argv, sys.path[:3])", tmp_path)
    paths = [str(tmp_path), str(tmp_path / "lib"), "no_such_hook"]
    assert out == f"{tmp_path} ['prog', '--flag'] {paths}\n"
    state = no_main(source.host_state(directory=False))
    out = in_worker(state, "import os; print(os.getcwd())", tmp_path)
    assert out == f"{tmp_path.parent}\n"


def test_a_directory_that_has_gone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert source.host_state()["directory"] is None
    state = no_main(source.host_state()) | {"directory": str(gone), "filters": []}
    assert "cannot enter" in in_worker(state, "", tmp_path)


def test_warnings_filters(tmp_path: pathlib.Path) -> None:
    numpy = pytest.importorskip("numpy")
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", "noise .*", UserWarning, module="some")
        warnings.filterwarnings("error", category=numpy.exceptions.ComplexWarning)
        warnings.simplefilter("error", DeprecationWarning)
        state = no_main(source.host_state())
        expected = repr([(f[0], getattr(f[2], "__name__", None)) for f in warnings.filters])
    code = """
import warnings
print([(f[0], f[2].__name__) for f in warnings.filters], "numpy" in sys.modules)
try:
    warnings.warn("old", DeprecationWarning)
except DeprecationWarning:
    print("raised")
import numpy
warnings.simplefilter("ignore", BytesWarning)
source.resolve(source.reference(len))
print([(f[0], f[2].__name__) for f in warnings.filters])
"""
    lines = in_worker(state, code, tmp_path).splitlines()
    without = expected.replace("('error', 'ComplexWarning'), ", "")
    assert lines[0] == f"{without} False"
    assert lines[1] == "raised"
    assert lines[2].startswith("[('ignore', 'BytesWarning'), ")
    assert lines[2].endswith(expected[1:])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_managers_proxy() -> None:
    """A worker has the host's key: it can use the proxies of the host's managers."""
    with multiprocessing.Manager() as manager, gpudispatch.Executor(1) as pool:
        queue = manager.Queue()
        pool.submit(data_tasks.put, queue, 5).result(60)
        assert queue.get(timeout=60) == 5


def test_imports_are_few() -> None:
    code = (
        "import sys; before = set(sys.modules); from gpudispatch import source; "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": PACKAGE},
    ).stdout.split()
    for name in ("numpy", "cloudpickle", "pickle", "logging", "typing", "importlib.util", "runpy"):
        assert name not in out
