"""Benchmarks that are held against a machine which is already described."""

from collections.abc import Sequence
from pathlib import Path

from planner.base import BadInput
from planner.topology import AllToAll, Topology
from probes.base.facts import MeasureFacts
from probes.importers.registry import read_file
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
            try:
                runs.append(all_to_all_of(topology, fact))
            except BadInput as misfit:
                refused.append(str(misfit))
        if len(refused) == len(facts):
            raise BadInput("; ".join(dict.fromkeys(refused)))
        notes += [f"not used: {reason}" for reason in refused]
    return tuple(runs), tuple(dict.fromkeys(notes))
