"""What benchmarks printed of a plan's traffic matrices: their runs, with the rank order checked."""

from pathlib import Path

from planner.base import BadInput
from planner.exchange import NCCL, RESULT, UCC, Held, Run, Traffic, Written, check_unchanged, hold
from planner.topology import Topology
from probes.base.facts import MeasureFacts
from probes.importers.registry import read_file
from probes.measure.busbw import out_of_place
from probes.measure.placing import placed

_TOOL = {"nccl-tests": NCCL, "ucc-perftest": UCC}  # by kind of fact
_JSON = "nccl.json"  # what alltoallv_perf -J writes, where somebody asks it to


def read_results(traffic: Traffic, given: Path, topology: Topology) -> list[Held]:
    """Of one result, or of every result in a folder, each beside the prediction for its matrix.

    A result lies beside the matrix that it ran. BadInput where none does.
    """
    folders = {(traffic.folder / one.folder).resolve(): one for one in traffic.exchanges}
    if given.is_file():
        if given.resolve().parent not in folders:
            raise BadInput(
                f"{given}: lies beside no matrix of {traffic.folder}; keep it beside the one that ran"
            )
        return _held(traffic, folders[given.resolve().parent], given, topology)
    inside = [one for folder, one in folders.items() if given.resolve() in (folder, *folder.parents)]
    names = (*RESULT.values(), _JSON)
    found = [
        (one, traffic.folder / one.folder / name)
        for one in inside
        for name in names
        if (traffic.folder / one.folder / name).is_file()
    ]
    if not found:
        raise BadInput(f"{given}: no result there; run the matrices first (bash run.sh nccl-tests)")
    return [held for one, path in found for held in _held(traffic, one, path, topology)]


def _held(traffic: Traffic, written: Written, path: Path, topology: Topology) -> list[Held]:
    facts = [one for one in read_file(path) if isinstance(one, MeasureFacts)]
    ours = [one for one in facts if one.collective == "alltoallv" and one.kind in _TOOL]
    if not ours:
        ran = ", ".join(sorted({one.collective for one in facts})) or "no benchmark"
        raise BadInput(f"{path}: is the result of {ran}; a matrix is run by alltoallv_perf or ucc_perftest")
    for one in ours:
        check_unchanged(traffic, written, _TOOL[one.kind])
        _check_order(path, one, topology)
    runs = [
        Run(str(path), _TOOL[one.kind], sample.size_bytes, sample.seconds, one.ranks)
        for one in ours
        for sample in out_of_place(one)
    ]
    return [hold(traffic, written, run) for run in runs]


def _check_order(path: Path, facts: MeasureFacts, topology: Topology) -> None:
    """BadInput where the hosts of the ranks are known, and rank i was not GPU i."""
    if not facts.hosts or facts.ranks != topology.gpu_count:
        return
    wrong = next((rank for rank, gpu in enumerate(placed(topology, facts)) if rank != gpu), None)
    if wrong is not None:
        node = topology.nodes[int(topology.node_G[wrong])].name
        raise BadInput(
            f"{path}: rank {wrong} ran on host {facts.hosts[wrong]}, and the plan has it on {node}; "
            "start the ranks host by host in the plan's order"
        )
