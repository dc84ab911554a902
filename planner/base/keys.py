"""The keys of a mapping that came out of a file, and the types of their values."""

from typing import Any

from planner.base.errors import BadInput
from planner.base.shown import shown

Types = type | tuple[type, ...]  # that a value may have
Keys = dict[str, Types]

_WORDS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def check_keys(value: Any, where: str, required: Keys, optional: Keys | None = None) -> dict[str, Any]:
    """`value` as a mapping with these keys of these types.

    It has no others: a misspelt key must not pass in silence.
    """
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected a mapping with {', '.join(required)}; got {type(value).__name__}")
    known = {**required, **(optional or {})}
    for key, types in known.items():
        if key not in value:
            if key in required:
                raise BadInput(f"{where}: the key '{key}' is missing")
        elif not _is_one_of(types, value[key]):
            raise BadInput(f"{where}: '{key}' is {shown(value[key])}; expected {_type_names(types)}")
    unknown = set(value) - set(known)
    if unknown:
        listed = ", ".join(sorted(known))
        raise BadInput(f"{where}: unknown key {shown(min(map(str, unknown)))}; known are {listed}")
    return value


def _is_one_of(types: Types, value: Any) -> bool:
    """True and false are no numbers, though Python takes them for such."""
    if isinstance(value, bool) and types in (int, float, (int, float)):
        return False
    return isinstance(value, types)


def _type_names(types: Types) -> str:
    listed = types if isinstance(types, tuple) else (types,)
    return " or ".join(_WORDS.get(one, one.__name__) for one in listed)
