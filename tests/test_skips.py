"""What a run leaves out is told by group, and CI fails where that has grown."""

from collections import Counter

from tests.skips import GROUPS, grouped, unexpected

ENGINES = "MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"


def test_reasons_of_one_kind_are_one_group() -> None:
    found = grouped(Counter({ENGINES: 3, ENGINES.replace("VLLM", "SGLANG"): 4}))
    assert {getattr(group, "name", group): count for group, count in found.items()} == {
        "SGLang and vLLM themselves": 7
    }


def test_a_group_that_has_grown_is_named() -> None:
    most = next(group.most for group in GROUPS if group.name == "SGLang and vLLM themselves")
    assert most is not None
    assert unexpected(grouped(Counter({ENGINES: most}))) == []
    (sentence,) = unexpected(grouped(Counter({ENGINES: most + 1})))
    assert f"{most + 1} tests were skipped, at most {most} are expected" in sentence


def test_a_new_reason_is_named() -> None:
    (sentence,) = unexpected(grouped(Counter({"it was Friday": 1})))
    assert "tests/skips.py does not expect: it was Friday" in sentence
