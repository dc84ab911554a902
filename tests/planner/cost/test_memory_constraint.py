"""The constraint: no plan that does not fit, and the nearest that does, named and true."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest

from planner.base import Infeasible
from planner.cost import does_not_fit, pose_case, within_memory
from planner.cost.memory.case import Case
from planner.cost.memory.constraint import too_little
from planner.cost.memory.ledger import ledger_of
from planner.model import find_model, model_names
from planner.planning import PlanRequest
from planner.planning.answer import resolve
from planner.problem import Problem, Workload
from planner.topology import Topology, read_topology
from tests.planner.engines.examples import TINY, machine, question

MACHINES = ("hgx-h100:1", "hgx-h100:2", "hgx-h200:4", "gb200-nvl72")
ENGINES = (None, "sglang", "vllm", "trtllm")
TOKENS = {"decode": 128, "prefill": 4096}
WAYS = {
    "redundant": r"--redundant (\d+)",
    "context": r"--context (\d+)",
    "tokens": r"--tokens-per-rank (\d+)",
    "gpus": r"(\d+) such GPUs",
    "model": r"--model (\S+)",
}


@cache
def topology(name: str) -> Topology:
    return read_topology(name)


def posed(
    model: str, machine_name: str, phase: str = "decode", redundant: int | None = None, **step: Any
) -> Case:
    spec, found = find_model(model), topology(machine_name)
    least = -spec.experts % found.gpu_count
    workload = Workload(TOKENS[phase], phase, **step)
    return pose_case(spec, found, workload, least if redundant is None else redundant)


def ways_out(said: str) -> list[dict[str, str]]:
    """What the message names, a way each: 'what fits is A, or B. GPU ...'."""
    clause = re.split(r"(?:what|the most that) fits is ", said.split(". GPU ", maxsplit=1)[0])
    if len(clause) < 2:
        return []
    found = [
        {key: match[1] for key, pattern in WAYS.items() if (match := re.search(pattern, way))}
        for way in clause[1].split("; ")[0].split(", or ")
    ]
    assert all(found), said
    return found


def told(case: Case, way: dict[str, str]) -> Case:
    """The case that one of the ways out names."""
    redundant = int(way.get("redundant", case.redundant))
    gpus = int(way.get("gpus", case.gpus))
    model = find_model(way["model"]) if "model" in way else case.model
    slots = -(-model.experts // gpus) if "gpus" in way else (model.experts + redundant) // gpus
    workload = replace(case.workload, tokens_per_rank=int(way.get("tokens", case.workload.tokens_per_rank)))
    if "context" in way:
        half = int(way["context"]) // 2
        workload = replace(workload, prompt_tokens=int(way["context"]) - half, output_tokens=half)
    one_hop = case.one_hop and "gpus" not in way
    return replace(case, model=model, workload=workload, gpus=gpus, slots_per_gpu=slots, one_hop=one_hop)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("machine_name", MACHINES)
def test_every_cell_fits_or_is_refused_with_what_does(machine_name: str, engine: str | None) -> None:
    """The whole catalogue in both phases, with the fewest experts and with many; what is named fits."""
    cells = 0
    for name in model_names():
        for phase in TOKENS:
            few = posed(name, machine_name, phase)
            many = replace(few, slots_per_gpu=min(2 * few.slots_per_gpu + 8, few.model.experts))
            for case in (few, many):
                if ledger_of(case, engine).fits:
                    continue
                said = too_little(case, engine)
                assert re.match(r"\d+\.\d GB of GPU memory are missing at R = \d+: ", said), said
                assert "\n" not in said
                ways = ways_out(said)
                assert ways or "no context and no number of GPUs fits" in said, said
                for way in ways:
                    assert ledger_of(told(case, way), engine).fits, (way, said)
                cells += 1
    assert cells > 20


@pytest.mark.parametrize(("name", "machine_name"), [("deepseek-v3", "hgx-h100:2"), ("kimi-k2", "hgx-h100:2")])
def test_the_examples_that_did_not_fit_are_refused(name: str, machine_name: str) -> None:
    """DeepSeek-V3 with as many replicas as pay left less than nothing for the KV cache, Kimi-K2 with none."""
    asked = resolve(PlanRequest(name, machine_name, engine="sglang"))
    with pytest.raises(Infeasible, match=r"GB of GPU memory are missing at R = 0: what fits is"):
        asked.problem_of(0)
    with pytest.raises(Infeasible, match="missing at R = 128"):
        asked.problem_of(128)


def test_replicas_end_where_memory_does() -> None:
    """DeepSeek-V3 on two nodes of H200s: the named R fits, one more slot does not."""
    asked = resolve(PlanRequest("deepseek-v3", "hgx-h200:2", engine="sglang"))
    with pytest.raises(Infeasible) as refused:
        asked.problem_of(1008)
    most = int(ways_out(str(refused.value))[0]["redundant"])
    assert asked.problem_of(most).redundant == most
    with pytest.raises(Infeasible, match=f"the most that fits is --redundant {most}"):
        asked.problem_of(most + 16)


def test_a_smaller_release_is_named_where_the_catalogue_has_one() -> None:
    """Not a later model of the same shape: GLM-5 is in fp8 as GLM-5-FP8, and GLM-5.1 is another."""
    said = too_little(posed("qwen3-235b", "hgx-h100:1"), None)
    assert "--model Qwen/Qwen3-235B-A22B-FP8" in said
    assert "--model zai-org/GLM-5-FP8" in too_little(posed("zai-org/GLM-5", "hgx-h200:2"), None)


def resolver(floor_bytes: float, **limits: Any) -> Callable[[int], Problem]:
    """Within memory, on 8 GPUs."""

    def problem_of(redundant: int) -> Problem:
        return replace(question(TINY, machine(8), redundant), kv_floor_bytes=floor_bytes, **limits)

    case = partial(pose_case, TINY, machine(8), Workload(), kv_floor_bytes=floor_bytes)
    return within_memory(problem_of, None, case)


def left(redundant: int) -> float:
    return ledger_of(pose_case(TINY, machine(8), Workload(), redundant), None).kv_left_bytes


def test_a_floor_names_the_redundancy_that_would_fit() -> None:
    """Or the floor that would."""
    assert resolver(left(8))(8).redundant == 8
    with pytest.raises(Infeasible, match=r"the most that fits is --redundant 8\. .*needed \(the floor\)"):
        resolver(left(8))(16)
    with pytest.raises(Infeasible, match=r"what fits is --redundant 0 --kv-floor '\d+\.\d GB'"):
        resolver(left(0) + 1e6)(8)


def test_a_floor_and_a_promise_that_contradict_are_both_named() -> None:
    """8 GPUs need 7 redundant experts to be joined: 8 miss the floor, and fewer break the promise."""
    with pytest.raises(Infeasible, match=r"fewer redundant experts do not do: R = 0 cannot join 8 GPUs"):
        resolver(left(0), resplittable=True)(8)


def test_a_rule_of_thumb_refuses_too_and_says_that_it_is_one() -> None:
    """A model whose body is not known: the context is assumed as well."""
    crowded = question(replace(TINY, hidden=2**18), machine(8), 8)
    said = does_not_fit(crowded, None)
    assert "of 2,048 tokens, assumed" in said
    assert does_not_fit(question(TINY, machine(8), 8), None) == ""
