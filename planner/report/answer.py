"""A plan in five lines: what is planned, whether it fits, what it gains, what limits it, what to run next.

A re-plan has a sixth: what moves.
"""

from pathlib import Path
from typing import NamedTuple

from planner.base import human_bytes, human_seconds
from planner.cost import Cost, ledger, whole_step
from planner.engines import find_engine, judge_launch, map_formats, plugin_engines
from planner.plan import Moves, Plan
from planner.problem import Problem
from planner.report.lines import joined, line
from planner.report.verdict import Contest, contest_of, nothing_wins, verdict
from planner.report.whole import duration, longest


class Asked(NamedTuple):
    """The words of the person's own command, for the next one; and the plan file, where there is one."""

    written: Path | None = None
    model: str | None = None
    topology: str | None = None


NOTHING = Asked()


class Answered(NamedTuple):
    """What the answer is made of: a plan just made has it, and so has a plan file."""

    problem: Problem
    engine: str | None
    judged: Cost  # on held-out load where there is some
    contest: Contest
    gap_seconds_share: float
    moves: str = ""  # the line of a re-plan


def plan_answer(plan: Plan, asked: Asked = NOTHING) -> list[str]:
    found = Answered(
        plan.problem,
        plan.origin.engine,
        plan.held_out or plan.fitted,
        contest_of(plan),
        plan.gap_seconds_share,
        moves_line(moved_of(plan.moves)) if plan.moves else "",
    )
    return answer_lines(found, asked)


def answer_lines(found: Answered, asked: Asked = NOTHING) -> list[str]:
    problem, engine = found.problem, found.engine
    return [
        question_line("Plan", problem, engine),
        fits_line(problem, engine),
        line("Gain", *verdict(found.contest)),
        *([found.moves] if found.moves else []),
        limit_line(problem, found.judged, engine, f"MoE {max(found.gap_seconds_share, 0):.1%} above bound"),
        line("Next", *_next(found, asked)),
    ]


def question_line(label: str, problem: Problem, engine: str | None) -> str:
    """The model by its whole name where there is room, else without its owner."""
    name, machine = problem.model.name, problem.topology.name
    size = f"EP{problem.gpus}, R = {problem.redundant}"
    told = (size, engine or "no engine", problem.workload.phase)
    offers = [
        offer
        for model in (name, name.split("/")[-1])
        for offer in joined((f"{model} on {machine}", *told), least=2)
    ]
    return line(label, *offers)


def fits_line(problem: Problem, engine: str | None) -> str:
    """How many requests at full context fit at once, beside those planned, and what is left for them."""
    found, workload = ledger(problem, engine), problem.workload
    groups = problem.gpus // workload.attention_tp
    tokens = f"{found.context_tokens:,} tokens" + ("" if workload.context_given else " (assumed)")
    holds, left = f"{found.requests * groups:,} requests of {tokens}", human_bytes(found.kv_left_bytes)
    if not found.fits:
        short = f"NO: a GPU is {human_bytes(found.missing_bytes)} short of KV cache"
        return line("Fits", f"{short}; it holds {holds}, {found.planned_requests * groups:,} planned", short)
    planned = f", {found.planned_requests * groups:,} planned" if not found.kv_floor_bytes else ""
    return line(
        "Fits", f"yes: {holds}{planned}; {left} of KV a GPU", f"yes: {holds}{planned}", f"yes: {holds}"
    )


def limit_line(problem: Problem, judged: Cost, engine: str | None, *ends: str) -> str:
    """The part of the whole step that takes longest, the busiest resource, and how far it is to go."""
    found = whole_step(problem, judged, engine)
    part, share = longest(found)
    short = f"{part}: {share:.0%} of {duration(found)}"
    gpu = problem.topology.gpus[0].model.name.split("-")[0]
    judged_on = f"{short} ({gpu})" if found.error_share is not None else f"{short} (error not judged)"
    link = f"busiest link {judged.bottleneck}"
    offers = joined([judged_on, *ends, link], least=1 + len(ends))
    return line("Limit", *offers, *joined([short, *ends]))


class Moved(NamedTuple):
    """What a re-plan moves, of all layers."""

    moved: int  # slots that get another expert than they have now
    slots: int
    total_bytes: float  # over the links
    seconds: float
    reads: int  # experts that have to be read from disk
    read_bytes: float


def moved_of(moves: Moves) -> Moved:
    reads = len(moves.transfers.reads)
    return Moved(moves.moved, moves.slots, moves.total_bytes, moves.seconds, reads, moves.read_bytes)


def moves_line(moved: Moved) -> str:
    """How many slots get another expert than they have now, and what has to be read from disk."""
    count = f"{moved.moved:,} of {moved.slots:,} slots" if moved.moved else "none"
    sent = f"{count}, {human_bytes(moved.total_bytes)} over the links"
    if not moved.reads:
        return line("Moves", f"{sent}, {human_seconds(moved.seconds)}", sent, count)
    read = f"{moved.reads:,} read from disk, {human_bytes(moved.read_bytes)}"
    return line("Moves", f"{sent}, {read}", f"{count}, {read}")


def _next(found: Answered, asked: Asked) -> list[str]:
    """The command that brings the answer closest to serving."""
    problem, engine = found.problem, found.engine
    written, model = asked.written, asked.model or problem.model.name
    question = f"--model {model} --topology {asked.topology or problem.topology.name}"
    if len(problem.load.unmeasured_layer_ids) == len(problem.load.layer_ids):
        server = f"--engine {engine}" if engine in ("sglang", "vllm") else "--engine sglang"
        command = f"moeplan record --server URL {server} --model {model} --text FILE -o load.npz"
        return [f"the load is assumed: {command}", command, "moeplan record --help: the load is assumed"]
    if nothing_wins(found.contest):
        return [f"moeplan sweep {question}", "moeplan sweep: other layouts of the same GPUs"]
    if engine is None:
        return [f"moeplan emit {written or 'plan.json'} --engine ENGINE -o out (moeplan engine list)"]
    if judge_launch(engine, problem).refused:
        return [
            f"moeplan engine show {engine} {question}",
            f"moeplan engine show {engine}: its launch would not stand",
        ]
    return _emit(problem, engine, written)


def _emit(problem: Problem, engine: str, written: Path | None) -> list[str]:
    command = f"moeplan emit {written or 'plan.json'} --engine {engine}"
    if engine in plugin_engines():
        command += " --plugin"
    elif engine in map_formats() and not find_engine(engine).reads_map(problem.model):
        return [
            f"{command} --flags-only -o out (it reads no map of this model)",
            f"{command} --flags-only -o out",
        ]
    done = f"{command} -o out"
    return [done] if written else [f"solve with -o plan.json, then {done}", done]
