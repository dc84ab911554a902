"""Every launch that emit writes for vLLM, of every catalogue model, judged by vLLM 0.33.0 itself.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM (the CPU is enough). MOEPLAN_MATRIX_OUT
names a file that the outcomes are added to, a JSON object a line.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from planner.engines import Emission
from tests.engines.launches import record
from tests.engines.matrix import asked as ask
from tests.engines.vllm_launches import Asked, catalogue, faults, for_resolver, quantised, shared_attention

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)
REASONS = (  # every refusal has one of these
    *("slots a GPU would fit", "has no expert balancer for", "by expert parallelism: "),
    *("for the KV cache beside", "needs more than"),
    "--attention-tp",
)
Answers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def launches() -> list[Asked]:
    return [*catalogue(), *quantised(), *shared_attention()]


@pytest.fixture(scope="module")
def answers(launches: list[Asked]) -> Answers:
    different = for_resolver(launches)
    return dict(
        zip(different, ask(PYTHON, "vllm_resolver.py", list(different.values()), seconds=1800), strict=True)
    )


@pytest.fixture(scope="module")
def models(launches: list[Asked], answers: Answers) -> Answers:
    """By what vLLM chooses kernels by: the answer of the launch whose model was made."""
    asked = [one for one in launches if one.is_asked]
    return {one.kernel_key: answers[one.key] for one in asked if "moe" in answers[one.key]}


def test_every_launch_is_refused_with_a_reason_or_stands(
    launches: list[Asked], answers: Answers, models: Answers, tell: Callable[[str], None]
) -> None:
    """No launch that is written is refused by vLLM, means something else than the plan, or lacks a kernel, a
    balancer that its weights support, or a buffer that DeepEP takes.
    """
    asked = [one for one in launches if one.is_asked]
    wrong = {str(one): list(faults(one, answers[one.key], models.get(one.kernel_key))) for one in asked}
    wrong = {name: found for name, found in wrong.items() if found}
    refused = [str(one.emission) for one in launches if not isinstance(one.emission, Emission)]
    shapes = f"{len(answers)} different ones resolved by vLLM, {len(models)} models made"
    tell(f"vLLM launches: {len(launches)} asked for, {len(asked)} written ({shapes}), {len(refused)} refused")
    record(launches)
    assert not [text for text in refused if not any(reason in text for reason in REASONS)]
    assert not wrong, f"{len(wrong)} launches: {json.dumps(dict(list(wrong.items())[:20]), indent=1)}"
    assert not [str(one) for one in launches if isinstance(one.emission, Emission) and not one.is_asked]
    assert len(asked) > 600


def test_the_old_launches_fail_by_the_same_questions(launches: list[Asked]) -> None:
    """What was emitted before sizes, methods and host were said: the questions find each fault."""
    named = {str(one): one for one in launches}
    decode = named["moonshotai/Kimi-K2.5, 2 x 8 H100, decode, mixed"]
    words = [word for word in decode.launch["words"] if word not in ("--host", "0.0.0.0")]
    old = words[: words.index("--max-num-batched-tokens")]
    balancer = ["--enable-eplb", "--eplb-config", '{"num_redundant_experts":0,"use_async":false}']
    asked = [
        {**decode.launch, "environment": {}, "words": [*old, *more], "build": True} for more in ([], balancer)
    ]
    sized, unsupported = ask(PYTHON, "vllm_resolver.py", asked)
    found = " ".join(faults(decode, sized, sized))
    assert "tokens is 256, not 128" in found
    assert "it listens on None" in found
    assert "the ledger counts" in found
    assert "EPLB is not supported CompressedTensorsWNA16MoEMethod" in unsupported["error"]
