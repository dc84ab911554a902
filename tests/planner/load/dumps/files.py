"""Dumps with the structure that the engines write, and a model small enough to check by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from planner.model import ModelSpec

torch = pytest.importorskip("torch", reason="PyTorch is not installed: engines' dumps cannot be written")

MODEL = ModelSpec("small", "test", 3, (1, 2), 4, 2, 8, 8, 8, "bf16", "by hand")  # layer 0 is dense
COUNTS = [[4, 2, 1, 1], [2, 2, 2, 2]]
MAP_LP = [[0, 1, 2, 3, 0, 1]] * 3  # six slots: experts 0 and 1 have two each


def routed(tokens: int, seed: int = 0, experts: int = 4) -> npt.NDArray[np.int32]:
    """Ids [token, decoder layer, k] as engines return them: distinct in a token, zeros in the dense layer."""
    random = np.random.default_rng(seed)
    ids_TLK = np.zeros((tokens, 3, 2), dtype=np.int32)
    ids_TLK[:, 1:] = random.permuted(np.tile(np.arange(experts), (tokens, 2, 1)), axis=2)[:, :, :2]
    return ids_TLK


def counted(ids_TLK: npt.NDArray[Any], width: int = 4) -> npt.NDArray[np.int64]:
    """Counts [MoE layer, expert or slot] of such ids."""
    return np.array([np.bincount(ids_TLK[:, layer].ravel(), minlength=width) for layer in (1, 2)])


def saved(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def stat(
    folder: Path, steps: list[Any], name: str = "expert_distribution_recorder_1.5.pt", rank: int = 0
) -> Path:
    """A stat dump: logical counts [buffered step, decoder layer, expert], int32, dense rows zero."""
    torch.save(
        {
            "rank": rank,
            "logical_count": torch.tensor(np.array(steps), dtype=torch.int32),
            "average_utilization_rate_over_window": None,
        },
        folder / name,
    )
    return folder / name


def step(*rows: list[int]) -> list[list[int]]:
    """One step's counts with the dense layer's zero row."""
    return [[0] * len(rows[0]), *rows]


def slots_of(ids_TLK: npt.NDArray[np.int32], seed: int = 0) -> npt.NDArray[np.int32]:
    """The same ids as slots of MAP_LP, one of an expert's slots at random."""
    second = (ids_TLK < 2) & (np.random.default_rng(seed).random(ids_TLK.shape) < 0.5)
    return np.where(second, ids_TLK + 4, ids_TLK).astype(np.int32)


def passes(
    folder: Path,
    rank: int,
    by_pass: dict[int, npt.NDArray[np.int32]],
    *,
    tokens: bool = False,
    slot_map: Any = MAP_LP,
    name: str = "",
) -> Path:
    """One rank's per_pass dump, per_token with `tokens`.

    `by_pass` has the slots [token, decoder layer, k] of each forward pass.
    """
    records = []
    for pass_id, slots_TLK in by_pass.items():
        counts_LP = np.vstack([np.zeros((1, 6), dtype=int), counted(slots_TLK, 6)])
        record = {
            "forward_pass_id": pass_id,
            "rank": rank,
            "gatherer_key": "primary",
            "global_physical_count": torch.tensor(counts_LP, dtype=torch.int32),
        }
        if tokens:
            table_LTK = np.full((3, len(slots_TLK), 8), -1, dtype=np.int32)  # the engine's table is 8 wide
            table_LTK[1:, :, :2] = slots_TLK.transpose(1, 0, 2)[1:]
            length = len(slots_TLK)
            record |= {
                "input_ids": list(range(length)),
                "positions": list(range(length)),
                "extend_seq_lens": [length],
                "forward_mode": 1,
            }
            record |= {"topk_ids_of_layer": torch.tensor(table_LTK), "misc_objects": []}
        records.append(record)
    path = folder / (name or f"expert_distribution_recorder_{1.5 + rank}_{rank}.pt")
    torch.save({"records": records, "last_physical_to_logical_map": torch.tensor(slot_map)}, path)
    return path
