"""Which page a file becomes, by the schema that it names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from planner.base import BadInput, read_json
from planner.page import compare_page, plan_page, sweep_page
from planner.page.validation import read_validation

PAGES: Mapping[str, Callable[[Any, str], str]] = {
    compare_page.SCHEMA: compare_page.compare_page,
    sweep_page.SCHEMA: sweep_page.sweep_page,
}


def page_of(file: Path, validation: Path | None = None) -> str:
    """The text of the page about a plan file, or about what `compare --json` or `sweep --json` printed.

    `validation`: what `moeplan validate --json` printed of the same plan. BadInput where a file is none of
    these.
    """
    value = read_json(file)
    made = (
        PAGES.get(value["schema"])
        if isinstance(value, dict) and isinstance(value.get("schema"), str)
        else None
    )
    if made is None:
        return plan_page.plan_page(file, read_validation(validation) if validation else None)
    if validation is not None:
        raise BadInput(f"--validation {validation}: belongs to a plan, and {file} is none")
    return made(value, str(file))
