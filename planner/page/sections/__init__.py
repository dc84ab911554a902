"""The sections of a plan's page, one file each, in the order in which they are read."""

from collections.abc import Iterator
from importlib import import_module

from planner.page.document import Section
from planner.page.told import Told

ORDER = (
    "answer",
    "unseen",
    "step",
    "balance",
    "topology",
    "traffic",
    "bound",
    "redundancy",
    "memory",
    "replicas",
    "popularity",
    "coactivation",
    "moves",
    "losses",
    "validation",
    "evidence",
    "launch",
)


def sections_of(told: Told) -> Iterator[Section]:
    """Those that have something to tell."""
    for name in ORDER:
        module = import_module(f"planner.page.sections.{name}")
        content = module.section(told)
        if content is not None:
            yield Section(name, module.TITLE, content)
