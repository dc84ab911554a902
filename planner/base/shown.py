"""Values and texts of others as a message shows them: short, one line, no character that could act."""

import reprlib

LONGEST = 60  # characters
_REPR = reprlib.Repr()
_REPR.maxlist = _REPR.maxdict = _REPR.maxtuple = 4
_REPR.maxlevel = 2
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = LONGEST


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
    r"""What a library says of a fault, or any text of others.

    >>> one_line("two\n  lines\x1b[2J"), one_line("long" * 9, 12)
    ('two lines [2J', 'longlongl...')
    """
    found = str(text)[: 40 * longest]
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in found).split())
    return plain if len(plain) <= longest else f"{plain[: longest - 3]}..."
