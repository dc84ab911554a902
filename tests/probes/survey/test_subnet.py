"""The subnet asked live: a program called ibnetdiscover on PATH, good, failing, hanging or absent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from probes.base.facts import FabricFacts
from probes.survey.subnet import probe_subnet
from tests.probes.ib_text import SmallFabric
from tests.probes.ib_text import ibnetdiscover as text_of

Ask = Callable[..., FabricFacts]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask an ibnetdiscover that prints `text` and then does what the shell line `then` says."""

    def ask(text: str, then: str = "exit 0", timeout_seconds: float = 20) -> FabricFacts:
        (tmp_path / "text").write_text(text)
        program = tmp_path / "ibnetdiscover"
        program.write_text(f"#!/bin/sh\n/bin/cat '{tmp_path}/text'\n{then}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return probe_subnet(timeout_seconds)

    return ask


def test_a_subnet(ask: Ask) -> None:
    """What it says is read, not imported."""
    facts = ask(text_of(SmallFabric(groups=2, hosts=3, rails=2, spines=2, cables=2)))
    assert (len(facts.ports), facts.evidence, facts.source, facts.unknown) == (
        12,
        "read",
        "ibnetdiscover",
        (),
    )


def test_a_fault_after_good_output(ask: Ask) -> None:
    """The output is used, the fault is a warning."""
    facts = ask(text_of(SmallFabric()), "exit 255")
    assert facts.ports
    assert facts.warnings[-1] == "'ibnetdiscover' ended with exit code 255"


def test_a_hang(ask: Ask) -> None:
    """Killed in time, and said."""
    facts = ask("", "while :; do :; done", timeout_seconds=0.5)
    assert facts.ports == ()
    assert facts.unknown[0].startswith(
        "the switches between hosts: 'ibnetdiscover' did not end within 0.5 s and was killed; it asks as root"
    )


def test_output_that_is_none_of_its_kind(ask: Ask) -> None:
    """No cables are made of it; both reasons are told."""
    facts = ask("discovery failed", "exit 1")
    assert facts.ports == ()
    assert "'ibnetdiscover' ended with exit code 1" in facts.unknown[0]


def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        probe_subnet()
        .unknown[0]
        .startswith("the switches between hosts: 'ibnetdiscover' is not installed (not found on PATH)")
    )
