"""What is heard of a running server: windows of counts as they come, and whether each was heard before.

Shapes: W windows, L layers, E experts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from planner.load.doubts import check_shares, check_totals
from planner.load.profile import Counts, LoadProfile
from planner.load.recording import Array, Recording, with_windows
from planner.load.rows import fit_counts
from planner.load.unmeasured import fill_layers
from planner.model import ModelSpec


@dataclass(frozen=True, eq=False)
class Window:
    """Assignments counted over a while, by the ascending ids of the measured layers.

    `map_sha256`: of the map that the server says it serves by; empty where it says none.
    """

    tokens_LE: Counts
    layer_ids: tuple[int, ...]
    map_sha256: str = ""


@dataclass(frozen=True, eq=False)
class Heard:
    """One piece of news. All of it is kept, or nothing: what is not kept is told again."""

    windows: tuple[Window, ...] = ()
    keys: tuple[str, ...] = ()  # of what was looked at: it is not to be told again
    counters: Mapping[str, Counts] = field(default_factory=dict)  # as they stand, by name
    present: tuple[str, ...] | None = None  # keys that can still come: others may be forgotten
    signals: Mapping[str, float] = field(default_factory=dict)  # what the server says of its balance
    said: tuple[str, ...] = ()  # what was left out, a line each
    notes: tuple[str, ...] = ()  # what happened besides, a line each
    more: int = 0  # windows that are about to be told behind these: what falls out by then need not be kept


class Known(Protocol):
    """What was heard before."""

    def has(self, key: str) -> bool:
        """Whether this was told."""

    def counter(self, name: str) -> Counts | None:
        """How a counter stood; None where it was never told."""


class Source(Protocol):
    """A running server, or a folder that it writes to."""

    def poll(self, known: Known) -> Iterator[Heard]:
        """What is new, in the order in which it came, piece by piece. BadInput where nobody answers."""


def placed_counts(
    counts: Array, model: ModelSpec, where: str, layer_ids: tuple[int, ...] | None = None
) -> tuple[Counts, tuple[int, ...]]:
    """(tokens_WLE, ascending ids of its layers) of counts [layer, expert] or of several windows of them.

    BadInput where they are not of `model`, or no traffic can look like that; rows without ids are its MoE or
    all its decoder layers.
    """
    tokens_WLE, ids, _ = fit_counts(Recording(where, with_windows(counts), layer_ids=layer_ids), model)
    if tokens_WLE.any():  # an idle server counts nothing
        check_totals(where, tokens_WLE, ids)
        check_shares(where, tokens_WLE, ids, model, dumped=True)
    return tokens_WLE, ids


def load_of_counts(
    tokens_WLE: Counts, layer_ids: tuple[int, ...], model: ModelSpec, source: str
) -> LoadProfile:
    """Windows of some layers as a load of all; layers that were not measured get the mean share."""
    filled_WLE, missing, notes = fill_layers(tokens_WLE, layer_ids, model)
    return LoadProfile(
        filled_WLE, model.placed_layer_ids, source, unmeasured_layer_ids=missing, notes=tuple(notes)
    )


def since(before: Counts | None, now: Counts) -> tuple[Counts, bool]:
    """(counts since a counter stood at `before`, whether it began anew since).

    A counter that is lower anywhere began anew, with its server: what it shows was counted since then.

    >>> import numpy as np
    >>> [since(np.array([5, 1]), np.array(now))[0].tolist() for now in ([6, 1], [2, 3])]
    [[1, 0], [2, 3]]
    """
    if before is None or before.shape != now.shape:
        return now, False
    if (now < before).any():
        return now, True
    return now - before, False
