"""What NVML's answers say about a host: NVLink domains, paths between GPUs, and what is wrong. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from probes.base.facts import GpuFact, HostFacts
from probes.machine.nvlink_domains import Domains, lost_links
from probes.nvml.ask import NvmlAnswers
from probes.nvml.codes import ANCESTORS, LOST, P2P, TOO_OLD, VIRTUALIZATION, Raw, error_text
from probes.nvml.decode import decode_fabric, decode_gpu, links_untold
from probes.nvml.far_ends import Ends, Pair, domains_of, far_ends, gpus_of, named, nvlink_paths

# Refusals that many sound machines give: (question, NVML code).
EXPECTED = {
    ("mig", 3),
    ("bandwidth_mode", 3),
    ("bandwidth_mode", TOO_OLD),
    ("fabric", 3),
    ("link_count", 3),
    ("virtualization", 3),
}


def facts_of(answers: NvmlAnswers) -> HostFacts:
    """The host without its name and NICs. No domains where the NVLink fabric is not ready.

    A GPU that is sick, lost or degraded is in, with its faults.
    """
    raw, gpus = answers.gpus, [decode_gpu(gpu) for gpu in answers.gpus]
    ends = far_ends(raw)
    linked, doubts = domains_of(gpus, ends, answers.pairs)
    unready = _unready(raw)
    virtual = _virtual(raw)
    asked = [gpu for gpu in raw if "links" in gpu]
    untold = bool(unready) or (bool(asked) and all(links_untold(gpu) for gpu in asked))
    paths = {} if virtual else _pcie_paths(answers.pairs)
    return HostFacts(
        source="NVML" + (f" (driver {answers.driver})" if answers.driver else ""),
        kind="nvml",
        evidence="read",
        gpus=tuple(_with_lost_links(gpu, one, linked) for gpu, one in zip(gpus, raw, strict=True)),
        gpu_paths=paths if untold else paths | nvlink_paths(linked.domains, ends),
        nvlink_kind=None if untold else linked.kind,
        domains=None if untold else _by_clique(linked.domains, gpus),
        unknown=(*linked.unknown, *_refused(raw), *_hidden(ends, virtual), *_not_ready(unready)),
        warnings=(*answers.warnings, *doubts, *_peer_faults(answers.pairs, raw)),
    )


def _unready(raw: Sequence[Raw]) -> dict[int, str]:
    """Why the NVLink fabric of a GPU that should be in one is not ready."""
    states = {
        gpu["index"]: decode_fabric(gpu.get("fabric"), gpu.get("name")) for gpu in raw if "links" in gpu
    }
    return {index: state.not_ready for index, state in states.items() if state.not_ready}


def _virtual(raw: Sequence[Raw]) -> list[str]:
    modes = {gpu.get("virtualization") for gpu in raw}
    return sorted(VIRTUALIZATION[mode] for mode in modes if mode in VIRTUALIZATION)


def _pcie_paths(pairs: Sequence[Raw]) -> dict[Pair, str]:
    return {gpus_of(pair): ANCESTORS[pair["ancestor"]] for pair in pairs if pair.get("ancestor") in ANCESTORS}


def _hidden(ends: Sequence[Ends], virtual: Sequence[str]) -> list[str]:
    """What a container or a virtual machine does not let us see."""
    unknown = []
    hidden = [gpu for gpu, end in enumerate(ends) if end.hidden]
    if hidden:
        unknown.append(
            f"NVLinks of {named(hidden)} lead to GPUs that cannot be seen from here "
            "(a container or virtual machine with some of the GPUs?)"
        )
    if virtual:
        unknown.append(
            f"{' and '.join(virtual)}: the PCIe distances between GPUs that NVML gives there "
            "are not those of the hardware, and are left out"
        )
    return unknown


def _not_ready(unready: Mapping[int, str]) -> list[str]:
    if not unready:
        return []
    first = f"{unready[min(unready)]} ({named(sorted(unready))})"
    untold = f"{first}: which GPUs share a domain is not known"
    return [f"{untold}; see to the fabric manager, then probe again"]


def _by_clique(domains: Sequence[tuple[int, ...]], gpus: Sequence[GpuFact]) -> tuple[tuple[int, ...], ...]:
    """Domains cut where a fabric manager has put their GPUs into different partitions."""
    groups: dict[tuple[int, str | None], list[int]] = {}
    for number, domain in enumerate(domains):
        for gpu in domain:
            groups.setdefault((number, gpus[gpu].fabric), []).append(gpu)
    return tuple(sorted(map(tuple, groups.values())))


def _with_lost_links(gpu: GpuFact, raw: Raw, linked: Domains) -> GpuFact:
    """NVLinks that its siblings have and it lacks are its fault, unless it was not asked or has MIG on."""
    if "links" not in raw or raw.get("mig"):
        return gpu
    mark = f"GPU {gpu.index} has "
    lost = lost_links(linked.domains, linked.links)
    told = [text.removeprefix(mark) for text in lost if text.startswith(mark)]
    return replace(gpu, faults=(*gpu.faults, *told))


def _refused(raw: Sequence[Raw]) -> list[str]:
    """What NVML would not say, one sentence for each question and reason.

    Lost GPUs and single NVLinks are told as faults of the GPU.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for gpu in raw:
        for question, code in gpu["errors"].items():
            is_link = question.startswith("NVLink ")
            if (question, code) in EXPECTED or code in LOST or (is_link and code != TOO_OLD):
                continue
            name = "NVLinks" if is_link else question.replace("_", " ")
            groups.setdefault((name, code), []).append(gpu["index"])
    return [
        f"NVML does not give {name} of {named(members)}: {error_text(code)}"
        for (name, code), members in groups.items()
    ]


def _peer_faults(pairs: Sequence[Raw], raw: Sequence[Raw]) -> list[str]:
    """GPU pairs that cannot read each other's memory, by reason: their traffic goes through the host's."""
    mig = {gpu["index"] for gpu in raw if gpu.get("mig")}
    groups: dict[int, list[str]] = {}
    for pair in pairs:
        if pair.get("p2p_read", 0) and not mig & set(pair["gpus"]):
            groups.setdefault(pair["p2p_read"], []).append("-".join(map(str, pair["gpus"])))
    faults = []
    for code, found in sorted(groups.items()):
        some = ", ".join(found[:6]) + (f" and {len(found) - 6} more pairs" if len(found) > 6 else "")
        why = P2P.get(code, f"status {code}")
        faults.append(
            f"no direct peer access between GPUs {some} ({why}): their traffic goes through host memory"
        )
    return faults
