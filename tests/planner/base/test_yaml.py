"""YAML is plain data, or is refused in one line."""

import re
from pathlib import Path

import pytest
import yaml

from planner.base import parse_yaml, read_yaml
from tests.planner.base.given import refused, saved

BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [*{before}, *{before}]\n"
    for before, after in zip("abcdefghijkl", "bcdefghijklm", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1, 2", r"line \d, column \d: not valid YAML"),
        ("a: 1\n b: 2", r"line 2, column \d: not valid YAML"),
        (BOMB, "line 2: YAML aliases are not accepted"),
        ("[" * 100_000, "nested too deeply|exceeded maximum nesting depth"),
        ("".join(" " * level + "-\n" for level in range(2000)), "nested too deeply"),
        ("a: !!python/object/apply:os.system ['touch harm']", "not valid YAML"),
        ("a: !!int forty", "the tag .* is not accepted"),
        ("a: !!timestamp 2026-99-99", "the tag .* is not accepted"),
        ("a: \x01", "not valid YAML"),
        ("? [1]\n: 2", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_damaged_yaml_is_refused(
    text: str, reason: str, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short, badly indented, aliases that unfold, a nest, code, and tags that do not fit; nothing is run.

    With PyYAML's C loader and without.
    """
    monkeypatch.chdir(tmp_path)
    if not compiled:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert re.search(reason, refused(read_yaml, saved(tmp_path, text)))
    assert not Path("harm").exists()


def test_plain_yaml_is_read() -> None:
    """An anchor without an alias is harmless, and nothing at all is None."""
    assert parse_yaml("a: &name 1\nb: [x, 2.5, true]", "text") == {"a": 1, "b": ["x", 2.5, True]}
    assert parse_yaml("# nothing", "text") is None
