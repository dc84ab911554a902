"""A budget of replicas spread over layers: each layer gets its own number of slots a GPU.

It goes by what another slot is predicted to gain there. A layer's slots stay the same on every GPU, so memory
does too; rows of different layers then differ in length, which no engine of ours takes (planner/engines):
this is an analysis, not a placement.

Shapes: L layers, S sizes tried (0 to S - 1 slots a GPU more than the fewest).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spread:
    """Slots a GPU beyond the fewest for each layer.

    `bound_seconds`: no spread of the budget over these curves takes less.
    """

    extra_L: Ints
    seconds_L: Floats
    bound_seconds: float

    @property
    def seconds(self) -> float:
        return float(self.seconds_L.sum())


@dataclass(frozen=True)
class _Piece:
    """One edge of a layer's hull: from `start` to `end` extra slots, each gaining `gain` seconds."""

    gain: float
    layer: int
    start: int
    end: int


def spread(seconds_SL: Floats, budget: int) -> Spread:
    """The budget, in slots a GPU over all layers, handed out piece by piece of the layers' convex hulls, the
    steepest first; ties by layer.

    That is optimal wherever a piece ends. The rest, too small for the next piece, goes one layer at a time to
    the largest gain that it affords.

    >>> spread(np.array([[9.0, 5], [6, 4], [5, 4]]), budget=2).extra_L.tolist()
    [2, 0]
    """
    extra_L = np.zeros(seconds_SL.shape[1], dtype=np.int64)
    left, bound = budget, float(seconds_SL[0].sum())
    blocked: set[int] = set()
    for piece in _pieces(seconds_SL):
        length = piece.end - piece.start
        if not blocked:  # the bound takes a part of the first piece that does not fit
            bound -= piece.gain * min(length, left)
        if piece.layer not in blocked and length <= left:
            extra_L[piece.layer], left = piece.end, left - length
        else:
            blocked.add(piece.layer)
    _hand_out(seconds_SL, extra_L, left)
    return Spread(extra_L, seconds_SL[extra_L, np.arange(len(extra_L))], bound)


def fewest_for(seconds_SL: Floats, seconds: float) -> int | None:
    """The smallest budget whose spread takes no longer than `seconds`; None where none does."""
    most = (len(seconds_SL) - 1) * seconds_SL.shape[1]
    longest = seconds * (1 + 1e-12)
    return next((extra for extra in range(most + 1) if spread(seconds_SL, extra).seconds <= longest), None)


def _pieces(seconds_SL: Floats) -> list[_Piece]:
    pieces = [piece for layer, seconds_S in enumerate(seconds_SL.T) for piece in _hull(seconds_S, layer)]
    return sorted(pieces, key=lambda piece: (-piece.gain, piece.layer, piece.start))


def _hull(seconds_S: Floats, layer: int) -> list[_Piece]:
    """The falling edges of the lower convex hull, the steepest first: from each corner to where the mean gain
    is largest, the nearest such.
    """
    pieces, start = [], 0
    while start < len(seconds_S) - 1:
        gain_S = (seconds_S[start] - seconds_S[start + 1 :]) / np.arange(1, len(seconds_S) - start)
        step = int(gain_S.argmax())
        if gain_S[step] <= 0:
            break
        pieces.append(_Piece(float(gain_S[step]), layer, start, start + 1 + step))
        start += 1 + step
    return pieces


def _hand_out(seconds_SL: Floats, extra_L: Ints, left: int) -> None:
    """Change `extra_L` in place: the largest gain that what is left affords, again and again."""
    sizes = len(seconds_SL)
    while left:
        options = [
            (float(seconds_SL[now, layer] - seconds_SL[more, layer]), -layer, -more)
            for layer, now in enumerate(extra_L.tolist())
            for more in range(now + 1, min(now + left, sizes - 1) + 1)
        ]
        gain, layer, more = max(options, default=(0.0, 0, 0))
        if gain <= 0:
            return
        left -= -more - int(extra_L[-layer])
        extra_L[-layer] = -more
