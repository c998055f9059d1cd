# SPDX-License-Identifier: MIT
"""codec.py: what goes in comes out, buffers are where they should be, and decoding is total."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import gc
import importlib
import pathlib
import pickle
import random
import struct
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from gpudispatch import codec, errors

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

needs_numpy = pytest.mark.skipif(np is None, reason="numpy is not installed")

MIB = 1 << 20
BIG = b"x" * 100_000


def there(value: Any, op: int = codec.VALUE, copy: bool = True, **how: Any) -> Any:
    """`value` through a frame."""
    frame = codec.join(codec.encode(op, value, **how))
    got, made = codec.decode(frame, copy=copy)
    assert got == op
    return made


def is_in_parts(value: Any, op: int = codec.VALUE, **how: Any) -> bool:
    return isinstance(codec.encode(op, value, **how), list)


@dataclasses.dataclass
class Point:
    x: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Node(dict[str, Any]):
    """A subclass with state of its own."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.extra = "kept"


class Out:
    """Exports its bytes by pickle protocol 5."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Out, (pickle.PickleBuffer(self.data),)


# --- values ---------------------------------------------------------------------------------------

VALUES = [
    None,
    True,
    0,
    -1,
    1 << 200,
    1.5,
    float("inf"),
    2j,
    "",
    "text",
    "\ud800 lone",
    b"",
    b"raw",
    b"x" * 70_000,
    bytearray(b"abc"),
    bytearray(70_000),
    (),
    (1, "a", None),
    [1, [2, [3]]],
    {"a": 1, ("b", 2): [3]},
    {1, 2},
    frozenset({3}),
    range(9),
    Point(3, ["a"]),
    [Point(1), Point(2)],
    len,
    Point,
    ("name", b"y" * 100_000),
    {"blob": bytearray(100_000), "n": 1},
    [b"z" * 80_000, 7],
    (Point(1), b"deep" * 50_000),
]


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("op", [codec.VALUE, codec.ITEM])
@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:20])
def test_there(value: Any, op: int, views: bool) -> None:
    made = there(value, op, views=views)
    assert made == value
    assert type(made) is type(value)
    assert there(value, op, copy=False, views=views) == value


PART: Any = ([1, 2], ("E", "t", "tb", None, {}))


@pytest.mark.parametrize(
    ("op", "value"),
    [
        (codec.CALL, (b"key", (1, BIG, bytearray(BIG)), {"k": BIG[1:], "n": None})),
        (codec.CALL, (b"key", (1, "a"), {})),
        (codec.CHUNK, (b"key", [(1, BIG)])),
        (codec.ITEMS, [b"a", BIG]),
        (codec.PART, PART),
    ],
)
def test_ops(op: int, value: Any) -> None:
    assert there(value, op) == value


def test_the_smallest_frames() -> None:
    assert codec.encode(codec.ITEM, b"ab") == b"\x20ab"
    assert codec.encode(codec.VALUE, 3) == b"\x01" + pickle.dumps(3, 5)
    assert codec.encode(codec.ITEM, b"ab", views=True) == b"\x20ab"


def test_structures_keep_their_shape() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    made = there(ring)
    assert made[1] is made
    ring = [BIG]
    ring.append(ring)
    made = there(ring)
    assert made[0] == BIG and made[1] is made
    shared = [1]
    one, two = there((shared, shared))
    assert one is two
    one, two = there((BIG, BIG))
    assert one is two
    node = Node({"a": Point(1)})
    made = there(node)
    assert made == node and made.extra == "kept" and type(made) is Node


def test_deep_structures_raise() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        codec.encode(codec.VALUE, deep)
    del deep


# --- buffers --------------------------------------------------------------------------------------


def test_layout() -> None:
    parts = codec.encode(codec.VALUE, Out(bytearray(range(200)) * 100))
    assert isinstance(parts, list) and len(parts) == 2
    frame = codec.join(parts)
    first, count, size, one = struct.unpack_from("<IIQQ", frame)
    assert (first, count, one) == (codec.BUFFERS, 1, 20_000)
    start = -(-(24 + size) // 64) * 64
    assert frame[start:] == bytes(range(200)) * 100
    assert not any(frame[24 + size : start])


def test_large_bytes_are_not_copied_into_the_pickle() -> None:
    big = b"x" * MIB
    for value, op in (
        (big, codec.VALUE),
        ((1, big), codec.VALUE),
        ({"k": big}, codec.VALUE),
        ((b"key", (big,), {}), codec.CALL),
        ((b"key", (), {"k": big}), codec.CALL),
    ):
        parts = codec.encode(op, value)
        assert isinstance(parts, list)
        assert len(parts[0]) < 400
        assert memoryview(parts[1]).obj is big
        assert there(value, op) == value


def test_a_large_pickle_is_a_part_of_its_own() -> None:
    value = list(range(100_000))
    parts = codec.encode(codec.VALUE, value)
    assert isinstance(parts, list) and len(parts[0]) == 24
    assert there(value) == value


SIZES = [0, 1, 100, 20_000, 100_000, 5 * MIB]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_buffers(kind: Any, size: int) -> None:
    data = kind(b"q" * size)
    made = there([Out(data), memoryview(data), {"k": memoryview(data)}])
    assert bytes(made[0].data) == bytes(data)
    if kind is bytearray and size:
        memoryview(made[0].data)[0] = 1
    for view in (made[1], made[2]["k"]):
        assert type(view) is memoryview and view == data and not view.readonly
    frame = codec.join(codec.encode(codec.VALUE, [Out(data), memoryview(data)], views=True))
    out, view = codec.decode(frame)[1]
    for part in (out.data, view):
        assert memoryview(part) == data
        if size:
            assert memoryview(part).readonly and memoryview(part).obj is frame


def test_memoryview_shapes() -> None:
    data = memoryview(bytearray(range(240)))
    for view in (
        data.cast("i"),
        data.cast("d", (3, 10)),
        data[::2],
        data[::-1],
        data[10:20],
        data[5:5],
        data.cast("i")[0:0],
        data.toreadonly(),
        data[:8].cast("q"),
        data[:8].cast("q", ()),
    ):
        made = there(view)
        assert made.tolist() == view.tolist()
        assert (made.format, made.shape) == (view.format, view.shape)


def test_a_buffer_that_cannot_travel() -> None:
    with pytest.raises(pickle.PicklingError, match="contiguous"):
        codec.encode(codec.VALUE, Out(memoryview(bytearray(10_000))[::2]))


def test_copies_own_their_memory() -> None:
    for size in (20_000, 5 * MIB):
        frame = codec.join(codec.encode(codec.VALUE, Out(bytearray(b"a" * size))))
        made = codec.decode(frame)[1]
        frame[:] = bytes(len(frame))  # type: ignore[index]
        assert bytes(made.data) == b"a" * size
        del frame


def test_decoding_lets_go_of_the_frame() -> None:
    for value in (3, b"raw", Out(bytearray(20_000)), [b"x" * 100_000]):
        frame = bytearray(codec.join(codec.encode(codec.VALUE, value)))
        made = codec.decode(memoryview(frame))[1]
        frame.clear()  # raises BufferError if a view is left
        del made


class BadLoad:
    def __reduce__(self) -> Any:
        return _cannot, ("no",)


def _cannot(text: str) -> Any:
    raise LookupError(text)


@pytest.mark.parametrize("size", [10, 20_000])
def test_what_fails_to_unpickle_lets_go_of_the_frame(size: int) -> None:
    frame = bytearray(codec.join(codec.encode(codec.VALUE, [Out(bytearray(size)), BadLoad()])))
    with pytest.raises(LookupError) as caught:
        codec.decode(memoryview(frame))
    frame.clear()
    assert str(caught.value) == "no"


# --- memory ---------------------------------------------------------------------------------------

needs_core = pytest.mark.skipif(
    codec._core is None or not hasattr(codec._core, "copied"), reason="_core is not built"
)


@needs_core
def test_memory_is_used_again() -> None:
    core = codec._core
    core.memory_trim()
    view = core.copied(b"x" * (8 * MIB))
    assert view.nbytes == 8 * MIB and not view.readonly and view[-1] == 120
    assert core.memory_kept() == 0
    part = view[5:10]
    del view
    assert core.memory_kept() == 0  # a part of it is in use
    del part
    assert core.memory_kept() == 8 * MIB
    smaller = core.copied(b"y" * (7 * MIB))
    assert core.memory_kept() == 0 and bytes(smaller[:2]) == b"yy" and len(smaller) == 7 * MIB
    del smaller
    tiny = core.copied(b"z")  # it does not take a large piece
    assert core.memory_kept() == 8 * MIB and bytes(tiny) == b"z"
    empty = core.copied(b"")
    assert bytes(empty) == b""
    del tiny, empty
    core.memory_trim()
    assert core.memory_kept() == 0


@needs_core
def test_memory_that_is_kept_is_bounded() -> None:
    core = codec._core
    core.memory_trim()
    views = [core.copied(bytes(16 * MIB)) for _ in range(20)]
    views.clear()
    assert 64 * MIB <= core.memory_kept() <= 128 * MIB
    views = [core.copied(bytes(10_000)) for _ in range(100)]
    views.clear()
    assert core.memory_kept() <= 128 * MIB
    core.memory_trim()


@needs_core
def test_memory_in_threads() -> None:
    source = [bytes([n]) * (4 * MIB + n) for n in range(4)]
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(50):
            view = codec._core.copied(source[n])
            if len(view) != len(source[n]) or view[0] != n or view[-1] != n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    codec._core.memory_trim()


# --- numpy ----------------------------------------------------------------------------------------


def arrays() -> Iterator[Any]:
    if np is None:
        return
    rows: Any = np.arange(24_000, dtype=float).reshape(100, 240)
    yield rows
    yield np.asfortranarray(rows)
    yield rows.T
    yield rows[::2, ::3]
    yield rows[:, ::-1]
    yield np.arange(10)
    yield np.zeros((0, 5))
    yield np.zeros((3, 0), order="F")
    yield np.array(5.5)
    yield np.array([("a", 1)] * 3000, dtype=[("s", "U4"), ("n", "i4")])
    yield np.array([("a", 1)] * 3000, dtype=[("s", "U4"), ("n", "i4")])[::2]
    yield np.array(["2024-01-01"] * 2000, dtype="datetime64[D]")
    yield np.arange(3000).astype("timedelta64[s]")
    yield np.array([1, "a", None], dtype=object)
    yield np.array([[1, [2]], [None, "x"]], dtype=object)[:, ::-1]
    yield np.arange(5000).astype(">i8")
    yield np.arange(5000).astype(np.float16)
    yield np.array([True, False] * 4000)
    yield np.array([b"ab", b"c"] * 2000)
    yield np.array(["ab", "c"] * 2000)
    yield np.zeros(10, dtype="V0")
    yield (np.arange(5000) * 1j).reshape(50, 100)
    yield np.broadcast_to(np.arange(100.0), (100, 100))
    for locked in (np.arange(5000.0), np.arange(10.0), np.asfortranarray(rows)):
        locked.flags.writeable = False
        yield locked
    yield np.frombuffer(b"x" * 10_000, dtype="u1")
    yield np.frombuffer(b"x" * 10_000, dtype="u1")[1:]


@needs_numpy
@pytest.mark.parametrize("array", list(arrays()), ids=lambda a: f"{a.dtype}{a.shape}"[:30])
def test_arrays(array: Any) -> None:
    for op, value, pick in (
        (codec.VALUE, array, lambda made: made),
        (codec.VALUE, {"deep": [array]}, lambda made: made["deep"][0]),
        (codec.CALL, (b"key", (array,), {"k": array}), lambda made: made[1][0]),
    ):
        made = pick(there(value, op))
        assert type(made) is np.ndarray
        assert made.dtype == array.dtype and made.shape == array.shape
        assert made.tolist() == array.tolist()
        assert made.flags.writeable
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            assert made.flags.f_contiguous
        made = pick(there(value, op, views=True))
        assert made.tolist() == array.tolist() and made.dtype == array.dtype
        if array.nbytes and not array.dtype.hasobject and array.dtype.kind not in "Mm":
            assert not made.flags.writeable


@needs_numpy
def test_arrays_lie_beside_the_pickle_and_are_aligned() -> None:
    rows = np.arange(24_000, dtype=float).reshape(100, 240)
    frame = codec.join(codec.encode(codec.VALUE, [rows, rows.T, rows[::2], b"x", rows[:9]]))
    base = np.frombuffer(frame, "u1").ctypes.data
    for made in codec.decode(frame, copy=False)[1]:
        if not isinstance(made, bytes):
            assert (made.ctypes.data - base) % 64 == 0
    for array in (rows, rows.T, rows[::2]):
        assert is_in_parts(array)
    assert not is_in_parts(np.arange(10)) and is_in_parts(np.arange(10), views=True)


@needs_numpy
@pytest.mark.parametrize("step", [1, 2])
def test_views_are_counted_and_copies_are_not(step: int) -> None:
    """The owner of a frame sees that a view of it is left."""
    array = np.arange(9000.0).reshape(90, 100).T[::step]
    frame = bytearray(codec.join(codec.encode(codec.VALUE, array, views=True)))
    made = codec.decode(frame)[1]
    with pytest.raises(BufferError):
        frame.clear()
    part = made[1:]
    del made
    with pytest.raises(BufferError):
        frame.clear()
    del part
    frame.clear()
    frame = bytearray(codec.join(codec.encode(codec.VALUE, array)))
    made = codec.decode(frame)[1]
    frame.clear()
    gc.collect()
    assert made.tolist() == array.tolist()


@needs_numpy
def test_other_arrays(tmp_path: Any) -> None:
    masked = np.ma.masked_array(np.arange(2000), mask=np.arange(2000) % 2 == 1)
    made = there(masked)
    assert type(made) is type(masked) and made.sum() == masked.sum()
    record = np.rec.array([(1, 2.0)] * 1000, dtype=[("a", "i4"), ("b", "f8")])
    assert there(record).a.tolist() == record.a.tolist()
    mapped = np.memmap(tmp_path / "m", dtype="f8", mode="w+", shape=(5000,))
    mapped[:] = 3
    made = there(mapped[10:4000])
    assert made.sum() == 3990 * 3 and made.flags.writeable and type(made) is np.memmap
    assert is_in_parts(mapped[10:4000])
    assert there(np.float64(2.5)) == 2.5 and there(np.datetime64("2024-01-01")).item().year == 2024
    assert there(np.dtype("f4")) == np.dtype("f4") and there(np.sum) is np.sum


@needs_numpy
def test_an_array_that_occurs_twice_is_one() -> None:
    array = np.arange(10_000)
    one, two = there((array, [array]))
    assert one is two[0]


# --- pickles that fail, and by value --------------------------------------------------------------


def test_what_cannot_be_pickled() -> None:
    nothing: list[int] = []
    values: list[Any] = [threading.Lock(), [threading.Lock()], (i for i in nothing)]
    for value in values:
        with pytest.raises(TypeError, match="pickle"):
            codec.encode(codec.VALUE, value)
        with pytest.raises(TypeError, match="pickle"):
            codec.encode(codec.CALL, (b"k", (value,), {}))


class Fails:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError("in reduce")


def test_what_fails_in_its_own_reduce() -> None:
    for value in (Fails(), [Fails()], (memoryview(b"x"), Fails())):
        with pytest.raises(ZeroDivisionError):
            codec.encode(codec.VALUE, value)
    assert there([memoryview(b"x")])[0] == b"x"  # the next one is not disturbed


def test_functions_by_value_in_data() -> None:
    pytest.importorskip("cloudpickle")
    made = there({"key": lambda x: x + 1, "view": memoryview(b"x" * 9999)})
    assert made["key"](1) == 2 and not made["view"].readonly
    assert there([lambda: 3, lambda: 4])[1]() == 4
    assert there(3) == 3


def test_without_cloudpickle(no_cloudpickle: None) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)) as caught:
        codec.encode(codec.VALUE, [lambda: 3])
    assert any("cloudpickle" in note for note in caught.value.__notes__)


def test_classes_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cloudpickle")
    module = types.ModuleType("__main__")
    exec("class Cell:\n    def __init__(self, n): self.n = n\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.setattr(codec, "main_by_value", True)
    frame = codec.join(codec.encode(codec.VALUE, [module.Cell(3)]))
    call = codec.join(codec.encode(codec.CALL, (b"k", (module.Cell(4),), {})))
    # A worker has another __main__; here the class is the same one, as it comes back.
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    monkeypatch.setattr(codec, "main_by_value", False)
    made = codec.decode(frame)[1][0]
    assert made.n == 3 and type(made) is module.Cell
    assert codec.decode(call)[1][1][0].n == 4
    # A worker's result of that class: not found by name, so by value, too.
    back = codec.join(codec.encode(codec.VALUE, made))
    assert type(codec.decode(back)[1]) is module.Cell


def test_reducers_of_copyreg_are_heard() -> None:
    class Special:
        pass

    codec.encode(codec.VALUE, [memoryview(b"x"), 1])
    copyreg.pickle(Special, lambda _: "len")
    try:
        with pytest.raises(pickle.PicklingError):
            codec.encode(codec.VALUE, [memoryview(b"x"), Special()])
        reduce: Any = lambda _: (int, ("7",))  # noqa: E731
        copyreg.pickle(Special, reduce)
        assert there([memoryview(b"x"), Special()])[1] == 7
    finally:
        del copyreg.dispatch_table[Special]


def test_tables_do_not_keep_classes_for_ever() -> None:
    for n in range(3 * codec._KINDS):
        kind = type(f"K{n}", (), {"__reduce__": lambda self: (int, ())})
        codec.encode(codec.VALUE, [memoryview(b"x"), kind()])
    assert len(codec._picklers["cpu"].dispatch_table) <= codec._KINDS + 1


class Held:
    """Pickles with a buffer, or fails to."""

    def __init__(self, size: int, fails: bool = False) -> None:
        self.size = size
        self.fails = fails

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.fails:
            raise TypeError("cannot pickle this")
        return bytes, (pickle.PickleBuffer(bytes(self.size)),)


@pytest.mark.parametrize("size", [10, 20_000, 100_000])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("by_value", [False, True])
def test_packed_objects_are_let_go(size: int, fails: bool, by_value: bool) -> None:
    if by_value:
        pytest.importorskip("cloudpickle")
    held = Held(size, fails)
    gone = weakref.ref(held)
    gc.disable()  # at once, not when the collector comes
    try:
        try:
            codec.encode(codec.VALUE, [memoryview(b"x"), held, *([lambda: 3] * by_value)])
        except TypeError:
            assert fails
        else:
            assert not fails
        del held
        assert gone() is None
    finally:
        gc.enable()


def test_packing_while_packing() -> None:
    class Inner:
        def __reduce__(self) -> Any:
            return bytes, (codec.join(codec.encode(codec.VALUE, [memoryview(b"in")])),)

    made = there([memoryview(b"out"), Inner(), memoryview(b"after")])
    assert made[0] == b"out" and made[2] == b"after"
    assert codec.decode(made[1])[1] == [b"in"]


# --- torch, cupy, jax: stand-ins ------------------------------------------------------------------


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """A cupy and a jax whose arrays count each touch of a GPU by unpickling."""
    touched: list[str] = []

    def on_gpu(*args: Any) -> Any:
        touched.append("unpickled on a GPU")

    class CupyArray:
        def __init__(self, data: list[float]) -> None:
            self.data = data

        def get(self) -> Any:
            return ("host copy", self.data)

        def __reduce__(self) -> Any:
            return on_gpu, ()

    class ArrayImpl:
        def __init__(self, platform: str) -> None:
            self.platform = platform

        def devices(self) -> Any:
            return [types.SimpleNamespace(platform=self.platform)]

        def __array__(self, *args: Any, **kw: Any) -> Any:
            return np.arange(3)

        def __reduce__(self) -> Any:
            return (str, ("on the CPU",)) if self.platform == "cpu" else (on_gpu, ())

    cupy = types.ModuleType("cupy")
    cupy.ndarray = CupyArray  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    yield types.SimpleNamespace(cupy=CupyArray, jax=ArrayImpl, touched=touched)
    codec._forget_kinds()


@needs_numpy
def test_arrays_on_a_gpu(fake_gpu: types.SimpleNamespace) -> None:
    made = there({"a": [fake_gpu.cupy([1.0])]})
    assert made == {"a": [("host copy", [1.0])]}
    assert there([fake_gpu.jax("gpu")])[0].tolist() == [0, 1, 2]
    assert there([fake_gpu.jax("cpu")])[0] == "on the CPU"
    for array in (fake_gpu.cupy([1.0]), fake_gpu.jax("gpu")):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            codec.encode(codec.CALL, (b"k", (array,), {}), cuda="error")
    assert not fake_gpu.touched


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """standins/torch: enough of Tensor for the package's reducer."""
    if np is None:
        pytest.skip("numpy is not installed")
    monkeypatch.syspath_prepend(pathlib.Path(__file__).resolve().parent / "standins")
    real = sys.modules.pop("torch", None)
    yield importlib.import_module("torch")
    codec._forget_kinds()
    del sys.modules["torch"]
    if real is not None:
        sys.modules["torch"] = real


