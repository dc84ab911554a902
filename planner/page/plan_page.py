"""The page of a plan: the answer first, then each thing that a person may ask of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.page.document import document
from planner.page.html import tag
from planner.page.sections import sections_of
from planner.page.told import read_told


def plan_page(file: Path, validation: Mapping[str, Any] | None = None) -> str:
    """The text of the page. `validation`: what `moeplan validate --json` printed of the same plan.

    BadInput where the file is no plan.
    """
    told = read_told(file, validation)
    problem = told.problem
    title = f"{problem.model.name} on {problem.topology.name}: {problem.gpus} GPUs, R = {problem.redundant}"
    lead = tag(
        "p",
        "A plan of moeplan: which expert sits on which GPU, and what that is predicted to do.",
        class_="dim",
    )
    version = told.value["provenance"].get("moeplan", "?")
    made_from = tag("p", f"Made from {file.name} (SHA-256 {told.sha256}), written by moeplan {version}.")
    return document(title, lead, list(sections_of(told)), made_from)
