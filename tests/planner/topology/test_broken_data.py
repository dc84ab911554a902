"""Broken topology files, and any junk, are read or refused in one line."""

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.topology import Topology, read_topology, topology_from_dict
from tests.planner.topology.lab import RATE, SMALL

BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "not a mapping": (lambda data: [data], "expected a mapping"),
    "no fabric": (lambda data: data.pop("fabric") and data, "'fabric' is missing"),
    "misspelt key": (lambda data: data["nodes"][0].update(nvlnk={}) or data, "unknown key 'nvlnk'"),
    "no nodes": (lambda data: data.update(nodes=[]) or data, "'nodes' is"),
    "count of zero": (lambda data: data["nodes"][0].update(count=0) or data, "'count' is 0"),
    "count of billions": (
        lambda data: data["nodes"][0].update(count=10**10) or data,
        "'count' is 10000000000",
    ),
    "a count that is true": (lambda data: data["nodes"][0].update(count=True) or data, "'count' is True"),
    "gpus of billions": (lambda data: data["nodes"][0]["gpus"].update(count=10**10) or data, "from 1 to 128"),
    "unknown gpu": (
        lambda data: data["nodes"][0]["gpus"].update(model="H101") or data,
        "GPU model 'H101' is not known; did you mean",
    ),
    "gpu that is no text": (lambda data: data["nodes"][0].update(gpus=[1, 2]) or data, "1; expected text"),
    "names for other nodes": (
        lambda data: data["nodes"][0].update(names=["a"]) or data,
        "'names' holds 1 entries for 2 nodes",
    ),
    "rate without source": (
        lambda data: data["nodes"][0]["nics"][0].update(rate={"value": "1 GB/s", "evidence": "read"}) or data,
        "'source' is missing",
    ),
    "rate as number": (
        lambda data: data["nodes"][0]["nics"][0].update(rate={**RATE, "value": 5}) or data,
        "'value' is 5",
    ),
    "rate without unit": (
        lambda data: data["nodes"][0]["nics"][0].update(rate={**RATE, "value": "5"}) or data,
        "cannot read '5'",
    ),
    "rate of zero": (
        lambda data: data["nodes"][0]["nics"][0].update(rate={**RATE, "value": "0 GB/s"}) or data,
        "cannot be used",
    ),
    "unknown evidence": (
        lambda data: data["nodes"][0]["nics"][0].update(rate={**RATE, "evidence": "felt"}) or data,
        "'evidence' is 'felt'; expected measured",
    ),
    "gpus that are text": (
        lambda data: data["nodes"][0]["nics"][0].update(gpus=["0", "1"]) or data,
        "each a whole number from 0",
    ),
    "rails too few": (
        lambda data: data["nodes"][0]["nics"][0].update(rails=[0]) or data,
        "need one entry for each",
    ),
    "nics of switches too few": (
        lambda data: data["nodes"][0]["pcie"]["switches"][0].update(nics=[[0]]) or data,
        "lists 1 switches",
    ),
    "three in a pair": (
        lambda data: (
            data["nodes"][0].update(nvlink={"kind": "mesh", "pairs": [{"gpus": [[0, 1, 1]], "rate": RATE}]})
            or data
        ),
        "expected a list of 2",
    ),
    "fabric of another kind": (lambda data: data["fabric"].update(kind="torus") or data, "'kind' is 'torus'"),
    "endless nodes": (
        lambda data: data.update(nodes=[data["nodes"][0] | {"count": 40_000}] * 3) or data,
        "more than 65,536 nodes",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(case: str) -> None:
    """Each fault is one line that begins with the file and names the place."""
    change, message = BROKEN[case]
    with pytest.raises(BadInput, match=message) as caught:
        topology_from_dict(change(copy.deepcopy(SMALL)), "lab.yaml")
    assert str(caught.value).startswith("lab.yaml")
    assert "\n" not in str(caught.value)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 70_000)
    | st.floats()
    | st.sampled_from(["400 Gb/s", "switch", "mesh", "rail", "read", "x", ""])
)


JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["gpus", "rate", "kind", "count"]), inner)
    ),
    max_leaves=6,
)


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below `data`."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in items for place in ((data, key), *_places(value))]


@given(st.data())
def test_any_junk_is_read_or_refused(data: st.DataObject) -> None:
    """A good file with one value replaced by junk gives a topology or BadInput, never another exception."""
    changed = copy.deepcopy(SMALL)
    container, key = data.draw(st.sampled_from(_places(changed)))
    container[key] = data.draw(JUNK)
    with contextlib.suppress(BadInput):
        assert isinstance(topology_from_dict(changed), Topology)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever is typed as a topology: a topology or BadInput."""
    with contextlib.suppress(BadInput):
        assert isinstance(read_topology(text), Topology)
