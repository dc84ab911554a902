"""Which NICs carry a GPU's traffic: the nearest ones that are up and of the fabric.

Pools of GPUs and NICs as the planner wants them.
"""

from collections.abc import Sequence

from planner.base import Evidence, Rate, human_bandwidth
from planner.topology import Nic
from probes.base.facts import PATHS
from probes.machine.gpu_table import GpuLinks
from probes.machine.hints import Hints
from probes.machine.host import Host, Notes
from probes.machine.nic_limits import given_nics, within_pcie
from probes.machine.nvlink_domains import components

Uses = dict[int, tuple[int, ...]]  # the NICs of each GPU that has any
Pool = tuple[tuple[int, ...], tuple[int, ...]]  # GPUs, and the NICs that they share
_STATED = Evidence("assumed", "stated by the user (--nic)")
BESIDE = PATHS[:2]  # behind the PCIe switch of the GPU
ONE_SOCKET = PATHS[:4]  # SYS crosses sockets: no GPU's own NIC


def is_usable(host: Host, nic: int) -> bool:
    """Not down, and not known to be for storage, management or a virtual network."""
    return host.nics[nic].up is not False and host.nics[nic].compute is not False


def affinity(host: Host) -> dict[int, tuple[int, ...] | None]:
    """For each GPU its nearest usable NICs by path class, none where all are across sockets.

    Of NICs that are merely on its socket only those that sit beside some GPU, where there are such: others
    are for storage or management. None where its paths are not known.
    """
    nearest: dict[int, tuple[int, ...] | None] = {}
    usable = [nic for nic in range(len(host.nics)) if is_usable(host, nic)]
    shown = [nic for nic in usable if any((gpu, nic) in host.nic_paths for gpu in range(len(host.gpus)))]
    owned = {nic for (_, nic), word in host.nic_paths.items() if word in BESIDE}
    for gpu in range(len(host.gpus)):
        paths = {nic: host.nic_paths[gpu, nic] for nic in shown if (gpu, nic) in host.nic_paths}
        best = next((word for word in ONE_SOCKET if word in paths.values()), None)
        near = tuple(nic for nic, word in paths.items() if word == best)
        if best not in BESIDE:
            near = tuple(nic for nic in near if nic in owned) or near
        hidden = len(paths) < len(shown) or (usable and not shown)
        nearest[gpu] = None if hidden and best != ONE_SOCKET[0] else near
    return nearest


def nics_of_node(host: Host, gpus: Sequence[GpuLinks], hints: Hints, notes: Notes) -> tuple[Nic, ...] | str:
    """The NICs of the planner's node, or a sentence about the number that is missing.

    BadInput where --nic-of names a GPU or NIC that the host does not have.
    """
    stated_bytes_per_s = hints.nic_bytes_per_s
    usable = [nic for nic in range(len(host.nics)) if is_usable(host, nic)]
    left_out = [host.nics[nic].name for nic in range(len(host.nics)) if nic not in usable]
    if left_out:
        why = "being down, virtual or not of the fabric"
        notes.warnings.append(f"{host.title}: not planned with, {why}: {_some(left_out)}")
    uses = _of_gpus(host, usable, given_nics(host, hints.nic_of), notes)
    if uses is None:
        unknown = f"{host.title}: which NICs are near which GPU is not known"
        return f"{unknown}; add the whole output of 'nvidia-smi topo -m'"
    pools = _pools(uses, len(host.gpus))
    _tell_sharing(host, uses, pools, usable, notes)
    found: list[Nic] = []
    for rail, (members, nics) in enumerate(pools):
        for nic in _fastest(host, nics, notes):
            rate, fact = _rate(host, nic, stated_bytes_per_s), host.nics[nic]
            if rate is None:
                unknown = f"{host.title}: the rate of {fact.name} is in no source"
                return f"{unknown}; give it, as in --nic 400G, or add 'ibstat' of the host"
            found.append(Nic(rate, members, rail, fact.device or fact.name))
    _tell_hosted(host, [nic for nic in usable if _serves(nic, pools)], notes)
    _compare_rate(host, found, stated_bytes_per_s, notes)
    return within_pcie(host, found, gpus, notes)


def _serves(nic: int, pools: Sequence[Pool]) -> bool:
    return any(nic in nics for _, nics in pools)


def _tell_sharing(host: Host, uses: Uses, pools: Sequence[Pool], usable: Sequence[int], notes: Notes) -> None:
    """Say which GPUs are given more NICs than their nearest, and which NICs are given to none."""
    mixed = [gpu for gpus, nics in pools for gpu in gpus if len(uses[gpu]) < len(nics)]
    if mixed:
        which = f"GPUs near different but overlapping NICs ({_some(mixed)} and others)"
        notes.warnings.append(f"{host.title}: {which} are planned as sharing all of them")
    idle = [host.nics[nic].name for nic in usable if not _serves(nic, pools)]
    if idle:
        why = "being the nearest of no GPU (storage or management?)"
        notes.warnings.append(f"{host.title}: not planned with, {why}: {_some(idle)}")


