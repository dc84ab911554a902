"""From files that people have to one machine.

Every file is read, one topology assembled, and what networks and benchmarks show put beside it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput, parse_bandwidth
from planner.topology import calibrated
from probes.base.facts import FabricFacts, Facts, HostFacts, MeasureFacts
from probes.fabric.shape import findings, name_hosts, shape_of
from probes.machine.assemble import Imported, assemble
from probes.machine.hints import Hints
from probes.survey.found import Found
from probes.survey.onto import put_onto
from probes.survey.sources import read_sources

_NIC_OF = re.compile(r"\s*([0-9]{1,3})\s*=\s*([\w.:?-]{1,64}(?:\s*,\s*[\w.:?-]{1,64})*)\s*")
_NIC = re.compile(r"([0-9]{1,5})\s*[gG]")


def import_files(paths: Sequence[Path], hints: Hints) -> Found:
    """Everything the files say. BadInput where one is of no kind we know, or broken beyond use.

    Beside a preset or topology file they are put onto that machine.
    """
    sources = read_sources(paths)
    if sources.base is not None:
        return put_onto(sources.base, sources, hints)
    found = find(sources.facts, hints)
    for where, calibration in sources.calibrations:
        topology = calibrated(found.topology, calibration, where)
        found = replace(found, machine=replace(found.machine, topology=topology))
    return found


def find(facts: Sequence[Facts], hints: Hints) -> Found:
    """The machine of all facts. Sources without any GPU are no machine, but what they say is kept."""
    hosts = [fact for fact in facts if isinstance(fact, HostFacts)]
    facts = [name_hosts(fact, hosts) if isinstance(fact, FabricFacts) else fact for fact in facts]
    fabrics = tuple(fact for fact in facts if isinstance(fact, FabricFacts))
    measured = tuple(fact for fact in facts if isinstance(fact, MeasureFacts))
    shows_gpus = any(host.gpus for host in hosts)
    machine = assemble(facts, hints) if shows_gpus else _without_gpus(facts, measured)
    told = [sentence for fabric in fabrics for sentence in findings(shape_of(fabric))]
    warnings = (*machine.warnings, *told)
    return Found(replace(machine, warnings=tuple(dict.fromkeys(warnings))), fabrics, measured)


def parse_nic(text: str | None) -> float | None:
    """Bytes per second of '400G' (Gbit/s, as NICs are sold) or of a rate with its unit."""
    if text is None:
        return None
    match = _NIC.fullmatch(text.strip())
    return float(match[1]) * 1e9 / 8 if match else parse_bandwidth(text)


def parse_nic_of(texts: Sequence[str]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """GPU and names of NICs of each 'GPU=NIC', or of several behind commas.

    >>> parse_nic_of(["3=mlx5_0", "7=mlx5_1,mlx5_2"])
    ((3, ('mlx5_0',)), (7, ('mlx5_1', 'mlx5_2')))
    """
    found = []
    for text in texts:
        match = _NIC_OF.fullmatch(text)
        if match is None:
            raise BadInput(
                f"--nic-of {text!r}: give the number of a GPU and the name of its NIC, like 3=mlx5_0"
            )
        found.append((int(match[1]), tuple(name.strip() for name in match[2].split(","))))
    return tuple(found)


def _without_gpus(facts: Sequence[Facts], measured: Sequence[MeasureFacts]) -> Imported:
    """NICs and hosts are listed; GPUs are the ranks of a benchmark, fewer perhaps than the machine has."""
    ranks = max((fact.ranks for fact in measured), default=0)
    hosts = [fact for fact in facts if isinstance(fact, HostFacts)]
    ports = {port.host for fact in facts if isinstance(fact, FabricFacts) for port in fact.ports}
    names = [*dict.fromkeys(host.host for host in hosts if host.host), *sorted(ports)]
    counted = "GPUs are counted as ranks of the benchmark; the machine may have more"
    missing = "add the output of 'nvidia-smi topo -m' of one host, or take a preset"
    unknown = f"{counted if ranks else 'no source shows a GPU'}: {missing}"
    return Imported(
        gpus=ranks,
        nvlink_domains=(),
        nics=sum(len(host.nics) for host in hosts),
        affinity={},
        hosts=tuple(names),
        kinds=tuple(dict.fromkeys(fact.kind for fact in facts)),
        unknown=(unknown, *(line for fact in facts for line in fact.unknown)),
        warnings=tuple(line for fact in facts for line in fact.warnings),
        topology=None,
    )
