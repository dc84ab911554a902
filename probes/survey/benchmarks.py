"""Benchmarks that are held against a machine which is already described."""

from collections.abc import Sequence
from pathlib import Path

from planner.base import BadInput
from planner.topology import AllToAll, Topology
from probes.base.facts import MeasureFacts
from probes.importers.registry import read_file
from probes.machine.gpu_names import links_of_gpu
from probes.measure.all_to_all import all_to_all_of


def read_runs(paths: Sequence[Path], topology: Topology) -> tuple[tuple[AllToAll, ...], tuple[str, ...]]:
    """The all-to-alls in the files, and why others are not used.

    BadInput where a file holds no benchmark, or none that can be held against this machine.
    """
    runs: list[AllToAll] = []
    notes: list[str] = []
    for path in paths:
        facts = [fact for fact in read_file(path) if isinstance(fact, MeasureFacts)]
        if not facts:
            raise BadInput(
                f"{path}: is no benchmark; describe the machine with it: moeplan import {path} -o T"
            )
        refused: list[str] = []
        for fact in facts:
            notes += [f"{fact.source}: {warning}" for warning in fact.warnings]
            notes += other_gpus(fact, topology)
            if fact.kind == "torch-gloo":
                refused.append(f"{fact.source}: measured between CPU processes, which GPUs do not go through")
                continue
            try:
                runs.append(all_to_all_of(topology, fact))
            except BadInput as misfit:
                refused.append(str(misfit))
        if len(refused) == len(facts):
            raise BadInput("; ".join(dict.fromkeys(refused)))
        notes += [f"not used: {reason}" for reason in refused]
    return tuple(runs), tuple(dict.fromkeys(notes))


def other_gpus(fact: MeasureFacts, topology: Topology) -> list[str]:
    """A benchmark of GPUs that this machine does not have."""
    ran = {links.model if (links := links_of_gpu(name)) else name for name in fact.gpu_names}
    have = {gpu.model.name for gpu in topology.gpus}
    if not ran or ran & have:
        return []
    both = f"ran on {', '.join(sorted(ran))}, {topology.name} has {', '.join(sorted(have))}"
    return [f"{fact.source}: {both}: is it this machine?"]
