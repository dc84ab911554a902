"""What the types of a probe's facts cannot say: indices, labels, ranges, domains that hold all GPUs once."""

import re
from collections.abc import Callable, Mapping, Sequence

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import PATHS, GpuFact, HostFacts
from probes.record.facts_json import to_plain

_LABEL = re.compile(r"NV[0-9]{1,2}|" + "|".join(PATHS))
_KINDS = (None, "none", "switch", "mesh", "bridge")
Paths = Mapping[tuple[int, int], str]


def check_host(host: HostFacts) -> None:
    """BadInput where a probe cannot have seen it."""
    gpus, nics = len(host.gpus), len(host.nics)
    if not 1 <= gpus <= LARGEST_NODE_GPUS or nics > LARGEST_NODE_NICS:
        most = f"1 to {LARGEST_NODE_GPUS} GPUs and at most {LARGEST_NODE_NICS} NICs"
        raise BadInput(f"host: {gpus} GPUs and {nics} NICs; a host has {most}")
    if host.evidence != "read":
        raise BadInput(f"host: evidence is {host.evidence[:40]!r}; a probe is always 'read'")
    indices = [gpu.index for gpu in host.gpus]
    if indices != list(range(gpus)):
        raise BadInput(f"host: gpus: the indices are {indices[:20]}; they count from 0 without gaps")
    if host.nvlink_kind not in _KINDS:
        known = "none, switch, mesh, bridge, or left out"
        raise BadInput(f"host: nvlink_kind is {host.nvlink_kind!r}; it is one of {known}")
    _check_domains(host.domains, gpus)
    _check_paths("gpu_paths", host.gpu_paths, lambda a, b: a < b < gpus)
    _check_paths("nic_paths", host.nic_paths, lambda gpu, nic: gpu < gpus and nic < nics)
    _check_uuids(host.gpus)
    for gpu in host.gpus:
        _check_figures(f"gpus[{gpu.index}]", to_plain(gpu))
    for index, nic in enumerate(host.nics):
        _check_figures(f"nics[{index}]", to_plain(nic))


def _check_domains(domains: Sequence[Sequence[int]] | None, gpus: int) -> None:
    if domains is not None and sorted(gpu for domain in domains for gpu in domain) != list(range(gpus)):
        raise BadInput(f"host: domains: must hold each of the {gpus} GPUs once")


def _check_paths(name: str, paths: Paths, is_pair: Callable[[int, int], bool]) -> None:
    for (a, b), label in paths.items():
        if not is_pair(a, b) or not _LABEL.fullmatch(label):
            expected = f"GPUs and NICs that are there, and one of {', '.join(PATHS)}, NV1 to NV99"
            raise BadInput(f"host: {name}: '{a}-{b}' is {label[:40]!r}; expected {expected}")


def _check_uuids(gpus: Sequence[GpuFact]) -> None:
    uuids = [gpu.uuid for gpu in gpus if gpu.uuid]
    twice = next((uuid for uuid in uuids if uuids.count(uuid) > 1), None)
    if twice:
        raise BadInput(f"host: gpus: {twice[:60]} is listed twice")


def _check_figures(place: str, told: Mapping[str, object]) -> None:
    for name, figure in told.items():
        if not isinstance(figure, (int, float)):
            continue
        is_amount = name.endswith(("bytes", "_per_s"))
        if figure < 0 or (is_amount and figure == 0):
            raise BadInput(f"host: {place}: {name} is {figure}; what is not known is left out")
