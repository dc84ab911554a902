"""Topology text: names with counts, files, and one clear line for what cannot be read."""

import contextlib
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput, write_json
from planner.topology import Topology, gpu_model, read_topology, topology_from_dict
from tests.planner.machines import two_by_two

RATE = {"value": "400 Gb/s", "evidence": "read", "source": "sysfs"}
SMALL: dict[str, Any] = {
    "name": "lab",
    "source": "made up for tests",
    "nodes": [
        {
            "count": 2,
            "gpus": {"model": "H100-SXM-80GB", "count": 2},
            "nvlink": {"kind": "switch", "islands": [{"gpus": [0, 1], "rate": RATE}]},
            "pcie": {
                "rate": [RATE, RATE],
                "sockets": [0, 1],
                "switches": [{"gpus": [[0], [1]], "nics": [[0], [1]], "uplink": RATE}],
                "inter_socket": RATE,
            },
            "nics": [{"gpus": [[0], [1]], "rails": [0, 1], "rate": RATE}],
        }
    ],
    "fabric": {
        "kind": "rail",
        "nodes_per_leaf": 2,
        "oversubscription": 2,
        "evidence": "assumed",
        "source": "a guess",
    },
}


@pytest.mark.parametrize(
    ("text", "nodes", "gpus", "name"),
    [
        ("hgx-h100", 1, 8, "hgx-h100"),
        ("HGX-H100", 1, 8, "hgx-h100"),
        ("hgx-h100:4", 4, 32, "hgx-h100:4"),
        ("hgx-h100:4x2", 4, 8, "hgx-h100:4x2"),
        ("gb200-nvl72", 18, 72, "gb200-nvl72"),
        ("gb200-nvl72:2", 2, 8, "gb200-nvl72:2"),
        ("gb200-nvl72:36x1", 36, 36, "gb200-nvl72:36x1"),
    ],
)
def test_names_with_counts(text: str, nodes: int, gpus: int, name: str) -> None:
    """A preset at its natural size, repeated, and with the first GPUs of each node."""
    topology = read_topology(text)
    assert (topology.node_count, topology.gpu_count, topology.name) == (nodes, gpus, name)


@pytest.mark.parametrize(
    "counts", ["0", "4x9", "x", "99999999999", "", "4x0", "-1", "4x", "1.5", "2x2x2", "٤", " 4", "8193"]
)
def test_bad_counts(counts: str) -> None:
    """One line that names the text, the allowed counts and an example."""
    with pytest.raises(BadInput, match="1 to 8192 nodes, then perhaps x and 1 to 8 GPUs") as caught:
        read_topology(f"hgx-h100:{counts}")
    assert f"hgx-h100:{counts}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["hgx-h10", "hgx", "", "../hgx-h100", "hgx-h100.yml.x"])
def test_an_unknown_name_gets_near_ones(name: str) -> None:
    """Nothing is opened by an unknown name; the message names presets."""
    with pytest.raises(BadInput, match="did you mean"):
        read_topology(name)


def test_a_saved_file_is_the_same_topology(tmp_path: Path) -> None:
    """JSON written from to_dict, and YAML of it, read back equal."""
    topology = two_by_two("rail")
    path = write_json(tmp_path / "machine.json", topology.to_dict())
    yaml = tmp_path / "machine.yaml"
    yaml.write_text(json.dumps(topology.to_dict()), encoding="utf-8")
    assert read_topology(str(path)) == read_topology(str(yaml)) == topology


def test_a_file_can_be_counted_too(tmp_path: Path) -> None:
    """Alike nodes repeat; a colon in a folder's name is no count."""
    folder = tmp_path / "a:b"
    folder.mkdir()
    path = write_json(folder / "machine.json", two_by_two().to_dict())
    assert read_topology(f"{path}:5x1").gpu_count == 5


def test_unlike_nodes_are_cut_not_repeated(tmp_path: Path) -> None:
    """Of two unlike nodes one or two can be taken, not three."""
    data = copy.deepcopy(SMALL)
    data["nodes"].append(
        copy.deepcopy(data["nodes"][0]) | {"count": 1, "gpus": ["H100-SXM-80GB", "H200-SXM-141GB"]}
    )
    path = write_json(tmp_path / "mixed.json", data)
    assert read_topology(f"{path}:1").node_count == 1
    assert [gpu.model.name for gpu in read_topology(str(path)).gpus][-1] == "H200-SXM-141GB"
    with pytest.raises(BadInput, match="1 to 3 nodes"):
        read_topology(f"{path}:4")


def test_figures_of_a_file() -> None:
    """Units are read, and each figure keeps its evidence."""
    topology = topology_from_dict(SMALL)
    resources = {resource.name: resource.rate for resource in topology.resources}
    assert resources["node0/nic0/out"].bytes_per_s == 50e9
    assert resources["node0/nic0/out"].evidence.kind == "read"
    assert resources["leaf0/rail0/up"].bytes_per_s == 2 * 50e9 / 2
    assert resources["leaf0/rail0/up"].evidence.source == "a guess"


def test_a_gpu_model_of_the_file_wins() -> None:
    """gpu_models of the file go before the shipped ones."""
    own = {
        "memory": "64 GB",
        "memory_rate": "1 TB/s",
        "flops": {"bf16": "500 TFLOP/s"},
        "evidence": "read",
        "source": "nvidia-smi",
    }
    topology = topology_from_dict({**SMALL, "gpu_models": {"H100-SXM-80GB": own}})
    assert topology.gpus[0].model.memory_bytes == 64e9
    assert gpu_model("H100-SXM-80GB").memory_bytes == 80e9


BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "not a mapping": (lambda data: [data], "expected a mapping"),
    "no fabric": (lambda data: data.pop("fabric") and data, "'fabric' is missing"),
    "misspelt key": (lambda data: data["nodes"][0].update(nvlnk={}) or data, "unknown key 'nvlnk'"),
    "no nodes": (lambda data: data.update(nodes=[]) or data, "has no nodes"),
    "count of zero": (lambda data: data["nodes"][0].update(count=0) or data, "'count' is 0"),
    "count of billions": (
        lambda data: data["nodes"][0].update(count=10**10) or data,
        "'count' is 10000000000",
    ),
    "a count that is true": (lambda data: data["nodes"][0].update(count=True) or data, "'count' is True"),
    "gpus of billions": (
        lambda data: data["nodes"][0]["gpus"].update(count=10**10) or data,
        "a node has 1 to 128",
    ),
    "unknown gpu": (
        lambda data: data["nodes"][0]["gpus"].update(model="H101") or data,
        "GPU model 'H101' is not known; did you mean",
    ),
    "gpu that is no text": (
        lambda data: data["nodes"][0].update(gpus=[1, 2]) or data,
        "GPU model 1 is not known",
    ),
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
        "'felt' is not one of",
    ),
    "gpus that are text": (
        lambda data: data["nodes"][0]["nics"][0].update(gpus=["0", "1"]) or data,
        "not a list of whole numbers",
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
        "not a pair",
    ),
    "fabric of another kind": (
        lambda data: data["fabric"].update(kind="torus") or data,
        "fabric kind 'torus'",
    ),
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
