"""What a plan is after losses: the answer in the first lines, then a table for each kind of loss."""

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from planner.base import human_seconds
from planner.cost import AfterLoss
from planner.plan import loss_to_dict
from planner.planning import Losses, LossKind
from planner.report.loss import coverage, gain_texts, loss_table, or_none, rests_on


def losses_report(found: Losses) -> RenderableType:
    looked = [kind.found for kind in found.kinds if kind.found]
    tables: list[RenderableType] = []
    for one in looked:
        tables += [loss_table(one), Text("\n".join([*gain_texts(one), f"{coverage(one)}."]))]
    problem = found.problem
    rule, transport = problem.replica_rule, problem.workload.transport
    notes = [
        *(rests_on(rule, transport, one.error) for one in looked[:1]),
        "The first lines tell the worst loss; requests left out have no room in the KV cache of those left.",
        "R: with experts kept where they are; placed anew: on the GPUs left, what has no copy from disk.",
        *_engine_notes(found),
        *found.exposure.sentences,
        *(f"Note: {note}" for note in found.notes),
    ]
    return Group(Text("\n".join(_answer(found, looked))), *tables, Text("\n".join(notes), style="dim"))


def _answer(found: Losses, looked: list[AfterLoss]) -> list[str]:
    """What is lost with each kind of loss, what the engine does, which R survives, what to run next."""
    problem, now = found.problem, ""
    if looked:
        before = looked[0].before
        now = f": {before.tokens_per_s:,.0f} tokens/s, {human_seconds(before.whole_seconds)} a step"
    counts = [(kind.survive, kind.least_redundant) for kind in found.kinds]
    least = [f"{kind} {or_none(r.kept)} (placed anew: {or_none(r.replaced)})" for kind, r in counts]
    return [
        f"{problem.gpus} GPUs with R = {problem.redundant}, nothing lost{now}",
        *map(_kind, found.kinds),
        _engine(found),
        f"R that survives {'; '.join(least)}",
        f"Next: moeplan solve --model {problem.model.name} --from {found.plan_file} --without GPU,...",
    ]


def _kind(kind: LossKind) -> str:
    """One kind of loss in one line."""
    name, found = f"A{str(kind.survive)[1:]} lost", kind.found  # any ...
    if found is None:
        return f"{name}: {kind.why}"
    worst, before = found.slowest, found.before.tokens_per_s
    own, every = (f"{one.tokens_per_s / before:.1%}" for one in (worst.same_batch, worst.all_tokens))
    but = f" but {worst.unheld_requests:,}" if worst.unheld_requests else ""
    count = found.most_lost_experts
    gone = f"{count:,} expert{'s' if count > 1 else ''}" if count else "no expert"
    return f"{name}: {own} of tokens/s ({every} with all{but} requests), {gone} gone"


def _engine(found: Losses) -> str:
    if found.elastic is None:
        return "No engine is named: --engine says what one does after a loss"
    if not found.elastic.replaces:
        return f"{found.engine} stops when a rank is lost: figures are after a restart on the rest"
    return f"{found.engine} stops, or goes on where it was started with elastic EP (below)"


def _engine_notes(found: Losses) -> list[str]:
    if found.elastic is None:
        return []
    words = f"goes on with {' '.join(found.elastic.replaces_by)}: " if found.elastic.replaces else ""
    return [f"{found.engine} {words}{found.elastic.replaces_source}"]


def losses_to_dict(found: Losses) -> dict[str, Any]:
    """All of it for machines; experts that one place alone holds in full, the most load first."""
    kinds = [
        {
            "survive": kind.survive.word(),
            "least_redundant": asdict(kind.least_redundant),
            **(loss_to_dict(kind.found) if kind.found else {"none": kind.why}),
        }
        for kind in found.kinds
    ]
    return {
        "plan": str(found.plan_file),
        "engine": found.engine or None,
        "elastic": None if found.elastic is None else asdict(found.elastic),
        "losses": kinds,
        "exposure": asdict(found.exposure),
        "notes": list(found.notes),
    }
