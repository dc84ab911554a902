"""What a run of the tests leaves out: one line for each group, with the command that would run it.

Where .ci/run installs what tests ask for (it sets MOEPLAN_ALL_TESTS), a group that no line here expects, or
that has grown, fails the run.
"""

import os
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.places import ROOT


@dataclass(frozen=True)
class Group:
    """Tests that are skipped for one reason. `most`: how many CI may leave out; None: any number."""

    name: str
    reason: str  # a regular expression
    run: str
    most: int | None


RECORDINGS = r"beside (this|the) checkout|third-party data and not here|shared/data"
GROUPS = (
    Group("SGLang and vLLM themselves", r"MOEPLAN_\w+_PYTHON names no interpreter", "make engines", 177),
    Group(
        "TensorRT-LLM's own options",
        r"MOEPLAN_TRTLLM_SOURCE names no source tree",
        "make engines with MOEPLAN_TRTLLM_SOURCE",
        18,
    ),
    Group(
        "other engines themselves",
        r"MOEPLAN_ENGINE_SOURCES names no folder|Triton, which interprets",
        "make engines with MOEPLAN_ENGINE_SOURCES",
        36,
    ),
    Group("public recordings", RECORDINGS, "make test with the recordings beside the checkout", None),
    Group(
        "AIConfigurator's tables",
        r"MOEPLAN_AICONFIGURATOR_WHEEL names no wheel",
        "make test with a wheel of aiconfigurator-core and pyarrow",
        1,
    ),
    Group("Slurm", r"Slurm is not installed", "apt-get install slurm-wlm munge, then make test", 0),
    Group("Slurm as root", r"slurmd starts jobs only", "make test as root", 0),
    Group(
        "measured steps",
        r"aiconfigurator-core is not installed",
        "pip install 'moeplan[aiconfigurator]', then make test",
        1,
    ),
    Group("Ray", r"ray is not installed", "make ray, then make test", 0),
    Group("files that the superuser may read", r"the superuser may read", "make test as another user", 1),
    Group("PyTorch", r"torch is not installed", "make test, which installs it", 0),
    Group("namespaces", r"namespace|no emulated cluster", "make test where unshare -n is allowed", 0),
    Group("a browser", r"Chromium is not installed", "apt-get install chromium, then make test", 0),
    Group("a C compiler", r"compiler", "install gcc or clang, then make test", 0),
    Group("a fake NVML", r"an NVML of its own|a Linux library", "make test on Linux without GPUs", None),
)
LAST_PASSED = re.compile(r"^Last passed: (.+)\.$", re.MULTILINE)


def skipped_reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """How many tests gave each reason."""
    reports = reporter.stats.get("skipped", [])
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)


def grouped(reasons: Counter[str]) -> dict[Group | str, int]:
    """Tests by group; by their reason where no group expects it."""
    found: Counter[Group | str] = Counter()
    for reason, count in reasons.items():
        found[next((group for group in GROUPS if re.search(group.reason, reason)), reason)] += count
    return dict(found)


def unexpected(groups: dict[Group | str, int]) -> list[str]:
    """What has grown, a sentence each."""
    return [
        f"{count} tests were skipped for a reason that tests/skips.py does not expect: {group}"
        if isinstance(group, str)
        else f"{group.name}: {count} tests were skipped, at most {group.most} are expected"
        for group, count in groups.items()
        if isinstance(group, str) or (group.most is not None and count > group.most)
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    groups = grouped(skipped_reasons(terminalreporter))
    if not groups:
        return
    terminalreporter.section("left out")
    for group, count in groups.items():
        name, run = (group, "see the test") if isinstance(group, str) else (group.name, group.run)
        terminalreporter.write_line(f"{count} tests: {name}; run them: {run}{_last_run(run)}")
    for sentence in unexpected(groups) if os.environ.get("MOEPLAN_ALL_TESTS") else ():
        terminalreporter.write_line(sentence, red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A green run that leaves out more than it may is not green."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("MOEPLAN_ALL_TESTS") and reporter and session.exitstatus == 0:
        session.exitstatus = int(bool(unexpected(grouped(skipped_reasons(reporter)))))


def _last_run(run: str) -> str:
    """When the engines' tests last passed, and with which commit."""
    said = LAST_PASSED.search((ROOT / "docs/engines.md").read_text(encoding="utf-8"))
    return f" (last passed {said[1]})" if said and run == "make engines" else ""
