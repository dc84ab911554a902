"""NCCL's INFO log: the machine that ranks found, host by host."""

import random

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import nccl_info
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints


def log(
    host: str = "node1",
    gpus: int = 4,
    links: float = 370.8,
    rank: int = 0,
    new: bool = False,
    mesh: bool = False,
) -> list[str]:
    """What one rank logs: half of the GPUs on each CPU, a NIC beside each GPU."""
    head, system = f"{host}:{4242 + rank}:{4300 + rank} [{rank}] NCCL INFO ", "0-" if new else ""
    gpu = [f"GPU/{system}{at + 1}b000" for at in range(gpus)]
    net = [f"NET/{system}{at}" for at in range(gpus)]
    using = " ".join(f"[{at}]mlx5_{at}:1/IB" for at in range(gpus))
    lines = [
        f"NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>",
        f"=== System : maxBw {links} totalBw {links} ===",
    ]
    for cpu in (0, 1):
        lines.append(f"CPU/{system}{cpu} (1/1/2)")
        for at in range(cpu * gpus // 2, (cpu + 1) * gpus // 2):
            lines.append(f"+ PCI[48.0] - PCI/{system}{at + 1}a000 (1000c01010000000)")
            lines.append(f"              + PCI[48.0] - {gpu[at]} ({at})")
            ends = [gpu[peer] for peer in range(gpus) if peer != at] if mesh else [f"NVS/{system}0"]
            lines += [f"                            + NVL[{links:.1f}] - {end}" for end in ends]
            lines.append(f"              + PCI[48.0] - NIC/{system}{at + 1}c000")
            lines.append(f"                            + NET[50.0] - {net[at]} (a1b2c3/1/50.000000)")
        lines.append(f"+ SYS[10.0] - CPU/{system}{1 - cpu}")
    lines.append("=" * 42)
    for at in range(gpus):
        peers = [
            f"{gpu[to]} ({0 if to == at else 2}/{links:f}/{'LOC' if to == at else 'NVL'})"
            for to in range(gpus)
        ]
        words = [
            "PIX" if to == at else "PHB" if 2 * to // gpus == 2 * at // gpus else "SYS" for to in range(gpus)
        ]
        near = [f"{net[to]} (3/48.0/{words[to]})" for to in range(gpus)]
        lines.append(f"{gpu[at]} :{' '.join(peers)} CPU/{system}0 (2/48.0/PHB) {' '.join(near)} ")
    lines.append("Pattern 4, crossNic 0, nChannels 16, bw 40.000000/40.000000, type NVL/PIX, sameChannels 1")
    return [head + line for line in lines]


def hosts_of(text: str) -> list[HostFacts]:
    return [fact for fact in read_facts(text.encode(), "nccl.log") if isinstance(fact, HostFacts)]


@pytest.mark.parametrize("new", [False, True])
def test_the_machine_of_one_rank(new: bool) -> None:
    """GPUs and NICs with their PCI addresses, NUMA nodes, rates, names, paths; NVLink behind a switch."""
    (host,) = hosts_of("\n".join(log(new=new)))
    assert host.host == "node1"
    assert [(gpu.pci, gpu.numa, gpu.nvlinks) for gpu in host.gpus] == [
        (f"0000:{at + 1}b:00.0", at // 2, 18) for at in range(4)
    ]
    assert [(nic.name, nic.rate_bytes_per_s, nic.pci, nic.link_layer) for nic in host.nics] == [
        (f"mlx5_{at}", 50e9, f"0000:{at + 1}c:00.0", "InfiniBand") for at in range(4)
    ]
    assert (host.nvlink_kind, host.domains, host.gpu_paths[0, 3]) == ("switch", ((0, 1, 2, 3),), "NV18")
    assert [host.nic_paths[0, nic] for nic in range(4)] == ["PIX", "PHB", "SYS", "SYS"]


@pytest.mark.parametrize(
    ("rate", "mesh", "kind", "links"),
    [(240.0, False, "switch", 12), (721.8, False, "switch", 18), (80.0, True, "mesh", 12)],
)
def test_links_are_counted_by_their_rate(rate: float, mesh: bool, kind: str, links: int) -> None:
    """As NCCL counts with: 20 GB/s a link of an A100, 40.1 of a B200; a mesh adds up its peers."""
    (host,) = hosts_of("\n".join(log(links=rate, mesh=mesh)))
    assert (host.nvlink_kind, {gpu.nvlinks for gpu in host.gpus}) == (kind, {links})


def test_a_rate_of_no_generation_is_said() -> None:
    """Nothing is guessed of how the GPUs are joined."""
    (host,) = hosts_of("\n".join(log(links=33.3)))
    assert (host.nvlink_kind, host.domains) == (None, None)
    assert "no generation that we know" in host.unknown[0]


def test_two_hosts_whose_ranks_log_at_once() -> None:
    """Lines come mixed; each rank's own keep their order. Two nodes, with what no line tells given."""
    ranks = [log(host, rank=rank) for host in ("node1", "node2") for rank in range(2)]
    rng, mixed = random.Random(2), []
    while any(ranks):
        mixed.append(rng.choice([mine for mine in ranks if mine]).pop(0))
    found = assemble(read_facts("\n".join(mixed).encode(), "nccl.log"), Hints(gpu="H100-SXM"))
    assert found.topology is not None, found.unknown
    assert sorted(node.name for node in found.topology.nodes) == ["node1", "node2"]
    assert [nic.rate.bytes_per_s for nic in found.topology.nodes[0].nics] == [50e9] * 4


def test_prefixes_of_launchers() -> None:
    """Of srun -l and of torchrun, and a date."""
    for prefix in ("0: ", "[rank0]:", "[2026-01-01 00:00:00] "):
        assert len(hosts_of("\n".join(prefix + line for line in log()))[0].gpus) == 4


def test_a_cut_log_is_no_smaller_machine() -> None:
    """A view that does not end is not read, wherever the text stops."""
    text = "\n".join(log())
    for cut in range(1, len(text), 41):
        try:
            hosts = hosts_of(text[:cut])
        except BadInput:
            continue
        assert all(len(host.gpus) == 4 for host in hosts)
    with pytest.raises(BadInput, match="=== System"):
        hosts_of(text[: text.index("=====")])


def test_a_log_without_the_machine_says_how_to_get_one() -> None:
    """INIT alone tells no topology; a benchmark's log is read as a benchmark."""
    init = "node1:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
    with pytest.raises(BadInput, match="NCCL_DEBUG_SUBSYS=INIT,GRAPH"):
        hosts_of(init)
    assert not nccl_info.recognise((init + "# size algbw busbw\n").encode(), "x")