def test_tensors_of_a_stand_in(fake_torch: Any) -> None:
    rows = np.arange(24_000.0).reshape(100, 240)
    for array in (rows, rows.T, rows[::2], rows[3], np.zeros((0, 4)), rows[:, ::3], np.array(2.0)):
        made = there([fake_torch.Tensor(array)])[0]
        assert type(made) is fake_torch.Tensor
        assert made.array.tolist() == array.tolist()
        assert made.array.flags.writeable
    # Only the elements that are seen travel, and a transposed one stays so.
    small = codec.join(codec.encode(codec.VALUE, fake_torch.Tensor(rows[3])))
    assert len(small) < 4000
    assert there(fake_torch.Tensor(rows.T)).stride() == (1, 240)
    assert there(fake_torch.Tensor(rows, requires_grad=True)).requires_grad
    assert is_in_parts(fake_torch.Tensor(rows))
    tensor = fake_torch.Tensor(np.arange(3.0))
    tensor.label = "mine"
    made = there([tensor])[0]
    assert made.label == "mine" and type(made) is fake_torch.Tensor


def test_tensors_on_a_gpu(fake_torch: Any) -> None:
    tensor = fake_torch.Tensor(np.arange(5000.0), "cuda")
    made = there({"logits": tensor})["logits"]
    assert made.device.type == "cpu" and made.array.sum() == np.arange(5000.0).sum()
    with pytest.raises(TypeError, match=r"cuda:0.*tensor\.cpu\(\)"):
        codec.encode(codec.CALL, (b"k", (tensor,), {}), cuda="error")
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        codec.encode(codec.ITEM, {"deep": [tensor]}, cuda="error")
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        codec.encode(codec.VALUE, [tensor, lambda: 3], cuda="error")
    assert there((b"k", (tensor.cpu(),), {}), codec.CALL, cuda="error")[1][0].numel() == 5000


