"""Topologies from names with counts, and from files."""

import copy
import json
from pathlib import Path

import pytest

from planner.base import BadInput, write_json
from planner.topology import gpu_model, read_topology, topology_from_dict
from tests.planner.machines import two_by_two
from tests.planner.topology.lab import SMALL


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
