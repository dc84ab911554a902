"""Damaged and random load files: a load or one line, never another exception."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.files import model


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    content=st.binary(min_size=1, max_size=200),
    suffix=st.sampled_from(["csv", "json", "yaml", "npz", "npy", "bin"]),
)
def test_random_bytes_are_bad_input_and_nothing_else(content: bytes, suffix: str, tmp_path: Path) -> None:
    """Whatever the suffix says."""
    path = tmp_path / f"load.{suffix}"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        read_load([path], model())


def outcome(path: Path) -> str:
    """'a load' that fits the model, or the message of the refusal; any other exception is a failure."""
    try:
        load = read_load([path], model())
    except BadInput as refusal:
        return str(refusal)
    return "a load" if load.experts == 4 and load.layer_ids == (1, 2) else "another load"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data(), packed=st.booleans())
def test_damaged_archives_are_read_or_refused(data: st.DataObject, packed: bool, tmp_path: Path) -> None:
    """An .npz cut short or with flipped bytes raises BadInput or still holds a load;
    it never raises anything else.
    """
    path = tmp_path / "load.npz"
    (np.savez_compressed if packed else np.savez)(
        path, counts=np.arange(8).reshape(2, 4), layer_ids=np.array([1, 2])
    )
    content = bytearray(path.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[position] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    assert outcome(path) == "a load" or "load.npz" in outcome(path)


@pytest.mark.parametrize("packed", [True, False])
def test_no_flipped_byte_escapes(packed: bool, tmp_path: Path) -> None:
    """Each byte of an .npz turned over in turn: damaged headers, streams and directories all end in
    BadInput or in a load.
    """
    path = tmp_path / "load.npz"
    (np.savez_compressed if packed else np.savez)(path, counts=np.arange(8).reshape(2, 4) ** 5)
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        assert outcome(path) == "a load" or "load.npz" in outcome(path)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["counts", "trace", "layer_ids", "windows", "1", "2"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(tree=json_trees)
def test_any_json_is_read_or_refused(tree: object, tmp_path: Path) -> None:
    """A tree of any shape gives a load or BadInput."""
    path = tmp_path / "load.json"
    path.write_text(json.dumps(tree))
    assert outcome(path) == "a load" or "load.json" in outcome(path)