def test_tensors_without_numpy(fake_torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = fake_torch.Tensor(np.arange(5000.0))
    monkeypatch.setattr(codec, "sys", types.SimpleNamespace(modules={"torch": fake_torch}))
    assert there([tensor])[0].array.sum() == np.arange(5000.0).sum()


# --- torch itself, where it is installed ----------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def tensors(torch: Any) -> Iterator[Any]:
    rows = torch.arange(24_000, dtype=torch.float32).reshape(100, 240)
    yield rows
    yield rows.t()
    yield rows[::2, ::3]
    yield rows[3]
    yield rows.expand(2, 100, 240)
    yield torch.zeros((0, 4))
    yield torch.tensor(2.5)
    for dtype in (
        torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool,
        torch.complex64, torch.float64,
    ):
        yield rows.to(dtype)
        yield rows[:2, :3].to(dtype)
    yield torch.zeros(2, 3, 16, 16).to(memory_format=torch.channels_last)
    yield torch.view_as_complex(torch.ones(3000, 2)).conj()
    yield torch.arange(3000.0, requires_grad=True)


def test_tensors(torch: Any) -> None:
    for tensor in tensors(torch):
        for views in (False, True):
            made = there([tensor, {"k": tensor}], views=views)
            assert made[0] is made[1]["k"]
            made = made[0]
            assert type(made) is torch.Tensor and made.dtype == tensor.dtype
            assert made.shape == tensor.shape and torch.equal(made, tensor)
            assert made.requires_grad == tensor.requires_grad
        made = there(tensor)
        if tensor.is_contiguous() or tensor.numel() == 61440:
            assert made.stride() == tensor.stride()
        if not made.requires_grad and made.dtype != torch.bool and made.numel():
            made.reshape(-1)[0] += 1  # writable, and memory of its own


def test_only_what_is_seen_travels(torch: Any) -> None:
    rows = torch.zeros(1000, 1000)
    assert len(codec.join(codec.encode(codec.VALUE, rows[7]))) < 5000
    assert isinstance(codec.encode(codec.VALUE, rows.t()), list)
    assert there(rows.t()).stride() == (1, 1000)


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # torch's, of its old kinds
def test_tensor_kinds(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.arange(9000.0))
    made = there(parameter)
    assert type(made) is torch.nn.Parameter and torch.equal(made, parameter)
    assert isinstance(codec.encode(codec.VALUE, parameter), list)
    labelled = torch.arange(3.0)
    labelled.label = "mine"
    assert there([labelled])[0].label == "mine"
    model = torch.nn.Sequential(torch.nn.Linear(50, 50), torch.nn.BatchNorm1d(50))
    made = there(model)
    for name, value in model.state_dict().items():
        assert torch.equal(made.state_dict()[name], value)
    assert list(there(model.state_dict())) == list(model.state_dict())
    sparse = torch.eye(100).to_sparse()
    assert torch.equal(there(sparse).to_dense(), torch.eye(100))
    assert there(torch.zeros(3, device="meta")).device.type == "meta"
    assert there(torch.float16) is torch.float16 and there(torch.device("cpu")).type == "cpu"
    quantized = torch.quantize_per_tensor(torch.ones(10), 0.1, 0, torch.qint8)
    assert torch.equal(there(quantized).dequantize(), quantized.dequantize())
    storage = torch.arange(10.0).storage()
    assert there(storage).tolist() == storage.tolist()
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3)])
    assert torch.equal(there(packed).data, packed.data)


