# SPDX-License-Identifier: MIT
"""Frames: how values travel between the host and its workers.

A frame is a byte (op << 4 | form) and what the form says:

    RAW       the value is `bytes`: the rest is it
    PICKLE    the rest is a pickle
    BUFFERS   3 zero bytes, u32 n, u64 size of the pickle, n u64 sizes, the pickle, and each buffer
              at the next multiple of 64 from the start of the frame; all numbers little endian.
              Without a size of its own the pickle is the first buffer.
    VIEWS     as BUFFERS, and the reader gets read-only views of the frame, no copies (copy=False)

Large data (arrays, tensors, bytes) lies in buffers beside the pickle, so that it is copied once
from where it is into the arena, and once out of it at the other end. A worker imports this module
before it has run anything of the user's, so it imports as little as it can.
"""

from __future__ import annotations

import copyreg
import struct
import sys
from _operator import methodcaller
from _pickle import PickleBuffer, Pickler, PicklingError, dumps, loads

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any

    # `collections.abc.Buffer` is there from 3.12 only; this is what is passed around.
    Buffer = bytes | bytearray | memoryview
    Encoded = bytes | list[Buffer]

_core: Any
try:
    from . import _core
except ImportError:  # a platform without `_core`
    _core = None

# What a frame is for.
VALUE, CALL, ITEM, CHUNK, ITEMS, EXC, PART = range(7)
# How its value is written.
RAW, PICKLE, BUFFERS, VIEWS = range(4)

_OPS = 7
_ALIGN = 64
_PROTOCOL = 5
# Below this a buffer costs less inside the pickle than beside it.
_IN_BAND = 1 << 14
# From here on a `bytes` among the arguments is worth a look of its own.
_BIG = 1 << 16
# The top bit of a size: what is rebuilt from this buffer copies it, so a view will do.
_COPIED = 1 << 63

_RAW_HEADS = [bytes((op << 4 | RAW,)) for op in range(_OPS)]
_PICKLE_HEADS = [bytes((op << 4 | PICKLE,)) for op in range(_OPS)]
_HEAD = struct.Struct("<B3xIQ")

# Set by source.host_state(): classes and functions of `__main__` cannot be imported by a worker
# (a notebook, an interactive session), so they travel by value where cloudpickle is installed.
main_by_value = False


class FrameError(ValueError):
    """Bytes that are no frame: truncated, or not written by this version of the package."""


# --- memory of decoded buffers ------------------------------------------------------------------

# From here on memory comes from `_core`, which keeps it for the next buffer when the last view has
# gone: the first touch of fresh pages costs up to three times the copy. Below, malloc does as much.
_POOL_FROM = 4 << 20


class _Own(bytearray):
    """Memory of one buffer: a type by which `_writable` knows it."""

    __slots__ = ()


_OWN: tuple[type, ...] = (_Own,) if _core is None else (_Own, _core.Memory)


def _owned(view: memoryview) -> memoryview:
    """Writable memory with the bytes of `view`, owned by what is made of it."""
    if len(view) >= _POOL_FROM and _core is not None:
        copied: memoryview = _core.copied(view)
        return copied
    return memoryview(_Own(view))


# --- encoding -----------------------------------------------------------------------------------

# Values that need no look: they hold no buffer, and nothing that only a GPU process can read.
_PLAIN = frozenset((int, float, bool, str, complex, type(None)))
_BYTES = frozenset((bytes, bytearray))
# What a container may hold besides large bytes, if those are to be taken out of it.
_LEAVES = _PLAIN | _BYTES

# A small frame of a value without buffers, or None; see frame.c.
_pack: Callable[[int, Any], bytes | None] = getattr(_core, "pack", lambda op, value: None)


