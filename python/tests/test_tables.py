# SPDX-License-Identifier: MIT
"""tables.py: the types of stats(), slots() and devices() name what the C headers name."""

from __future__ import annotations

import math
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import gpudispatch
from gpudispatch import Executor, Pool, tables

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "include/gpudispatch"


def header(name: str) -> str:
    if not HEADERS.is_dir():
        pytest.skip("the headers are not beside the tests")
    return re.sub(r"/\*.*?\*/", "", (HEADERS / name).read_text(), flags=re.DOTALL)


def fields(file: str, struct: str) -> set[str]:
    """The fields of a struct, but for its size and its padding."""
    (body,) = re.findall(rf"struct {struct} \{{(.*?)\n\}};", header(file), re.DOTALL)
    names = re.findall(r"^\s*(?:u?int\d+_t|char|double) (\w+)", body, re.MULTILINE)
    return set(names) - {"struct_size", "reserved"}


def named(file: str, table: str, drop: str = "") -> tuple[str, ...]:
    """The names in an X macro."""
    (body,) = re.findall(rf"#define {table}\(X\)((?:.*\\\n)*.*)", header(file))
    return tuple(name for name in re.findall(r"X\((\w+),", body) if name != drop)


def keys(kind: Any) -> set[str]:
    return set(typing.get_type_hints(kind))


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(2) as ex:
        list(ex.map(math.sqrt, range(20)))
        yield ex


def test_headers_have_these_fields() -> None:
    counters = set(named("stats.h", "GPUD_STATS_MAP"))
    assert keys(tables.Stats) == fields("stats.h", "gpud_stats") | counters
    assert keys(tables.SlotStats) == fields("stats.h", "gpud_slot_stats")
    assert keys(tables.DeviceInfo) == fields("device.h", "gpud_device_info")
    assert keys(tables.ClassStats) == fields("sched.h", "gpud_class_stats")
    assert keys(tables.Reason) == fields("sched.h", "gpud_reason") | {"text", "future", "item"}


@pytest.mark.parametrize(
    ("kind", "file", "table", "drop"),
    [
        (tables.OutcomeName, "types.h", "GPUD_OUTCOME_MAP", ""),
        (tables.SlotState, "types.h", "GPUD_SLOT_MAP", ""),
        (tables.Health, "types.h", "GPUD_HEALTH_MAP", ""),
        (tables.DeviceKind, "device.h", "GPUD_DEVICE_KIND_MAP", ""),
        (tables.DeviceState, "device.h", "GPUD_DEVICE_STATE_MAP", ""),
        (tables.ReasonKind, "sched.h", "GPUD_REASON_MAP", "NONE"),
    ],
)
def test_headers_have_these_names(kind: Any, file: str, table: str, drop: str) -> None:
    assert typing.get_args(kind) == named(file, table, drop)


def test_headers_have_these_units() -> None:
    names = re.findall(r"GPUD_UNIT_(\w+) = \d+", header("sched.h"))
    assert typing.get_args(tables.ReasonUnit) == tuple(
        "" if name == "NONE" else name.lower() for name in names
    )


def matches(value: object, kind: Any) -> bool:
    if typing.get_origin(kind) is typing.Literal:
        return value in typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in typing.get_args(kind))
    if typing.get_origin(kind) is dict:
        assert isinstance(value, dict)
        key, item = typing.get_args(kind)
        return all(matches(k, key) and matches(v, item) for k, v in value.items())
    return kind is Any or isinstance(value, typing.get_origin(kind) or kind)


def check(row: Any, kind: Any) -> None:
    hints = typing.get_type_hints(kind)
    assert set(row) == set(hints)
    for name, value in row.items():
        assert matches(value, hints[name]), f"{name} is {value!r}, expected {hints[name]}"


def test_rows_have_these_types(executor: Executor) -> None:
    check(executor.stats(), tables.Stats)
    assert len(executor.slots()) == len(executor.devices()) == 2
    for slot in executor.slots():
        check(slot, tables.SlotStats)
    for device in executor.devices():
        check(device, tables.DeviceInfo)


def test_rows_of_a_pool_have_these_types() -> None:
    with Pool("fake:2") as pool:
        a = pool.add("a")
        a.pause()
        waiting = a.submit(math.sqrt, 4)
        reasons = pool.explain(waiting)
        assert reasons
        for reason in reasons:
            check(reason, tables.Reason)
            assert reason["text"].startswith(reason["kind"])
        a.resume()
        assert waiting.result() == 2
        for device in pool.devices():
            check(device, tables.DeviceInfo)
    for row in (a.stats(), *pool.classes()):
        check(row, tables.ClassStats)


def test_values(executor: Executor) -> None:
    stats, slots, devices = executor.stats(), executor.slots(), executor.devices()
    assert (stats["success"], stats["slots"], stats["slot_count"]) == (20, 2, 2)
    assert sum(slot["outcomes"]["SUCCESS"] for slot in slots) == 20
    assert [slot["device"] for slot in slots] == ["cpu:0", "cpu:1"]
    assert [device["kind"] for device in devices] == ["CPU", "CPU"]
    assert [device["temperature"] for device in devices] == [None, None]
    assert "READY" in {device["state"] for device in devices} <= {"READY", "STARTING"}
    assert [device["slot"] for device in devices] == [0, 1]
    assert sum(device["tasks_done"] for device in devices) == 20


def test_unknown_end_is_none() -> None:
    with Executor(1) as ex:
        future = ex.submit(math.sqrt, 4)
        assert ex.stats()["eta_low"] in (None, 0)
        future.result()


def test_fakes_have_readings() -> None:
    with Executor(devices="fake:1") as ex:
        ex.submit(math.sqrt, 4).result()
        (device,) = ex.devices()
        check(device, tables.DeviceInfo)
        assert device["kind"] == "FAKE"
        assert device["memory_total"] is not None


def test_counters() -> None:
    rows = tables.counters()
    assert [row.name for row in rows] == list(named("stats.h", "GPUD_STATS_MAP"))
    assert rows[0].unit == "tasks"
    assert {row.kind for row in rows} == {"counter", "gauge"}
    assert all(row.help for row in rows)


def test_stats_of_the_end() -> None:
    with Executor(1) as ex:
        ex.submit(math.sqrt, 4).result()
    check(ex.stats(), tables.Stats)
    assert ex.stats()["success"] == 1


def test_the_package_names_them() -> None:
    assert gpudispatch.Stats is tables.Stats
    assert gpudispatch.SlotStats is tables.SlotStats
    assert gpudispatch.DeviceInfo is tables.DeviceInfo