class Marked:
    """Made a tensor class below, where torch is."""


def test_tensor_subclasses(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = type("Marked", (torch.Tensor,), {"__module__": __name__})
    monkeypatch.setattr(sys.modules[__name__], "Marked", kind)
    tensor = torch.arange(5000.0).as_subclass(kind)
    tensor.note = "x"
    made = there([tensor])[0]
    assert type(made) is kind and made.note == "x" and made.sum() == tensor.sum()
    assert isinstance(codec.encode(codec.VALUE, tensor), list)


# --- exceptions -----------------------------------------------------------------------------------


def exception_there(exc: BaseException) -> BaseException:
    op, value = codec.decode(codec.encode_exception(exc))
    assert op == codec.EXC
    return codec.decode_exception(value)


class TwoArguments(Exception):
    """Pickles, but cannot be rebuilt: its __init__ wants more than args."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}")


class OwnReduce(TwoArguments):
    """Can be rebuilt, but leaves its notes behind."""

    def __reduce__(self) -> Any:
        return OwnReduce, tuple(str(self).split(":"))


class WithState(Exception):
    def __init__(self, text: str, state: Any = None) -> None:
        super().__init__(text)
        self.state = state


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NotAnException(Exception):
    def __reduce__(self) -> Any:
        return int, ("3",)


def chained() -> Exception:
    try:
        try:
            raise ValueError("first")
        except ValueError as first:
            raise TypeError("second") from first
    except TypeError as second:
        return second


def noted(exc: Any, *notes: str) -> Any:
    for note in notes or ("a note", "another"):
        exc.add_note(note)
    return exc


@pytest.mark.parametrize(
    "exc",
    [
        KeyError("absent"),
        WithState("x", {"n": 1}),
        OwnReduce("file", 3),
        OSError(2, "No such file", "path"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why"),
        SystemExit(3),
        KeyboardInterrupt(),
        StopIteration(4),
        GeneratorExit(),
        MemoryError("none"),
        ExceptionGroup("several", [chained(), BaseExceptionGroup("in", [KeyError(1)])]),
        BaseExceptionGroup("all", [KeyboardInterrupt()]),
    ],
    ids=lambda exc: type(exc).__name__,
)
@pytest.mark.parametrize("notes", [False, True])
def test_exceptions_arrive_as_themselves(exc: BaseException, notes: bool) -> None:
    if notes:
        exc = noted(copy.copy(exc))
    made = exception_there(exc)
    assert type(made) is type(exc) and str(made) == str(exc)
    assert made.args == exc.args or isinstance(exc, BaseExceptionGroup)
    assert getattr(made, "__notes__", []) == ["a note", "another"] * notes
    assert vars(made).get("state") == vars(exc).get("state")
    assert getattr(made, "filename", None) == getattr(exc, "filename", None)
    assert isinstance(made.__cause__, errors.RemoteTraceback)
    assert codec.type_name(type(exc)) in made.__cause__.text
    assert ("a note" in made.__cause__.text and "another" in made.__cause__.text) is notes


def test_groups_and_causes() -> None:
    inner = BaseExceptionGroup("in", [noted(KeyError(1), "of the key")])
    made = exception_there(noted(ExceptionGroup("several", [chained(), inner])))
    assert isinstance(made, ExceptionGroup)
    assert [type(each) for each in made.exceptions] == [TypeError, ExceptionGroup]
    assert made.exceptions[1].exceptions[0].__notes__ == ["of the key"]  # type: ignore[union-attr]
    text = made.__cause__.text  # type: ignore[union-attr]
    for part in ("first", "direct cause", "of the key", "a note", "test_codec.py", "in chained"):
        assert part in text


@pytest.mark.parametrize(
    ("exc", "text", "reason"),
    [
        (TwoArguments("file", 3), "file:3", "cannot be rebuilt: TypeError"),
        (NotAnException("x"), "x", "rebuilt as int"),
        (WithState("locked", threading.Lock()), "locked", "cannot be pickled"),
        (ExceptionGroup("one", [TwoArguments("a", 1)]), "one (1 sub-exception)", "rebuilt"),
    ],
)
def test_exceptions_that_cannot_travel(exc: Any, text: str, reason: str) -> None:
    made: Any = exception_there(noted(exc))
    assert type(made) is errors.RemoteError
    assert made.type_name == codec.type_name(type(exc)) and made.text == text
    assert reason in made.reason and text in str(made)
    assert made.__notes__ == ["a note", "another"]
    assert text in made.__cause__.text and "another" in made.__cause__.text


@pytest.mark.parametrize("cloudpickle", [False, True])
def test_exceptions_of_local_classes(cloudpickle: bool, request: pytest.FixtureRequest) -> None:
    class Local(Exception):
        pass

    if cloudpickle:
        pytest.importorskip("cloudpickle")
    else:
        request.getfixturevalue("no_cloudpickle")
    made = exception_there(noted(Local("here")))
    assert type(made).__name__ == ("Local" if cloudpickle else "RemoteError")
    assert getattr(made, "text", str(made)).endswith("here") and made.__notes__ == [
        "a note",
        "another",
    ]


def test_exceptions_without_a_text_and_with_a_long_one() -> None:
    assert type(exception_there(BadText())) is BadText
    made: Any = exception_there(WithState("x" * MIB, threading.Lock()))
    assert "left out" in made.text and len(made.text) < MIB // 10
    assert "left out" in made.__cause__.text


def test_what_goes_with_an_exception() -> None:
    assert codec.exception_value(ValueError(1), {"free_mib": 3})[4] == {"free_mib": 3}


@pytest.mark.parametrize(
    "value", [None, 3, (), (1, 2, 3), ("n", "t", "tb", b"no", {}), (1, 2, 3, 4, 5)]
)
def test_exception_values_of_strangers(value: Any) -> None:
    assert isinstance(codec.decode_exception(value), errors.RemoteError)


# --- frames of strangers --------------------------------------------------------------------------


def test_truncated_frames() -> None:
    value = [Out(bytearray(20_000)), Out(b"z" * 17_000)]
    frame = bytes(codec.join(codec.encode(codec.VALUE, value)))
    for end in [*range(200), *range(200, len(frame), 97), len(frame) - 1]:
        with pytest.raises((codec.FrameError, pickle.UnpicklingError, EOFError)) as caught:
            codec.decode(frame[:end])
        if end > 100:
            assert "truncated" in str(caught.value)
    with pytest.raises(codec.FrameError, match="empty"):
        codec.decode(b"")


def test_hostile_heads() -> None:
    for first in range(256):
        op, form = first >> 4, first & 15
        if op < 7 and form <= 3:
            continue
        with pytest.raises(codec.FrameError, match="first byte"):
            codec.decode(bytes((first,)) + b"\x80\x05N.")
    huge = (1 << 64) - 1
    for count, size, sizes in (
        (0, 0, ()),
        (1 << 31, 4, ()),
        ((1 << 32) - 1, huge, ()),
        (1, 4, (huge,)),
        (2, 4, (1 << 62, 1 << 62)),
        (1, huge, (0,)),
        (3, 0, (4, huge >> 1, 1)),
    ):
        head = struct.pack(f"<B3xIQ{len(sizes)}Q", codec.BUFFERS, count, size, *sizes)
        with pytest.raises(codec.FrameError):
            codec.decode(head + b"\x80\x05N." + bytes(300))


def test_random_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bytes and damaged frames end in a value or an exception, never in anything else."""
    # The pickle is not what is tried here: it may do what it likes.
    monkeypatch.setattr(codec, "loads", lambda data, buffers=(): (bytes(data), list(buffers)))
    random_ = random.Random(7)
    good = bytes(
        codec.join(codec.encode(codec.VALUE, [Out(bytearray(5000)), Out(bytes(4096))], views=True))
    )
    for _ in range(20_000):
        if random_.random() < 0.5:
            frame = bytearray(random_.randbytes(random_.randrange(120)))
            if frame:
                frame[0] = random_.choice((0x02, 0x03, 0x12, frame[0]))
        else:
            frame = bytearray(good[: random_.randrange(len(good) + 1)])
            for _ in range(random_.randrange(4)):
                if frame:
                    frame[random_.randrange(min(len(frame), 48))] = random_.randrange(256)
        for copy in (False, True):
            try:
                assert 0 <= codec.decode(frame, copy=copy)[0] < 7
            except codec.FrameError as error:
                assert str(error)
        frame.clear()  # nothing holds it


# --- speed: the shape of the hot path, not its time -----------------------------------------------


@needs_core
@pytest.mark.parametrize("op", [codec.VALUE, codec.ITEM])
@pytest.mark.parametrize(
    "value", [3, -(2**70), 1.5, 1j, True, None, "text", "\udc80", (), (1, "a", None)]
)
def test_the_hot_path_is_c(monkeypatch: pytest.MonkeyPatch, op: int, value: Any) -> None:
    """Plain values and calls meet no code of Python, and their frames are those of the codec."""
    for name in ("dumps", "loads", "decode", "_encode_full"):
        monkeypatch.setattr(codec, name, None)
    frame = codec.encode(op, value)
    assert frame == bytes((op << 4 | codec.PICKLE,)) + pickle.dumps(value, 5)
    assert codec.load(frame) == value
    call = (b"key", (value, 1), {}) if type(value) is not tuple else (b"key", value, {})
    frame = codec.encode(codec.CALL, call)
    assert frame == bytes((codec.CALL << 4 | codec.PICKLE,)) + pickle.dumps(call, 5)
    assert codec.load(codec.encode(op, b"bytes")) == b"bytes"


class Number(int):
    pass


@needs_core
@pytest.mark.parametrize(
    ("op", "value"),
    [
        (codec.VALUE, []),
        (codec.VALUE, Number(3)),
        (codec.VALUE, ("a", b"bytes")),
        (codec.VALUE, tuple(range(40))),
        (codec.VALUE, "long" * 1000),
        (codec.VALUE, bytes(1 << 16)),
        (codec.VALUE, bytearray(3)),
        (codec.CALL, (b"key", ([],), {})),
        (codec.CALL, (b"key", (1,), {"a": 1})),
    ],
)
def test_what_the_hot_path_leaves(op: int, value: Any) -> None:
    assert codec._core.pack(op, value) is None
    assert there(value, op) == value


@needs_core
def test_load_of_other_frames() -> None:
    assert codec.load(None) == b""
    assert codec.load(b"\0") == b""
    assert codec.load(memoryview(codec.join(codec.encode(codec.VALUE, bytearray(1 << 16))))) == (
        bytearray(1 << 16)
    )
    for bad in (b"", b"\x0f", b"\x70", b"\xff"):
        with pytest.raises(codec.FrameError):
            codec.load(bad)
    with pytest.raises(ValueError, match="op is 7, the maximum is 6"):
        codec._core.pack(7, 1)


def test_imports_are_few() -> None:
    """A worker imports this before anything of the user's."""
    import subprocess

    code = (
        "import sys; before = set(sys.modules); from gpudispatch import codec; "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    for name in ("numpy", "torch", "pickle", "logging", "typing", "threading", "traceback"):
        assert name not in out


