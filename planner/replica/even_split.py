"""`even`: every replica gets the same share. What balancers assume."""

from collections.abc import Iterator

from planner.placement import Placement
from planner.replica.situation import Shares, Situation


def even(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """1 / n each; no engine does exactly this, several come to it on many tokens."""
    replicas_LE = placement.replicas_LE(situation.model.experts)
    for expert_P, replicas_E in zip(placement.expert_LP, replicas_LE, strict=True):
        yield 1.0 / replicas_E[expert_P][None, :]
