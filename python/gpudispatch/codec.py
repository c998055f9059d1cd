# SPDX-License-Identifier: MIT
"""Frames: how values travel between the host and its workers.

A frame is a byte (op << 4 | form) and what the form says:

    RAW       the value is `bytes`: the rest is it
    PICKLE    the rest is a pickle
    BUFFERS   3 zero bytes, u32 n, u64 size of the pickle, n u64 sizes, the pickle, and each buffer
              at the next multiple of 64 from the start of the frame; all numbers little endian
    VIEWS     as BUFFERS, and the reader gets read-only views of the frame, no copies (copy=False)

Large data (arrays, tensors, bytes) lies in buffers beside the pickle, so that it is copied once
from where it is into the arena, and once out of it at the other end. A worker imports this module
before it has run anything of the user's, so it imports as little as it can.
"""

from __future__ import annotations

import copyreg
import io
import struct
import sys
from _pickle import PickleBuffer, Pickler, PicklingError, dumps, loads

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    # `collections.abc.Buffer` is there from 3.12 only; this is what is passed around.
    Buffer = bytes | bytearray | memoryview
    Encoded = bytes | list[Buffer]

# What a frame is for.
VALUE, CALL, ITEM, CHUNK, ITEMS, EXC, PART = range(7)
# How its value is written.
RAW, PICKLE, BUFFERS, VIEWS = range(4)

_OPS = 7
_ALIGN = 64
_PROTOCOL = 5
# Below this a buffer costs less inside the pickle than beside it.
_IN_BAND = 4096
# From here on a `bytes` among the arguments is worth a look of its own.
_BIG = 1 << 16
# The top bit of a size: what is rebuilt from this buffer copies it, so a view will do.
_COPIED = 1 << 63

_RAW_HEADS = tuple(bytes((op << 4 | RAW,)) for op in range(_OPS))
_PICKLE_HEADS = tuple(bytes((op << 4 | PICKLE,)) for op in range(_OPS))
_HEAD = struct.Struct("<B3xIQ")

# Set by source.host_state(): classes and functions of `__main__` cannot be imported by a worker
# (a notebook, an interactive session), so they travel by value where cloudpickle is installed.
main_by_value = False


class FrameError(ValueError):
    """Bytes that are no frame: truncated, or not written by this version of the package."""


# --- memory of decoded buffers ------------------------------------------------------------------

# Fresh pages cost more than the copy into them, so memory of large buffers is kept for the next
# ones: at most this much, and nothing below _POOL_FROM, where malloc does the same.
POOL_LIMIT = 256 << 20
_POOL_FROM = 1 << 20

_pool: list[_Lease] = []


class _Lease(bytearray):
    """Memory of a large buffer; goes back to the pool when the last view of it has gone."""

    __slots__ = ()

    def __del__(self, pool: list[_Lease] = _pool) -> None:
        # At the end of the interpreter the globals may be None already.
        if sum is None or POOL_LIMIT is None:  # type: ignore[redundant-expr]
            return
        if sum(map(len, pool)) + len(self) <= POOL_LIMIT:
            pool.append(self)  # it lives on: an object without GC is finalized each time anew


def _owned(view: memoryview) -> memoryview:
    """Writable memory with the bytes of `view`, owned by what is made of it."""
    size = len(view)
    if size < _POOL_FROM:
        return memoryview(bytearray(view))
    # Taken out by index and checked: another thread may take at the same time.
    for index in range(len(_pool) - 1, -1, -1):
        try:
            room = len(_pool[index])
            if size <= room <= size + (size >> 2):
                lease = _pool.pop(index)
            else:
                continue
        except IndexError:
            continue
        if len(lease) < size:
            _pool.append(lease)
            continue
        owned = memoryview(lease)[:size]
        owned[:] = view
        return owned
    return memoryview(_Lease(view))


def trim() -> None:
    """Give the memory that is kept for large buffers back to the system."""
    while _pool:
        try:
            lease = _pool.pop()
        except IndexError:
            break
        lease.clear()  # an empty one is worth nothing to the pool


# --- encoding -----------------------------------------------------------------------------------


class _Whole:
    """A `bytes` or `bytearray` whose bytes lie beside the pickle."""

    __slots__ = ("buffer", "kind")

    def __init__(self, kind: type, buffer: PickleBuffer) -> None:
        self.kind = kind
        self.buffer = buffer

    def __reduce__(self) -> tuple[type, tuple[PickleBuffer]]:
        return self.kind, (self.buffer,)


