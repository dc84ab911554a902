"""Plain tensors and tables: read where they are counts, else refused in one line.

So are damaged ones, and those whose library is absent.
"""

import builtins
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load, slot_map
from planner.model import ModelSpec
from tests.planner.load.dumps.files import COUNTS, MAP_LP, MODEL, saved, torch

SLOTS = [[10, 20, 30, 40, 5, 6]] * 2


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(COUNTS),
        torch.tensor([COUNTS], dtype=torch.float32),
        {"weight": torch.tensor(COUNTS)},
        list(torch.tensor(COUNTS)),
    ],
)
def test_a_tensor_of_counts_is_read(tmp_path: Path, value: Any) -> None:
    """[layer, expert] or [window, layer, expert], alone or named, as DeepSeek's EPLB takes it."""
    assert read_load([saved(tmp_path / "weight.pt", value)], MODEL).tokens_WLE.tolist() == [COUNTS]


def test_a_window_of_slots_needs_its_map(tmp_path: Path) -> None:
    """C18 B, as vLLM's load window [window, MoE layer, slot]."""
    path = saved(tmp_path / "window.pt", torch.tensor([SLOTS] * 2, dtype=torch.int32))
    with pytest.raises(BadInput, match=r"6 experts a layer.*--map"):
        read_load([path], MODEL)
    load = read_load([path], MODEL, slot_map(MAP_LP, "map.json", 4))
    assert load.tokens_WLE.tolist() == [[[15, 26, 30, 40]] * 2] * 2


def test_a_map_must_fit(tmp_path: Path) -> None:
    """Another number of slots, and a layer that the map lacks."""
    path = saved(tmp_path / "window.pt", torch.tensor(SLOTS))
    with pytest.raises(BadInput, match=r"6 counts a layer, but map\.json maps 4 slots"):
        read_load([path], MODEL, slot_map([[0, 1, 2, 3]] * 3, "map.json", 4))
    with pytest.raises(BadInput, match="layer 2 has counts of slots, but no row in the map"):
        read_load([path], MODEL, slot_map(MAP_LP[:1], "map.json", 4, (1,)))


def test_a_trace_of_slots_is_mapped_too(tmp_path: Path) -> None:
    """A trace of ours recorded in slots."""
    np.savez(
        tmp_path / "trace.npz", topk_ids=np.array([[[4, 1], [2, 5]], [[0, 3], [4, 5]]]), layer_ids=[1, 2]
    )
    load = read_load([tmp_path / "trace.npz"], MODEL, slot_map(MAP_LP, "map.json", 4))
    assert load.trace is not None
    assert load.trace.experts_LTK.tolist() == [[[0, 1], [2, 1]], [[0, 3], [0, 1]]]


def test_the_same_tensor_of_four_ranks_is_refused(tmp_path: Path) -> None:
    """C18 C."""
    with pytest.raises(BadInput, match="identical counts"):
        read_load([saved(tmp_path / f"rank{rank}.pt", torch.tensor(COUNTS)) for rank in range(4)], MODEL)
    same, both = (
        read_load([tmp_path / f"rank{rank}.pt" for rank in range(4)], MODEL, ranks=ranks)
        for ranks in ("same", "sum")
    )
    assert (same.windows, both.windows) == (1, 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"state": torch.zeros(2)}, "holds the keys 'state'"),
        (torch.zeros(3), r"a tensor of shape \[3\]"),
        (torch.tensor(COUNTS, dtype=torch.bfloat16), "bfloat16"),
        (torch.zeros(1).expand(1 << 14, 1 << 14), "larger than"),
        (torch.tensor(COUNTS, dtype=torch.float32) / 8, "counts are whole numbers"),
        (torch.tensor([[1, -1, 1, 1]] * 2), "negative"),
        (torch.tensor(COUNTS).to_sparse(), "not a readable file of tensors"),
        (len, "not a readable file of tensors"),
    ],
    ids=[
        "weights",
        "one axis",
        "bfloat16",
        "a small file of any size",
        "shares",
        "negative",
        "sparse",
        "code",
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, value: Any, message: str) -> None:
    """No code is run, nothing large is unfolded, nothing inexact is taken for a count."""
    with pytest.raises(BadInput, match=message) as caught:
        read_load([saved(tmp_path / "a.pt", value)], MODEL)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "library"),
    [("a.pt", "torch"), ("rank0.safetensors", "safetensors.numpy"), ("a.parquet", "pyarrow.parquet")],
)
def test_a_missing_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
) -> None:
    """The base install has none of them: one line, not a traceback."""
    (tmp_path / name).write_bytes(b"x")
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match="pip install"):
        read_load([tmp_path / name], MODEL)


def test_a_parquet_table_has_the_columns_of_a_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table becomes the rows of a CSV. A stand-in with its interface answers for pyarrow, if absent."""
    columns = {"layer_id": [1, 1, 2, 2], "expert_id": [0, 3, 1, 2], "count": [3, 1, 2, 2]}
    path = tmp_path / "load.parquet"
    try:
        pyarrow = __import__("pyarrow.parquet")
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    except ImportError:
        path.write_bytes(b"PAR1")
        file = types.SimpleNamespace(
            metadata=types.SimpleNamespace(num_rows=4, num_columns=3),
            schema=types.SimpleNamespace(names=list(columns)),
            read=lambda: types.SimpleNamespace(to_pydict=lambda: columns),
        )
        monkeypatch.setitem(sys.modules, "pyarrow", types.ModuleType("pyarrow"))
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", types.SimpleNamespace(ParquetFile=lambda _: file))
    assert read_load([path], MODEL).tokens_WLE.tolist() == [[[3, 0, 0, 1], [0, 2, 2, 0]]]


def test_counts_of_a_model_without_dense_layers(tmp_path: Path) -> None:
    """Rows are the decoder layers, all of which hold experts."""
    whole = ModelSpec("whole", "test", 2, (0, 1), 4, 2, 8, 8, 8, "bf16", "by hand")
    assert read_load(
        [saved(tmp_path / "a.pt", {"logical_count": torch.tensor([COUNTS])})], whole
    ).layer_ids == (0, 1)
