"""Measurements and calibrations put onto a machine that a preset or a topology file describes."""

from collections.abc import Iterable, Sequence

from planner.base import BadInput
from planner.topology import Topology, calibrated, check_rates
from probes.base.facts import Facts, MeasureFacts
from probes.machine.assemble import Imported
from probes.machine.hints import NO_HINTS, Hints
from probes.measure.apply import apply_measurement
from probes.measure.contradicted import departure, marked
from probes.survey.benchmarks import other_gpus
from probes.survey.found import Found
from probes.survey.sources import Sources

_FLAGS = {
    "gpu": "--gpu",
    "own_gpus": "--gpu-model",
    "nic_of": "--nic-of",
    "nic_bytes_per_s": "--nic",
    "nodes": "--nodes",
    "oversubscription": "--oversubscription",
    "nvlink_domain_nodes": "--nvlink-domain-nodes",
}


def put_onto(base: Topology, sources: Sources, hints: Hints) -> Found:
    """BadInput where nothing is to be put on it, or nothing of it fits: the machine stays as it was."""
    _check_hints(sources.name, hints)
    runs = _runs(sources.name, sources.facts)
    if not runs and not sources.calibrations:
        needed = "a log of alltoall_perf, what `probe --measure` wrote, or a calibration"
        raise BadInput(f"{sources.name}: nothing is to be put on it; give {needed}")
    topology, refused = measured_by(base, runs, hints)
    if len(refused) == len(runs) > 0:
        raise BadInput("; ".join(dict.fromkeys(refused)))
    if topology.calibration is not None:
        check_rates(topology, topology.calibration, f"{sources.name}: its calibration")
    for where, calibration in sources.calibrations:
        topology = calibrated(topology, calibration, where)
    warnings = [f"not used, the rates of {sources.name} stay: {reason}" for reason in refused]
    warnings += [line for run in runs for line in (*_said(run, run.warnings), *other_gpus(run, base))]
    warnings += _unmeasured(base, runs)
    return Found(_imported(topology, sources, warnings), (), runs)


def measured_by(topology: Topology, runs: Sequence[MeasureFacts], hints: Hints) -> tuple[Topology, list[str]]:
    """The machine with the rates that the runs show, one after the other, and why others do not count."""
    refused: list[str] = []
    for run in runs:
        if run.kind == "torch-gloo" and not hints.cpu_rates:
            why = "it was measured between CPU processes, which GPUs do not go through"
            refused.append(f"{run.source}: {why}; --cpu-rates takes it all the same")
            continue
        try:
            topology = apply_measurement(topology, run)
        except BadInput as misfit:
            shown = departure(topology, run)
            refused.append(f"{misfit}; it shows {shown}" if shown else str(misfit))
            topology = marked(topology, run)
    return topology, refused


def _check_hints(name: str, hints: Hints) -> None:
    given = [flag for field, flag in _FLAGS.items() if getattr(hints, field) != getattr(NO_HINTS, field)]
    if given:
        raise BadInput(f"{given[0]}: {name} says it of the machine; leave {', '.join(given)} out")


def _runs(name: str, facts: Iterable[Facts]) -> tuple[MeasureFacts, ...]:
    found = []
    facts = tuple(facts)
    measured = {fact.source for fact in facts if isinstance(fact, MeasureFacts)}
    for fact in facts:
        if fact.kind == "nccl-info" and fact.source in measured:
            continue  # a benchmark's log that also shows the machine it ran on
        if not isinstance(fact, MeasureFacts):
            both = f"describes a machine ({fact.kind}), and so does {name}"
            raise BadInput(f"{fact.source}: {both}; leave one of them out")
        found.append(fact)
    return tuple(found)


def _unmeasured(base: Topology, runs: Sequence[MeasureFacts]) -> list[str]:
    """GPUs beside those that the largest run was on."""
    most = max((run.ranks for run in runs), default=base.gpu_count)
    if most >= base.gpu_count:
        return []
    return [f"{most} of {base.gpu_count} GPUs were measured: the links of the others keep what is stated"]


def _said(run: MeasureFacts, sentences: Iterable[str]) -> list[str]:
    return [f"{run.source}: {sentence}" for sentence in sentences]


def _imported(topology: Topology, sources: Sources, warnings: Sequence[str]) -> Imported:
    runs = [fact for fact in sources.facts if isinstance(fact, MeasureFacts)]
    ranks_of: dict[int, list[int]] = {}
    for gpu in topology.gpus:
        ranks_of.setdefault(gpu.domain, []).append(gpu.rank)
    calibration = ("calibration",) if sources.calibrations else ()
    return Imported(
        gpus=topology.gpu_count,
        nvlink_domains=tuple(tuple(ranks) for ranks in ranks_of.values() if len(ranks) > 1),
        nics=sum(len(node.nics) for node in topology.nodes),
        affinity={},
        hosts=tuple(node.name for node in topology.nodes if node.name),
        kinds=tuple(dict.fromkeys((sources.name, *(run.kind for run in runs), *calibration))),
        unknown=tuple(dict.fromkeys(line for run in runs for line in _said(run, run.unknown))),
        warnings=tuple(dict.fromkeys(warnings)),
        topology=topology,
    )
