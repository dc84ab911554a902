"""Releases: which known one holds for a version, and which versions are refused."""

import pytest

from planner.base import BadInput
from planner.engines import engine_names, find_engine
from planner.engines.common.releases import Release, find_release, version_key
from tests.planner.engines.examples import TINY, machine, question, random_placement

TABLE = (
    Release("1.0", "read"),
    Release("1.2", "run"),
    Release("2.0", "read", refused="it reads other files"),
)


@pytest.mark.parametrize(
    ("version", "found", "assumed"),
    [
        ("1.0", "1.0", False),
        ("v1.2.0", "1.2", False),
        ("1.2rc1", "1.2", False),
        ("0.9", "1.0", True),
        ("1.1.7", "1.0", True),
        ("1.10", "1.2", True),
    ],
)
def test_the_newest_release_that_is_no_later_holds(version: str, found: str, *, assumed: bool) -> None:
    """An exact one without a word, another with a warning of what is assumed; 1.10 is later than 1.2."""
    release, notes = find_release("Engine", TABLE, version)
    assert release.version == found
    assert bool(notes) == assumed
    assert all(f"the rules of {found} are assumed" in note for note in notes)


@pytest.mark.parametrize("version", ["2.0", "2.0.1", "3"])
def test_a_release_that_is_known_to_differ_is_refused(version: str) -> None:
    """The message says why, and which are known."""
    with pytest.raises(BadInput, match=r"it reads other files; known releases are 1\.0, 1\.2"):
        find_release("Engine", TABLE, version)


@pytest.mark.parametrize("version", ["", "latest", "1..2", "1.2;ls", "1.2 3", "-1"])
def test_what_is_no_release_number_is_refused(version: str) -> None:
    """One line that shows the value."""
    with pytest.raises(BadInput, match="is not a release number"):
        version_key(version)


@pytest.mark.parametrize("name", engine_names())
def test_every_engine_has_a_table_in_order(name: str) -> None:
    """Oldest first, the engine's own version among them, and each says where its rules are from."""
    engine = find_engine(name)
    keys = [version_key(release.version) for release in engine.RELEASES]
    assert keys == sorted(set(keys))
    assert find_release(engine.TITLE, engine.RELEASES, None)[0].version == engine.VERSION
    assert all(release.source for release in engine.RELEASES)


def test_an_emission_names_the_version_it_is_for() -> None:
    """The title of launch.sh has the version that was asked for; the note says whose rules were assumed."""
    emission = find_engine("vllm").emit(
        random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m", "0.40"
    )
    assert "vLLM 0.40" in emission.launch
    assert "the rules of 0.33.0 are assumed" in emission.notes[0]
