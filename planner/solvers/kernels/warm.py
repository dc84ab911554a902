"""Warm-started re-planning: from the placement that runs to a better one, within a limit of moved slots.

The limit holds over all layers. Every layer is searched twice, step by step: by steps that each gain, and
after correcting replica counts, which pays only with the steps that follow. The states on the way are
candidates; the moves go to the layers, and the states, where each one gains most.

Shapes: L layers, E experts, P slots, K candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.drift import State, begin, correct_counts, risk_L
from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.kernels.steps import step

MARGIN = 0.3  # a replica changes hands where that lowers the variance by this share more than it raises it
MOST_CORRECTIONS = 12  # a layer and re-plan
SPARE_STEPS = 12  # beyond the steps that the moves allow a layer on average: some layers need more
MOST_STEPS = 120
LARGEST_PART = 1.5  # of the moves that a layer has on average: past it, and the spare ones, its search ends
LARGEST_TABLE = 4_000_000  # cells of a placement times steps; bounds memory at about 100 MB
WORTH_COUNTING = 4  # moves a layer on average, below which correcting counts leaves none for the rest


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows on the way from one placement to better ones: experts, moves from the start, and expected peak.

    Candidate 0 is the start.
    """

    expert_KLP: Ints
    moves_KL: Ints
    risk_KL: Loads

    def within(self, most_moves: int) -> Ints:
        """expert_LP of the least summed risk that the moves allow; no layer's is above the start's."""
        pick_L = best_within(self.risk_KL, self.moves_KL, most_moves)
        chosen_LP: Ints = self.expert_KLP[pick_L, np.arange(len(pick_L))]
        return chosen_LP


def candidates(
    load_LE: Loads, expert_LP: Ints, gpus: int, drift_L: Loads, most_moves: int, node_G: Ints | None = None
) -> Candidates:
    """Candidates for up to `most_moves` moves. Same input, same answer.

    `drift_L`: relative change of an expert's load from one window to the next. Layers without load stay as
    they are, and so does all on one GPU. With `node_G` no expert comes to a node that has it.
    """
    layers = len(load_LE)
    if gpus == 1 or most_moves < 1:
        return Candidates(expert_LP[None], np.zeros((1, layers), dtype=np.int64), np.zeros((1, layers)))
    steps = int(min(most_moves / layers + SPARE_STEPS, MOST_STEPS, LARGEST_TABLE / expert_LP.size))
    most_a_layer = most_moves / layers * LARGEST_PART + SPARE_STEPS
    found: list[tuple[Ints, Ints, Loads]] = []
    for corrections in (0, MOST_CORRECTIONS) if most_moves >= WORTH_COUNTING * layers else (0,):
        state = begin(load_LE, expert_LP, gpus, drift_L, node_G)
        correct_counts(state, MARGIN, corrections)
        found += _on_the_way(state, steps, most_a_layer)
    expert_KLP, moves_KL, risk_KL = (np.array(part) for part in zip(*found, strict=True))
    return Candidates(expert_KLP, moves_KL, risk_KL)


def _on_the_way(state: State, steps: int, most_a_layer: float) -> Iterator[tuple[Ints, Ints, Loads]]:
    """Experts, moves and expected peak before the first step, and after each."""
    rows = np.flatnonzero(state.load_LE.sum(axis=1) > 0)
    for _ in range(steps + 1):
        yield state.expert_LP.copy(), state.moves_L.copy(), risk_L(state)
        if not len(rows):
            break
        rows = step(state, rows)
        rows = rows[state.moves_L[rows] <= most_a_layer]


def best_within(score_KL: Loads, moves_KL: Ints, most_moves: int, least_gain: float = 0.0) -> Ints:
    """pick_L: the candidate of each layer, for the least summed score with `most_moves` in all.

    Of equal choices the one of the fewest moves. By dynamic programming over layers, so it is exact.
    `least_gain`: share of its score that more moves must win a layer to be looked at. Candidate 0 must fit.
    """
    layers = score_KL.shape[1]
    if moves_KL[0].sum() > most_moves:
        raise ValueError(f"candidate 0 makes {moves_KL[0].sum()} moves, {most_moves} are allowed")
    most = min(most_moves, int(moves_KL.max(axis=0).sum()))
    best_C = np.zeros(most + 1)  # by moves that are allowed the layers so far
    choice_LC = np.zeros((layers, most + 1), dtype=np.int32)
    for layer in range(layers):
        before_C, best_C = best_C, np.full(most + 1, np.inf)
        for candidate in _worth_a_look(score_KL[:, layer], moves_KL[:, layer], least_gain):
            moves = int(moves_KL[candidate, layer])
            total_C = before_C[: max(most + 1 - moves, 0)] + score_KL[candidate, layer]
            better = np.flatnonzero(total_C < best_C[moves:])
            best_C[moves + better], choice_LC[layer, moves + better] = total_C[better], candidate
    return _traced_back(choice_LC, moves_KL, int(best_C.argmin()))


def _traced_back(choice_LC: npt.NDArray[np.int32], moves_KL: Ints, left: int) -> Ints:
    """pick_L of the table of choices, from the last layer with `left` moves to the first."""
    pick_L = np.zeros(len(choice_LC), dtype=np.int64)
    for layer in reversed(range(len(choice_LC))):
        pick_L[layer] = choice_LC[layer, left]
        left -= int(moves_KL[pick_L[layer], layer])
    return pick_L


def _worth_a_look(score_K: Loads, moves_K: Ints, least_gain: float) -> list[int]:
    """Candidates by number of moves, each with a lower score than all with fewer.

    Always one, that of the fewest moves.
    """
    found: list[int] = []
    for candidate in np.lexsort((score_K, moves_K)).tolist():
        if not found or score_K[candidate] < score_K[found[-1]] - abs(score_K[found[-1]]) * least_gain:
            found.append(candidate)
    return found