def _tell_hosted(host: Host, planned: Sequence[int], notes: Notes) -> None:
    hosted = [host.nics[nic].name for nic in planned if host.nics[nic].gpudirect is False]
    if hosted:
        slow = "traffic goes through host memory, at half the rate or less; measure it"
        notes.warnings.append(f"{host.title}: no GPUDirect RDMA on {_some(hosted)}: {slow}")


def _compare_rate(host: Host, found: Sequence[Nic], stated_bytes_per_s: float | None, notes: Notes) -> None:
    told = next((nic for nic in found if nic.rate.evidence.source != _STATED.source), None)
    if told is None or stated_bytes_per_s is None:
        return
    rate = told.rate
    if abs(rate.bytes_per_s - stated_bytes_per_s) > 0.02 * stated_bytes_per_s:
        read = f"{human_bandwidth(rate.bytes_per_s)} by {rate.evidence.source}"
        both = f"{read}, {human_bandwidth(stated_bytes_per_s)} by --nic"
        used = "where a source tells the rate it is used"
        notes.warnings.append(f"{host.title}: NIC {told.name} runs at {both}; {used}")


def _of_gpus(host: Host, usable: Sequence[int], given: Uses, notes: Notes) -> Uses | None:
    """NICs of each GPU. None: not known.

    As a person gave them; by path; where all paths cross sockets (NICs on the CPU of Grace machines) by NUMA
    node; else all of them.
    """
    uses: Uses = dict(given)
    by_numa = []
    for gpu, near in affinity(host).items():
        if gpu in given:
            continue
        numa = host.gpus[gpu].numa
        beside = tuple(nic for nic in usable if numa is not None and host.nics[nic].numa == numa)
        if near:
            uses[gpu] = near
        elif beside:
            uses[gpu] = beside
            by_numa.append(gpu)
        elif near is None:
            return None
    if by_numa:
        why = "as no path within a socket is shown"
        notes.warnings.append(
            f"{host.title}: NICs of GPU {_some(by_numa)} are those of the same NUMA node, {why}"
        )
    return uses | (_of_far_gpus(host, uses, usable, notes) if usable else {})


def _of_far_gpus(host: Host, uses: Uses, usable: Sequence[int], notes: Notes) -> Uses:
    """NICs of GPUs that have none on their socket: those of all others, which then share them as one pool.

    Where no GPU has any near, as in virtual machines that show no PCIe paths, all share all of them.
    """
    far = [gpu for gpu in range(len(host.gpus)) if gpu not in uses]
    if not far:
        return {}
    none = f"{host.title}: GPU {_some(far)} has no NIC on its socket"
    nics = tuple(sorted({nic for mine in uses.values() for nic in mine} or usable))
    names = _some([host.nics[nic].name for nic in nics])
    alone = len(_pools(uses, len(host.gpus))) == 1
    shared = "" if alone else ", so that all GPUs are planned as sharing these"
    other = f"; --nic-of {far[0]}=NIC gives it another"
    notes.warnings.append(f"{none} and is taken to use {names}{shared}{other}")
    return dict.fromkeys(far, nics)


def _pools(uses: Uses, gpu_count: int) -> list[Pool]:
    """GPUs that share a NIC form one pool with all their NICs, ordered by first GPU."""
    pairs = [(a, b) for a in uses for b in uses if a < b and set(uses[a]) & set(uses[b])]
    groups = [tuple(gpu for gpu in group if gpu in uses) for group in components(gpu_count, pairs)]
    return [
        (group, tuple(sorted({nic for gpu in group for nic in uses[gpu]})))
        for group in groups
        if group and uses[group[0]]
    ]


def _fastest(host: Host, nics: Sequence[int], notes: Notes) -> list[int]:
    """Of NICs with known rates the fastest: a 100 Gb/s port beside 400 Gb/s ones is a front end."""
    rates = {nic: host.nics[nic].rate_bytes_per_s or 0.0 for nic in nics}
    slow = [host.nics[nic].name for nic, rate in rates.items() if 0 < rate < max(rates.values())]
    if slow:
        why = "being slower than others at the same GPU"
        notes.warnings.append(f"{host.title}: not planned with, {why}: {_some(slow)}")
    return [nic for nic, rate in rates.items() if not 0 < rate < max(rates.values())]


def _rate(host: Host, nic: int, stated_bytes_per_s: float | None) -> Rate | None:
    read = host.nics[nic].rate_bytes_per_s
    if read is not None:
        return Rate(read, host.source_of("nic", nic, "rate_bytes_per_s"))
    return None if stated_bytes_per_s is None else Rate(stated_bytes_per_s, _STATED)


def _some(names: Sequence[object]) -> str:
    return ", ".join(map(str, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
