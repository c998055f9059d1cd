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
    from collections.abc import Callable, Container, Sequence
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

# What a tuple or dict may hold besides large bytes, if those are to be taken out of it.
_LEAVES = frozenset((int, float, bool, str, complex, type(None), bytes, bytearray))

# A small frame of a value without buffers, or None; see frame.c.
_pack: Callable[[int, Any], bytes | None] = getattr(_core, "pack", lambda op, value: None)


def encode(
    op: int, value: Any, *, cuda: str = "cpu", views: bool = False
) -> bytes | list[Buffer]:
    """The frame of `value`: `bytes`, or parts of which each starts at a multiple of 64.

    `cuda` says what a tensor on a GPU becomes: "cpu" copies it, "error" raises TypeError. With
    `views` every buffer lies beside the pickle, else only those that are worth it.
    """
    data: bytes | None = _pack(op, value)
    if data is not None:
        return data
    if type(value) is bytes:
        if len(value) < _BIG:
            return _RAW_HEADS[op] + value
        return _encode_full(op, value, cuda, views)
    modules = sys.modules
    if "numpy" in modules or "torch" in modules or _holds_big(op, value):
        return _encode_full(op, value, cuda, views)
    # Without these hardly anything makes buffers, so their sizes are not looked at.
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


def _holds_big(op: int, value: Any) -> bool:
    """Whether there is a large `bytes` or `bytearray` where `_lift` would find it."""
    kind = type(value)
    if op == CALL:
        parts = (*value[1], *value[2].values()) if value[2] else value[1]
    elif kind is tuple or kind is list:
        parts = value
    elif kind is dict:
        parts = value.values()
    else:
        return kind is bytes or kind is bytearray
    for part in parts:
        kind = type(part)
        if (kind is bytes or kind is bytearray) and len(part) >= _BIG:
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
        if not (kind is bytes or kind is bytearray) or len(part) < _BIG:
            return part
        whole = seen.get(id(part))
        if whole is None:
            buffer = PickleBuffer(part)
            copied.add(id(buffer))
            whole = seen[id(part)] = _Whole(kind, buffer)
        return whole

    if op == CALL:
        key, args, kwargs = value
        return (
            key,
            tuple(map(lifted, args)),
            {name: lifted(part) for name, part in kwargs.items()},
        )
    kind = type(value)
    if kind is tuple or kind is list:
        if _LEAVES.issuperset(map(type, value)):
            return kind(map(lifted, value))
        return value
    if kind is dict:
        if _LEAVES.issuperset(map(type, value.values())):
            return {name: lifted(part) for name, part in value.items()}
        return value
    return lifted(value)


class _Out(list["Any"]):
    """What a pickler writes to: large bytes come as they are, and are copied once, by `join`."""

    __slots__ = ()
    write = list.append


class _Packer:
    """A pickler and what it fills; used again, since to make one costs as much as to use it."""

    __slots__ = ("buffers", "clear", "dump", "out", "own", "views")

    def __init__(self, pickler: Any, own: bool = True) -> None:
        self.own = own
        self.buffers: list[PickleBuffer] = []
        self.out = _Out()
        self.views = False
        made = pickler(self.out, protocol=_PROTOCOL, buffer_callback=self.beside)
        self.dump = made.dump
        self.clear = made.clear_memo

    def beside(self, buffer: PickleBuffer) -> bool:
        """Called for each buffer: True leaves it in the pickle."""
        if self.views or buffer.raw().nbytes >= _IN_BAND:
            self.buffers.append(buffer)
            return False
        return True


    def let_go(self) -> None:
        """Forget what was packed: the memo of a pickler, which is part of a cycle, holds all."""
        self.clear()
        self.out.clear()
        self.buffers.clear()


# Packers at rest, by what they do with tensors on a GPU.
_packers: dict[str, list[_Packer]] = {"cpu": [], "error": []}


