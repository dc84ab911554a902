"""Every reader and command that reads, on damaged files: an answer or one line. `make fuzz` tries longer."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, inputs, tried

READERS = [name for name in TARGETS if ":" in name or name in ("plan", "probe", "map")]


@pytest.mark.parametrize("name", list(TARGETS))
def test_any_damage_is_an_answer_or_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]

    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(content=inputs(target))
    def once(content: bytes) -> None:
        tried(target, content, tmp_path)

    once()


@given(name=st.sampled_from(READERS), data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_readers_are_tried_more_often(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tried(TARGETS[name], data.draw(inputs(TARGETS[name])), tmp_path_factory.getbasetemp())