def encode(
    op: int, value: object, *, cuda: str = "cpu", views: bool = False
) -> bytes | list[Buffer]:
    """The frame of `value`: `bytes`, or parts of which each starts at a multiple of 64.

    `cuda` says what a tensor on a GPU becomes: "cpu" copies it, "error" raises TypeError. With
    `views` every buffer lies beside the pickle, else only those that are worth it.
    """
    if type(value) is bytes and len(value) < _BIG:
        return _RAW_HEADS[op] + value
    buffers: list[PickleBuffer] = []
    copied: set[int] = set()

    def beside(buffer: PickleBuffer) -> bool:
        if views or buffer.raw().nbytes >= _IN_BAND:
            buffers.append(buffer)
            return False
        return True

    modules = sys.modules
    data: bytes | None = None
    if not ("numpy" in modules or "torch" in modules or "cupy" in modules or "jax" in modules):
        try:
            data = dumps(value, _PROTOCOL, buffer_callback=beside)
        except Exception:
            buffers.clear()
        else:
            if len(data) > _BIG:  # is it a large `bytes` that could lie beside?
                data = None
                buffers.clear()
    elif type(value) in _PLAIN or (
        type(value) is tuple and all(type(part) in _PLAIN for part in value)
    ):
        data = dumps(value, _PROTOCOL)
    if data is None or (main_by_value and b"__main__" in data):
        buffers.clear()
        data = _encode_any(_lift(value, copied), cuda, beside, buffers)
    if not buffers:
        return _PICKLE_HEADS[op] + data
    raws = [buffer.raw() for buffer in buffers]
    sizes = [
        raw.nbytes | (_COPIED if id(buffer) in copied else 0)
        for raw, buffer in zip(raws, buffers, strict=True)
    ]
    form = VIEWS if views else BUFFERS
    head = _HEAD.pack(op << 4 | form, len(raws), len(data))
    return [b"".join((head, struct.pack(f"<{len(sizes)}Q", *sizes), data)), *raws]


_PLAIN = frozenset((int, float, bool, str, bytes, complex, type(None)))


def _lift(value: Any, copied: set[int]) -> Any:
    """`value` with its large bytes and bytearrays replaced, in the places where arguments lie."""
    kind = type(value)
    if kind is bytes or kind is bytearray:
        if len(value) < _BIG:
            return value
        buffer = PickleBuffer(value)
        copied.add(id(buffer))
        return _Whole(kind, buffer)
    if kind is tuple or kind is list:
        if len(value) > 64:
            return value
        lifted = [_lift_flat(part, copied) for part in value]
        return kind(lifted) if any(map(_differs, lifted, value)) else value
    return value


def _differs(one: object, other: object) -> bool:
    return one is not other


def _lift_flat(part: Any, copied: set[int]) -> Any:
    kind = type(part)
    if kind is bytes or kind is bytearray:
        return _lift(part, copied)
    if kind is tuple and len(part) <= 64:  # the positional arguments of a call
        lifted = [
            _lift(each, copied) if type(each) is bytes or type(each) is bytearray else each
            for each in part
        ]
        return tuple(lifted) if any(map(_differs, lifted, part)) else part
    if kind is dict and len(part) <= 64:  # its keyword arguments
        pairs = {
            key: _lift(each, copied) if type(each) is bytes or type(each) is bytearray else each
            for key, each in part.items()
        }
        return pairs if any(map(_differs, pairs.values(), part.values())) else part
    return part


def _encode_any(
    value: object,
    cuda: str,
    beside: Callable[[PickleBuffer], bool],
    buffers: list[PickleBuffer],
) -> bytes:
    out = io.BytesIO()
    try:
        _PICKLERS[cuda](out, _PROTOCOL, buffer_callback=beside).dump(value)
        data = out.getvalue()
        if not (main_by_value and b"__main__" in data):
            return data
        reason: Exception | None = None
    except (PicklingError, AttributeError, TypeError) as error:
        if isinstance(error, CudaError):
            raise
        reason = error
    by_value = _cloud_pickler(cuda)
    if by_value is None:
        if reason is not None:
            raise reason
        return data
    buffers.clear()
    out = io.BytesIO()
    try:
        by_value(out, protocol=_PROTOCOL, buffer_callback=beside).dump(value)
    except Exception as error:
        raise (reason or error) from None
    return out.getvalue()


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
    if view.readonly and isinstance(view.obj, bytearray):
        return memoryview(view.obj)[: view.nbytes]
    return view


def _rebuild_array(buffer: Any, dtype: Any, shape: tuple[int, ...], order: Any) -> Any:
    import numpy

    return numpy.frombuffer(_writable(buffer), dtype=dtype).reshape(shape, order=order)


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


def _reduce_array(array: Any) -> Any:
    if array.dtype.hasobject or not array.nbytes:
        return array.__reduce_ex__(_PROTOCOL)
    flags = array.flags
    if flags.c_contiguous:
        if flags.writeable:
            return array.__reduce_ex__(_PROTOCOL)
        order = "C"
    elif flags.f_contiguous:
        if flags.writeable:
            return array.__reduce_ex__(_PROTOCOL)
        order = "F"
    else:
        # Pickle would make a string of it and copy that into the pickle.
        return array.copy(order="C").__reduce_ex__(_PROTOCOL)
    flat = array.reshape(-1, order=order).view("u1")
    return _rebuild_array, (PickleBuffer(flat), array.dtype, array.shape, order)


