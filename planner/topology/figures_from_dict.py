"""The small parts of a topology file: rates, quantities, evidence."""

from collections.abc import Callable
from typing import Any

from planner.base import BadInput, Evidence, Rate, parse_bandwidth


def rates_of(entry: Any, count: int, where: str) -> tuple[Rate, ...]:
    """A list with one rate for each GPU, or one rate for all."""
    if isinstance(entry, list):
        return tuple(rate_of(one, f"{where}[{index}]") for index, one in enumerate(entry))
    return (rate_of(entry, where),) * count


def rate_of(entry: Any, where: str) -> Rate:
    """With what was stated of it, where a measurement took its place."""
    value = quantity_of(parse_bandwidth, entry["value"], where)
    stated = rate_of(entry["stated"], f"{where}: stated") if "stated" in entry else None
    try:
        return Rate(value, evidence_of(entry, where), stated)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def evidence_of(entry: dict[str, Any], where: str) -> Evidence:
    try:
        return Evidence(entry["evidence"], entry["source"])
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def quantity_of(parse: Callable[[object], float], value: Any, where: str) -> float:
    try:
        return float(parse(value))
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
