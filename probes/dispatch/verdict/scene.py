"""What the ranks' own times are held against: when each should have been done, layer by layer.

Shapes: C cells (a layer, a side and a phase each), G GPUs (one rank each), D links, N repeats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import Floats, Timed
from probes.dispatch.verdict.finish import Bools, Finish, Uses, finish, own_links_GD, uses_of

BUSY = 1.5  # times as long as the median rank's expert compute
LEAST_NOISE = 0.02  # of a rank's seconds: no law of links is nearer than that


@dataclass(frozen=True, eq=False)
class Exchange:
    """The messages of one cell, and what carries them."""

    phase: str
    bytes_GG: Floats
    bytes_per_s_R: Floats
    start_seconds: float


@dataclass(frozen=True, eq=False)
class Links:
    """What may be slow."""

    names: tuple[str, ...]
    tiers: tuple[str, ...]
    own_GD: Bools  # that nobody uses but to or from that rank


@dataclass(frozen=True, eq=False)
class Scene:
    """The cells of some phases."""

    exchanges: tuple[Exchange, ...]  # empty for compute
    sides: tuple[str, ...]  # of each cell
    phases: tuple[str, ...]
    links: Links
    seconds_CG: Floats  # measured: the median over the repeats
    start_C: Floats
    links_CDG: Floats  # seconds after which a rank is done with a link
    pairs_CGG: Floats  # and with its flows from and to another rank; the diagonal is the rank itself
    noise: float  # of a rank's seconds, relative
    busy: frozenset[str]  # ranks whose expert compute takes much longer than that of their peers

    @property
    def predicted_CG(self) -> Floats:
        predicted_CG: Floats = np.diagonal(self.pairs_CGG, axis1=1, axis2=2)
        return predicted_CG


def exchange_scene(timed: Sequence[Timed], topology: Topology, phases: Sequence[str]) -> Scene:
    """Dispatch and combine, over the links of the machine."""
    cells = [(one, phase) for one in timed for phase in phases]
    exchanges = tuple(
        Exchange(
            phase, one.expected.bytes_GG[phase], one.expected.bytes_per_s_R[phase], one.expected.start[phase]
        )
        for one, phase in cells
    )
    uses = uses_of(topology)
    links = Links(uses.links, uses.tiers, own_links_GD(uses))
    return _scene(cells, exchanges, links, finishes(uses, exchanges))


def compute_scene(timed: Sequence[Timed]) -> Scene:
    """Expert compute: what may be slow is a GPU."""
    gpus = len(timed[0].expected.compute_G)
    names = tuple(f"the GPU of rank {gpu}" for gpu in range(gpus))
    own = [Finish(np.diag(one.expected.compute_G), np.diag(one.expected.compute_G)) for one in timed]
    links = Links(names, ("compute",) * gpus, np.eye(gpus, dtype=bool))
    return _scene([(one, "compute") for one in timed], (), links, own)


def finishes(
    uses: Uses,
    exchanges: Sequence[Exchange],
    place_G: Sequence[int] | None = None,
    rates: Mapping[str, Floats] | None = None,
) -> list[Finish]:
    """Of every cell; `rates` by phase where they are not the cell's own."""
    return [
        finish(uses, one.bytes_GG, one.bytes_per_s_R if rates is None else rates[one.phase], place_G)
        for one in exchanges
    ]


def _scene(
    cells: Sequence[tuple[Timed, str]], exchanges: tuple[Exchange, ...], links: Links, found: Sequence[Finish]
) -> Scene:
    seconds = [one.seconds_GN[phase] for one, phase in cells]
    return Scene(
        exchanges,
        tuple(one.side for one, _ in cells),
        tuple(phase for _, phase in cells),
        links,
        np.array([np.median(seconds_GN, axis=1) for seconds_GN in seconds]),
        np.array([one.expected.start.get(phase, 0.0) for one, phase in cells]),
        np.array([one.seconds_DG for one in found]),
        np.array([one.seconds_GG for one in found]),
        max(LEAST_NOISE, float(np.mean([noise_of(seconds_GN.max(axis=0)) for seconds_GN in seconds]))),
        _busy([one for one, _ in cells]),
    )


def _busy(timed: Sequence[Timed]) -> frozenset[str]:
    """By the median over all layers and sides, which load the ranks differently."""
    compute_CG = np.array([np.median(one.seconds_GN["compute"], axis=1) for one in timed])
    share_CG = compute_CG / np.maximum(np.median(compute_CG, axis=1, keepdims=True), 1e-12)
    slow_G = np.flatnonzero(np.median(share_CG, axis=0) >= BUSY)
    return frozenset(f"rank {rank}" for rank in slow_G.tolist())


def spread_of(seconds_N: Floats) -> float:
    """(p95 - p5) / median."""
    low, middle, high = np.quantile(seconds_N, (0.05, 0.5, 0.95))
    return float((high - low) / middle) if middle else 0.0


def noise_of(seconds_N: Floats) -> float:
    """How far the median of N repeats may be off: spread / √N · (1 + 2 / N), as few show little spread.

    That is 2.1 to 2.6 standard errors of 3 to 10 repeats that scatter normally. Of one, nothing is known.
    """
    repeats = len(seconds_N)
    return spread_of(seconds_N) / float(np.sqrt(repeats)) * (1 + 2 / repeats) if repeats > 1 else float("inf")