def _rebuild_tensor(
    buffer: Any, dtype: Any, size: Any, stride: Any, requires_grad: bool
) -> Any:
    import warnings

    import torch  # type: ignore[import-not-found, unused-ignore]

    with warnings.catch_warnings():
        # A view of a frame is read-only, which torch cannot express: it warns.
        warnings.simplefilter("ignore")
        flat = torch.frombuffer(_writable(buffer), dtype=torch.uint8)
    tensor = flat.view(dtype).as_strided(size, stride)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_empty_tensor(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    import torch

    return torch.empty_strided(size, stride, dtype=dtype, requires_grad=requires_grad)


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
        function, args = reduced
        return torch._utils._rebuild_from_type_v2, (function, kind, args, state)

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
    if "numpy" in sys.modules:
        buffer = PickleBuffer(flat.numpy())
    else:  # numpy() of a tensor needs numpy
        import ctypes

        kind = ctypes.c_char * flat.numel()
        memory = kind.from_address(flat.data_ptr())
        memory._tensor = flat
        buffer = PickleBuffer(memory)
    return _rebuild_tensor, (buffer, dtype, size, stride, requires_grad)


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


class _Table(dict[type, "Callable[[Any], Any]"]):
    """Reducers by type, for what is imported: the C pickler asks it for each object once."""

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
            raise KeyError(kind)
        self[kind] = reducer
        return reducer

    def _reducer(self, kind: type) -> Callable[[Any], Any] | None:
        modules = sys.modules
        if (module := modules.get("numpy")) is not None:
            if kind is getattr(module, "ndarray", None):
                return _reduce_array
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


class _CpuPickler(Pickler):
    dispatch_table = _Table("cpu")


class _ErrorPickler(Pickler):
    dispatch_table = _Table("error")


_PICKLERS: dict[str, type[Pickler]] = {"cpu": _CpuPickler, "error": _ErrorPickler}
_cloud_picklers: dict[str, Any] = {}


def _cloud_pickler(cuda: str) -> Any:
    """A pickler that sends functions and classes by value, or None without cloudpickle."""
    try:
        return _cloud_picklers[cuda]
    except KeyError:
        pass
    try:
        import cloudpickle
    except ImportError:
        return None
    base = cloudpickle.Pickler
    table = _Table(cuda)
    table.update(base.dispatch_table.maps[0])
    made = type("_CloudPickler", (base,), {"dispatch_table": table})
    _cloud_picklers[cuda] = made
    return made


# --- decoding -----------------------------------------------------------------------------------


def decode(frame: Buffer, *, copy: bool = True) -> tuple[int, Any]:
    """(op, value) of a frame.

    With `copy` the buffers become writable memory that the value owns, else, and where the frame was
    encoded with `views`, they are read-only views of `frame`. Raises FrameError for what is no frame, and what unpickling raises.
    """
    try:
        head = frame[0]
    except IndexError:
        raise FrameError("an empty frame") from None
    form = head & 15
    if head >= 0x70:
        raise FrameError(f"no frame of this version: its first byte is {head:#04x}")
    if form == PICKLE:
        rest = memoryview(frame)[1:]
        try:
            return head >> 4, loads(rest)
        except BaseException:
            # The traceback would keep the frame, and with it room in the arena.
            del frame
            rest.release()
            raise
    if form == RAW:
        return head >> 4, bytes(memoryview(frame)[1:])
    if form not in (BUFFERS, VIEWS):
        raise FrameError(f"no frame of this version: its first byte is {head:#04x}")
    copy = copy and form != VIEWS
    views: list[memoryview] = []
    try:
        views = _split(frame)
        pickled = views.pop(0)
        return head >> 4, loads(pickled, buffers=_supply(views, copy))
    except BaseException:
        del frame
        views.clear()
        pickled = memoryview(b"")
        raise


def _split(frame: Buffer) -> list[memoryview]:
    """The pickle and the buffers of a frame; those that need no copy are read-only already."""
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
    views = [view[position : position + size]]
    position += size
    for size in sizes:
        start = -(-position // _ALIGN) * _ALIGN
        position = start + (size & ~_COPIED)
        if position > end:
            raise FrameError(f"a truncated frame: {end} bytes, a buffer ends at {position}")
        part = view[start:position]
        # What copies by itself is marked by its format: it takes the view as it is.
        views.append(part.cast("c") if size & _COPIED else part)
    return views


def _supply(views: list[memoryview], copy: bool) -> Any:
    if not copy:
        return [view.cast("B") if view.format == "c" else view for view in views]
    return [view.cast("B") if view.format == "c" else _owned(view) for view in views]


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
