"""What engines share: names, default placements, limits, refusal, and layer numbering across formats."""

import ast
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput, Infeasible
from planner.engines import Engine, default_placement, engine_names, find_engine
from planner.model import ModelSpec, find_model
from planner.placement import Placement
from planner.problem import TRANSPORTS, row_violations, violations
from planner.replica.registry import RULES
from tests.places import ROOT
from tests.planner.engines.examples import TINY, machine, question, random_placement

EVERY = [pytest.param(find_engine(name), id=name) for name in engine_names()]


def test_an_unknown_engine_gets_the_nearest_name() -> None:
    """The message helps with a slip of the finger, and names them all."""
    known = ", ".join(engine_names())
    said = f"'sglagn' is unknown; did you mean 'sglang'? known are {known}"
    with pytest.raises(BadInput, match=re.escape(said)):
        find_engine("sglagn")


@pytest.mark.parametrize("engine", EVERY)
def test_names_point_at_things_that_exist(engine: Engine) -> None:
    """An engine is found under its own name, and names a replica rule, a transport and a dtype that the laws
    know.
    """
    assert find_engine(engine.NAME) is engine
    assert engine.REPLICA_RULE in RULES
    assert {engine.transport(phase, machine(8, 8)) for phase in ("decode", "prefill")} <= set(TRANSPORTS)
    assert engine.dispatch_dtype(TINY) in {"bf16", "fp8"}


def test_engines_are_reached_by_name_alone() -> None:
    """No module outside the room imports a single engine's, so that a new engine touches no other file."""
    for path in (ROOT / "planner").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "engines" in path.parts or "planner.engines" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "planner.engines":
                assert not {alias.name for alias in node.names} & set(engine_names()), path


@given(
    experts=st.integers(1, 40),
    gpus=st.integers(1, 12),
    more=st.integers(0, 12),
    engine=st.sampled_from(engine_names()),
)
def test_default_placements_break_no_rule(experts: int, gpus: int, more: int, engine: str) -> None:
    """Whatever the numbers, an engine's own initial map covers every expert and holds none twice on a GPU, so
    no other layout is ever needed.
    """
    model = ModelSpec("m", "mixtral", 2, (0, 1), experts, 1, 8, 8, 8, "bf16", "made for tests")
    redundant = min(-experts % gpus + more * gpus, experts * (gpus - 1))
    placement = find_engine(engine).default_placement(model, gpus, redundant)
    assert list(row_violations(placement.expert_LP, placement.layer_ids, experts, gpus)) == []


def test_default_placement_of_trtllm_overlaps_neighbours() -> None:
    """Slot j of rank r is expert (r * E // G + j) % E, by hand for 4 experts in 6 slots on 2 GPUs."""
    model = ModelSpec("m", "mixtral", 1, (0,), 4, 1, 8, 8, 8, "bf16", "made for tests")
    assert find_engine("trtllm").default_placement(model, 2, 2).expert_LP.tolist() == [[0, 1, 2, 2, 3, 0]]
    assert find_engine("sglang").default_placement(model, 2, 2).expert_LP.tolist() == [[0, 1, 2, 3, 0, 1]]


def test_default_placement_answers_the_question_with_or_without_an_engine() -> None:
    """`default_placement` is a valid answer for each engine and for none."""
    problem = question(TINY, machine(4, 4), 8)
    assert all(
        violations(problem, default_placement(name, problem)) == [] for name in (None, *engine_names())
    )


def test_slots_that_do_not_divide_are_infeasible_with_the_nearest_counts() -> None:
    """256 experts on 3 GPUs: R = 2, 5 and 8 are named (a public bug report: a bare assertion in every
    engine).
    """
    engine, model = find_engine("sglang"), find_model("deepseek-v3")
    with pytest.raises(Infeasible, match="2, 5 or 8"):
        engine.default_placement(model, 3, 0)


@pytest.mark.parametrize("engine", EVERY)
def test_a_broken_placement_is_not_emitted(engine: Engine) -> None:
    """Nothing that a rule forbids reaches a file, whoever asks for it."""
    placement = random_placement(TINY, 8, 8)
    expert_LP = placement.expert_LP.copy()
    expert_LP[0, 0] = 64
    with pytest.raises(BadInput, match="layer 3, slot 0: expert id 64"):
        engine.emit(Placement(expert_LP, placement.layer_ids, 8), question(TINY, machine(8), 8), "m")


