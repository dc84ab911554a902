"""The study of domains: absent traces are told; where they lie beside the checkout one plan serves both."""

from pathlib import Path

import pytest

from planner.bench import domains
from planner.bench.frame import Peers
from planner.bench.traces import ABSENT


def test_absent_traces_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is made up."""
    monkeypatch.setattr(domains, "FILES", {"intent": Path("nowhere.npz")})
    table = domains.run(Peers(), 1, None)
    assert table.rows == ()
    assert "not measured" in table.notes[0]


@pytest.mark.skipif(not all(path.is_file() for path in domains.FILES.values()), reason=ABSENT)
def test_one_plan_serves_both_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 2 % of each domain's own plan, where the plan of the sum and that of the other domain are far
    off. On 16 GPUs: too many for CP-SAT's seconds.
    """
    monkeypatch.setattr(domains, "MACHINE", "hgx-h100:4x4")
    table = domains.run(Peers(), 1, None)
    of_own = {(row["instance"], row["method"]): float(str(row["of_own"])) for row in table.rows}
    for domain, other in (("intent", "law"), ("law", "intent")):
        instance = f"held-out {domain}"
        assert of_own[instance, f"auto on {domain}"] == 1
        assert of_own[instance, "auto on both"] < 1.02
        assert of_own[instance, "auto on both, --robust"] < 1.02
        assert of_own[instance, "refine on both"] > 1.05
        assert of_own[instance, f"auto on {other}"] > 1.15
    assert all(row["valid"] for row in table.rows)