def encode(op: int, value: Any, *, cuda: str = "cpu", views: bool = False) -> Encoded:
    """The frame of `value`: `bytes`, or parts of which each starts at a multiple of 64.

    `cuda` says what a tensor on a GPU becomes: "cpu" copies it, "error" raises TypeError. With
    `views` every buffer lies beside the pickle, else only those that are worth it.
    """
    data: bytes | None = _pack(op, value)
    if data is not None:
        return data
    if type(value) is bytes and len(value) < _BIG:
        return _RAW_HEADS[op] + value
    if "numpy" in sys.modules or "torch" in sys.modules:
        full = not _is_plain(op, value)
    else:  # hardly anything makes buffers then, so their sizes are not looked at
        full = _holds_big(op, value)
    if full:
        return _encode_full(op, value, cuda, views)
    buffers: list[PickleBuffer] = []
    try:
        data = dumps(value, _PROTOCOL, buffer_callback=buffers.append)
    except (PicklingError, AttributeError, TypeError):
        return _encode_full(op, value, cuda, views)
    if main_by_value and b"__main__" in data:
        return _encode_full(op, value, cuda, views)
    if buffers or len(data) >= _BIG:
        return _frame(op, data, buffers, (), views)
    return _PICKLE_HEADS[op] + data


def _is_plain(op: int, value: Any) -> bool:
    """Whether a value, and what it holds, need no look."""
    kind = type(value)
    if op == CALL:
        _, args, kwargs = value
        return _PLAIN.issuperset(map(type, args)) and _PLAIN.issuperset(map(type, kwargs.values()))
    if kind is tuple or kind is list:
        return _PLAIN.issuperset(map(type, value))
    if kind is dict:
        return _PLAIN.issuperset(map(type, value)) and _PLAIN.issuperset(map(type, value.values()))
    return kind in _PLAIN


def _holds_big(op: int, value: Any) -> bool:
    """Whether there is a large `bytes` or `bytearray` where `_lift` would find it."""
    kind = type(value)
    if op == CALL:
        parts = (*value[1], *value[2].values())
    elif kind is tuple or kind is list:
        if _BYTES.isdisjoint(map(type, value)):
            return False
        parts = value
    elif kind is dict:
        parts = value.values()
    else:
        return kind in _BYTES
    for part in parts:
        if type(part) in _BYTES and len(part) >= _BIG:
            return True
    return False


class _Whole:
    """Stands for a large `bytes` or `bytearray`, so that its bytes lie beside the pickle."""

    __slots__ = ("buffer", "kind")

    def __init__(self, kind: type, buffer: PickleBuffer) -> None:
        self.kind = kind
        self.buffer = buffer

    def __reduce__(self) -> tuple[type, tuple[PickleBuffer]]:
        return self.kind, (self.buffer,)


def _lift(op: int, value: Any, copied: set[int]) -> Any:
    """`value` with its large bytes and bytearrays replaced by `_Whole`.

    One level deep, since deeper ones cost a walk. The containers of a call are made by the call, so
    nothing can refer to them; others are left alone unless they hold leaves only, as a copy of a
    list that contains itself would be another structure.
    """
    seen: dict[int, _Whole] = {}

    def lifted(part: Any) -> Any:
        kind = type(part)
        if kind not in _BYTES or len(part) < _BIG:
            return part
        whole = seen.get(id(part))
        if whole is None:
            buffer = PickleBuffer(part)
            copied.add(id(buffer))
            whole = seen[id(part)] = _Whole(kind, buffer)
        return whole

    def lifted_dict(parts: dict[Any, Any]) -> dict[Any, Any]:
        return {name: lifted(part) for name, part in parts.items()}

    kind = type(value)
    if op == CALL:
        key, args, kwargs = value
        return key, tuple(map(lifted, args)), lifted_dict(kwargs)
    if kind is dict:
        return lifted_dict(value) if _LEAVES.issuperset(map(type, value.values())) else value
    if kind is tuple or kind is list:
        return kind(map(lifted, value)) if _LEAVES.issuperset(map(type, value)) else value
    return lifted(value)


class _Out(list["Any"]):
    """What a pickler writes to: large bytes come as they are, and are copied once, by `join`."""

    __slots__ = ()
    write = list.append


