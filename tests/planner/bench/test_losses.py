"""The study of losses on an instance small enough for a test."""

import numpy as np
import pytest

from planner.bench import losses
from planner.bench.frame import Instance, Peers
from planner.report.bench import bench_tables


def test_a_peer_that_knows_no_losses_loses_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight experts, four slots each, on 16 GPUs of two nodes.

    The peer puts those of one expert on two neighbours: it outlives a GPU, half go with a node.
    """
    monkeypatch.setattr(losses, "INSTANCES", (Instance("3x8 -> 16 / 16 GPUs", 3, 8, 2, "hgx-h100:2"),))
    doubled_LP = np.tile(np.repeat(np.arange(8), 4)[:32], (3, 1))
    table = losses.run(Peers({"peer": lambda *_: doubled_LP}), 1, None)
    by_method = {(row["method"], row["instance"]): row for row in table.rows}
    assert len(by_method) == 6
    for (method, instance), row in by_method.items():
        assert row["valid"] == (method != "peer")
        if method == "peer":
            assert row["lost_share"] == (0.5 if "node" in str(instance) else 0.0)
        else:
            assert row["lost_share"] == 0.0
            assert isinstance(row["max_over_mean_after"], float)
    bench_tables({"losses": table})
