"""`moeplan emit`: roles and releases that cannot be are refused in one line, before a file is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.engines import engine_names, find_engine, paired_engines, plugin_engines
from planner.plan import judged, write_plan
from tests.planner.engines.examples import TINY, machine, question, random_placement

NAMES = engine_names()


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A decode plan that every engine with a map serves."""
    return write_plan(
        judged(question(TINY, machine(8), 0), random_placement(TINY, 8, 0)), tmp_path / "plan.json"
    )


def emit(plan: Path, engine: str, *flags: str) -> Result:
    words = ["emit", str(plan), "--engine", engine, "-o", str(plan.parent / "out"), *flags]
    return CliRunner().invoke(main, words)


def refusal(plan: Path, engine: str, *flags: str) -> str:
    """The one line of a refusal that left no folder."""
    result = emit(plan, engine, *flags)
    assert result.exit_code == 2, result.output
    assert not (plan.parent / "out").exists()
    (line,) = result.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize("engine", NAMES)
def test_a_plan_for_one_role_is_refused_for_the_other(engine: str, plan: Path) -> None:
    """By an engine that has pairs with the role to use; by another with the roles it has."""
    line = refusal(plan, engine, "--role", "prefill")
    if "prefill" in find_engine(engine).ROLES:
        assert "--role prefill: the plan is for decode; make one with --phase prefill" in line
    else:
        assert f"{find_engine(engine).TITLE} is started as mixed" in line


@pytest.mark.parametrize("engine", paired_engines())
def test_two_plans_of_one_phase_are_no_pair(engine: str, plan: Path) -> None:
    """Each is named with its phase."""
    other = plan.with_name("other.json")
    other.write_bytes(plan.read_bytes())
    assert f"{other} is for decode" in refusal(plan, engine, str(other))


@pytest.mark.parametrize("engine", paired_engines())
def test_a_pair_passes_check(engine: str, plan: Path) -> None:
    """The folder of both halves, each as the engine takes it in its role; by its plugin where it has one."""
    plugin = ["--plugin"] if engine in plugin_engines() else []
    prefill = question(TINY, machine(8), 0, "prefill", 4096)
    other = write_plan(judged(prefill, random_placement(TINY, 8, 0)), plan.with_name("prefill.json"))
    assert emit(plan, engine, str(other), "--hosts", "first,second", *plugin).exit_code == 0
    result = CliRunner().invoke(main, ["check", str(plan.parent / "out"), "--engine", engine])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("pair of emissions: prefill model tiny")


def test_two_plans_and_a_role_contradict(plan: Path) -> None:
    """A pair has both roles."""
    result = emit(plan, "sglang", str(plan), "--role", "decode")
    assert result.exit_code == 2
    assert "the two plans of a pair without --role" in result.stderr


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("version", ["0.0.1", "0.1.7rc1"])
def test_an_unknown_release_is_refused_with_those_known(engine: str, version: str, plan: Path) -> None:
    """Nobody has read its rules, and the line says whose --trust would take."""
    line = refusal(plan, engine, "--engine-version", version)
    found = find_engine(engine)
    known = ", ".join(release.version for release in found.RELEASES if not release.refused)
    assert f"{found.TITLE} {version} is not known here; known releases are {known}" in line
    assert f"--trust writes it by the rules of {found.RELEASES[0].version}" in line


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "vllm"])
def test_trust_goes_on_with_a_warning(engine: str, plan: Path) -> None:
    """By the rules of the last known release before it, which the first line of the notes says."""
    later = f"{find_engine(engine).VERSION}.9"
    assert "is not known here" in refusal(plan, engine, "--engine-version", later)
    result = emit(plan, engine, "--engine-version", later, "--trust")
    assert result.exit_code == 0, result.output
    assert f"{later} is not known here" in result.stdout
    assert "are assumed" in result.stdout
    assert f"{find_engine(engine).TITLE} {later}" in (plan.parent / "out" / "launch.sh").read_text()


@pytest.mark.parametrize("engine", NAMES)
def test_every_known_release_needs_no_trust(engine: str, plan: Path) -> None:
    """Whatever else may be in its way, it is no release that is not known."""
    for release in find_engine(engine).RELEASES:
        result = emit(plan, engine, "--engine-version", release.version)
        assert "not known here" not in result.output
        assert (result.exit_code == 2) or not release.refused


def test_trust_does_not_open_what_is_refused(plan: Path) -> None:
    """A release that is known to differ stays refused."""
    assert "scheduled for removal" in refusal(plan, "vllm_ascend", "--engine-version", "0.26", "--trust")
