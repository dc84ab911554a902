"""A text file becomes prompts: of lines, of pieces, and none of white space."""

from pathlib import Path

import pytest

from planner.base import BadInput
from probes.routing.prompts import cut, read_prompts
from tests.probes.routing.toy import TEXT


def test_prompts_of_json_lines(tmp_path: Path) -> None:
    """A text, or a mapping with 'prompt' or 'text'; blank lines do not count; the first N if N is given."""
    file = tmp_path / "p.jsonl"
    file.write_text('"one"\n\n{"prompt": "two\\nlines", "id": 3}\n{"text": "three"}\n')
    assert read_prompts(file) == ("one", "two\nlines", "three")
    assert read_prompts(file, most=1) == ("one",)
    file.write_text('"one"\n{"messages": []}\n')
    with pytest.raises(BadInput, match="line 2 is no prompt"):
        read_prompts(file)


def test_cut_loses_nothing() -> None:
    """Pieces join to the text again, none is too long, and a word longer than a piece is cut."""
    for characters in (1, 7, 40, 500):
        pieces = cut(TEXT, characters)
        assert "".join(pieces) == TEXT
        assert max(map(len, pieces)) <= characters


def test_text_of_white_space(tmp_path: Path) -> None:
    """Nothing to route."""
    (tmp_path / "t.txt").write_text(" \n\n ")
    with pytest.raises(BadInput, match="white space only"):
        read_prompts(tmp_path / "t.txt")
