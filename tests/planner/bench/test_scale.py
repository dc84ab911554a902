"""The scale study: a trace as a router makes one, whole processes on it, and the shapes claimed."""

import numpy as np
import pytest

from planner.bench import scale
from planner.bench.cold import solve_cold
from planner.bench.frame import Instance, Peers
from planner.topology import read_topology

TINY = Instance("2x16 -> 32 / 16 GPUs", 2, 16, 2, "hgx-h100:2", top_k=4)


def test_a_topical_trace_has_topics() -> None:
    """Ids of a token are distinct; some pair of experts is chosen together more often than chance would have
    it.
    """
    ids_LTK = scale.topical_trace(TINY)
    assert ids_LTK.shape == (2, scale.TRACED_TOKENS, 4)
    assert (np.diff(np.sort(ids_LTK, axis=2), axis=2) > 0).all()
    chosen_TE = (ids_LTK[0][:, :, None] == np.arange(16)).any(axis=1).astype(float)
    lift_EE = (chosen_TE.T @ chosen_TE / len(chosen_TE)) / np.outer(
        chosen_TE.mean(axis=0), chosen_TE.mean(axis=0)
    )
    assert lift_EE[~np.eye(16, dtype=bool)].max() > 1.2


def test_shapes_are_those_of_their_names() -> None:
    """GPUs of the machine times slots on each."""
    for instance, _ in scale.RUNS:
        slots, gpus = (
            int(word.rstrip(",")) for word in instance.name.split("-> ")[1].replace("/", " ").split()[:2]
        )
        assert read_topology(instance.machine).gpu_count == gpus
        assert gpus * instance.slots_per_gpu == slots


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_cold_solve_on_a_trace_counts_all_its_processes(workers: str) -> None:
    """Each process takes more than 20 MB."""
    run = solve_cold(TINY, "--method", "auto", "--workers", workers, traced_LTK=scale.topical_trace(TINY))
    assert run.plan["gpus"] == 16
    assert run.cpu_seconds > 0
    assert run.peak_bytes > int(workers) * 20e6


def test_rows_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a run, each with time and memory."""
    monkeypatch.setattr(scale, "RUNS", ((TINY, ("--method", "greedy")),))
    (row,) = scale.run(Peers(), 1, None).rows
    assert list(row) == ["instance", "method", "seconds", "cpu_seconds", "peak_bytes"]
    assert row["method"] == "greedy"