def _encode_full(op: int, value: Any, cuda: str, views: bool) -> bytes | list[Buffer]:
    """`encode` by the pickler that knows arrays, tensors and views."""
    copied: set[int] | None = None
    if _holds_big(op, value):
        copied = set()
        value = _lift(op, value, copied)
    if len(copyreg.dispatch_table) != _known_reducers:
        _forget_kinds()
    resting = _packers[cuda]
    try:
        packer = resting.pop()
    except IndexError:
        packer = _Packer(_PICKLERS[cuda])
    packer.views = views
    try:
        try:
            packer.dump(value)
        except (PicklingError, AttributeError, TypeError) as error:
            if isinstance(error, CudaError):
                raise
            packer.let_go()
            # It raises `error` or returns a packer.
            packer = _by_value(value, cuda, views, error) or packer
        data = b"".join(packer.out)
        if main_by_value and b"__main__" in data:
            cloud = _by_value(value, cuda, views, None)
            if cloud is not None:
                packer.let_go()
                packer = cloud
                data = b"".join(packer.out)
        if not packer.buffers and len(data) < _BIG:
            return _PICKLE_HEADS[op] + data
        return _frame(op, data, packer.buffers, copied or (), views)
    finally:
        # The memo of one that has packed much stays large, so it is not used again.
        much = len(packer.out) > 1 or len(packer.out[0]) >= _BIG if packer.out else True
        packer.let_go()
        if not much and packer.own:
            resting.append(packer)


def _by_value(
    value: Any, cuda: str, views: bool, reason: Exception | None
) -> _Packer | None:
    """A packer that has packed `value` with its functions and classes by value.

    Raises `reason` where that fails, too; without a reason returns None where there is no
    cloudpickle.
    """
    try:
        pickler = _cloud_pickler(cuda)
        if pickler is not None:
            packer = _Packer(pickler, own=False)
            packer.views = views
            try:
                packer.dump(value)
            except Exception as error:
                packer.let_go()
                raise (reason or error) from None
            return packer
        if reason is not None:
            if not isinstance(reason, TypeError):  # a lambda, a class inside a function
                reason.add_note(
                    "functions and classes travel by reference: define it at the top level of a "
                    "module, or `pip install cloudpickle`, which sends them by value"
                )
            raise reason
        return None
    finally:
        reason = None  # its traceback has this frame: a cycle would keep the value


