# SPDX-License-Identifier: MIT
"""The journal: what it holds after any end of the program that wrote it."""

from __future__ import annotations

import errno
import functools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
import warnings
import zlib
from pathlib import Path
from pickle import PickleBuffer
from typing import Any

import pytest
from gpudispatch import codec, errors, journal, records
from gpudispatch.journal import (
    Journal,
    JournalDamaged,
    JournalError,
    header_of,
    item_key,
    key_function,
    read_journal,
    salvage,
)
from gpudispatch.journal_text import as_json, main

HEADER = {"function": "tests:function"}
REAL_TIMES = (10**9, 2 * 10**9, 3 * 10**9, 4_500_000_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "night.gdj"


def append(opened: Journal, *args: Any, **words: Any) -> None:
    opened.put(*args, **words)
    opened.flush()


def frame(value: object) -> Any:
    return codec.encode(codec.VALUE, value)


def failure(error: BaseException) -> bytes:
    return codec.encode_exception(error)


def fill(path: Path, items: Any, header: dict[str, str] = HEADER) -> None:
    """Writes one success for each item: its value is the item twice."""
    with Journal.open(path, header=header) as opened:
        for index, item in enumerate(items):
            name = item_key(item)
            turn, record = opened.claim(name)
            if record is None:
                append(opened, name, turn, "success", frame((item, item)), index=index)


def values(path: Path, **words: Any) -> list[Any]:
    return [record.value for record in read_journal(path, **words)]


def run_python(text: str, *args: object, **words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        **words,
    )


# ---- records ----


def test_fields_of_a_record_come_back(path: Path) -> None:
    with Journal.open(path, header=HEADER) as opened:
        assert opened.claim(item_key("a")) == (0, None)
        append(
            opened, item_key("a"), 0, "error", failure(ValueError("no cat")), device="cuda:3",
            attempt=2, times=REAL_TIMES, index=41, text="ValueError: no cat",
            log_tail="last words\n",
        )  # fmt: skip
    (record,) = read_journal(path)
    assert (record.key, record.turn, record.index, record.kind) == ("a", 0, 41, "error")
    assert (record.device, record.attempt) == ("cuda:3", 2)
    assert record.times == (1.0, 2.0, 3.0, 4.5)
    assert (record.text, record.log_tail) == ("ValueError: no cat", "last words\n")
    assert not record.ok
    assert record.value is None
    assert isinstance(record.error, ValueError)
    assert record.error.args == ("no cat",)
    assert record.ended_at is not None


def test_each_kind_comes_back(path: Path) -> None:
    with Journal.open(path, header=HEADER) as opened:
        for kind in journal.KINDS:
            append(opened, item_key(kind), 0, kind, frame(kind))
    assert [record.kind for record in read_journal(path)] == list(journal.KINDS)
    with Journal.open(path, header=HEADER, redo=("crash",)) as opened:
        replayed = [kind for kind in journal.KINDS if opened.claim(item_key(kind))[1]]
    assert replayed == ["success", "error", "timeout", "device", "oom"]


@pytest.mark.parametrize("size", [0, 1, 4095, 65534, 65535, 65536, 1 << 20])
def test_payloads_around_the_limits(path: Path, size: int) -> None:
    data = os.urandom(size)
    with Journal.open(path, header=HEADER) as opened:
        append(opened, b"\0a", 0, "success", b"\0" + data)
        append(opened, b"\0b", 0, "success", memoryview(b"\0" + data))
        append(opened, b"\0c", 0, "success", bytearray(b"\0" + data))
    assert values(path) == [data] * 3


def test_a_frame_in_parts_lies_as_in_the_arena(path: Path) -> None:
    value = [PickleBuffer(os.urandom(70001)), PickleBuffer(os.urandom(5000))]
    parts = codec.encode(codec.VALUE, value, views=True)
    assert isinstance(parts, list)
    with Journal.open(path, header=HEADER) as opened:
        append(opened, b"\0a", 0, "success", parts)
        append(opened, b"\0b", 0, "success", codec.join(parts))
    one, two = read_journal(path)
    assert one.payload == two.payload == codec.join(parts)
    assert one.value == [bytes(part) for part in value]


def test_one_write_for_what_was_put(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    with Journal.open(path, header=HEADER) as opened:
        write = os.pwrite

        def counted(fd: int, data: bytes, at: int) -> int:
            writes.append(len(data))
            return write(fd, data, at)

        monkeypatch.setattr(os, "pwrite", counted)
        for item in range(10):
            opened.put(item_key(item), 0, "success", frame(item))
        assert (writes, opened.recorded) == ([], 0)
        opened.flush()
        assert (len(writes), opened.recorded) == (1, 10)
        for item in range(10, 2000):
            opened.put(item_key(item), 0, "success", frame(item))
        assert 1 < len(writes) < 10  # memory is bounded
        opened.put(b"\0big", 0, "success", b"\0" + b"x" * 100_000)
        opened.put(b"\0last", 0, "success", b"\0last")
        monkeypatch.undo()
    assert values(path) == [*range(2000), b"x" * 100_000, b"last"]


# ---- the rerun ----


def test_records_larger_than_a_read(path: Path) -> None:
    """They are claimed in any order, and damage where the file has lost them."""
    items = ["a", "b" * 300_000, "c" * 65_400]
    fill(path, items)
    with Journal.open(path, header=HEADER) as opened:
        for item in reversed(items):
            record = opened.claim(item_key(item))[1]
            assert record is not None
            assert record.value == (item, item)
    with Journal.open(path, header=HEADER) as opened:
        os.truncate(path, 100)  # by another program: the lock is advisory
        for item in items:
            with pytest.raises(JournalDamaged):
                opened.claim(item_key(item))


def test_equal_items_count_by_turn(path: Path) -> None:
    key = item_key("same")
    with Journal.open(path, header=HEADER) as opened:
        turns = [opened.claim(key)[0] for _ in range(4)]
        assert turns == [0, 1, 2, 3]
        for turn in (2, 0, 3):  # in the order of their ends; 1 was running at the kill
            append(opened, key, turn, "success", frame(turn))
    with Journal.open(path, header=HEADER) as opened:
        claims = [opened.claim(key) for _ in range(6)]
    assert [turn for turn, _ in claims] == list(range(6))
    assert [record and record.value for _, record in claims] == [0, None, 2, 3, None, None]


def test_the_last_record_of_an_item_holds(path: Path) -> None:
    with Journal.open(path, header=HEADER) as opened:
        append(opened, b"\0a", 0, "crash", failure(RuntimeError("dead")))
        append(opened, b"\0b", 0, "success", frame("b"))
    with Journal.open(path, header=HEADER) as opened:
        assert opened.claim(b"\0a") == (0, None)  # redo
        append(opened, b"\0a", 0, "success", frame("a"))
    assert [record.kind for record in read_journal(path)] == ["success", "success"]
    assert [record.kind for record in read_journal(path, history=True)] == [
        "crash", "success", "success",
    ]  # fmt: skip
    with Journal.open(path, header=HEADER) as opened:
        record = opened.claim(b"\0a")[1]
        assert record is not None
        assert record.value == "a"


def test_equal_hashes_cost_a_run_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (journal, records):
        monkeypatch.setattr(module, "hash", lambda key: 7, raising=False)
    for _ in range(5):
        with Journal.open(path, header=HEADER) as opened:
            for item in range(5):
                turn, record = opened.claim(item_key(item))
                if record is None:
                    append(opened, item_key(item), turn, "success", frame(item))
                else:
                    assert record.value == item


@pytest.mark.parametrize(
    ("words", "kind", "text"),
    [
        ({"redo": "crash"}, TypeError, "redo is 'crash'"),
        ({"redo": ["crsh"]}, ValueError, "redo is 'crsh', expected one of success, "),
        ({"path": 7}, TypeError, "journal must be a str or path"),
    ],
)
def test_arguments_are_checked(
    tmp_path: Path, words: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        Journal.open(**{"path": tmp_path / "a", "header": HEADER, **words})
    assert not (tmp_path / "a").exists()


# ---- keys and header ----


class Odd(str):
    pass


def test_keys_of_types_differ() -> None:
    items: list[Any] = ["1", b"1", 1, 1.0, True, (1,), ("1",), None, Odd("1"), [1], {"a": 1}, -1]
    assert len({item_key(item) for item in items}) == len(items)
    for item in items:
        assert item_key(item) == item_key(item)


def test_long_keys_are_digests() -> None:
    for make in (
        lambda n: "x" * n,
        lambda n: b"x" * n,
        lambda n: list(range(n)),
        lambda n: bytearray(n),
        lambda n: 1 << n,
    ):
        keys = {item_key(make(n)) for n in (10_000, 10_001, 200_000)}
        assert len(keys) == 3
        assert {len(key) for key in keys} == {33}
        assert item_key(make(10_000)) in keys


def test_keys_are_equal_in_another_process() -> None:
    text = """
        import json, sys
        from gpudispatch.journal import header_of, item_key
        items = ["a", b"a", 17, ("a", 1.5), {"b": [1, 2]}, bytearray(9000)]
        print(json.dumps([item_key(item).hex() for item in items] + [header_of(len, {"a": items})]))
    """
    outputs = {
        run_python(text, env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout
        for seed in range(3)
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())


def test_key_functions() -> None:
    by_name = key_function(lambda item: item["name"])
    assert by_name({"name": "a", "x": 1}) == item_key("a")
    assert key_function(lambda item: Odd("a"))(1) == item_key("a")
    assert key_function(None) is item_key
    with pytest.raises(TypeError, match="key returned float"):
        key_function(lambda item: 1.5)(1)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="key returned bool"):
        key_function(lambda item: True)(1)
    with pytest.raises(TypeError, match="key is 'name'"):
        key_function("name")  # type: ignore[arg-type]


def function(number: int = 0) -> None:
    pass


class Worker:
    def method(self) -> None:
        pass


def test_names_of_functions() -> None:
    name = header_of(function)["function"]
    assert name == f"{__name__}:function"
    assert header_of(Worker)["function"] == f"{__name__}:Worker"
    assert header_of(Worker().method)["function"] == f"{__name__}:Worker.method"
    partials = [functools.partial(function, n) for n in (1, 2)]
    assert len({name, *(header_of(partial)["function"] for partial in partials)}) == 3
    assert header_of(partials[0]) == header_of(functools.partial(function, 1))


def test_a_lambda_is_named_by_its_code() -> None:
    """It has no other name; where it stands does not count, nor the order of a set."""
    program = (
        "from gpudispatch.journal import header_of\n"
        "for f in (lambda n: [n + 1 for _ in (1,)], lambda n: [n + 2 for _ in (1,)],\n"
        "          lambda n: [n + 1 for _ in (1,)], lambda n: n in {'a', 'b', 'c', 'd'}):\n"
        "    print(header_of(f)['function'])\n"
    )

    def names(seed: str) -> list[str]:
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [sys.executable, "-c", program]
        return subprocess.run(
            words, env=environment, check=True, capture_output=True, text=True
        ).stdout.split()

    one, two, same, of_set = names("1")
    assert one == same and len({one, two, of_set}) == 3
    assert one.startswith("__main__:<lambda>@")
    assert names("2")[3] == names("3")[3] == of_set


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("function", header_of(Worker)),
        ("setup", header_of(function, {"model": "a"})),
        ("package", header_of(function) | {"package": "0.0.1"}),
        ("key", header_of(function, key=len)),
    ],
)
def test_a_difference_is_named(path: Path, field: str, other: dict[str, str]) -> None:
    mine = header_of(function)
    fill(path, range(3), mine)
    before = path.read_bytes()
    with pytest.raises(errors.JournalMismatch) as caught:
        Journal.open(path, header=other)
    assert caught.value.field == field
    assert caught.value.was == mine[field]
    assert caught.value.now == other[field]
    assert field in str(caught.value)
    assert caught.value.was in str(caught.value)
    assert caught.value.now in str(caught.value)
    assert path.read_bytes() == before[:16] + bytes(8) + before[24:]


def test_setup_differs_by_value() -> None:
    def digest(setup: dict[str, Any] | None) -> str:
        return header_of(function, setup)["setup"]

    setups: list[Any] = [None, {"a": 1}, {"a": 2}, {"b": 1}, {"a": bytearray(9999)}]
    assert len(set(map(digest, setups))) == 5
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({}) == digest(None) == "none"


def test_fresh_keeps_the_old_file(tmp_path: Path, path: Path) -> None:
    fill(path, ["old"])
    with Journal.open(path, header=header_of(Worker), fresh=True) as opened:
        assert opened.recorded == 0
        append(opened, b"\0new", 0, "success", frame("new"))
    with Journal.open(path, header=HEADER, fresh=True):
        with pytest.raises(errors.JournalBusy):
            Journal.open(path, header=HEADER, fresh=True)
    assert values(path) == []
    assert values(tmp_path / "night.gdj.1") == [("old", "old")]
    assert values(tmp_path / "night.gdj.2") == ["new"]
    assert len(list(tmp_path.iterdir())) == 3


# ---- one writer ----


def test_a_second_writer_gets_the_pid(path: Path) -> None:
    with Journal.open(path, header=HEADER):
        with pytest.raises(errors.JournalBusy) as caught:
            Journal.open(path, header=HEADER)
        assert caught.value.pid == os.getpid()
        done = run_python(
            """
            import sys
            from gpudispatch import errors
            from gpudispatch.journal import Journal
            try:
                Journal.open(sys.argv[1], header={"function": "tests:function"})
            except errors.JournalBusy as error:
                print(error.pid, error)
            """,
            path,
        )
        assert done.stdout == f"{os.getpid()} {path}: process {os.getpid()} has it open\n"
    Journal.open(path, header=HEADER).close()


def test_a_forked_child_does_not_hold_the_lock(tmp_path: Path) -> None:
    done = run_python(
        """
        import os, sys
        from gpudispatch import errors
        from gpudispatch.journal import Journal
        opened = Journal.open(sys.argv[1], header={"function": "tests:function"})
        ready, wait = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                opened.put(b"\\0a", 0, "success", b"\\0"); opened.flush()
            except errors.ForkedError as error:
                os.write(ready[1], b"refused")
            os.read(wait[0], 1)
            os._exit(0)
        assert os.read(ready[0], 100) == b"refused"
        opened.put(b"\\0a", 0, "success", b"\\0"); opened.flush()
        opened.close()
        Journal.open(sys.argv[1], header={"function": "tests:function"}).close()  # the child lives
        os.write(wait[1], b"x")
        print(os.waitpid(pid, 0)[1])
        """,
        tmp_path / "night.gdj",
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_reader_beside_the_writer(path: Path) -> None:
    with Journal.open(path, header=HEADER) as opened:
        for item in range(20):
            append(opened, item_key(item), 0, "success", frame(item))
            assert values(path) == list(range(item + 1))


def test_closed_journals(tmp_path: Path) -> None:
    opened = Journal.open(tmp_path / "night.gdj", header=HEADER)
    opened.close()
    opened.close()
    for size in (1, 1 << 20):
        with pytest.raises(ValueError, match="is closed"):
            append(opened, b"\0a", 0, "success", b"\0" * size)


# ---- damage ----


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[int]]:
    """A journal of two sessions, and where its records end."""
    path = tmp_path_factory.mktemp("sample") / "night.gdj"
    fill(path, ["a", b"b", 3])
    fill(path, ["a", b"b", 3, (4, "four"), None, "x" * 50])
    data = path.read_bytes()
    with records.RecordFile(str(path)) as file:
        begun = file.begin(len(data))
        assert begun is not None
        ends = [offset + head.size for offset, head, _ in file.records(begun[1], len(data))]
    assert ends[-1] == len(data)
    return data, ends


def test_truncation_at_each_byte(path: Path, sample: tuple[bytes, list[int]]) -> None:
    data, ends = sample
    path.write_bytes(data)
    all_values = values(path)
    assert len(all_values) == 6
    seen = set()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        found = values(path)
        assert found == all_values[: len(found)]
        seen.add(len(found))
        with Journal.open(path, header=HEADER) as opened:
            assert opened.recorded == len(found)
            whole = max((end for end in ends if end <= size), default=0)
            assert opened.cut == (size - whole if whole else 0)
            append(opened, b"\0more", 0, "success", frame("more"))
        assert values(path) == [*found, "more"]
    assert seen == set(range(6))


def check_damaged(path: Path, all_values: list[Any]) -> str:
    """Opens damaged bytes: every answer is an error that names it, or a true beginning."""
    before = path.read_bytes()
    try:
        found = values(path)
    except (JournalError, errors.JournalMismatch) as error:
        assert str(path) in str(error)  # noqa: PT017
        with pytest.raises(type(error)):
            Journal.open(path, header=HEADER)
        assert path.read_bytes()[24:] == before[24:]
        if isinstance(error, JournalDamaged) and error.resumes is not None:
            assert set(values(path, damaged="skip")) <= set(all_values)
        return type(error).__name__
    assert found == all_values[: len(found)]
    with Journal.open(path, header=HEADER) as opened:
        assert opened.recorded == len(found)
    return f"{len(found)}"


@pytest.mark.filterwarnings("ignore:.* are damaged and are cut:RuntimeWarning")
def test_each_flipped_byte(path: Path, sample: tuple[bytes, list[int]]) -> None:
    data, ends = sample
    path.write_bytes(data)
    all_values = values(path)
    generator = random.Random(13)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        answer = check_damaged(path, all_values)
        if at >= ends[-2]:
            assert answer == "5"  # the last record: as if torn
        elif at >= 32:
            assert answer == "JournalDamaged"
        elif 16 <= at < 32:
            assert answer == "6"  # the pid of the writer is a hint


@pytest.mark.filterwarnings("ignore:.* are damaged and are cut:RuntimeWarning")
@pytest.mark.parametrize("sealed", [False, True], ids=["damaged", "with checksums"])
def test_random_bytes(path: Path, sample: tuple[bytes, list[int]], sealed: bool) -> None:
    """Random changes; with checksums that are right, each reader takes them or names an error."""
    data, ends = sample
    path.write_bytes(data)
    all_values = values(path)
    seed = int(os.environ.get("GPUDISPATCH_TEST_SEED", "1"))
    generator = random.Random(seed)
    answers = set()
    for number in range(400):
        damaged = bytearray(data)
        for _ in range(generator.choice((1, 2, 8))):
            start = generator.randrange(len(damaged))
            size = min(generator.choice((1, 4, 16, 80, 200)), len(damaged) - start)
            fate = generator.randrange(2 if sealed else 4)
            if fate == 0:
                damaged[start : start + size] = generator.randbytes(size)
            elif fate == 1:
                damaged[start : start + size] = bytes(size)
            elif fate == 2:
                del damaged[start:]
            else:
                damaged += generator.randbytes(size)
            if not damaged:
                break
        if len(damaged) >= 32:  # what the journal refuses by its first bytes is not the question
            damaged[:32] = data[:32]
        if not sealed:
            path.write_bytes(damaged)
            answers.add(check_damaged(path, all_values))
            continue
        for start, end in zip([32, *ends], ends, strict=False):
            damaged[start : start + 4] = data[32:36]
            if generator.randrange(4):
                damaged[start + 8 : start + 16] = data[start + 8 : start + 16]
            check = zlib.crc32(
                damaged[start + 8 : end], int.from_bytes(data[12:16], "little") + start & 0xFFFFFFFF
            )
            damaged[start + 4 : start + 8] = check.to_bytes(4, "little")
        path.write_bytes(damaged)
        answers.add(check_sealed(path, number))
    assert "JournalDamaged" in answers
    assert len(answers) > 1


def check_sealed(path: Path, number: int) -> str:
    """Reads, prints and opens records of which only the checksums are right."""
    answer = "records"
    try:
        for record in read_journal(path, history=True, damaged=("raise", "skip")[number % 2]):
            assert record.kind in records.KINDS
            assert isinstance(record.key, bytes | str | int)
            assert json.loads(as_json(record))["index"] == record.index
    except (JournalError, errors.JournalMismatch) as error:
        answer = type(error).__name__
    main([str(path)])
    try:
        with Journal.open(path, header=HEADER) as opened:
            for key in map(item_key, ["a", b"b", 3]):
                opened.claim(key)
    except (JournalError, errors.JournalMismatch) as error:
        answer = type(error).__name__
    return answer


@pytest.mark.parametrize(
    "header", [b"\xff", b"[" * 100_000, b"[1]", b'{"function": [2]}', b"1" * 5000], ids=len
)
def test_headers_that_are_none(path: Path, header: bytes) -> None:
    body = records.BODY.pack(records.HEAD_SIZE + len(header), records.SESSION, *[0] * 12) + header
    path.write_bytes(records.preamble(7) + records.front(7 + 32, body) + body)
    assert values(path) == []
    assert main([str(path)]) == 0
    with pytest.raises(errors.JournalMismatch, match="function None"):
        Journal.open(path, header=HEADER)


def test_damage_in_the_middle_names_its_offset(
    path: Path, sample: tuple[bytes, list[int]]
) -> None:
    data, ends = sample
    for size in (data[ends[2] + 30], 0xFF):  # a field of the head; a length beyond the end
        damaged = bytearray(data)
        damaged[ends[2] + (30 if size != 0xFF else 13)] = size ^ 0x55
        path.write_bytes(damaged)
        with pytest.raises(JournalDamaged) as caught:
            Journal.open(path, header=HEADER)
        assert (caught.value.offset, caught.value.resumes) == (ends[2], ends[3])
        assert f"offset {ends[2]}" in str(caught.value)
        assert path.read_bytes() == damaged


def test_salvage_copies_what_is_whole(tmp_path: Path, sample: tuple[bytes, list[int]]) -> None:
    data, ends = sample
    path, new = tmp_path / "night.gdj", tmp_path / "new.gdj"
    path.write_bytes(data)
    all_values = values(path)
    damaged = bytearray(data)
    damaged[ends[2] + 90] ^= 1
    path.write_bytes(damaged + b"torn")
    lost = values(path, damaged="skip")
    assert len(lost) == len(all_values) - 1
    assert salvage(path, new) == [(ends[2], ends[3]), (len(data), len(data) + 4)]
    assert values(new) == lost
    with Journal.open(new, header=HEADER) as opened:
        assert opened.cut == 0
    with pytest.raises(FileExistsError):
        salvage(path, new)


def test_a_journal_inside_a_result_is_no_record(tmp_path: Path, path: Path) -> None:
    fill(path, range(5))
    inner = path.read_bytes()
    outer = tmp_path / "outer.gdj"
    with Journal.open(outer, header=HEADER) as opened:
        append(opened, b"\0a", 0, "success", frame("first"))
        append(opened, b"\0b", 0, "success", b"\0" + inner)
    os.truncate(outer, outer.stat().st_size - 1)
    assert values(outer) == ["first"]
    with Journal.open(outer, header=HEADER) as opened:
        assert opened.cut > len(inner)


def test_a_tail_of_zeros_is_cut(path: Path) -> None:
    fill(path, range(5))
    with path.open("ab") as file:
        file.write(bytes(100_000))
    assert len(values(path)) == 5
    with Journal.open(path, header=HEADER) as opened:
        assert (opened.recorded, opened.cut) == (5, 100_000)


def test_a_damaged_end_is_cut_with_a_warning(
    path: Path, sample: tuple[bytes, list[int]]
) -> None:
    data, ends = sample
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    path.write_bytes(damaged)
    with pytest.raises(RuntimeWarning, match="are damaged and are cut"):
        Journal.open(path, header=HEADER)
    assert path.read_bytes() == damaged
    with pytest.warns(RuntimeWarning, match=f"the last {len(data) - ends[-2]} bytes") as caught:
        Journal.open(path, header=HEADER).close()
    assert caught[0].filename == __file__


def test_files_that_are_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for data in (b"a,b\n1,2\n", b"x" * 1000, bytes(1 << 17)):
        path.write_bytes(data)
        with pytest.raises(JournalError, match="not a journal"):
            Journal.open(path, header=HEADER)
        with pytest.raises(JournalError, match="not a journal"):
            list(read_journal(path))
        assert path.read_bytes() == data
    with pytest.raises(IsADirectoryError):
        Journal.open(tmp_path, header=HEADER)
    with pytest.raises(FileNotFoundError):
        list(read_journal(tmp_path / "none"))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(JournalError, match="not a regular file"):
        Journal.open(tmp_path / "fifo", header=HEADER)


def test_another_format_is_a_mismatch(path: Path) -> None:
    fill(path, range(2))
    data = bytearray(path.read_bytes())
    data[8] = 9
    path.write_bytes(data)
    with pytest.raises(errors.JournalMismatch, match="format 9, this run has 2"):
        Journal.open(path, header=HEADER)


# ---- writes that fail ----


@pytest.mark.parametrize("size", [10, 100_000])
def test_disk_full_ends_the_run_and_loses_nothing(path: Path, size: int) -> None:
    opened = Journal.open(path, header=HEADER)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, limits[1]))
    try:
        count = 0
        with pytest.raises(JournalError) as caught:  # noqa: PT012
            while count < 10_000:
                append(opened, item_key(count), 0, "success", frame(b"x" * size), index=count)
                count += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert f"cannot be written: {os.strerror(errno.EFBIG)}" in str(caught.value)
    assert f"the {count} outcomes before are recorded" in str(caught.value)
    with pytest.raises(JournalError, match="are recorded"):  # there is room, but not for this run
        append(opened, b"\0a", 0, "success", b"\0")
    opened.close()
    assert values(path) == [b"x" * size] * count
    with Journal.open(path, header=HEADER) as opened:
        assert (opened.recorded, opened.cut) == (count, 0)


