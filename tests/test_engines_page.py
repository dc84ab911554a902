"""The table of launches in docs/engines.md, from what the engines' tests leave behind."""

from docs.make_engines_page import HEAD, launches_table, summary


def row(machine: str, phase: str, outcome: str, why: str = "", checked: str = "") -> dict[str, str]:
    kind = {"engine": "sglang", "family": "qwen3_moe", "quantisation": ""}
    return {**kind, "machine": machine, "phase": phase, "outcome": outcome, "why": why, "checked": checked}


def test_machines_with_one_answer_share_a_line() -> None:
    """And an answer that was not asked of an engine says that it rests on rules."""
    rows = [row(machine, phase, "serves") for machine in ("a", "b") for phase in ("decode", "prefill")]
    line = "| sglang | qwen3_moe | 16 bits | a, b | serves | serves |  | rules alone |\n"
    assert launches_table(rows) == HEAD + line


def test_another_answer_has_its_own_line_with_the_reason() -> None:
    refused = row("b", "prefill", "refused", "no kernel | at all; and more")
    rows = [row("a", "decode", "serves", checked="SGLang"), row("b", "decode", "serves"), refused]
    first, second = launches_table(rows).removeprefix(HEAD).splitlines()
    assert "| a | serves |  |  | SGLang |" in first
    assert "| b | serves | refused | no kernel \\| at all | rules alone |" in second


def test_the_summary_counts_outcomes() -> None:
    rows = [row("a", "decode", "serves"), row("a", "prefill", "serves"), row("b", "decode", "refused")]
    assert summary(rows) == "sglang: 1 refused. sglang: 2 serves. "
