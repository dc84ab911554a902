"""Engines of one server for all traffic: what their judge says is in the launch, and what it refuses."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.engines import find_engine, stand_ins
from planner.engines.common.command import Endpoint, NodeCommand
from planner.model import ModelSpec
from tests.planner.engines.examples import TINY, machine, question, random_placement

LONGCAT = replace(TINY, architecture="longcat_flash", moe_layer_ids=tuple(range(6)), draft_layer_ids=())
SERVED = {  # a model that each serves by what is emitted
    "fastdeploy": replace(TINY, architecture="ernie4_5_moe"),
    "hygon": TINY,
    "lightllm": TINY,
    "lmdeploy": replace(TINY, weight_dtype="fp8"),
    "rtp_llm": TINY,
    "tokenspeed": LONGCAT,
}


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize(("name", "model"), SERVED.items())
def test_what_answers_a_finding_is_in_the_launch(name: str, model: ModelSpec, phase: str) -> None:
    """Host, sizes and kernels, word by word; nothing that serves is refused, each finding has its source."""
    problem = question(model, machine(8, 8), 32, phase, 96)
    engine = find_engine(name)
    verdict = engine.judge(problem)
    words = engine.emit(random_placement(model, 16, 32), problem, "m").commands[0].with_environment
    assert verdict.outcome == "serves with flags"
    assert all(finding.source for finding in verdict.findings)
    answers = [flag for one in verdict.findings if one.rule in ("host", "sizes") for flag in one.flags]
    assert set(answers) <= set(words)
    assert name == "rtp_llm" or "0.0.0.0" in answers


@pytest.mark.parametrize(("name", "model"), SERVED.items())
def test_a_plan_is_sized_by_its_tokens(name: str, model: ModelSpec) -> None:
    """96 tokens a rank in decode: requests of one rank, or of all 16. FastDeploy's sizes were not read."""
    problem = question(model, machine(8, 8), 32, tokens_per_rank=96)
    words = find_engine(name).emit(random_placement(model, 16, 32), problem, "m").commands[0].words
    assert name == "fastdeploy" or {"96", str(96 * 16)} & set(words)


@pytest.mark.parametrize(("name", "model"), SERVED.items())
def test_half_of_a_pair_is_refused(name: str, model: ModelSpec) -> None:
    """By the judge too."""
    with pytest.raises(BadInput, match="is started as mixed"):
        find_engine(name).judge(question(model, machine(8), 8), None, "decode")


@pytest.mark.parametrize(("name", "model"), SERVED.items())
def test_what_is_not_served_names_the_way_out(name: str, model: ModelSpec) -> None:
    """A model that the engine does not know: not refused, and --flags-only answers it."""
    other = replace(model, architecture="unheard_of")
    (found,) = [
        one for one in find_engine(name).judge(question(other, machine(8), 8)).findings if one.rule == "map"
    ]
    assert (found.refused, found.flags) == (False, ("--flags-only",))


@pytest.mark.parametrize("name", ["fastdeploy", "lightllm", "lmdeploy", "rtp_llm"])
def test_prompts_need_deepeps_normal_mode(name: str) -> None:
    """No other way of these is known; two nodes of four GPUs have none."""
    rules = {
        one.rule
        for one in find_engine(name).judge(question(SERVED[name], machine(4, 4), 16, "prefill")).refused
    }
    assert "deepep-nvlink" in rules


@pytest.mark.parametrize(("name", "found"), stand_ins().items())
def test_a_stand_in_makes_a_whole_placement(name: str, found: object) -> None:
    """What it serves has the plan's layers and slots, and its table is among what is emitted."""
    model, problem = SERVED[name], question(SERVED[name], machine(8), 16)
    placement = random_placement(model, 8, 16)
    made = stand_ins()[name].served(placement, problem)
    assert (made.layer_ids, made.expert_LP.shape) == (placement.layer_ids, placement.expert_LP.shape)
    assert stand_ins()[name].TABLE_NAME in find_engine(name).emit(placement, problem, "m").files
    assert found is find_engine(name)


def test_ports_may_be_listed_and_hosts_left_unsaid() -> None:
    """The first port answers; an engine without a flag for its host gets none."""
    listed = NodeCommand(("serve", "--ports", "8180,8181"), endpoint=Endpoint((), "--ports", 8180))
    assert (listed.port, listed.listening(8180)) == (8180, ())
    assert NodeCommand(("serve",), endpoint=Endpoint((), "--start_port", 1)).listening(2) == (
        "--start_port",
        "2",
    )
