"""The most likely cause of times that are not as predicted: suspects compared on every rank's seconds.

Each suspect's free figure is fitted; the one whose prediction leaves the least is named, and the next beside
it, with a price for every figure fitted and every suspect of its kind that was tried (a Bayesian information
criterion). A common bias within the tolerance is granted to all of them: the law itself may be off by that.

Shapes: C cells, G GPUs (one rank each).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import Floats
from probes.dispatch.verdict.scene import Scene
from probes.dispatch.verdict.suspects import Suspect, suspects

SHARES = np.geomspace(0.02, 4.0, 80)  # of its rate, what a suspect may reach
SLOWER = SHARES[SHARES < 0.95]
LATER = np.geomspace(0.02, 20.0, 60)  # start-up, in medians of all ranks' seconds
TOLD_APART = 6.0  # of the criterion: 20 : 1 in likelihood
WORSE = 1.2  # times the errors of the best: the next best is told with its own
REFINED = 1.05  # the grid's step
REST = (
    0.2  # of the errors without a fault: 4 % of their squares, as ranks that wait for others are less exact
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A suspect, its figure, what its prediction leaves (root mean square of relative errors), its score."""

    suspect: Suspect
    x: float
    left: float
    score: float  # lower is likelier
    seconds_CG: Floats


@dataclass(frozen=True, eq=False)
class Finding:
    """The likeliest; `alike` are those that the times do not tell apart from it, `next` one that they do."""

    best: Fitted
    alike: tuple[Fitted, ...]
    next: Fitted | None
    left_without: float  # what a machine without a fault leaves
    explains: bool  # what it leaves is within the tolerance, or next to nothing of what there was

    @property
    def of_links(self) -> bool:
        """Whether what is slow is a resource that the topology tells of."""
        return self.explains and self.best.suspect.kind in ("none", "link", "tier")


def find_cause(scene: Scene, topology: Topology, tolerance: float) -> Finding:
    fitted = sorted(
        (_fit(scene, one, tolerance) for one in suspects(scene, topology)), key=lambda one: one.score
    )
    best = fitted[0]
    none = next(one for one in fitted if one.suspect.kind == "none")
    alike = tuple(one for one in fitted[1:] if one.score - best.score < TOLD_APART)
    others = [one for one in fitted[1:] if one not in alike and one.left > WORSE * best.left]
    explains = best.left <= max(tolerance, 2 * scene.noise, none.left * REST)
    return Finding(best, alike, others[0] if others else None, none.left, explains)


def _fit(scene: Scene, suspect: Suspect, tolerance: float) -> Fitted:
    def left(x: float) -> float:
        return _left(scene, suspect.seconds_CG(scene.start_C, x), tolerance)

    x = _least(left, _grid(scene, suspect)) if suspect.free else 1.0
    found = left(x)
    cells, gpus = scene.seconds_CG.shape
    weight = cells * np.sqrt(gpus)
    score = weight * np.log(found**2 + scene.noise**2) + suspect.free * np.log(weight)
    score += 2 * np.log(suspect.peers)
    if suspect.kind == "rank":  # a busy host is busy in expert compute as well
        score += -TOLD_APART if suspect.what in scene.busy else 2 * TOLD_APART
    return Fitted(suspect, x, found, float(score), suspect.seconds_CG(scene.start_C, x))


def _grid(scene: Scene, suspect: Suspect) -> Sequence[float]:
    if suspect.kind == "start-up":
        later: list[float] = (LATER * np.median(scene.seconds_CG)).tolist()
        return later
    faster = suspect.kind == "tier"  # alone a whole tier can be seen to be faster than told
    grid: list[float] = (SHARES if faster else SLOWER).tolist()
    return grid


def _least(left: Callable[[float], float], grid: Sequence[float]) -> float:
    """Where it is least: on the grid, then nearer around that."""
    best = min(grid, key=left)
    for step in (REFINED**0.5, REFINED**0.25, REFINED**0.125):
        best = min((best, best / step, best * step), key=left)
    return best


def _left(scene: Scene, predicted_CG: Floats, tolerance: float) -> float:
    """Root mean square of log(measured / predicted): half of all ranks, half of each cell's slowest."""
    took_CG = (predicted_CG > 0) & (scene.seconds_CG > 0)
    ratio_CG = np.where(took_CG, scene.seconds_CG, 1.0) / np.where(took_CG, predicted_CG, 1.0)
    error_CG = np.log(ratio_CG)
    slowest_C = np.log(scene.seconds_CG.max(axis=1) / np.maximum(predicted_CG.max(axis=1), 1e-12))
    bias = float(np.clip(np.median(slowest_C), -tolerance, tolerance))
    ranks = float(((error_CG - bias * took_CG) ** 2).sum() / max(took_CG.sum(), 1))
    return float(np.sqrt((ranks + float(((slowest_C - bias) ** 2).mean())) / 2))
