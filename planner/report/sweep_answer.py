"""The plain answer of a sweep, before its table: what to run, what else was close, and why not wider."""

from planner.base import human_bytes, human_seconds
from planner.load import LoadProfile
from planner.planning import Figures, Ranked, Standing, Sweep, SweepRow
from planner.report.sweep_others import against, ep_or_not, figures_of, named, step_of


def answer_lines(found: Sweep, phase: str) -> list[str]:
    """At most five lines on one phase; the first is the answer."""
    rows, apart = found.phases[phase], f"{phase}: " if len(found.phases) > 1 else ""
    fitting = [one for one in rows if one.row.figures is not None]
    if not fitting:
        return [f"{apart}no layout fits. {nearest(rows)}"]
    best = _nearest_to(fitting, found.tpot_seconds)
    figures = figures_of(best.row)
    head = f"{named(best.row)}: {figures.tokens_per_s_per_gpu:,.0f} tokens/s/GPU, {step_of(best.row)}"
    head = {
        Standing.MEETS: f"{apart}{head}",
        Standing.SLOW: f"{apart}no layout is within --tpot {_tpot(found)}; nearest is {head}",
        Standing.UNSERVED: f"{apart}no engine serves what fits; the fastest is {head}",
    }[best.standing]
    others = [*against(rows, best, wider=True), *against(rows, best, wider=False)]
    lines = [
        "; ".join([head, *others[:1], *ep_or_not(rows, best)]),
        _about(best.row, figures),
        *_ties(rows, figures),
    ]
    return [*lines, *_next(found, best.row, figures)]


def _nearest_to(fitting: list[Ranked], tpot_seconds: float | None) -> Ranked:
    """The first row; where all are too slow the one whose step is shortest."""
    slow = [one for one in fitting if one.standing == Standing.SLOW]
    if fitting[0].standing != Standing.SLOW or tpot_seconds is None:
        return fitting[0]
    return min(slow, key=lambda one: figures_of(one.row).step.total_seconds)


def _next(found: Sweep, row: SweepRow, figures: Figures) -> list[str]:
    """Who serves it, and what to run."""
    launches = [f"{one.engine} {one.launch}" for one in figures.services if one.launch]
    if launches:
        with_ep = next((one.row for one in found.phases[row.point.phase] if _to_plan(one)), None)
        command = [f"With EP: {_command(found, with_ep, figures_of(with_ep))}"] if with_ep else []
        return [f"Next: no plan needed: {'; '.join(launches)}.", *command]
    if row.point.sliced:
        return [_served(figures)]
    return [_served(figures), f"Next: {_command(found, row, figures)}"]


def _to_plan(one: Ranked) -> bool:
    return one.standing == Standing.MEETS and not one.row.point.sliced


def _command(found: Sweep, row: SweepRow, figures: Figures) -> str:
    """What makes the plan of a row."""
    point, asked = row.point, found.asked
    files = () if isinstance(asked.load_files, LoadProfile) else asked.load_files
    model = asked.model if isinstance(asked.model, str) else asked.model.name
    given = {"--context": asked.context, "--isl": asked.isl, "--osl": asked.osl, "--engine": point.engine}
    given |= {"--tokens-per-rank": point.tokens_per_rank, "--transport": point.transport}
    given |= {"--phase": point.phase if point.phase != "decode" else None}
    given |= {"--attention-tp": point.attention_tp if point.attention_tp > 1 else None}
    words = ["moeplan solve --model", model, "--topology", point.machine, "--ep", str(point.ep)]
    words += [
        "--redundant",
        str(figures.redundant),
        *(word for file in files for word in ("--load", str(file))),
    ]
    return " ".join([*words, *(f"{flag} {value}" for flag, value in given.items() if value is not None)])


def nearest(rows: list[Ranked]) -> str:
    """Why the widest layout does not fit: the one that holds the fewest experts a GPU."""
    widest = max(rows, key=lambda one: (one.row.point.ep, not one.row.point.sliced)).row
    return f"Nearest is {widest.point.layout}: {widest.why_not}"


def _about(row: SweepRow, figures: Figures) -> str:
    left = human_bytes(figures.memory_left_bytes)
    said = [f"{row.point.machine}, {figures.tokens_per_rank} tokens a GPU: limited by {figures.bottleneck}"]
    said.append(f"{left} of a GPU left")
    said.append(f"room for {figures.requests:,} requests on {_gpus(row)}")
    if figures.nics_halved is not None:
        said.append(f"NICs at half: {figures.nics_halved / figures.tokens_per_s_per_gpu - 1:+.0%}")
    lost = "any loss stops a group" if not figures.survives else f"survives {figures.survives} lost GPUs"
    said.append(
        lost + (f", {row.point.groups - 1} of {row.point.groups} go on" if row.point.groups > 1 else "")
    )
    return "; ".join(said) + "."


def _gpus(row: SweepRow) -> str:
    shared = row.point.attention_tp
    return "each GPU" if shared == 1 else f"each {shared} GPUs"


def _ties(rows: list[Ranked], best: Figures) -> list[str]:
    tied = list(dict.fromkeys(named(one.row) for one in rows if one.tie))
    if not tied:
        return []
    shares = [figures_of(one.row).step.error_share for one in rows if one.tie] + [best.step.error_share]
    known = [share for share in shares if share is not None]
    error = f" ({max(known):.0%})" if known else ""
    more = f" and {len(tied) - 3} more" if len(tied) > 3 else ""
    return [f"As good within the model's error{error}: {'; '.join(tied[:3])}{more}."]


def _served(figures: Figures) -> str:
    by_plan = [service.engine for service in figures.services if service.serves and not service.own]
    own = [service.engine for service in figures.services if service.serves and service.own]
    if not by_plan and not own:
        return f"No engine serves it: {figures.services[0].why}."
    said = [f"Served by {', '.join(by_plan)}"] if by_plan else []
    said += [f"by their own placement: {', '.join(own)}"] if own else []
    return "; ".join(said) + "."


def _tpot(found: Sweep) -> str:
    return human_seconds(found.tpot_seconds or 0.0)
