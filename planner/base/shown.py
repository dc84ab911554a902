"""Texts and values of others as we show and write them: no character of theirs may act on a terminal."""

import re
import reprlib
from typing import Any

LONGEST = 60  # characters
# Control characters, other breaks of lines than \n, what turns the order of writing, halves of characters.
ACTS = r"\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_ACTS = re.compile(f"[{ACTS}]")
_BREAKS = re.compile(r"\s*[\n\t]\s*")
_REPR = reprlib.Repr()
_REPR.maxlist = _REPR.maxdict = _REPR.maxtuple = 4
_REPR.maxlevel = 2
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = LONGEST


def harmless(text: str) -> str:
    r"""The text with each character that acts spelt out; line breaks and tabs stay.

    >>> harmless("a\x1b[2Jb\u202ec"), harmless("1\n2")
    ('a\\x1b[2Jb\\u202ec', '1\n2')
    """
    return _ACTS.sub(lambda found: _spelt(found[0]), text)


def flat(text: str) -> str:
    r"""The same as one line.

    >>> flat("a name\n ok\x07")
    'a name ok\\x07'
    """
    return harmless(_BREAKS.sub(" ", text))


def flattened(value: Any) -> Any:
    """Every text inside lists and mappings as one line; keys too."""
    if isinstance(value, str):
        return flat(value)
    if isinstance(value, dict):
        return {flattened(key): flattened(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)) and not (value and isinstance(value[0], (int, float))):
        return [flattened(entry) for entry in value]
    return value


def shown(value: object) -> str:
    r"""
    >>> shown("a\x1b[31m"), shown(10**400)[:8], shown([1] * 9)
    ("'a\\x1b[31m'", '10000000', '[1, 1, 1, 1, ...]')
    """
    try:
        text = _REPR.repr(value)
    except ValueError:  # a whole number of thousands of digits
        return f"a number of {value.bit_length():,} bits" if isinstance(value, int) else "a huge number"
    return one_line(text, 2 * LONGEST)


def one_line(text: object, longest: int = 2 * LONGEST) -> str:
    r"""What a library or a server says of a fault, short and without what acts.

    >>> one_line("two\n  lines\x1b[2J"), one_line("long" * 9, 12)
    ('two lines [2J', 'longlongl...')
    """
    found = str(text)[: 40 * longest]
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in found).split())
    return plain if len(plain) <= longest else f"{plain[: longest - 3]}..."


def _spelt(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