def _frame(
    op: int,
    data: bytes,
    buffers: Sequence[PickleBuffer],
    copied: Container[int],
    views: bool,
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


def nested(value: object) -> PickleBuffer:
    """A value as a frame inside a frame: for what is read after something else has been set up."""
    return PickleBuffer(join(encode(VALUE, value, cuda="error", views=True)))


def join(data: bytes | list[Buffer]) -> bytes | bytearray:
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


def _rebuild_empty_array(shape: tuple[int, ...], dtype: Any, order: Any) -> Any:
    import numpy

    return numpy.empty(shape, dtype, order)


def _rebuild_view(buffer: Any, form: str, shape: tuple[int, ...]) -> memoryview:
    view: memoryview = memoryview(_writable(buffer))
    if form == "B" and len(shape) == 1:
        return view
    return view.cast("B").cast(form, shape)  # type: ignore[call-overload, no-any-return]


def _reduce_view(view: memoryview) -> Any:
    if not view.c_contiguous:
        flat: Any = bytearray(view.tobytes())
    elif view.nbytes:
        flat = view.cast("B")
    else:
        flat = b""
    if not view.nbytes or view.ndim == 0:
        return _rebuild_view_bytes, (bytes(flat), view.format, tuple(view.shape or ()))
    return _rebuild_view, (PickleBuffer(flat), view.format, tuple(view.shape or ()))


def _rebuild_view_bytes(data: bytes, form: str, shape: tuple[int, ...]) -> memoryview:
    view = memoryview(bytearray(data))
    if not data:
        # An empty view can be cast in one dimension only.
        return view.cast(form)  # type: ignore[call-overload, no-any-return]
    return view.cast(form, shape)  # type: ignore[call-overload, no-any-return]


# Kinds of numpy's types that a short text names completely: pickle would write each as an object.
_NAMED_KINDS = frozenset("biufcSUmM")


def _reduce_array(array: Any) -> Any:
    dtype = array.dtype
    if dtype.hasobject:
        return array.__reduce_ex__(_PROTOCOL)
    named = dtype.kind in _NAMED_KINDS and dtype.metadata is None
    flags = array.flags
    order = "C" if flags.c_contiguous else "F"
    shape = array.shape
    if not array.nbytes:
        return _rebuild_empty_array, (shape, dtype, order)
    if order == "F" and not flags.f_contiguous:
        # Pickle would make a string of it and copy that into the pickle.
        array, order = array.copy(order="C"), "C"
    try:
        buffer = PickleBuffer(array)
    except ValueError:  # dates, and types of other packages: no format for a buffer
        buffer = PickleBuffer(array.reshape(-1, order=order).view("u1"))
    return _rebuild_array, (buffer, dtype.str if named else dtype, shape, order)


def _reduce_memmap(array: Any) -> Any:
    # By itself it would lie inside the pickle: pickle 5 takes plain arrays out only.
    numpy = sys.modules["numpy"]
    return _rebuild_memmap, (array.view(numpy.ndarray),)


def _rebuild_memmap(array: Any) -> Any:
    import numpy

    return array.view(numpy.memmap)


def _rebuild_tensor(
    buffer: Any, dtype: Any, size: Any, stride: Any, requires_grad: bool
) -> Any:
    import warnings

    import torch  # type: ignore[import-not-found, unused-ignore]

    buffer = _writable(buffer)
    if buffer.readonly:
        # A view of a frame: torch has no read-only tensors, and warns. To write to it is a crash.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = torch.frombuffer(buffer, dtype=torch.uint8)
    else:
        flat = torch.frombuffer(buffer, dtype=torch.uint8)
    tensor = flat.view(dtype).as_strided(size, stride)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_empty_tensor(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    import torch

    return torch.empty_strided(size, stride, dtype=dtype, requires_grad=requires_grad)


def _rebuild_kind(
    rebuild: Callable[..., Any], args: tuple[Any, ...], kind: type, state: dict[str, Any]
) -> Any:
    """A tensor of a subclass, or with attributes of its own."""
    *args_but_grad, requires_grad = args
    tensor = rebuild(*args_but_grad, False)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)  # before requires_grad: it shall be a leaf
    if requires_grad:
        tensor.requires_grad_(True)
    if state:
        tensor.__dict__.update(state)
    return tensor


def _same(value: Any) -> Any:
    return value


def _tensor_reducer(cuda: str) -> Callable[[Any], Any]:
    torch = sys.modules["torch"]

    def reduce_tensor(tensor: Any) -> Any:
        device = tensor.device.type
        if device == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
            return tensor.__reduce_ex__(_PROTOCOL)
        kind = type(tensor)
        if kind is torch.Tensor:
            plain = tensor
        elif kind.__reduce_ex__ is not torch.Tensor.__reduce_ex__:
            return tensor.__reduce_ex__(_PROTOCOL)  # Parameter: its `data` comes here again
        else:
            plain = tensor.as_subclass(torch.Tensor)
        state = dict(tensor.__dict__)
        reduced = _reduce_plain_tensor(plain, device, cuda)
        if kind is torch.Tensor and not state:
            return reduced
        return _rebuild_kind, (*reduced, kind, state)

    return reduce_tensor


def _reduce_plain_tensor(tensor: Any, device: str, cuda: str) -> Any:
    torch = sys.modules["torch"]
    requires_grad = tensor.requires_grad
    tensor = tensor.detach()
    if device != "cpu":
        if cuda == "error":
            raise CudaError(
                f"a tensor on {tensor.device} cannot be an argument: "
                "the worker owns its GPU alone; pass tensor.cpu()"
            )
        tensor = tensor.cpu()
    tensor = tensor.resolve_conj().resolve_neg()
    size, dtype = tuple(tensor.shape), tensor.dtype
    if not tensor.numel():
        return _rebuild_empty_tensor, (dtype, size, tuple(tensor.stride()), requires_grad)
    if not _is_dense(tensor):
        # Only what is seen travels: a row of a large matrix does not bring the matrix along.
        tensor = tensor.clone(memory_format=torch.preserve_format)
        if not _is_dense(tensor):
            tensor = tensor.contiguous()
    stride = tuple(tensor.stride())
    flat = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
    if _has_numpy():
        buffer = PickleBuffer(flat.numpy())
    else:
        import ctypes

        kind = ctypes.c_char * flat.numel()
        memory = kind.from_address(flat.data_ptr())
        memory._tensor = flat
        buffer = PickleBuffer(memory)
    return _rebuild_tensor, (buffer, dtype, size, stride, requires_grad)


def _has_numpy() -> bool:
    """Whether the tensors of torch have `numpy()`, which needs it."""
    return "numpy" in sys.modules


def _is_dense(tensor: Any) -> bool:
    """Whether the elements fill one stretch of memory, each once, in any order of dimensions."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def _storage_reducer(cuda: str) -> Callable[[Any], Any]:
    def reduce_storage(storage: Any) -> Any:
        if storage.device.type != "cpu":
            if cuda == "error":
                raise CudaError(
                    f"a storage on {storage.device} cannot be an argument: pass storage.cpu()"
                )
            storage = storage.cpu()
        return storage.__reduce_ex__(_PROTOCOL)

    return reduce_storage


def _cupy_reducer(cuda: str) -> Callable[[Any], Any]:
    def reduce_cupy(array: Any) -> Any:
        if cuda == "error":
            raise CudaError(
                "a cupy array cannot be an argument: the worker owns its GPU alone; "
                "pass array.get() (as tensor.cpu() in torch)"
            )
        return _same, (array.get(),)

    return reduce_cupy


def _jax_reducer(cuda: str) -> Callable[[Any], Any]:
    def reduce_jax(array: Any) -> Any:
        if all(device.platform == "cpu" for device in array.devices()):
            return array.__reduce_ex__(_PROTOCOL)
        if cuda == "error":
            raise CudaError(
                "a jax array on a GPU cannot be an argument: the worker owns its GPU alone; "
                "pass numpy.asarray(array) (as tensor.cpu() in torch)"
            )
        import numpy

        return _same, (numpy.asarray(array),)

    return reduce_jax


# What pickle does by itself, as a callable that costs no Python frame.
_by_default = methodcaller("__reduce_ex__", _PROTOCOL)


class _Table(dict[type, "Callable[[Any], Any]"]):
    """Reducers by type, for what is imported: the C pickler asks it for each object."""

    def __init__(self, cuda: str) -> None:
        super().__init__()
        self.cuda = cuda
        self[memoryview] = _reduce_view

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

    def forget(self) -> None:
        """Drop the classes that were met: some may be gone, or have got a reducer since."""
        self.clear()
        self[memoryview] = _reduce_view

    def _reducer(self, kind: type) -> Callable[[Any], Any] | None:
        modules = sys.modules
        if (module := modules.get("numpy")) is not None:
            if kind is getattr(module, "ndarray", None):
                return _reduce_array
            if kind is getattr(module, "memmap", None):
                return _reduce_memmap
        if (module := modules.get("torch")) is not None:
            tensor = getattr(module, "Tensor", None)
            if tensor is not None and issubclass(kind, tensor):
                return _tensor_reducer(self.cuda)
            storage = getattr(module, "UntypedStorage", None)
            typed = getattr(module, "TypedStorage", None)
            if (storage is not None and issubclass(kind, storage)) or (
                typed is not None and issubclass(kind, typed)
            ):
                return _storage_reducer(self.cuda)
        if (module := modules.get("cupy")) is not None:
            array = getattr(module, "ndarray", None)
            if array is not None and issubclass(kind, array):
                return _cupy_reducer(self.cuda)
        if "jax" in modules and kind.__name__ == "ArrayImpl":
            return _jax_reducer(self.cuda)
        return None


# How many classes a table holds: those made in a loop must not live for ever.
_KINDS = 1000

_tables = {cuda: _Table(cuda) for cuda in ("cpu", "error")}
_known_reducers = len(copyreg.dispatch_table)


def _forget_kinds() -> None:
    global _known_reducers
    _known_reducers = len(copyreg.dispatch_table)
    for table in _tables.values():
        table.forget()


class _CpuPickler(Pickler):
    dispatch_table = _tables["cpu"]


class _ErrorPickler(Pickler):
    dispatch_table = _tables["error"]


_PICKLERS: dict[str, type[Pickler]] = {"cpu": _CpuPickler, "error": _ErrorPickler}
_cloud_picklers: dict[str, Any] = {}


def can_by_value() -> bool:
    """Whether cloudpickle is installed."""
    return _cloud_pickler("cpu") is not None


class _CloudTable(_Table):
    """Without negative entries: cloudpickle decides by object what to send by value."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        reducer = copyreg.dispatch_table.get(kind) or self._reducer(kind)
        if reducer is None:
            raise KeyError(kind)
        return reducer


def _cloud_pickler(cuda: str) -> Any:
    """A pickler that sends functions and classes by value, or None without cloudpickle."""
    try:
        return _cloud_picklers[cuda]
    except KeyError:
        pass
    try:
        import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return None
    base = cloudpickle.Pickler
    table = _CloudTable(cuda)
    for kind, reducer in base.dispatch_table.maps[0].items():
        table.setdefault(kind, reducer)
    made = type("_CloudPickler", (base,), {"dispatch_table": table})
    _cloud_picklers[cuda] = made
    return made


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


def _let_go(error: BaseException | None) -> None:
    """Clear the variables of the functions that `error`, and what caused it, came through."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            try:
                trace.tb_frame.clear()
            except RuntimeError:  # it is still running
                pass
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _decode_buffers(frame: Buffer, copy: bool) -> tuple[int, Any]:
    head = frame[0]
    op, form = head >> 4, head & 15
    if op >= _OPS or form not in (BUFFERS, VIEWS):
        raise FrameError(f"no frame of this version: its first byte is {head:#04x}")
    copy = copy and form != VIEWS
    buffers = _split(frame, copy)
    return op, loads(buffers.pop(0), buffers=buffers)


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
    sizes = struct.unpack_from(f"<{count}Q", view, _HEAD.size)
    parts = [view[position : position + size]] if size else []
    position += size
    bounds = []
    for size in sizes:
        start = -(-position // _ALIGN) * _ALIGN
        position = start + (size & ~_COPIED)
        if position > end:
            raise FrameError(f"a truncated frame: {end} bytes, a buffer ends at {position}")
        bounds.append((start, position, size))
    # All is checked before anything is copied.
    for start, position, size in bounds:
        part = view[start:position]
        # What is rebuilt from a buffer marked _COPIED copies it, and so does unpickling itself.
        parts.append(_owned(part) if copy and parts and not size & _COPIED else part)
    if not parts:
        raise FrameError("a frame without a pickle")
    return parts


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


def encode_exception(
    exc: BaseException, extra: dict[str, Any] | None = None, *, limit: int | None = None
) -> bytes:
    """The frame of an exception. Never raises: what cannot be pickled travels as text.

    `limit` is the size from which on the exception itself is left out and only text travels.
    """
    name, text = type_name(type(exc)), exception_text(exc)
    try:
        import traceback

        trace = _cut("".join(traceback.format_exception(exc)))
    except Exception:
        trace = f"{name}: {text}\n"
    pickled: bytes | None = None
    extra = dict(extra) if extra else {}
    try:
        pickled = bytes(join(encode(VALUE, exc)))
        if limit is not None and len(pickled) > limit:
            pickled = None
            extra["reason"] = f"it is larger than {limit} bytes"
    except Exception as error:
        pickled = None
        extra["reason"] = f"it cannot be pickled: {exception_text(error)}"
    value = (name, text, trace, pickled, extra)
    try:
        return _PICKLE_HEADS[EXC] + dumps(value, _PROTOCOL)
    except Exception:
        plain = {str(key): repr(each) for key, each in extra.items()}
        return _PICKLE_HEADS[EXC] + dumps((name, text, trace, pickled, plain), _PROTOCOL)


def decode_exception(value: Any) -> BaseException:
    """The exception of an EXC frame's value, with the worker's traceback as its `__cause__`."""
    from . import errors

    try:
        name, text, trace, pickled, extra = value
    except (TypeError, ValueError):
        return errors.RemoteError("the worker sent an exception that cannot be read")
    reason = str(extra.get("reason", "")) if isinstance(extra, dict) else ""
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
    exc.__cause__ = errors.RemoteTraceback(str(trace))
    return exc
