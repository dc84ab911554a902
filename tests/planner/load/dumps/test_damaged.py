"""Damaged dumps: a load or one line of BadInput, whatever the libraries make of the file."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.dumps.files import COUNTS, MODEL, passes, routed, saved, stat, step, torch


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
@given(data=st.data())
def test_damaged_dumps_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes flipped or cut: whatever the libraries make of it, the answer is a load or one BadInput."""
    original = data.draw(st.sampled_from(_originals(tmp_path)))
    content = bytearray(original.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = tmp_path / "damaged" / original.name
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(
        content[: data.draw(st.integers(1, len(content)))] if data.draw(st.booleans()) else content
    )
    assert "\n" not in _fault(damaged)


def _fault(path: Path) -> str:
    """What is wrong with the file, empty where it is a load.

    Any other exception than BadInput fails the test.
    """
    try:
        read_load([path], MODEL)
    except BadInput as fault:
        return str(fault)
    return ""


def _originals(folder: Path) -> list[Path]:
    from safetensors.numpy import save_file

    made = folder / "originals"
    if not made.exists():
        made.mkdir()
        stat(made, [step([4, 2, 1, 1], [2, 2, 2, 2])], "stat.pt")
        passes(made, 0, {0: routed(5)}, tokens=True, name="passes.pt")
        saved(made / "plain.pt", torch.tensor(COUNTS))
        torch.save(torch.tensor(COUNTS), made / "old.pt", _use_new_zipfile_serialization=False)
        save_file({"5_1": np.array(COUNTS[0]), "5_2": np.array(COUNTS[1])}, made / "rank0.safetensors")
        np.save(made / "a.npy", routed(5).astype(np.uint8))
        (made / "a.bin").write_bytes(routed(5).tobytes())
    return sorted(made.iterdir())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(
    value=st.recursive(
        st.none()
        | st.integers()
        | st.text(max_size=5)
        | st.sampled_from([torch.tensor(COUNTS), torch.tensor([[0, 1]]), torch.zeros(0), torch.tensor(1.5)]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "logical_count",
                        "records",
                        "last_physical_to_logical_map",
                        "global_physical_count",
                        "rank",
                        "forward_pass_id",
                        "topk_ids_of_layer",
                        "weight",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=8,
    )
)
def test_any_tree_of_tensors_is_read_or_refused(tmp_path: Path, value: Any) -> None:
    """Well-formed files that no engine wrote."""
    assert "\n" not in _fault(saved(tmp_path / "any.pt", value))
