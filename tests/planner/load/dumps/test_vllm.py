"""vLLM's routed experts as a trace; its balancedness log as what it is; vllm-ascend's map is no load."""

import base64
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.dumps.files import MODEL, counted, routed

LOG = (
    "INFO 11-30 12:00:01 EPLB step: 250 for model m: avg_tokens=812.50, max_tokens=1250, "
    "balancedness=0.6500, steps until the next rearrangement: 750\n"
    "INFO 11-30 12:00:02 EPLB step: 251 for model m: avg_tokens=800.00, max_tokens=1000, "
    "balancedness=0.8000, steps until the next rearrangement: 749\n"
)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_requests_are_one_trace(tmp_path: Path, dtype: type[np.unsignedinteger]) -> None:
    """One .npy [token, decoder layer, k] a request; the dense layer's zeros are no ids of expert 0."""
    for name, tokens in (("a", 5), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", routed(tokens, seed=tokens).astype(dtype))
    load = read_load([tmp_path / "a.npy", tmp_path / "b.npy"], MODEL)
    assert load.trace is not None
    assert load.trace.sequence_lengths == (5, 4)
    assert np.array_equal(
        load.trace.experts_LTK, np.concatenate([routed(5, seed=5), routed(4, seed=4)]).transpose(1, 0, 2)[1:]
    )
    assert load.tokens_WLE.tolist() == [
        counted(routed(5, seed=5)).tolist(),
        counted(routed(4, seed=4)).tolist(),
    ]


def test_the_base64_of_the_answer_is_read(tmp_path: Path) -> None:
    """choices[i].routed_experts, saved as it is."""
    buffer = io.BytesIO()
    np.save(buffer, routed(5).astype(np.uint8))
    (tmp_path / "a.b64").write_bytes(base64.b64encode(buffer.getvalue()))
    assert read_load([tmp_path / "a.b64"], MODEL).tokens_WLE.tolist() == [counted(routed(5)).tolist()]
    (tmp_path / "b.b64").write_text("not base64!")
    with pytest.raises(BadInput, match="not base64 text"):
        read_load([tmp_path / "b.b64"], MODEL)


def test_a_common_prompt_of_requests_is_dropped(tmp_path: Path) -> None:
    """Requests in separate files are sequences of one trace, so that what all begin with is seen."""
    for name in "abc":
        np.save(
            tmp_path / f"{name}.npy", np.concatenate([routed(6), routed(5, seed=ord(name))]).astype(np.uint8)
        )
    load = read_load([tmp_path / f"{name}.npy" for name in "abc"], MODEL)
    assert any("first 6 tokens of all 3 sequences" in note for note in load.notes)
    assert load.tokens_WLE.sum() == 3 * 5 * 2 * 2


def test_tokens_that_were_not_captured_are_left_out(tmp_path: Path) -> None:
    """Rows of zeros in every layer are not tokens that chose expert 0 twice."""
    ids_TLK = routed(5)
    ids_TLK[2] = 0
    np.save(tmp_path / "a.npy", ids_TLK.astype(np.uint8))
    load = read_load([tmp_path / "a.npy"], MODEL)
    assert load.tokens_WLE.sum() == 4 * 2 * 2
    assert any("1 of 5 tokens were not captured" in note for note in load.notes)


def test_axes_that_can_be_read_two_ways_are_refused(tmp_path: Path) -> None:
    """As many tokens as layers, none of them dense: [token, layer, k] and [layer, token, k] look alike."""
    np.save(tmp_path / "a.npy", routed(3).astype(np.uint8))
    with pytest.raises(BadInput, match=r"axes could be .*npz"):
        read_load([tmp_path / "a.npy"], replace(MODEL, moe_layer_ids=(0, 1, 2)))


def test_a_balancedness_log_is_no_load(tmp_path: Path) -> None:
    """It is refused with what it says and what it is good for."""
    (tmp_path / "server.log").write_text(LOG)
    with pytest.raises(
        BadInput,
        match=r"2 lines, balancedness 0\.6500 to 0\.8000.*no load.*"
        r"cross-check.*--enable-return-routed-experts",
    ):
        read_load([tmp_path / "server.log"], MODEL)


def test_another_log_is_no_dump(tmp_path: Path) -> None:
    """A text file without such lines is refused by its suffix."""
    (tmp_path / "server.log").write_text("INFO started\n")
    with pytest.raises(BadInput, match=r"no engine's dump that we know"):
        read_load([tmp_path / "server.log"], MODEL)


def test_an_ascend_map_is_no_load(tmp_path: Path) -> None:
    """It says where experts sit; what to give in its place is named."""
    value = {
        "moe_layer_count": 1,
        "layer_list": [
            {
                "layer_id": 0,
                "device_count": 1,
                "device_list": [{"device_id": 0, "device_expert": [0, 1, 2, 3]}],
            }
        ],
    }
    (tmp_path / "map.json").write_text(json.dumps(value))
    with pytest.raises(BadInput, match="vllm-ascend's expert map"):
        read_load([tmp_path / "map.json"], MODEL)
