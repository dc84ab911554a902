"""Every launch that emit writes for SGLang, of every catalogue model, judged by SGLang 0.5.23 itself.

Runs where MOEPLAN_SGLANG_PYTHON names an interpreter that has SGLang (the CPU is enough). MOEPLAN_MATRIX_OUT
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
from tests.engines.sglang_faults import faults
from tests.engines.sglang_launches import Asked, catalogue, quantised, shared_attention

PYTHON = os.environ.get("MOEPLAN_SGLANG_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_SGLANG_PYTHON names no interpreter with SGLang 0.5.23"
)
REASONS = (  # every refusal has one of these
    *(
        "slots a GPU would fit",
        "does not serve",
        "leave nothing of a GPU's memory",
        "they do not divide over",
    ),
    "does not divide: use fewer GPUs",
    "--attention-tp",
)
Answers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def launches() -> list[Asked]:
    return [*catalogue(), *quantised(), *shared_attention()]


@pytest.fixture(scope="module")
def answers(launches: list[Asked]) -> Answers:
    """By launch, each once: models of one shape share it."""
    different = {asked.key: asked.launch for asked in launches if asked.is_asked}
    found = ask(PYTHON, "sglang_resolver.py", list(different.values()), seconds=1800)
    return dict(zip(different, found, strict=True))


def test_every_launch_is_refused_with_a_reason_or_stands(
    launches: list[Asked], answers: Answers, tell: Callable[[str], None]
) -> None:
    """No launch that is written is refused by SGLang, means something else than the plan, or lacks a kernel
    or a buffer for a step that it forms.
    """
    wrong = {str(one): faults(one, answers[one.key]) for one in launches if one.is_asked}
    wrong = {name: found for name, found in wrong.items() if found}
    refused = [str(one.emission) for one in launches if not isinstance(one.emission, Emission)]
    written = sum(one.is_asked for one in launches)
    shapes = f"{len(answers)} different ones resolved by SGLang"
    tell(f"SGLang launches: {len(launches)} asked for, {written} written ({shapes}), {len(refused)} refused")
    record(launches)
    assert not [text for text in refused if not any(reason in text for reason in REASONS)]
    assert not wrong, f"{len(wrong)} launches: {json.dumps(dict(list(wrong.items())[:20]), indent=1)}"
    assert not [str(one) for one in launches if isinstance(one.emission, Emission) and not one.is_asked]
    assert written > 600


def test_both_halves_of_a_pair_have_one_page_size(launches: list[Asked], answers: Answers) -> None:
    """Also where they run on GPUs of two kinds; the type of the KV cache agrees on GPUs of one kind."""
    pages: dict[str, set[int]] = {}
    caches: dict[tuple[str, str], set[str]] = {}
    for one in launches:
        if one.is_asked and one.role != "mixed" and not getattr(one.emission, "ignored", ""):
            resolved = answers[one.key]["resolved"]
            pages.setdefault(one.model.name, set()).add(resolved["page_size"])
            caches.setdefault((one.model.name, one.machine), set()).add(resolved["kv_cache_dtype"])
    assert len(pages) > 40
    assert {name: found for name, found in pages.items() if len(found) > 1} == {}
    assert {name: found for name, found in caches.items() if len(found) > 1} == {}


def test_the_old_launches_fail_by_the_same_questions(launches: list[Asked]) -> None:
    """What was emitted before sizes, kernels and host were said: the questions find each fault."""
    one = next(one for one in launches if str(one) == "Qwen/Qwen3-30B-A3B, 8 x H100, decode, mixed")
    said = one.launch["words"]
    said = said[said.index("--tp-size") : said.index("--moe-runner-backend")]
    old = ["low_latency" if word == "auto" else word for word in said] + ["--disable-shared-experts-fusion"]
    (answer,) = ask(PYTHON, "sglang_resolver.py", [{**one.launch, "words": old, "env": {}}])
    found = " ".join(faults(one, answer))
    assert "host is 127.0.0.1" in found
    assert "deepep_ll: AssertionError" in found
    assert "running requests a rank, planned were 128" in found
    assert "tokens, a buffer of 128" in found
    assert "tokens through a buffer of 128" in found
