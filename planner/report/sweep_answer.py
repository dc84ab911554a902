"""The plain answer of a sweep, before its table: what to run, what else was close, and why not wider."""

from planner.base import human_bytes, human_seconds
from planner.load import LoadProfile
from planner.planning import Figures, Ranked, Standing, Sweep, SweepRow


def answer_lines(found: Sweep, phase: str) -> list[str]:
    """At most five lines on one phase; the first is the answer."""
    rows, apart = found.phases[phase], f"{phase}: " if len(found.phases) > 1 else ""
    fitting = [one for one in rows if one.row.figures is not None]
    if not fitting:
        return [f"{apart}no layout fits. {nearest(rows)}"]
    best = _nearest_to(fitting, found.tpot_seconds)
    figures = figures_of(best.row)
    head = f"{named(best.row)}: {figures.tokens_per_s_per_gpu:,.0f} tokens/s/GPU, {_step(best.row)}"
    head = {
        Standing.MEETS: f"{apart}{head}",
        Standing.SLOW: f"{apart}no layout is within --tpot {_tpot(found)}; nearest is {head}",
        Standing.UNSERVED: f"{apart}no engine serves what fits; the fastest is {head}",
    }[best.standing]
    others = [*against(rows, best, wider=True), *against(rows, best, wider=False)]
    lines = ["; ".join([head, *others[:1]]), _about(best.row, figures), *_ties(rows, figures)]
    return [*lines, _served(figures), f"Next: {_command(found, best.row, figures)}"]


def _nearest_to(fitting: list[Ranked], tpot_seconds: float | None) -> Ranked:
    """The first row; where all are too slow the one whose step is shortest."""
    slow = [one for one in fitting if one.standing == Standing.SLOW]
    if fitting[0].standing != Standing.SLOW or tpot_seconds is None:
        return fitting[0]
    return min(slow, key=lambda one: figures_of(one.row).step.total_seconds)


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


def figures_of(row: SweepRow) -> Figures:
    assert row.figures is not None  # of a row that fits
    return row.figures


def named(row: SweepRow) -> str:
    """A row by its layout, like '2 x EP8, R = 0'."""
    shared = f", attention TP{row.point.attention_tp}" if row.point.attention_tp > 1 else ""
    redundant = row.figures.redundant if row.figures else row.point.redundant
    return f"{row.point.layout}, R = {redundant}{shared}"


def nearest(rows: list[Ranked]) -> str:
    """Why the widest layout does not fit: the one that holds the fewest experts a GPU."""
    widest = max(rows, key=lambda one: one.row.point.ep).row
    return f"Nearest is {widest.point.layout}: {widest.why_not}"


def against(rows: list[Ranked], best: Ranked, *, wider: bool) -> list[str]:
    """What is to be said of the best of the wider layouts, or of the narrower: one clause or none."""
    ep = best.row.point.ep
    others = [one for one in rows if one.row.point.machine == best.row.point.machine]
    others = [one for one in others if (one.row.point.ep > ep if wider else one.row.point.ep < ep)]
    if not others:
        return []
    if all(one.row.figures is None for one in others):
        near = min(others, key=lambda one: abs(one.row.point.ep - ep))
        return [f"{near.row.point.layout} does not fit"]
    return [_beside(others[0], figures_of(best.row), wider=wider)]  # ranked, and those that fit come first


def _beside(other: Ranked, best: Figures, *, wider: bool) -> str:
    layout, figures = other.row.point.layout, figures_of(other.row)
    if other.standing == Standing.UNSERVED:
        return f"no engine serves {layout}"
    full = figures.full_fabric
    if wider and full is not None and full > best.tokens_per_s_per_gpu:
        return f"{layout} needs a 1:1 fabric"
    if other.tie:
        return f"{layout} is as good within the model's error"
    change = figures.tokens_per_s_per_gpu / best.tokens_per_s_per_gpu - 1
    return f"{layout} {'gains nothing' if wider else 'is slower'} ({change:+.0%})"


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
    error = "" if best.step.error_share is None else f" ({best.step.error_share:.0%})"
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


def _step(row: SweepRow) -> str:
    name = "TPOT" if row.point.phase == "decode" else "a step"
    return f"{name} {human_seconds(figures_of(row).step.total_seconds)}"


def _tpot(found: Sweep) -> str:
    return human_seconds(found.tpot_seconds or 0.0)
