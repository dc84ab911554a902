"""The replay of a trace in vLLM: what is emitted, what is refused, and the rows that a rank takes.

tests/engines asks vLLM itself.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.engines import replay_of
from planner.engines.common import vllm_replay
from planner.engines.common.vllm_replay_plugin import Recorded, first_row, strategies
from planner.load import LoadProfile, Trace
from planner.plan import judged, write_plan
from tests.planner.engines.examples import TINY, machine, question, random_placement

LAYERS = TINY.placed_layer_ids
TOKENS = 12
ROWS_LTK = np.stack(
    [
        np.random.default_rng(layer).permuted(np.tile(np.arange(64), (TOKENS, 1)), axis=1)[:, :8]
        for layer in LAYERS
    ]
)
FILE = "vllm_replay/moeplan_vllm_replay/replay.json"


def load(rows_LTK: Any = ROWS_LTK) -> LoadProfile:
    trace = Trace(np.array(rows_LTK, dtype=np.int32), (TOKENS,))
    return LoadProfile(np.ones((1, len(LAYERS), 64), dtype=np.int64), LAYERS, "t.npz", trace=trace)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The rows as a recording's file has them."""
    path = tmp_path / "trace.npz"
    np.savez(path, experts=ROWS_LTK.astype(np.int32), layer_ids=np.array(LAYERS))
    return path


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    saved = judged(question(TINY, machine(8), 0), random_placement(TINY, 8, 0))
    return write_plan(saved, tmp_path / "plan.json")


def emit(plan: Path, *flags: object) -> Result:
    words = ["emit", plan, "-o", plan.parent / "out", *flags]
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_package_holds_the_traces_rows_and_the_launch_turns_it_on(plan: Path, trace: Path) -> None:
    result = emit(plan, "--engine", "vllm", "--replay", trace)
    assert result.exit_code == 0, result.output
    value = json.loads((plan.parent / "out" / FILE).read_text())
    assert (value["experts"], value["top_k"]) == (64, 8)
    for layer, rows_TK in zip(LAYERS, ROWS_LTK, strict=True):
        assert value["layers"][str(layer)] == rows_TK.ravel().tolist()
    script = (plan.parent / "out/launch.sh").read_text()
    assert "VLLM_MOE_ROUTING_SIMULATION_STRATEGY=moeplan_replay" in script
    assert "pip install ./vllm_replay" in script
    assert "never served on a GPU" in result.output


def test_it_stands_beside_the_plans_plugin(plan: Path, trace: Path) -> None:
    result = emit(plan, "--engine", "vllm", "--plugin", "--replay", trace)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (plan.parent / "out").iterdir()} >= {"vllm_plugin", "vllm_replay"}
    assert emit(plan, "--engine", "vllm", "--plugin").exit_code == 0
    assert "SIMULATION" not in (plan.parent / "out/launch.sh").read_text()


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_no_other_engine_replays(engine: str, plan: Path, trace: Path) -> None:
    refused = emit(plan, "--engine", engine, "--replay", trace)
    assert refused.exit_code == 2
    assert "--replay is for --engine vllm" in refused.stderr
    assert not (plan.parent / "out").exists()


def test_counts_are_no_trace(plan: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.npz"
    np.savez(counts, counts=np.ones((1, len(LAYERS), 64), dtype=np.int64), layer_ids=np.array(LAYERS))
    refused = emit(plan, "--engine", "vllm", "--replay", counts)
    assert refused.exit_code == 2
    assert "has counts and no trace of tokens" in refused.stderr


def test_every_moe_layer_needs_rows_and_a_draft_layer_does_not() -> None:
    """A draft layer without rows stays out of the package."""
    missing = ROWS_LTK.copy()
    missing[1] = -1
    with pytest.raises(BadInput, match=r"t\.npz: layer 4 has no rows in the trace"):
        replay_of(load(missing), TINY)
    missing = ROWS_LTK.copy()
    missing[3] = -1
    files = vllm_replay.package(replay_of(load(missing), TINY))
    assert sorted(json.loads(files[FILE])["layers"]) == ["3", "4", "5"]


def test_a_long_trace_is_cut_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_replay, "MOST_IDS", 5 * len(LAYERS) * 8)
    replay = replay_of(load(), TINY)
    value = json.loads(vllm_replay.package(replay)[FILE])
    assert value["layers"]["3"] == ROWS_LTK[0, :5].ravel().tolist()
    assert any("5 rows, the first of 12 of t.npz" in note for note in vllm_replay.notes(replay))


def parallel(**given: Any) -> Any:
    usual = {
        "pcp_size": 1,
        "is_sequence_parallel": False,
        "dp_rank": 1,
        "dp_size": 2,
        "ep_rank": 3,
        "ep_size": 4,
    }
    return SimpleNamespace(**{**usual, **given})


def test_ranks_with_tokens_of_their_own_start_evenly_apart() -> None:
    """Those that share tokens start alike, and all do where tokens are gathered before they are routed."""
    assert first_row(parallel(), 100, gathered=False) == 50
    assert first_row(parallel(ep_rank=2), 100, gathered=False) == 50
    assert first_row(parallel(is_sequence_parallel=True), 100, gathered=False) == 75
    assert first_row(parallel(), 100, gathered=True) == 0
    with pytest.raises(RuntimeError, match="no prefill context parallelism"):
        first_row(parallel(pcp_size=2), 100, gathered=False)


def test_a_layer_takes_row_after_row_and_over_the_end(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="rows are tensors")
    for name, text in vllm_replay.package(replay_of(load(), TINY)).items():
        (tmp_path / Path(name).name).write_text(text)
    recorded = Recorded(tmp_path / "replay.json")
    _, of_layer = strategies(torch, object, recorded)
    runner = SimpleNamespace(
        router=SimpleNamespace(top_k=8), do_naive_dispatch_combine=False,
        moe_config=SimpleNamespace(num_logical_experts=64, moe_parallel_config=parallel()),
    )  # fmt: skip
    strategy = of_layer(4, runner)
    found = [
        strategy.route_tokens(torch.zeros(tokens, 2), torch.rand(tokens, 64), 8)[1] for tokens in (5, 5, 9)
    ]
    assert torch.cat(found).tolist() == ROWS_LTK[1][(6 + np.arange(19)) % TOKENS].tolist()
    runner.router.top_k = 6
    with pytest.raises(RuntimeError, match="8 of 64 experts a token, and layer 4 chooses 6 of 64"):
        of_layer(4, runner)
    with pytest.raises(RuntimeError, match="has no rows of layer 9"):
        of_layer(9, runner)
