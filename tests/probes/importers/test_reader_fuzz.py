"""Damaged outputs of every reader: facts or BadInput, never another exception."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers import (
    test_amd_smi,
    test_cloud_labels,
    test_far_ends,
    test_lstopo,
    test_nccl_info,
    test_nvbandwidth,
    test_rdma_tools,
    test_smi_query,
    test_smi_table,
)
from tests.probes.importers.smi_texts import behind, listed, matrix

CARD = test_smi_query.Card()
NODES = test_cloud_labels.nodes(2)
SAMPLES = {
    "two hosts": behind("n1", listed() + matrix()) + behind("n2", listed(host=1) + matrix()),
    "one after the other": listed() + matrix() + listed(host=1) + matrix(),
    "nvidia-smi -q": test_smi_query.log(CARD, 2),
    "nvidia-smi -q -x": test_smi_query.xml(CARD, 2),
    "nvidia-smi": test_smi_table.HEAD
    + test_smi_table.row(0, "NVIDIA L4")
    + test_smi_table.row(1, "Tesla V100-SX..."),
    "nvlink -R": test_far_ends.text_of(test_far_ends.MESHED),
    "ibv_devinfo": matrix(2)
    + test_rdma_tools.devinfo(0, speed="100.0 Gbps (128)")
    + test_rdma_tools.devinfo(1),
    "show_gids": matrix(2) + test_rdma_tools.GIDS,
    "ibdev2netdev": matrix(2) + "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)\n",
    "nccl": "\n".join(test_nccl_info.log()),
    "nvbandwidth": test_nvbandwidth.text(2),
    "nvbandwidth -j": test_nvbandwidth.as_json(2),
    "lstopo": test_lstopo.machine(),
    "labels": test_cloud_labels.as_table(NODES) + matrix(2),
    "nodes.yaml": test_cloud_labels.as_yaml(NODES),
    "rocm-smi": test_amd_smi.LINKS,
}
JUNK = st.sampled_from(
    [
        b"",
        b"\n",
        b"\0",
        b"\xff",
        b"\x1b[3",
        b"99999999999999999999",
        b"-1",
        b"\t",
        b":",
        b"<",
        b'"',
        b"GPU0",
        b"1e9",
    ]
)


@pytest.mark.parametrize("kind", SAMPLES)
@settings(max_examples=25)
@given(
    st.integers(0, 4000), st.sampled_from([0, 1, 7, 60, 400]), JUNK, st.integers(0, 4000), st.integers(0, 300)
)
def test_damage_ends_in_facts_or_a_refusal(
    kind: str, place: int, lost: int, junk: bytes, start: int, length: int
) -> None:
    """Bytes lost at one place, junk and a piece of the text itself put there."""
    content = SAMPLES[kind].encode()
    place %= len(content)
    damaged = content[:place] + junk + content[start : start + length] + content[place + lost :]
    with contextlib.suppress(BadInput):
        assemble(read_facts(damaged, "x"), Hints(nic_bytes_per_s=50e9))