class _Packer:
    """A pickler and what it fills; used again, since to make one costs as much as to use it."""

    __slots__ = ("buffers", "clear_memo", "dump", "out", "views")

    def __init__(self, kind: Any) -> None:
        self.buffers: list[PickleBuffer] = []
        self.out = _Out()
        self.views = False
        pickler = kind(self.out, protocol=_PROTOCOL, buffer_callback=self.beside)
        self.dump = pickler.dump
        self.clear_memo = pickler.clear_memo

    def beside(self, buffer: PickleBuffer) -> bool:
        """Called for each buffer: True leaves it in the pickle."""
        if self.views or buffer.raw().nbytes >= _IN_BAND:
            self.buffers.append(buffer)
            return False
        return True

    def pack(self, value: Any, views: bool) -> tuple[bytes, list[PickleBuffer]]:
        self.views = views
        try:
            self.dump(value)
            return b"".join(self.out), self.buffers[:]
        finally:
            self.clear_memo()  # part of a cycle, it would hold all that was packed
            self.out.clear()
            self.buffers.clear()


# Packers at rest, by what they do with tensors on a GPU.
_packers: dict[str, list[_Packer]] = {"cpu": [], "error": []}


def _encode_full(op: int, value: Any, cuda: str, views: bool) -> Encoded:
    """`encode` by the pickler that knows arrays, tensors and views."""
    copied: set[int] = set()
    if _holds_big(op, value):
        value = _lift(op, value, copied)
    if len(copyreg.dispatch_table) != _known_reducers:
        _forget_kinds()
    resting = _packers[cuda]
    packer = resting.pop() if resting else _Packer(_picklers[cuda])
    try:
        data, buffers = packer.pack(value, views)
    except (PicklingError, AttributeError, TypeError) as error:
        by_value = None if isinstance(error, CudaError) else _pack_by_value(value, cuda, views)
        if by_value is None:
            if not isinstance(error, TypeError):  # a lambda, a class inside a function
                error.add_note(
                    "functions and classes travel by reference: define it at the top level of a "
                    "module, or `pip install cloudpickle`, which sends them by value"
                )
            raise
        data, buffers = by_value
    else:
        # The memo of one that has packed much stays large, so it is not used again.
        if len(data) < _BIG:
            resting.append(packer)
        if main_by_value and b"__main__" in data:
            data, buffers = _pack_by_value(value, cuda, views) or (data, buffers)
    if not buffers and len(data) < _BIG:
        return _PICKLE_HEADS[op] + data
    return _frame(op, data, buffers, copied, views)


def _pack_by_value(
    value: Any, cuda: str, views: bool
) -> tuple[bytes, list[PickleBuffer]] | None:
    """As _Packer.pack, with functions and classes by value; None without cloudpickle."""
    pickler = _cloud_pickler(cuda)
    return None if pickler is None else _Packer(pickler).pack(value, views)


def encode_by_value(fn: Any) -> bytes | None:
    """The frame of a function with its code; None without cloudpickle."""
    packed = _pack_by_value(fn, "error", False)
    return packed and bytes(join(_frame(VALUE, *packed, (), False)))


def _frame(
    op: int, data: bytes, buffers: list[PickleBuffer], copied: Container[int], views: bool
) -> list[Buffer]:
    """The parts of a frame of form BUFFERS."""
    raws: list[Buffer] = []
    sizes: list[int] = []
    size = len(data)
    if size >= _BIG:
        # A large pickle is the first buffer: so it needs no copy behind the head.
        raws.append(data)
        sizes.append(size)
        size = 0
        data = b""
    for buffer in buffers:
        raw = buffer.raw()
        raws.append(raw)
        sizes.append(raw.nbytes | (_COPIED if id(buffer) in copied else 0))
    count = len(sizes)
    first = op << 4 | (VIEWS if views else BUFFERS)
    head = struct.pack(f"<B3xIQ{count}Q", first, count, size, *sizes)
    return [head + data, *raws]


