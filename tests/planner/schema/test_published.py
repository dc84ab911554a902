"""What `moeplan schema` prints is what we read by, and what we write."""

import json
import math
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.cli import main
from planner.cli.schema import NAMES, kinds
from planner.schema import published
from tests.mutations import damaged
from tests.planner.schema.seeds import seeds


def _strict(kind: str) -> Any:
    """A validator that takes true and 3.0 for no whole numbers, as our reader does."""
    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int).redefine(
        "number", lambda _, value: type(value) in (int, float) and math.isfinite(value)
    )
    return jsonschema.validators.extend(base, type_checker=checker)(published(kind, kinds()[kind]))


VALIDATORS = {kind: _strict(kind) for kind in NAMES}


@pytest.mark.parametrize("kind", NAMES)
def test_the_command_prints_a_valid_schema(kind: str) -> None:
    printed = CliRunner().invoke(main, ["schema", kind])
    assert printed.exit_code == 0
    found = json.loads(printed.output)
    assert found["$schema"].endswith("2020-12/schema")
    jsonschema.Draft202012Validator.check_schema(found)


@pytest.mark.parametrize("kind", NAMES)
def test_what_we_write_fits_the_schema(kind: str) -> None:
    """By our own reader, and by another's."""
    kinds()[kind].check(seeds()[kind], "file")
    VALIDATORS[kind].validate(seeds()[kind])


@given(data=st.data(), kind=st.sampled_from(NAMES))
@settings(max_examples=150, deadline=None)
def test_the_reader_and_the_published_schema_agree(data: st.DataObject, kind: str) -> None:
    """A damaged value is refused by both, or by neither."""
    value = data.draw(damaged(seeds()[kind]))
    said = _refusal(kind, value)
    ours = not said
    assert ours or (said.startswith("file: ") and said.isprintable())
    if _says_more_than_a_schema(value):
        return
    theirs = VALIDATORS[kind].is_valid(value)
    if kind == "load":  # rows of one length, and numbers in them, are told later: by window, layer and expert
        assert ours or not theirs
        return
    assert ours == theirs, next(iter(VALIDATORS[kind].iter_errors(value)), None)


def _refusal(kind: str, value: Any) -> str:
    try:
        kinds()[kind].check(value, "file")
    except BadInput as fault:
        return str(fault)
    return ""


def _says_more_than_a_schema(value: Any) -> bool:
    """NaN and infinities, which no JSON Schema knows, and numbers that figures of no use may not reach."""
    if isinstance(value, dict):
        return any(map(_says_more_than_a_schema, value.values()))
    if isinstance(value, list):
        return any(map(_says_more_than_a_schema, value))
    return isinstance(value, (int, float)) and not abs(value) < 2**63


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("moeplan/plan/2", "a newer moeplan wrote it: update this one"),
        ("moeplan/plan/0", "an older moeplan wrote it, or make it anew: `moeplan solve -o plan.json`"),
        ("moeplan/probe/1", "its schema is 'moeplan/probe/1', expected 'moeplan/plan/1'"),
        (None, "its schema is 'None'"),
        (7, "its schema is '7'"),
    ],
)
def test_another_kind_or_version_is_refused_by_its_name(schema: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        kinds()["plan"].check({**seeds()["plan"], "schema": schema}, "file")
