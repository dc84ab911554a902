"""The verdict of the judge of launches, as text, and what is known of an engine."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.engines import Engine
from planner.planning import Serving
from planner.report.tables import FOLDED, table_of


def verdict_value(serving: Serving) -> dict[str, Any]:
    """For JSON."""
    verdict, problem = serving.verdict, serving.problem
    return {
        "engine": verdict.engine,
        "version": verdict.version,
        "role": verdict.role,
        "model": problem.model.name,
        "machine": problem.topology.name,
        "gpus": problem.gpus,
        "redundant": problem.redundant,
        "phase": problem.workload.phase,
        "tokens_per_rank": problem.workload.tokens_per_rank,
        "transport": problem.workload.transport,
        "outcome": verdict.outcome,
        "findings": [
            {
                "rule": finding.rule,
                "refused": finding.refused,
                "text": finding.text,
                "flags": list(finding.flags),
                "source": finding.source,
            }
            for finding in verdict.findings
        ],
    }


def verdict_report(serving: Serving) -> RenderableType:
    """The answer first, then each rule with what answers it and where it is from."""
    value = verdict_value(serving)
    head = (
        f"{value['engine']} {value['version']}, {value['role']}: {value['model']} on {value['machine']} "
        f"({value['gpus']} GPUs, R = {value['redundant']}), {value['phase']}, "
        f"{value['tokens_per_rank']} tokens a rank: {value['outcome']}"
    )
    rows = [
        ("refused" if found["refused"] else "ok", found["text"], " ".join(found["flags"]), found["source"])
        for found in value["findings"]
    ]
    if not rows:
        return Text(head)
    names = ("", "rule", "flags", "source")
    return Group(Text(head), Text(""), table_of(names, rows, words=names, columns=FOLDED))


def given(engine: Engine) -> str:
    """The map that an engine reads, or the table that it makes a placement of; empty for flags alone."""
    return str(getattr(engine, "MAP_NAME", getattr(engine, "TABLE_NAME", "")))


def engine_value(name: str, engine: Engine) -> dict[str, Any]:
    """What is known of an engine, for JSON."""
    return {
        "name": name,
        "title": engine.TITLE,
        "version": engine.VERSION,
        "releases": [{"version": one.version, "source": one.source} for one in engine.RELEASES],
        "given": given(engine),
        "replica_rule": engine.REPLICA_RULE,
        "roles": list(engine.ROLES),
        "accelerator": engine.ACCELERATOR,
    }


def engines_table(values: list[dict[str, Any]]) -> Table:
    """A row for each engine."""
    names = ("engine", "release", "is given", "replica rule", "roles", "known by")
    rows = [
        (
            one["name"],
            one["version"],
            one["given"] or "flags",
            one["replica_rule"],
            ", ".join(one["roles"]),
            next(known["source"] for known in one["releases"] if known["version"] == one["version"]),
        )
        for one in values
    ]
    return table_of(names, rows, words=names, columns=FOLDED)
