"""The whole step: terms worked by hand, what may never come out, and whose error is stated."""

from dataclasses import replace
from typing import Any

import pytest

from planner.cost import MoeSeconds, calibration, cost, step_terms, whole_step
from planner.cost.whole.asked import asked_of
from planner.cost.whole.attention import attended_tokens, read_bytes, scores_flops
from planner.model import Attention, Body
from planner.problem import Problem
from planner.topology import read_topology
from tests.planner.small import placed, question, small_model

GROUPED = Attention("grouped", 2, heads=8, key_dim=128, value_dim=128, kv_heads=2)
BODY = Body((GROUPED,), vocabulary=1000, dense_layers=1, dense_width=3000, shared_width=500)
NONE = MoeSeconds(0.0, 0.0, 0.0)


def asked(body: Body | None = BODY, gpus: int = 2, **workload: Any) -> Problem:
    """Two layers, one of them with experts, on H100s of one node."""
    topology = read_topology(f"hgx-h100:1x{gpus}")
    problem = question([1] * 4, topology, 4 // gpus, **{"tokens_per_rank": 8, **workload})
    model = replace(small_model(), layers=2, body=body)
    return replace(problem, model=model)


def step(problem: Problem, engine: str | None = "vllm", **options: Any) -> Any:
    row = list(range(problem.slots))
    return whole_step(problem, cost(problem, placed(row, problem)), engine, **options)


def test_terms_by_hand() -> None:
    """992 wide: 2 layers with 8 + 2 + 2 + 8 heads of 128 are 5,079,040 weights; H100 reads 3.35 TB/s."""
    terms = step_terms(asked(), asked_of(asked()), NONE)
    assert terms["projections"] == pytest.approx(2 * 992 * 20 * 128 * 2 / 3.35e12)
    assert terms["cache"] == pytest.approx(8 * (1024 + 512) * 2 * 2 * 2 * 128 * 2 / 3.35e12)
    assert terms["scores"] == pytest.approx(8 * 2 * 2 * 8 * 256 * 1536 / 989e12)
    assert terms["dense"] == pytest.approx(3 * 992 * 3000 * 2 / 3.35e12)
    assert terms["head"] == pytest.approx(1000 * 992 * 2 / 3.35e12)
    assert terms["layers"] == pytest.approx(2e-6)
    assert terms["waits"] == pytest.approx(2e-6)
    assert terms["requests"] == pytest.approx(8e-6)
    assert terms["joins"] == terms["joined"] == 0


def test_attention_shared_by_gpus_joins() -> None:
    """Half the heads on each GPU, and a sum over both after attention (2) and the dense layer (1)."""
    shared, alone = (asked(attention_tp=gpus) for gpus in (2, 1))
    terms = step_terms(shared, asked_of(shared), NONE)
    assert terms["projections"] == pytest.approx(step_terms(alone, asked_of(alone), NONE)["projections"] / 2)
    assert terms["joins"] == pytest.approx(3e-6)
    assert terms["joined"] == pytest.approx(3 * 2 * 16 * 992 * 2 / 2 / 450e9)
    assert terms["waits"] == 0


@pytest.mark.parametrize(
    ("layer", "looks_at", "reads"),
    [
        (GROUPED, 4096, 4096 * 2 * 256 * 2),
        (replace(GROUPED, window=128), 128, 128 * 2 * 256 * 2),
        (Attention("mla", 1, 128, 192, 128, kv_rank=512, rope_dim=64), 4096, 4096 * 576 * 2),
    ],
    ids=["grouped", "window", "mla"],
)
def test_what_a_step_reads(layer: Attention, looks_at: int, reads: int) -> None:
    """Keys and values of 4,096 tokens, of a window, or one latent of 576."""
    assert attended_tokens(layer, 4096) == looks_at
    assert read_bytes(layer, 4096, 2.0, 1) == reads


def test_states_do_not_grow() -> None:
    """Gated DeltaNet reads and writes its state, however long the context is."""
    layer = Attention("delta", 1, heads=32, key_dim=128, value_dim=128, kv_heads=16, conv=4)
    assert read_bytes(layer, 1e6, 2.0, 1) == read_bytes(layer, 10, 2.0, 1) >= 2 * 32 * 128 * 128 * 4
    assert scores_flops(layer, 1e6, 1, absorbed=True) == 6 * 32 * 128 * 128


def test_sparse_attention_reads_what_it_picks() -> None:
    """2,048 latents of 576 elements, and the index key of every token."""
    layer = Attention(
        "mla", 1, 128, 192, 128, kv_rank=512, rope_dim=64, index_heads=64, index_dim=128, index_tokens=2048
    )
    assert read_bytes(layer, 65536, 2.0, 1) == 2048 * 576 * 2 + 65536 * 132


@pytest.mark.parametrize(("name", "values"), [("prompt_tokens", (1000, 4000)), ("tokens_per_rank", (8, 64))])
def test_more_work_is_never_faster(name: str, values: tuple[int, int]) -> None:
    """Longer requests, or more of them at once."""
    less, more = (step(asked(BODY, 2, **{name: value})) for value in values)
    assert less.tpot_seconds < more.tpot_seconds
    assert less.ttft_seconds <= more.ttft_seconds


def test_prompts_are_beside_unless_others_do_them() -> None:
    """8 requests of 1,024 in and 512 out bring 16 prompt tokens a step."""
    problem = asked(output_tokens=512)
    assert asked_of(problem).prompts_beside == 16
    together, apart = step(problem), step(problem, disaggregated=True)
    assert together.seconds["prompts"] > apart.seconds["prompts"] == 0
    assert together.tpot_seconds == pytest.approx(apart.tpot_seconds + together.seconds["prompts"])


def test_parts_come_to_the_whole() -> None:
    problem = asked()
    found = step(problem)
    assert found.tpot_seconds == pytest.approx(sum(found.seconds.values())) == found.total_seconds
    assert found.tokens_per_s_per_gpu == pytest.approx(8 / found.tpot_seconds)
    assert set(found.seconds) >= {"attention", "dense", "shared", "head", "overhead", "dispatch", "compute"}


def test_dispatch_and_combine_are_the_plans_own() -> None:
    problem = asked()
    own = cost(problem, placed(range(problem.slots), problem))
    found = step(problem)
    assert found.seconds["dispatch"] == pytest.approx(own.dispatch_seconds_L.sum())
    assert found.seconds["combine"] == pytest.approx(own.combine_seconds_L.sum())


def test_draft_layers_take_no_part() -> None:
    """They run where an engine speculates, which is not modelled."""
    plain = asked()
    drafting = replace(plain.model, draft_layer_ids=(2,))
    load = replace(plain.load, tokens_WLE=plain.load.tokens_WLE.repeat(2, axis=1), layer_ids=(0, 2))
    problem = replace(plain, model=drafting, load=load)
    row = list(range(problem.slots))
    placement = replace(placed(row, plain), expert_LP=placed(row, plain).expert_LP.repeat(2, axis=0))
    placement = replace(placement, layer_ids=(0, 2))
    assert whole_step(problem, cost(problem, placement), "vllm").seconds == step(plain).seconds


def test_prefill_has_no_time_between_tokens() -> None:
    found = step(asked(phase="prefill", tokens_per_rank=2048))
    assert found.tpot_seconds is None
    assert found.error == "not judged in prefill: coefficients of decode steps"


def test_an_unknown_body_is_assumed_and_says_so() -> None:
    assert step(asked(body=None)).basis.startswith("assumed")
    assert step(asked()).basis == "config"


def test_the_error_is_of_that_gpu_or_none() -> None:
    """Never the figures of another chip; a model that was not measured has the error of unseen ones."""
    known = calibration().tpot
    found = step(asked())
    own = known.errors["H100-SXM-80GB"]
    assert found.error.startswith(f"H100-SXM-80GB: {own.mean_error:.0%} mean error, ")
    assert f"on {own.rows} held-out measurements" in found.error
    assert f"models left out of the fit were {known.unseen_model.mean_error:.0%} off" in found.error
    assert found.error_share == max(own.mean_error, known.unseen_model.mean_error)
    other = step(replace(asked(), topology=read_topology("hgx-h20:1x2")))
    assert other.error.startswith("not judged on H20-SXM-96GB")
    assert other.ttft_error.startswith("not judged on H20-SXM-96GB")
    assert "H100" not in other.error
    assert other.error_share is None


def test_a_measured_model_has_the_error_of_its_gpu() -> None:
    problem = asked()
    found = step(replace(problem, model=replace(problem.model, architecture="deepseek_v3")))
    assert found.error_share == calibration().tpot.errors["H100-SXM-80GB"].mean_error
    assert "left out" not in found.error


def test_what_was_not_measured_is_said() -> None:
    """An engine, no engine, a group wider than any that was measured."""
    assert step(asked(), "lmdeploy").error.endswith("lmdeploy was not measured")
    assert step(asked(), None).error.endswith("no engine named")
    assert "not measured" not in step(asked(), "sglang").error
    wide = asked()
    topology = read_topology("hgx-h100:4x8")
    problem = question([1] * 32, topology, 1, tokens_per_rank=8)
    problem = replace(problem, model=replace(wide.model, experts=32, moe_layer_ids=(0,)))
    assert "; wider was not measured" in step(problem).error


def test_no_coefficient_is_negative() -> None:
    known = calibration()
    for law in (known.tpot.law, known.ttft.law):
        assert min(law.base.values()) >= 0
        assert (
            min(
                times
                for values in law.factors.values()
                for terms in values.values()
                for times in terms.values()
            )
            > 0
        )
