# SPDX-License-Identifier: MIT
"""Submitter: the ways to run tasks of one class, with some options.

An Executor is one, a class of a Pool is one, and so is each of their views.
"""

from __future__ import annotations

import os

from gpudispatch import codec, settings, source
from gpudispatch.future import Future
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Callable,
        Iterable,
        Iterator,
        Sequence,
    )
    from typing import Any, ParamSpec, TypeVar, overload

    from gpudispatch._core import Template
    from gpudispatch.codec import Encoded
    from gpudispatch.engine import Engine
    from gpudispatch.journal import Journal, Part
    from gpudispatch.outcomes import Loop, Outcome
    from gpudispatch.progress import ProgressArgument, Watch
    from gpudispatch.session import Bell
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

    P = ParamSpec("P")
    T = TypeVar("T")
    A = TypeVar("A")
else:

    def overload(function):
        return function


def raw_item(value: object) -> bytes:
    """The item of a plugin: it gets these bytes."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"an item of a plugin must be bytes, not {type(value).__name__}")
    return bytes(value)


def _no_chunks(items: list[Any]) -> bytes:
    raise AssertionError("a plugin has no chunks of items")


class Submitter:
    """What an Executor and its views have in common: ways to run tasks with some options."""

    def __init__(self, engine: Engine, home: WorkClass, options: TaskOptions) -> None:
        self._engine = engine
        self._home = home
        self._options = options
        self._template = home.template(options)

    @property
    def _owner(self) -> object:
        """What lives as long as its tasks: `for r in Executor(4).map(...)` is not its end."""
        return self

    # ---- submit ----

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Runs fn(*args, **kwargs) in a worker.  Never blocks, unless options(block=True).

        A function that no worker can find is an error at once.  Arguments that cannot be pickled
        are one of the future, as in the standard library.  In a pool with `worker=` the one
        argument is the item: submit(item)."""
        engine, frame = self._engine, self._call(fn, args, kwargs)
        if isinstance(frame, Exception):
            return engine.refused(self._home, frame)
        if self._options.block:
            engine.check_wait()
        future: Future[T] = Future()
        future._engine = engine
        future._options = self._options
        engine.submit(self._home, self._template, self._options.priority, frame, future)
        if self._options.block:
            engine.wait_for_room(future)
        return future

    def _call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Encoded | Exception:
        """The frame of a task, or why its arguments cannot be sent."""
        op, value = codec.ITEM, fn
        if self._home.raw and not (args or kwargs):
            try:
                return raw_item(fn)
            except TypeError as error:
                return error
        if self._home.worker is None:
            op, value = codec.CALL, (source.reference(fn), args, kwargs)
        elif args or kwargs:
            had = f"not {1 + len(args)}" if args else f"but no {', '.join(kwargs)}"
            raise TypeError(f"{self._code()} takes one item, {had}")
        try:
            return codec.encode(op, value, cuda="error", views=not self._options.copy)
        except Exception as error:
            return error

    def _called(self, fn: Callable[..., Any] | None) -> Any:
        """The function as frames name it; None in a pool with worker=, whose frames name none."""
        if self._home.worker is not None:
            if fn is not None:
                raise TypeError(
                    f"fn does not go with {self._code()}: its process() is the function"
                )
            return None
        if fn is None:
            raise TypeError("fn is missing: only a pool with worker= needs none")
        return source.reference(fn)

    def _code(self) -> str:
        """What runs the items of a class, for the text of an error."""
        how = "plugin=" if self._home.raw else "worker="
        return f"{how} of class {self._home.name!r}" if self._home.name else how

    def _encoders(
        self, fn: Callable[..., Any] | None
    ) -> tuple[Callable[[Any], Encoded], Callable[[list[Any]], Encoded]]:
        """How a session encodes the arguments of one call, and those of a chunk of calls."""
        encode, views, key = codec.encode, not self._options.copy, self._called(fn)
        if self._home.raw:
            return (lambda a: raw_item(a[0])), _no_chunks
        if key is None:
            return (
                lambda a: encode(codec.ITEM, a[0], cuda="error", views=views),
                lambda many: encode(
                    codec.ITEMS, [a[0] for a in many], cuda="error", views=views
                ),
            )
        return (
            lambda a: encode(codec.CALL, (key, a, {}), cuda="error", views=views),
            lambda many: encode(codec.CHUNK, (key, [*zip(*many)]), cuda="error", views=views),
        )

    def _chunk_template(self, size: int) -> Template:
        """Of chunks: one attempt, since the items of one that dies are tried again one by one."""
        limit = self._options.limit or self._home.settings.task_timeout
        limit = NEVER if limit == NEVER else min(limit * size, NEVER - 1)
        chunk = self._options.but(max_attempts=1, limit=limit)
        return self._home.template(chunk)

    # ---- map and outcomes ----

    @overload
    def map(
        self,
        fn: Callable[[A], T],
        iterable: Iterable[A],
        /,
        *,
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self,
        fn: Callable[..., T],
        first: Iterable[Any],
        second: Iterable[Any],
        /,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self,
        items: Iterable[Any],
        /,
        *,
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]: ...

    def map(
        self,
        fn: Any,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """fn over the items, results in their order, lazily: at most buffersize [queue_size] tasks
        (chunks of items) are ahead of the caller, who waits `timeout` seconds in all.

        In a pool with `worker=`: map(items)."""
        self._engine.check_forked()
        from gpudispatch.mapping import Mapping as Map

        home = self._home
        settings.integer("chunksize", chunksize, 1, 1 if home.raw else 2**32 - 1)
        if buffersize is None:
            buffersize = home.settings.queue_size
        else:
            settings.integer("buffersize", buffersize, 1)
        if home.worker is not None:
            iterables, fn = (fn, *iterables), None
            if len(iterables) != 1:
                raise TypeError(
                    f"map() with {self._code()} takes one iterable of items, not {len(iterables)}"
                )
        elif not iterables:
            return iter(())
        one, many = self._encoders(fn)
        self._engine.check_open(home)
        run = Map(
            self._engine,
            zip(*iterables),
            one,
            many,
            self._template,
            self._template if chunksize == 1 else self._chunk_template(chunksize),
            options=self._options,
            chunksize=chunksize,
            buffersize=buffersize,
            timeout=settings.patience("timeout", timeout),
            keep=self._owner,
            home=home,
        ).run()
        next(run)  # as in outcomes()
        return run

    @overload
    def outcomes(
        self,
        iterable: Iterable[A],
        *,
        fn: Callable[[A], T],
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[A, T]]: ...

    @overload
    def outcomes(
        self,
        iterable: Iterable[A],
        *,
        fn: None = None,
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[A, Any]]: ...

    def outcomes(
        self,
        iterable: Iterable[Any],
        *,
        fn: Callable[[Any], Any] | None = None,
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[Any, Any]]:
        """Runs each item and yields its outcome as it ends: failures are values.

        Lazy: at most queue_size items ahead.  A source that raises ends the loop with that
        exception once all accepted is given out; leaving the loop cancels the rest.

        progress=True shows one line on stderr, where that is a terminal; "tqdm" and "rich" name
        bars of these packages; a bar of theirs or a function(snapshot) will do, too."""
        self._engine.check_forked()
        view = self._relabelled(label, priority)
        make = view._loops(fn, ordered, journal, key, redo, fresh)
        shown: Watch | None = None
        if progress is not False:
            from gpudispatch.progress import watch

            shown = watch(progress, iterable, view._options.label)
        loop = make(iterable, None)
        run = loop.run() if shown is None else shown.over(loop)
        next(run)  # from here on its end closes the session, also where it is never iterated
        return run

    @overload
    def aoutcomes(
        self,
        source: Iterable[A] | AsyncIterable[A],
        *,
        fn: Callable[[A], T],
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[A, T]]: ...

    @overload
    def aoutcomes(
        self,
        source: Iterable[A] | AsyncIterable[A],
        *,
        fn: None = None,
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[A, Any]]: ...

    def aoutcomes(
        self,
        source: Iterable[Any] | AsyncIterable[Any],
        *,
        fn: Callable[[Any], Any] | None = None,
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[Any, Any]]:
        """outcomes() for `async for`: the source may be an async one.  No thread helps."""
        self._engine.check_forked()
        from gpudispatch.aio import aoutcomes

        view = self._relabelled(label, priority)
        make = view._loops(fn, ordered, journal, key, redo, fresh)
        return aoutcomes(self._engine, self._home, source, make)

    async def arun(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The value of fn(*args, **kwargs), run in a worker; what it raises is raised here.

        In a pool with `worker=`: await arun(item).  Cancelling the coroutine cancels a task that
        has not started; on_cancel decides about one that runs."""
        self._engine.check_forked()
        from gpudispatch.aio import arun

        frame = self._call(fn, args, kwargs)
        if isinstance(frame, Exception):
            raise frame
        value: T = await arun(self._engine, self._home, self._template, frame, self._options)
        return value

    def _relabelled(self, label: str | None, priority: int | None) -> Submitter:
        changes: dict[str, Any] = {}
        if label is not None:
            changes["label"] = label
        if priority is not None:
            changes["priority"] = priority
        return self.options(**changes) if changes else self

    def _loops(
        self,
        fn: Callable[[Any], Any] | None,
        ordered: bool,
        journal: str | os.PathLike[str] | None,
        key: Callable[[Any], bytes | str | int] | None,
        redo: Sequence[str],
        fresh: bool,
    ) -> Callable[[Iterable[Any], Bell | None], Loop[Any, Any]]:
        """Makes loops over sources."""
        settings.flag("ordered", ordered)
        self._called(fn)  # an error at once
        if journal is None:
            if key is not None or fresh:
                raise TypeError("key and fresh go with journal=")
            return lambda source, bell: self._loop(source, fn, ordered, bell)
        from gpudispatch.journal import Journal, header_of, key_function
        from gpudispatch.journal_loop import end_rest

        header = header_of(self._home.worker or fn, self._home.setup, key)
        key_function(key)  # as above

        def make(source: Iterable[Any], bell: Bell | None) -> Loop[Any, Any]:
            end_rest(settings.path("journal", journal))
            book = Journal.open(journal, header=header, redo=redo, fresh=fresh)
            return self._loop(source, fn, ordered, bell, book, key)

        return make

    def _loop(
        self,
        source: Iterable[Any],
        fn: Callable[[Any], Any] | None,
        ordered: bool,
        bell: Bell | None,
        book: Journal | Part | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        name: str = "",
    ) -> Loop[Any, Any]:
        """A loop over one source, with its journal.  `name` stands before the keys there."""
        self._engine.check_open(self._home, failed=bool(name))
        common: dict[str, Any] = {
            "options": self._options,
            "window": self._home.settings.queue_size,
            "ordered": ordered,
            "keep": self._owner,
            "bell": bell,
            "home": self._home,
        }
        one = self._item_encoder(fn)
        if book is None:
            from gpudispatch.outcomes import Loop

            return Loop(self._engine, source, one, self._template, **common)
        from gpudispatch.journal import key_function
        from gpudispatch.journal_loop import JournalLoop

        try:
            named = key_function(key, name)
            return JournalLoop(
                self._engine, source, one, self._template, journal=book, key=named,
                own_key=key is not None, **common,
            )  # fmt: skip
        except BaseException:
            book.close()
            raise

    def _item_encoder(self, fn: Callable[[Any], Any] | None) -> Callable[[Any], Encoded]:
        """How outcomes() encodes an item."""
        encode, views, key = codec.encode, not self._options.copy, self._called(fn)
        if self._home.raw:
            return raw_item
        if key is None:
            return lambda item: encode(codec.ITEM, item, cuda="error", views=views)
        return lambda item: encode(codec.CALL, (key, (item,), {}), cuda="error", views=views)

    def _but(self, **checked: Any) -> View:
        """A view with other fields of TaskOptions, such as needs of its own."""
        return View(self, self._options.but(**checked))

    def options(
        self,
        *,
        task_timeout: Any = ...,
        priority: Any = ...,
        label: Any = ...,
        max_attempts: Any = ...,
        retry: Any = ...,
        expires: Any = ...,
        stall_timeout: Any = ...,
        copy: Any = ...,
        block: Any = ...,
        on_cancel: Any = ...,
    ) -> View:
        """A view of the same pool with other options for its tasks."""
        o = self._options
        if task_timeout is not ...:
            o = o.but(limit=settings.seconds("task_timeout", task_timeout))
        if priority is not ...:
            o = o.but(priority=settings.integer("priority", priority, -(2**31), 2**31 - 1))
        if label is not ...:
            o = o.but(label=None if label is None else settings.label_text(label))
        if max_attempts is not ...:
            o = o.but(max_attempts=settings.integer("max_attempts", max_attempts, 1, 255))
        if retry is not ...:
            named = settings.causes(retry)
            o = o.but(retry=named)
            if "oom" in named and not self._home.settings.oom:
                raise ValueError(
                    "retry has 'oom', which the workers were made without: retry=('oom',) and "
                    "max_attempts=2 of Executor() or Pool.add() prepare them"
                )
        if expires is not ...:
            o = o.but(expires=settings.seconds("expires", expires))
        if stall_timeout is not ...:
            o = o.but(stall=settings.seconds("stall_timeout", stall_timeout))
        if copy is not ...:
            o = o.but(copy=settings.flag("copy", copy))
        if block is not ...:
            o = o.but(block=settings.flag("block", block))
        if on_cancel is not ...:
            o = o.but(on_cancel=settings.choice("on_cancel", on_cancel, settings.ON_CANCEL))
        return View(self, o)


class View(Submitter):
    """A Submitter with other options: executor.options(...).  It keeps its executor alive."""

    def __init__(self, of: Submitter, options: TaskOptions) -> None:
        self._of = of._owner
        super().__init__(of._engine, of._home, options)

    @property
    def _owner(self) -> object:
        return self._of
