"""Whether balancing pays, in sentences: the answer, what replicas and new plans are worth, and the ideal."""

from math import isinf

from planner.base import human_bytes, human_seconds
from planner.engines import find_engine
from planner.planning import WORTH_IT, Pays, PaysRow

LEAST_SHOWN = 0.0001  # a smaller share of the step would print as 0.00%


def answer_line(found: Pays) -> str:
    """The answer, on load that no plan has seen where there is some."""
    where = "held out" if found.series.unseen else "on the load it was fitted to"
    default, static, online, winner = _default_name(found), found.best_static, found.online, found.winner
    if winner is None:
        best = max((static, online), key=lambda row: row.tokens_per_s)
        gain = _change(found.gain(best))
        return f"Nothing pays: the best is {_title(best)}, with {gain} tokens/s than {default} ({where})."
    gain = f"{_change(found.gain(winner))} tokens/s than {default} ({where})"
    if winner is static:
        named = _title(static)
        return f"{named[0].upper()}{named[1:]} pays: {gain}; {_online_verdict(found)}: no."
    beside = f"{_change(found.gain(online, static))} than {_title(static)}"
    return f"Online EPLB pays: {gain}, {beside}, with {_price(online)} for rearranging."


def _online_verdict(found: Pays) -> str:
    online, static = found.online, found.best_static
    if not online.tokens_per_rank:
        return "online EPLB does not fit beside its buffer"
    if not online.rearranged:
        return f"online EPLB would come after the last window, and costs {_price(online)}"
    before = static.step_seconds / online.step_seconds * online.tokens_per_rank / static.tokens_per_rank - 1
    adds = f"adds {before:.1%}" if before >= 0 else f"is {-before:.1%} slower by itself"
    return f"online EPLB {adds} and costs {_price(online)}"


def _price(row: PaysRow) -> str:
    share = row.pause_seconds / row.step_seconds
    if share < LEAST_SHOWN:
        return f"less than {LEAST_SHOWN:.2%}"
    return f"{share:.2%}" if share < WORTH_IT else f"{share:.1%}"


def replica_lines(found: Pays) -> list[str]:
    """What replicas are worth beside the memory they take; none where no plan has any."""
    replicas, without = found.rows.get("static plan"), found.rows["permutation"]
    if replicas is None:
        return []
    if not replicas.tokens_per_rank:
        beside = f"({without.requests:,} fit at R = {without.redundant})"
        return [f"Replicas: R = {replicas.redundant} leaves no room for a request a rank {beside}."]
    gain = found.gain(replicas, without)
    verdict = "they pay" if gain >= WORTH_IT else "they do not pay"
    room = f"{replicas.requests:,} requests fit, not {without.requests:,}"
    takes = f"takes {human_bytes(replicas.memory_bytes)} of each GPU ({room})"
    has = f"has {_change(gain)} tokens/s than R = {without.redundant}"
    return [f"Replicas: R = {replicas.redundant} {takes} and {has}: {verdict}."]


def drift_line(found: Pays) -> str:
    """How a plan ages over windows, and after how many steps a new one has paid its moves."""
    drift = found.drift
    if not drift.lags:
        return "Drift: unknown, for there is one window; the figures are in-sample."
    last = drift.lags
    aged = (
        f"a plan of one window has max/mean {drift.max_over_mean_K[0]:.3f} on it, "
        f"{drift.max_over_mean_K[1]:.3f} on the next"
    )
    if last > 1:
        aged += f", {drift.max_over_mean_K[last]:.3f} {last} later"
    seconds = moving_seconds(found)
    after = drift.pays_after(seconds)
    if seconds <= 0:
        when = "would move nothing"
    elif after is None:
        when = f"has not paid its moves within {steps_text(last * drift.window_steps)}"
    elif isinf(after):
        when = "pays at no age: older plans are no worse"
    else:
        when = f"pays its moves ({human_seconds(seconds)}) after {steps_text(after)}"
    return f"Drift: {aged}; a new plan {when}."


def perfect_line(found: Pays) -> str:
    """How far the best that is loaded once is from balance in every step."""
    row = found.rows["perfect"]
    beside = f"{_change(found.gain(row, found.best_static))} tokens/s than {_title(found.best_static)}"
    return f"Perfect balance in every step (as MoonEP): {beside}; it {row.note}."


def moving_seconds(found: Pays) -> float:
    """What one rearrangement takes as the engine does it: nobody served, or links shared."""
    moved = found.online.rearrangement
    assert moved is not None
    return moved.stall_seconds if found.balancer.stalls else moved.link_seconds


def steps_text(count: float) -> str:
    """
    >>> steps_text(2000.4), steps_text(0.0312)
    ('2,000 steps', '0.031 steps')
    """
    return f"{count:,.0f} steps" if count >= 10 else f"{count:.2g} steps"


def _default_name(found: Pays) -> str:
    return f"{find_engine(found.engine).TITLE}'s default" if found.engine else "the default"


def _title(row: PaysRow) -> str:
    titles = {
        "permutation": f"a static plan without replicas (R = {row.redundant})",
        "static plan": f"a static plan (R = {row.redundant})",
        "EPLB once": f"EPLB's map, loaded once (R = {row.redundant})",
    }
    return titles.get(row.name, "online EPLB")


def _change(gain: float) -> str:
    return f"{abs(gain):.1%} {'more' if gain >= 0 else 'fewer'}"
