"""Things side by side: one answer, a line for each, and a table of figures down and things across."""

from string import ascii_uppercase
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.bounds import PARTS
from planner.plan import Moves, cost_to_dict, memory_to_dict
from planner.planning import Comparison, Side
from planner.report.answer import question_line
from planner.report.lines import fullest, joined, line
from planner.report.tables import table_of
from planner.report.whole import duration


def comparison_report(found: Comparison) -> RenderableType:
    best = found.sides[found.best]
    named = [
        line(_letter(at), f"{side.name}, {_setting(side)}", side.name) for at, side in enumerate(found.sides)
    ]
    lines = [
        answer_line(found),
        question_line("Of", best.problem, best.engine),
        *named,
        line("Load", found.load),
    ]
    notes = Text("\n".join(f"Note: {note}" for note in [*_basis(found), *found.notes]), style="dim")
    return Group(Text("\n".join(lines)), Text(""), comparison_table(found), Text(""), notes)


def answer_line(found: Comparison) -> str:
    """Which serves most, by how much over the first, and what differs beside it."""
    where = "held-out load" if found.unseen else "the load of the first"
    best, others = found.best, [at for at in range(len(found.sides)) if at != found.best]
    over = 0 if best else max(others, key=lambda at: found.sides[at].tokens_per_s_per_gpu)
    if found.tie(best, over):
        both = f"{_letter(best)} and {_letter(over)}"
        head = f"A tie: {both} are {abs(found.gain(best, over)):.1%} apart on {where}"
    else:
        head = f"{_letter(best)} is {found.gain(best, over):.1%} faster than {_letter(over)} on {where}"
    other = found.sides[best or over]
    differ = (
        [f"{other.differing:,} of {other.placement.expert_LP.size:,} slots differ"] if other.differing else []
    )
    return line("Best", *joined([head, *differ, *_memory(found, best, over)]))


def _memory(found: Comparison, one: int, other: int) -> list[str]:
    """Who keeps more for the KV cache, where that is worth saying."""
    kept = [found.sides[at].kv_left_bytes for at in (one, other)]
    more = one if kept[0] > kept[1] else other
    difference = abs(kept[0] - kept[1])
    return [f"{_letter(more)} keeps {human_bytes(difference)} more"] if difference >= 1e8 else []


def comparison_table(found: Comparison) -> Table:
    """Seconds are of a step; of all MoE layers where no part of the whole step is named."""
    columns = {_letter(at): _figures(found, at) for at in range(len(found.sides))}
    names = list(next(iter(columns.values())))
    rows = [(name, *(cells[name] for cells in columns.values())) for name in names]
    return table_of(("", *columns), rows, words=("",))


def _figures(found: Comparison, at: int) -> dict[str, str]:
    side = found.sides[at]
    whole, cost, moves = side.whole, side.cost, side.moves
    by_part = {f"MoE {part}": float(getattr(cost, f"{part}_seconds_L").sum()) for part in PARTS}
    return {
        "tokens/s a GPU": f"{side.tokens_per_s_per_gpu:,.0f}",
        "against A": f"{found.gain(at):+.1%}" + (" (tie)" if at and found.tie(at) else ""),
        "whole step": duration(whole),
        "first token": human_seconds(whole.ttft_seconds),
        **{name: human_seconds(seconds) for name, seconds in by_part.items()},
        "max/mean": f"{cost.max_over_mean:.4f}",
        "cross-node": f"{cost.cross_node_share:.1%}",
        "bottleneck": cost.bottleneck,
        "R": str(side.problem.redundant),
        "GPUs": str(side.problem.gpus),
        "experts a GPU": human_bytes(side.problem.slots_per_gpu * side.problem.slot_bytes),
        "left for the KV cache": human_bytes(side.kv_left_bytes),
        "new slots beside A": "-" if side.differing is None else f"{side.differing:,}",
        "moves from A": _moves(moves),
    }


def _moves(moves: Moves | None) -> str:
    if moves is None:
        return "-"
    told = f"{human_bytes(moves.total_bytes)} in {human_seconds(moves.seconds)}"
    return told if len(moves.transfers) else "none"


def _basis(found: Comparison) -> list[str]:
    errors = fullest(side.whole.error for side in found.sides)
    rule = "a tie: within the model's error of the whole step; below 1 % where only placements differ"
    return [
        f"{rule}, since most of the error is common to them",
        *(f"whole step: {error}" for error in errors),
    ]


def _setting(side: Side) -> str:
    problem = side.problem
    rule = f"{problem.replica_rule}, {problem.workload.transport}"
    return f"{problem.topology.name}, {side.engine or 'no engine'}, {rule}"


def _letter(at: int) -> str:
    return ascii_uppercase[at] if at < len(ascii_uppercase) else f"#{at + 1}"


def comparison_to_dict(found: Comparison) -> dict[str, Any]:
    """The same figures for machines; SI units."""
    return {
        "schema": "moeplan/compare/1",
        "answer": " ".join(answer_line(found).split()[1:]),
        "best": found.sides[found.best].name,
        "varied": found.varied,
        "load": found.load,
        "unseen": found.unseen,
        "sides": [_side_to_dict(found, at) for at in range(len(found.sides))],
        "notes": list(found.notes),
    }


def _side_to_dict(found: Comparison, at: int) -> dict[str, Any]:
    side = found.sides[at]
    moves = side.moves
    return {
        "name": side.name,
        "topology": side.problem.topology.name,
        "gpus": side.problem.gpus,
        "redundant": side.problem.redundant,
        "engine": side.engine,
        "replica_rule": side.problem.replica_rule,
        "transport": side.problem.workload.transport,
        "tokens_per_s_per_gpu": side.tokens_per_s_per_gpu,
        "gain": found.gain(at),
        "tie": found.tie(at),
        "step_seconds": side.whole.total_seconds,
        "seconds": dict(side.whole.seconds),
        "ttft_seconds": side.whole.ttft_seconds,
        "error_share": side.whole.error_share,
        "error": side.whole.error,
        "moe": cost_to_dict(side.cost, layers=False),
        "memory": memory_to_dict(side.problem, side.engine),
        "differing_slots": side.differing,
        "moves": {"bytes": moves.total_bytes, "seconds": moves.seconds, "slots": len(moves.transfers)}
        if moves
        else None,
    }
