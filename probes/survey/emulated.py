"""A probe of a cluster that is emulated here: what its hosts show, and what its links are measured to."""

from collections.abc import Callable
from datetime import datetime, timezone

from planner.base import Evidence, Rate
from planner.topology import Topology, with_rates
from probes.emulation.infer import Inferred, infer
from probes.emulation.namespaces import emulated
from probes.emulation.patterns import patterns
from probes.emulation.probing import observe_cluster
from probes.emulation.scale import scale_for
from probes.emulation.unknown import before_measuring
from probes.machine.assemble import Imported
from probes.ranks.resources import check_torch
from probes.survey.found import Found

Progress = Callable[[float, str], None]


def probe_emulated(true: Topology, timeout_seconds: float, progress: Progress | None = None) -> Found:
    """The cluster `true` as a probe finds it that is not told the rate of any link, nor the switches.

    Known beforehand is what NVML and sysfs tell of hosts (`probes.emulation.unknown`). Rates are those that
    were measured, times the scale of the emulation.
    """
    check_torch("probe")
    scale = scale_for(true)
    if progress:
        progress(0.1, f"measuring {true.gpu_count} ranks with links of 1/{scale:g} of their rates")
    with emulated(true, scale) as cluster:
        links, observations = observe_cluster(cluster, timeout_seconds)
    seen = before_measuring(cluster.topology)
    times = "" if scale == 1 else f", times its scale of {scale:g}"
    day = datetime.now(timezone.utc).date().isoformat()
    source = f"torch-gloo exchanges of {true.gpu_count} ranks in an emulated cluster, {day}{times}"
    evidence = Evidence("measured", source)
    found = infer(seen, patterns(seen), observations, evidence)
    off = max((abs(link.off) for link in links), default=0.0)
    checked = f"{len(links)} links were checked first: at most {off:.1%} off what they were shaped to"
    return Found(_machine(_at_scale(found, scale, source), found.error, checked))


def _at_scale(found: Inferred, scale: float, source: str) -> Topology:
    topology = with_rates(found.topology, lambda rate: Rate(rate.bytes_per_s * scale, rate.evidence))
    return Topology("probed", topology.nodes, topology.fabric, source)


def _machine(topology: Topology, error: float, checked: str) -> Imported:
    domain_G = topology.domain_G.tolist()
    domains = (
        tuple(g for g, other in enumerate(domain_G) if other == one) for one in dict.fromkeys(domain_G)
    )
    return Imported(
        gpus=topology.gpu_count,
        nvlink_domains=tuple(domains),
        nics=sum(len(node.nics) for node in topology.nodes),
        affinity={gpu.rank: _nics(topology, gpu.node, gpu.index) for gpu in topology.gpus},
        hosts=tuple(node.name for node in topology.nodes),
        kinds=("torch-gloo",),
        unknown=(),
        warnings=(
            f"the cluster is emulated: {checked}",
            f"with the measured rates, all-to-alls between hosts are predicted at most {error:.1%} off",
            "the figures of its GPUs are the given ones: memory and FLOPs were not measured",
        ),
        topology=topology,
    )


def _nics(topology: Topology, node: int, index: int) -> tuple[str, ...]:
    nics = enumerate(topology.nodes[node].nics)
    return tuple(nic.name or f"nic{at}" for at, nic in nics if index in nic.gpus)
