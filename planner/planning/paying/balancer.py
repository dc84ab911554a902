"""Whose online balancer is judged, and what was asked of it in place of the engine's own flags."""

from dataclasses import dataclass, replace

from planner.base import BadInput
from planner.engines import OnlineBalancer, find_engine, online_balancer

ASSUMED_BALANCER = "vllm"  # whose settings stand in where no engine is named, or it has none that were read


@dataclass(frozen=True)
class Rebalancing:
    """How the engine rebalances, where it is not as its own flags are; None is the engine's own."""

    interval_steps: int | None = None
    look_back_steps: int | None = None
    stops: bool | None = None
    stall_seconds: float | None = None  # of one rearrangement, as the engine's log tells it
    window_steps: float | None = None  # steps that one window of the load stands for


def asked_balancer(engine: str | None, asked: Rebalancing) -> tuple[OnlineBalancer, str, tuple[str, ...]]:
    """The engine's balancer with what was asked, whose it is, and what must be said."""
    found = online_balancer(engine) if engine else None
    whose = engine if engine and found else ASSUMED_BALANCER
    found = found or online_balancer(whose)
    assert found is not None
    title = find_engine(whose).TITLE
    notes: tuple[str, ...] = ()
    if engine and whose != engine:
        notes = (f"no online balancer of {find_engine(engine).TITLE} was read: {title}'s settings are taken",)
    steps = {"--interval": asked.interval_steps, "--look-back": asked.look_back_steps}
    for flag, value in steps.items():
        if value is not None and value < 1:
            raise BadInput(f"{flag} {value}: it must be at least 1 step")
    if asked.stall_seconds is not None and not asked.stall_seconds >= 0:
        raise BadInput(f"--stall {asked.stall_seconds:g}: seconds that a rearrangement takes, 0 or more")
    balancer = replace(
        found,
        interval_steps=asked.interval_steps or found.interval_steps,
        window_steps=asked.look_back_steps
        or min(found.window_steps, asked.interval_steps or found.window_steps),
        stalls=found.stalls if asked.stops is None else asked.stops,
    )
    return balancer, title, notes