@pytest.mark.parametrize(
    ("name", "redundant", "phase", "gpus", "changes", "rule"),
    [
        ("vllm", 8, "decode", (8,), {"quant_method": "modelopt", "weight_dtype": "fp8"}, "redundant"),
        ("vllm", 0, "decode", (8,), {"architecture": "dbrx"}, "model"),
        ("vllm", 0, "decode", (8,), {"quant_method": "torchao", "weight_dtype": "int4"}, "weights"),
        ("sglang", 8, "decode", (8, 4), {}, "nodes"),
        ("trtllm", 8, "decode", (8, 4), {}, "nodes"),
        ("sglang", 8, "decode", (8,), {"architecture": "longcat_flash"}, "redundant"),
        ("vllm", 8, "decode", (8,), {"architecture": "gpt_oss"}, "redundant"),
        ("vllm", 1024, "decode", (8,), {"experts": 512}, "redundant"),
        ("trtllm", 0, "decode", (8,), {"experts": 1032}, "experts"),
        ("trtllm", 32920, "decode", (8,) * 40, {"experts": 1000}, "slots"),
        ("trtllm", 0, "decode", (1,), {}, "gpus"),
    ],
)
def test_limits(
    name: str, redundant: int, phase: str, gpus: tuple[int, ...], changes: dict[str, object], rule: str
) -> None:
    """Each limit of an engine is found by its name, and stops emission with one line."""
    model = replace(TINY, **changes)  # type: ignore[arg-type]
    problem = question(model, machine(*gpus), redundant, phase)
    engine = find_engine(name)
    assert rule in {violation.rule for violation in engine.judge(problem).violations}
    with pytest.raises(BadInput, match="cannot be emitted"):
        engine.emit(engine.default_placement(model, problem.gpus, redundant), problem, "m")


def test_limits_do_not_refuse_what_fits() -> None:
    """Large and small questions that the engines take break no limit."""
    for name in engine_names():
        for phase in ("decode", "prefill"):
            assert (
                find_engine(name)
                .judge(question(find_model("deepseek-v3"), machine(8, 8), 32, phase))
                .violations
                == []
            )
    assert find_engine("vllm").judge(question(find_model("deepseek-v3"), machine(8, 8), 32)).violations == []


def test_more_tokens_than_sglang_can_dispatch_are_refused() -> None:
    """1024 tokens a rank is the most its low latency buffers take."""
    assert find_engine("sglang").judge(question(TINY, machine(8), 8, tokens_per_rank=1024)).violations == []
    assert [
        found.rule
        for found in find_engine("sglang")
        .judge(question(TINY, machine(8), 8, tokens_per_rank=1025))
        .violations
    ] == ["dispatch-tokens"]


@pytest.mark.parametrize("layer", [3, 30, 60])
def test_layer_numbering_of_deepseek_v3(layer: int) -> None:
    """One plan, every format: layer 3, 30 and 60 hold the plan's own rows (public bug reports: maps shifted
    by the dense layers).
    """
    model = find_model("deepseek-v3")
    placement = random_placement(model, 16, 32)
    problem = question(model, machine(8, 8), 32)
    row = placement.expert_LP[placement.layer_ids.index(layer)].tolist()
    sglang = json.loads(find_engine("sglang").emit(placement, problem, "m").files["expert_location.json"])
    trtllm = yaml.safe_load(
        find_engine("trtllm").emit(placement, problem, "m").files["moe_load_balancer.yaml"]
    )
    assert sglang["physical_to_logical_map"][layer] == row
    assert trtllm["initial_global_assignments"][layer] == row
    assert not any(
        "map" in name or "location" in name
        for name in find_engine("vllm").emit(placement, problem, "m").files
    )


@pytest.mark.parametrize("engine", EVERY)
def test_same_question_same_bytes(engine: Engine) -> None:
    """Emission holds no clock, path or random number."""
    problem = question(TINY, machine(8), 8)
    first, second = (engine.emit(random_placement(TINY, 8, 8), problem, "m") for _ in range(2))
    assert first == second


@given(layers=st.integers(1, 5), seed=st.integers(0, 99), redundant=st.sampled_from([0, 8, 24]))
def test_export_then_import_is_the_identity(layers: int, seed: int, redundant: int) -> None:
    """Rows read back from each map file are the placement's rows."""
    model = replace(
        TINY, layers=layers + 1, moe_layer_ids=tuple(range(1, layers + 1)), draft_layer_ids=(layers + 1,)
    )
    placement = random_placement(model, 8, redundant, seed)
    problem = question(model, machine(8), redundant)
    for name, parse in (("sglang", json.loads), ("trtllm", yaml.safe_load), ("vllm_ascend", json.loads)):
        engine = find_engine(name)
        found = engine.read_map(
            parse(
                next(
                    text
                    for file, text in engine.emit(placement, problem, "m").files.items()
                    if file != "launch.sh" and "options" not in file
                )
            )
        )
        assert found is not None
        rows = dict(zip(found.layer_ids(model), (row for _, row in found.rows), strict=True))
        layer_ids = model.placed_layer_ids if found.needs_draft_rows else model.moe_layer_ids
        assert np.array_equal([rows[layer] for layer in layer_ids], placement.expert_LP[: len(layer_ids)])


def test_a_model_name_cannot_leave_its_comment() -> None:
    """A line break in a name does not become a command of the launch script."""
    model = replace(TINY, name="tiny\ntouch hacked #")
    for name in engine_names():
        launch = (
            find_engine(name)
            .emit(random_placement(model, 16, 16), question(model, machine(8, 8), 16), "$(touch hacked); x")
            .launch
        )
        assert not any(line.lstrip().startswith("touch") for line in launch.splitlines())
        assert "'$(touch hacked); x'" in launch
