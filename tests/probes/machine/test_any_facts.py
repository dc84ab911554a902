"""Partial and contradicting facts of any kind: a machine, or one line."""

import json
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.machine.told import H100, HINTS


@st.composite
def host_facts(draw: st.DrawFn) -> HostFacts:
    """Partial facts of any kind, with holes anywhere."""
    gpus, nics = draw(st.integers(0, 5)), draw(st.integers(0, 4))
    words = st.sampled_from(["NV18", "NV4", "NV1", "PIX", "PXB", "PHB", "NODE", "SYS"])
    maybe = st.booleans()
    return HostFacts(
        draw(st.sampled_from(["a", "b"])),
        draw(st.sampled_from(["topo-m", "nccl-xml", "sysfs"])),
        draw(st.sampled_from(["read", "imported"])),
        draw(st.sampled_from([None, "n1", "n2", "localhost"])),
        tuple(
            GpuFact(
                i,
                draw(st.sampled_from([None, H100, "NVIDIA X1"])),
                draw(st.sampled_from([None, f"GPU-{i}"])),
                numa=draw(st.sampled_from([None, 0, 3])),
            )
            for i in range(gpus)
        ),
        tuple(
            NicFact(
                f"NIC{i}",
                draw(st.sampled_from([None, f"mlx5_{i}"])),
                draw(st.sampled_from([None, 25e9, 50e9])),
                up=draw(maybe),
            )
            for i in range(nics)
        ),
        {pair: draw(words) for pair in combinations(range(gpus), 2) if draw(maybe)},
        {
            (i, j): draw(st.sampled_from(["PIX", "PXB", "PHB", "NODE", "SYS"]))
            for i in range(gpus)
            for j in range(nics)
            if draw(maybe)
        },
        draw(st.sampled_from([None, "none", "switch", "mesh", "bridge"])),
        draw(
            st.sampled_from([None, tuple((i,) for i in range(gpus)), (tuple(range(gpus)),) if gpus else ()])
        ),
    )


@given(
    st.lists(host_facts(), min_size=1, max_size=4),
    st.sampled_from([Hints(), HINTS, Hints(gpu="GB200", nodes=2, nic_bytes_per_s=1e9)]),
)
def test_any_facts_give_a_machine_or_one_line(facts: list[HostFacts], hints: Hints) -> None:
    """Holes and contradictions: a topology that holds, or a sentence; every GPU is in one domain, no other
    exception.
    """
    try:
        found = assemble(facts, hints)
    except BadInput:
        return
    assert sorted(gpu for domain in found.nvlink_domains for gpu in domain) == list(range(found.gpus))
    assert sorted(found.affinity) == list(range(found.gpus))
    assert found.topology is not None or any("no topology" in sentence for sentence in found.unknown)
    if found.topology is not None:
        assert found.topology.gpu_count == found.gpus
    json.dumps(found.to_dict(), allow_nan=False)