def test_a_short_write_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(path, header=HEADER) as opened:
        write = os.pwrite
        monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:99], at))
        append(opened, b"\0a", 0, "success", frame("a"))
        append(opened, b"\0b", 0, "success", frame(b"b" * 100_000))
        monkeypatch.undo()
    assert values(path) == ["a", b"b" * 100_000]


@pytest.mark.parametrize("size", [1, 100_000])
def test_an_interrupt_in_a_write(
    path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """However much of it was written: the next write has it all."""
    write = os.pwrite
    with Journal.open(path, header=HEADER) as opened:
        for name, part in (("a", 0), ("b", 5), ("c", None)):

            def interrupted(fd: int, data: Any, at: int, part: int | None = part) -> int:
                write(fd, data[:part], at)
                raise KeyboardInterrupt

            monkeypatch.setattr(os, "pwrite", interrupted)
            with pytest.raises(KeyboardInterrupt):
                append(opened, item_key(name), 0, "success", frame(name * size))
            monkeypatch.undo()
            opened.flush()
    assert values(path) == ["a" * size, "b" * size, "c" * size]


def test_an_interrupt_anywhere(tmp_path: Path) -> None:
    """At each start and end of a call: the next run has all that a flush has written, and the file
    is closed without a warning."""
    flushed: list[int] = []

    def night(path: Path) -> None:
        with Journal.open(path, header=HEADER) as opened:
            for item in range(3):
                append(opened, item_key(item), 0, "success", frame(b"x" * (1, 100_000)[item % 2]))
                flushed.append(item)

    def interrupted(path: Path, calls: int) -> bool:
        def count(*_: object) -> None:
            nonlocal calls
            calls -= 1
            if calls < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

        before = sys.getprofile()
        try:
            sys.setprofile(count)
            night(path)
            sys.setprofile(None)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(before)
        return False

    calls = 0
    while True:
        path = tmp_path / f"{calls}.gdj"
        flushed.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            more = interrupted(path, calls)
        assert not caught, (calls, [str(each.message) for each in caught])
        Journal.open(path, header=HEADER).close()
        assert [record.key for record in read_journal(path)][: len(flushed)] == flushed
        if not more:
            break
        calls += 1
    assert calls > 100
    assert flushed == [0, 1, 2]


def test_syncs_once_a_second_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, synced = [1000.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(now[0]))
    opened = Journal.open(tmp_path / "night.gdj", header=HEADER)
    assert synced == [1000.0]
    assert opened.tick() is None
    for step in range(25):
        now[0] = 1000.0 + (step + 1) / 10
        append(opened, item_key(step), 0, "success", frame(step))
    assert synced == [1000.0, 1001.0, 1002.0]
    assert opened.tick() == pytest.approx(0.5)
    now[0] = 1003.0
    assert opened.tick() is None
    assert opened.tick() is None
    assert synced[3:] == [1003.0]
    now[0] = 1003.5
    append(opened, b"\0a", 0, "success", b"\0")
    opened.close()
    assert synced[4:] == [1003.5]


# ---- the program ----


def show(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "gpudispatch.journal", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
    )


class Danger:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this code ran",)


def test_jsonl(path: Path) -> None:
    with Journal.open(path, header=HEADER) as opened:
        append(opened, item_key("a"), 0, "success", frame({"score": 1.5}), times=REAL_TIMES)
        append(opened, item_key(b"b"), 0, "success", frame(b"raw"), device="cpu:1", attempt=3)
        append(opened, item_key(3), 0, "error", failure(ValueError("no")), text="ValueError: no")
        append(opened, item_key((4, "x")), 1, "success", frame({1, 2}), index=9)
        append(opened, item_key("z" * 2000), 0, "success", frame(Danger()))
        append(opened, item_key("inf"), 0, "success", frame(float("inf")))
        append(opened, item_key("none"), 0, "crash", b"")
    done = show(path, "--jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert "this code ran" not in done.stdout.splitlines()
    a, b, c, d, e, f, g = map(json.loads, done.stdout.splitlines())
    assert (a["key"], a["value"], a["ok"], a["kind"]) == ("a", {"score": 1.5}, True, "success")
    assert a["times"] == {"queued": 1.0, "sent": 2.0, "started": 3.0, "ended": 4.5}
    assert a["ended_at"].endswith("Z")
    assert a["error"] is None
    assert (b["key_repr"], b["value_repr"], b["device"]) == ("b'b'", "b'raw'", "cpu:1")
    assert (b["attempt"], b["ended_at"]) == (3, None)
    assert (c["key"], c["ok"], c["error"]["type"]) == (3, False, "ValueError")
    assert (c["error"]["text"], c["text"]) == ("no", "ValueError: no")
    assert "ValueError: no" in c["error"]["traceback"]
    assert (d["key"], d["value_repr"], d["turn"], d["index"]) == ([4, "x"], "{1, 2}", 1, 9)
    assert e["key_repr"].startswith("sha256 ")
    assert "builtins.print; --load shows it" in e["value_repr"]
    assert f["value_repr"] == "inf"
    assert g["error"]["type"] is None
    assert "this code ran" in show(path, "--jsonl", "--load").stdout.splitlines()


def test_summary(path: Path) -> None:
    fill(path, range(20))
    with Journal.open(path, header=HEADER) as opened:
        append(opened, b"\0a", 0, "crash", failure(RuntimeError("x")), times=REAL_TIMES)
        done = show(path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{path}: 21 outcomes of 21 items, 2 sessions"
    words = [line.split(maxsplit=1) for line in lines[1:]]
    assert ["success", "20"] in words
    assert ["crash", "1"] in words
    assert ["function", "tests:function"] in words
    assert ["writer", f"process {os.getpid()}"] in words


def test_exit_codes(tmp_path: Path, path: Path, sample: tuple[bytes, list[int]]) -> None:
    data, ends = sample
    path.write_bytes(data[:-1])
    done = show(path)
    assert done.returncode == 0
    assert "torn" in done.stdout
    damaged = bytearray(data)
    damaged[ends[2] + 20] ^= 1
    path.write_bytes(damaged)
    done = show(path)
    assert done.returncode == 1
    assert f"offset {ends[2]} is damaged" in done.stdout
    done = show(path, "--jsonl")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"offset {ends[2]} is damaged" in done.stderr
    done = show(path, "--jsonl", "--skip-damaged")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5)
    done = show(path, "--salvage", tmp_path / "new")
    assert done.returncode == 0
    assert done.stdout == f"{path}: bytes {ends[2]} to {ends[3]} are damaged, left out\n"
    assert show(tmp_path / "new").returncode == 0
    assert show().returncode == 2
    assert show(tmp_path / "none").returncode == 3
    (tmp_path / "text").write_text("hello")
    assert show(tmp_path / "text").returncode == 3


def test_head_ends_it_in_peace(path: Path) -> None:
    fill(path, range(5000))
    with subprocess.Popen(
        [sys.executable, "-m", "gpudispatch.journal", str(path), "--jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