def frame_size(frame: Encoded) -> int:
    """The bytes of a frame, as core_parts_copy writes it."""
    if isinstance(frame, bytes):
        return len(frame)
    size = 0
    for part in frame:
        size = -(-size // 64) * 64 + memoryview(part).nbytes
    return size


def own(frame: Encoded) -> Encoded:
    """A frame that does not change with the caller's arrays."""
    return frame if isinstance(frame, bytes) else [bytes(part) for part in frame]


def join(data: Encoded) -> bytes | bytearray:
    """What `encode` returned as one piece, as it will lie in the arena."""
    if isinstance(data, bytes):
        return data
    out = bytearray(data[0])
    for part in data[1:]:
        out.extend(bytes(-len(out) % _ALIGN))
        out.extend(part)
    return out


# --- reducers for data that pickle would copy, refuse, or leave on a GPU ------------------------


class CudaError(TypeError):
    """An array on a GPU where only one in host memory can travel."""


def _writable(buffer: Any) -> Any:
    """A buffer that was out of band, or bytes that were in band, as memory to write to.

    Pickle marks the buffers of read-only objects read-only again; a copy needs no such mark. Views
    of a frame stay what they are.
    """
    if type(buffer) is bytes:
        return memoryview(bytearray(buffer))
    view = memoryview(buffer)
    if view.readonly and isinstance(view.obj, _OWN):
        return memoryview(view.obj)[: view.nbytes]
    return view


def _rebuild_array(buffer: Any, dtype: Any, shape: tuple[int, ...], order: Any) -> Any:
    import numpy

    memory = _writable(buffer)
    if memory.readonly:
        # ndarray() keeps the owner of the memory, but no view of it: a frame counts its views.
        return numpy.frombuffer(memory, dtype).reshape(shape, order=order)
    return numpy.ndarray(shape, dtype, memory, 0, None, order)


# Kinds of numpy's types that a short text names completely: pickle would write each as an object.
_NAMED_KINDS = frozenset("biufcSUmM")


def _reduce_array(array: Any) -> Any:
    dtype = array.dtype
    if dtype.hasobject:
        return array.__reduce_ex__(_PROTOCOL)
    named = dtype.kind in _NAMED_KINDS and dtype.metadata is None
    flags = array.flags
    order = "C" if flags.c_contiguous else "F"
    if order == "F" and not flags.f_contiguous:
        # Pickle would make a string of it and copy that into the pickle.
        array, order = array.copy(order="C"), "C"
    buffer: Any = b""
    if array.nbytes:
        try:
            buffer = PickleBuffer(array)
        except ValueError:  # dates, and types of other packages: no format for a buffer
            buffer = PickleBuffer(array.reshape(-1, order=order).view("u1"))
    return _rebuild_array, (buffer, dtype.str if named else dtype, array.shape, order)


def _reduce_memmap(array: Any) -> Any:
    # By itself it would lie inside the pickle: pickle 5 takes plain arrays out only.
    plain = sys.modules["numpy"].ndarray
    return plain.view, (array.view(plain), type(array))


def _rebuild_view(buffer: Any, form: str, shape: tuple[int, ...]) -> memoryview:
    view: Any = _writable(buffer).cast("B")
    # An empty view can be cast in one dimension only.
    made: memoryview = view.cast(form, shape) if len(view) else view.cast(form)
    return made


def _reduce_view(view: memoryview) -> Any:
    flat: Any = b""
    if view.nbytes:
        flat = PickleBuffer(view.cast("B") if view.c_contiguous else bytearray(view.tobytes()))
    return _rebuild_view, (flat, view.format, tuple(view.shape or ()))


def _rebuild_tensor(
    buffer: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    requires_grad: bool,
    kind: type | None = None,
    state: dict[str, Any] | None = None,
) -> Any:
    """With a kind: a tensor of a subclass, or with attributes of its own."""
    import warnings

    import torch  # type: ignore[import-not-found, unused-ignore]

    if not len(buffer):
        tensor = torch.empty_strided(size, stride, dtype=dtype)
    else:
        buffer = _writable(buffer)
        if buffer.readonly:
            # A view of a frame: torch has no read-only tensors, and warns. To write to it crashes.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                flat = torch.frombuffer(buffer, dtype=torch.uint8)
        else:
            flat = torch.frombuffer(buffer, dtype=torch.uint8)
        tensor = flat.view(dtype).as_strided(size, stride)
    if kind is not None and kind is not torch.Tensor:
        tensor = tensor.as_subclass(kind)  # before requires_grad: it shall be a leaf
    if requires_grad:
        tensor.requires_grad_(True)
    if state:
        tensor.__dict__.update(state)
    return tensor


def _memory_of(tensor: Any) -> PickleBuffer:
    """The memory of a dense tensor on the CPU."""
    flat = tensor.as_strided((tensor.numel(),), (1,)).view(sys.modules["torch"].uint8)
    if "numpy" in sys.modules:  # without it tensors have no numpy()
        return PickleBuffer(flat.numpy())
    import ctypes

    memory: Any = (ctypes.c_char * flat.numel()).from_address(flat.data_ptr())
    memory._tensor = flat
    return PickleBuffer(memory)


def _is_dense(tensor: Any) -> bool:
    """Whether the elements fill one stretch of memory, each once, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _same(value: Any) -> Any:
    return value


# What pickle does by itself, as a callable that costs no Python frame.
_by_default = methodcaller("__reduce_ex__", _PROTOCOL)

# How many classes a table holds: those made in a loop must not live for ever.
_KINDS = 1000


def _derives(kind: type, module: str, *names: str) -> bool:
    """Whether a class derives from one of a module's, which may be half imported, or not at all."""
    bases = (getattr(sys.modules.get(module), name, None) for name in names)
    return any(base is not None and issubclass(kind, base) for base in bases)


class _Table(dict[type, "Callable[[Any], Any]"]):
    """Reducers by type, for what is imported: the C pickler asks it for each object."""

    def __init__(self, cuda: str, others: dict[type, Any] | None = None) -> None:
        super().__init__()
        self.cuda = cuda
        self.fixed = {**(others or {}), memoryview: _reduce_view}
        self.forget()

    def forget(self) -> None:
        """Drop the classes that were met: some may be gone, or have got a reducer since."""
        self.clear()
        self.update(self.fixed)

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        found = copyreg.dispatch_table.get(kind)
        if found is not None:
            return found
        reducer = self._reducer(kind)
        if reducer is None:
            if issubclass(kind, type):
                raise KeyError(kind)  # a metaclass: pickle writes its classes by name
            reducer = _by_default
        if len(self) >= _KINDS:
            self.forget()
        self[kind] = reducer
        return reducer

    def _reducer(self, kind: type) -> Callable[[Any], Any] | None:
        numpy = sys.modules.get("numpy")
        if kind is getattr(numpy, "ndarray", None):
            return _reduce_array
        if kind is getattr(numpy, "memmap", None):
            return _reduce_memmap
        if _derives(kind, "torch", "Tensor"):
            return self._reduce_tensor
        if _derives(kind, "torch", "UntypedStorage", "TypedStorage"):
            return self._reduce_storage
        if _derives(kind, "cupy", "ndarray"):
            return self._reduce_cupy
        if "jax" in sys.modules and kind.__name__ == "ArrayImpl":
            return self._reduce_jax
        return None

    def _leaves_gpu(self, what: str, how: str) -> None:
        """Raises where a copy on the CPU is not wanted."""
        if self.cuda == "error":
            raise CudaError(f"{what} cannot be sent: the worker owns its GPU alone; pass {how}")

    def _reduce_tensor(self, tensor: Any) -> Any:
        torch = sys.modules["torch"]
        device = tensor.device.type
        if device == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
            return tensor.__reduce_ex__(_PROTOCOL)
        kind, state, requires_grad = type(tensor), dict(tensor.__dict__), tensor.requires_grad
        if kind is not torch.Tensor:
            if kind.__reduce_ex__ is not torch.Tensor.__reduce_ex__:
                return tensor.__reduce_ex__(_PROTOCOL)  # Parameter: its `data` comes here again
            tensor = tensor.as_subclass(torch.Tensor)
        tensor = tensor.detach()
        if device != "cpu":
            self._leaves_gpu(f"a tensor on {tensor.device}", "tensor.cpu()")
            tensor = tensor.cpu()
        tensor = tensor.resolve_conj().resolve_neg()
        if tensor.numel() and not _is_dense(tensor):
            # Only what is seen travels: a row of a large matrix does not bring the matrix along.
            tensor = tensor.contiguous()
        buffer = _memory_of(tensor) if tensor.numel() else b""
        place = tuple(tensor.shape), tuple(tensor.stride())
        own = () if kind is torch.Tensor and not state else (kind, state)
        return _rebuild_tensor, (buffer, tensor.dtype, *place, requires_grad, *own)

    def _reduce_storage(self, storage: Any) -> Any:
        if storage.device.type != "cpu":
            self._leaves_gpu(f"a storage on {storage.device}", "storage.cpu()")
            storage = storage.cpu()
        return storage.__reduce_ex__(_PROTOCOL)

    def _reduce_cupy(self, array: Any) -> Any:
        self._leaves_gpu("a cupy array", "array.get() (as tensor.cpu() in torch)")
        return _same, (array.get(),)

    def _reduce_jax(self, array: Any) -> Any:
        if all(device.platform == "cpu" for device in array.devices()):
            return array.__reduce_ex__(_PROTOCOL)
        self._leaves_gpu(
            "a jax array on a GPU", "numpy.asarray(array) (as tensor.cpu() in torch)"
        )
        import numpy

        return _same, (numpy.asarray(array),)


def _with_table(base: Any, table: _Table) -> Any:
    return type("_Pickler", (base,), {"dispatch_table": table})


_picklers = {cuda: _with_table(Pickler, _Table(cuda)) for cuda in ("cpu", "error")}
_cloud_picklers: dict[str, Any] = {}
_known_reducers = len(copyreg.dispatch_table)


def _forget_kinds() -> None:
    global _known_reducers
    _known_reducers = len(copyreg.dispatch_table)
    for pickler in (*_picklers.values(), *_cloud_picklers.values()):
        pickler.dispatch_table.forget()


def _cloud_pickler(cuda: str) -> Any:
    """A pickler that sends functions and classes by value, or None without cloudpickle."""
    made = _cloud_picklers.get(cuda)
    if made is None:
        try:
            import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            return None
        base = cloudpickle.Pickler
        made = _with_table(base, _Table(cuda, base.dispatch_table.maps[0]))
        _cloud_picklers[cuda] = made
    return made


def can_by_value() -> bool:
    """Whether cloudpickle is installed."""
    return _cloud_pickler("cpu") is not None


# --- decoding -----------------------------------------------------------------------------------

_RAW_OPS = {op << 4 | RAW: op for op in range(_OPS)}
_PICKLE_OPS = {op << 4 | PICKLE: op for op in range(_OPS)}


def decode(frame: Buffer, *, copy: bool = True) -> tuple[int, Any]:
    """(op, value) of a frame.

    With `copy` the buffers become writable memory that the value owns, unless the sender has asked
    for views; without, they are read-only views of `frame`. Raises FrameError for what is no frame,
    and what unpickling raises.
    """
    try:
        head = frame[0]
        op = _PICKLE_OPS.get(head)
        if op is not None:
            return op, loads(memoryview(frame)[1:])
        op = _RAW_OPS.get(head)
        if op is not None:
            return op, bytes(memoryview(frame)[1:])
        return _decode_buffers(frame, copy)
    except BaseException as error:
        if not len(frame):
            raise FrameError("an empty frame") from None
        # The traceback would keep the frame, and with it room in the arena.
        frame = b""
        _let_go(error)
        raise


# The value of a result's frame; None stands for one of no bytes.
load: Callable[[Buffer | None], Any] = getattr(_core, "load", None) or (
    lambda frame: decode(frame or b"\0")[1]
)


def chain(error: BaseException | None) -> list[BaseException]:
    """An exception, and those that caused it or were being handled."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is each for each in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found


def _let_go(error: BaseException) -> None:
    """Clear the variables of the functions that `error`, and what caused it, came through."""
    for each in chain(error):
        trace = each.__traceback__
        while trace is not None:
            try:
                trace.tb_frame.clear()
            except RuntimeError:  # it is still running
                pass
            trace = trace.tb_next


def _decode_buffers(frame: Buffer, copy: bool) -> tuple[int, Any]:
    head = frame[0]
    op, form = head >> 4, head & 15
    if op >= _OPS or form not in (BUFFERS, VIEWS):
        raise FrameError(f"no frame of this version: its first byte is {head:#04x}")
    pickled, *buffers = _split(frame, copy and form != VIEWS)
    return op, loads(pickled, buffers=buffers)


def _split(frame: Buffer, copy: bool) -> list[memoryview]:
    """The pickle of a frame and its buffers: copies or read-only views."""
    view = memoryview(frame).toreadonly()
    end = len(view)
    if end < _HEAD.size:
        raise FrameError(f"a truncated frame: {end} bytes, its head alone is {_HEAD.size}")
    _, count, size = _HEAD.unpack_from(view)
    position = _HEAD.size + 8 * count
    if position + size > end:
        raise FrameError(
            f"a truncated frame: {end} bytes, but {count} buffers and a pickle of {size}"
        )
    parts = [(view[position : position + size], size)] if size else []
    position += size
    for size in struct.unpack_from(f"<{count}Q", view, _HEAD.size):
        start = -(-position // _ALIGN) * _ALIGN
        position = start + (size & ~_COPIED)
        if position > end:
            raise FrameError(f"a truncated frame: {end} bytes, a buffer ends at {position}")
        parts.append((view[start:position], size))
    if not parts:
        raise FrameError("a frame without a pickle")
    # All is checked before anything is copied. What is rebuilt from a buffer marked _COPIED copies
    # it, and so does unpickling itself.
    pickled, *buffers = parts
    return [
        pickled[0],
        *(_owned(part) if copy and not size & _COPIED else part for part, size in buffers),
    ]


# --- exceptions ---------------------------------------------------------------------------------

# Longer texts are cut in the middle: an exception must find room where its result would not.
_TEXT_LIMIT = 1 << 16


def _cut(text: str) -> str:
    if len(text) <= _TEXT_LIMIT:
        return text
    half = _TEXT_LIMIT // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def type_name(kind: type) -> str:
    """The full name of a class, as tracebacks write it."""
    module = getattr(kind, "__module__", None)
    name = getattr(kind, "__qualname__", kind.__name__)
    return name if module in (None, "builtins") else f"{module}.{name}"


def exception_text(exc: BaseException) -> str:
    """`str(exc)`, also where that raises."""
    try:
        return _cut(str(exc))
    except Exception:
        return "<its str() failed>"


def exception_value(exc: BaseException, extra: dict[str, Any]) -> tuple[Any, ...]:
    """An exception as the value of an EXC frame. What cannot be pickled travels as text."""
    name, text = type_name(type(exc)), exception_text(exc)
    try:
        import traceback

        trace = _cut("".join(traceback.format_exception(exc)))
    except Exception:
        trace = f"{name}: {text}\n"
    notes = getattr(exc, "__notes__", None)
    if notes:  # also where the exception itself, or its way of pickling, leaves them behind
        extra = extra | {"notes": [_cut(str(note)) for note in notes]}
    pickled: bytes | None = None
    try:
        pickled = bytes(join(encode(VALUE, exc)))
    except Exception as error:
        extra = extra | {"reason": f"it cannot be pickled: {exception_text(error)}"}
    return name, text, trace, pickled, extra


def encode_exception(exc: BaseException) -> bytes:
    """The frame of an exception."""
    return _PICKLE_HEADS[EXC] + dumps(exception_value(exc, {}), _PROTOCOL)


def decode_exception(value: Any) -> BaseException:
    """The exception of an EXC frame's value, with the worker's traceback as its `__cause__`."""
    from . import errors

    try:
        name, text, trace, pickled, extra = value
    except (TypeError, ValueError):
        return errors.RemoteError("the worker sent an exception that cannot be read")
    extra = extra if isinstance(extra, dict) else {}
    reason = str(extra.get("reason", ""))
    exc: BaseException | None = None
    if pickled is not None:
        try:
            made = decode(pickled)[1]
            if isinstance(made, BaseException):
                exc = made
            else:
                reason = f"it was rebuilt as {type_name(type(made))}"
        except Exception as error:
            reason = f"it cannot be rebuilt: {type_name(type(error))}: {exception_text(error)}"
    if exc is None:
        exc = errors.RemoteError(type_name=str(name), text=str(text), reason=reason)
    if not hasattr(exc, "__notes__"):
        for note in extra.get("notes", ()):
            exc.add_note(note)
    exc.__cause__ = errors.RemoteTraceback(str(trace))
    return exc
