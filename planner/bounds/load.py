"""Lower bounds on the load of the busiest GPU, per layer, that hold for every placement.

Nothing here looks at a placement. Loads w_e of E experts (any unit), G GPUs, s slots each, P = G · s. Four
bounds, the best of which is reported with its name:
  mean     no GPU can be below the mean: W / G, or W / Σ speed where GPUs differ
  slots    with every replica at most T, expert e needs ceil(w_e / T) slots, and P must suffice
           (exact for s = 1)
  hot set  the h hottest experts reach at most g GPUs, and those GPUs also carry the cold experts
           that have no room elsewhere
  even     replicas of one expert weigh the same: at most (k - 1) · G replicas may weigh more than T / k
           (holds for even split only)

Where GPUs differ in speed, a GPU's load counts divided by its speed, and the fastest has speed 1: no load is
then below what it was, so `slots` and `even` hold as they are, and `hot set` takes the g fastest GPUs. A
fifth bound comes in:
  slow GPU the slowest GPU has s slots too, and even the lightest s experts, split over as many replicas
           as there are, weigh something (even split only)
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bound:
    """Per layer: no placement has a busiest GPU below `load_L`, in the unit of the loads given; `reason_L`
    names the bound that says so.
    """

    load_L: Floats
    reason_L: tuple[str, ...]


def load_bound(
    load_LE: Floats, gpus: int, slots_per_gpu: int, *, even: bool, speed_G: Floats | None = None
) -> Bound:
    """The best of the bounds for every layer.

    `even` says that an expert's load is split evenly over its replicas; `speed_G` is at most 1.

    >>> load_LE = np.array([[600.0, 560, 120, 120, 20, 10, 10, 10]])
    >>> load_bound(load_LE, gpus=8, slots_per_gpu=2, even=False).load_L.tolist()
    [181.25]
    """
    rows = []
    fast_G = np.ones(gpus) if speed_G is None else np.sort(speed_G)[::-1]
    for load_E in np.asarray(load_LE, dtype=np.float64):
        ordered_E = np.sort(load_E)[::-1]
        found = {
            "mean": float(ordered_E.sum() / fast_G.sum()),
            "slots": _slots(ordered_E, gpus, slots_per_gpu),
            "hot set": _hot_set(ordered_E, gpus, slots_per_gpu, fast_G),
        }
        if even:
            found["even"] = _even(ordered_E, gpus, slots_per_gpu, above=max(found.values()))
        if even and speed_G is not None:
            found["slow GPU"] = _slow(ordered_E, gpus, slots_per_gpu) / float(fast_G[-1])
        rows.append(max(found.items(), key=lambda entry: entry[1]))
    return Bound(np.array([value for _, value in rows]), tuple(name for name, _ in rows))


def _slots(ordered_E: Floats, gpus: int, slots_per_gpu: int) -> float:
    """The smallest T at which sum of max(1, ceil(w / T)) fits the slots, and ceil(w / T) the GPUs.

    Bisection; then the exact value, some w / count.
    """
    slots = gpus * slots_per_gpu
    low, high = 0.0, float(ordered_E[0])
    if high == 0.0 or slots < len(ordered_E):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        needed_E = np.maximum(np.ceil(ordered_E / middle), 1)
        low, high = (low, middle) if needed_E.sum() <= slots and needed_E[0] <= gpus else (middle, high)
    counts_E = np.maximum(np.ceil(ordered_E / high), 1)
    return max(low, float((ordered_E / counts_E).max()))


def _hot_set(ordered_E: Floats, gpus: int, slots_per_gpu: int, fast_G: Floats | None = None) -> float:
    """For each h and g: g GPUs hold the h hottest, each other slot may take one cold expert away, and the
    rest of the cold must share those g.
    """
    experts, slots = len(ordered_E), gpus * slots_per_gpu
    cold_first = np.concatenate([[0.0], np.cumsum(ordered_E[::-1])])  # [c] = load of the c coldest
    hottest = np.cumsum(ordered_E)
    reach_G, together_G = np.arange(1, gpus + 1), np.cumsum(np.ones(gpus) if fast_G is None else fast_G)
    best = 0.0
    for hot in range(1, experts + 1):
        cold = experts - hot
        reach = reach_G[: min(gpus, slots - cold)]
        stuck = np.maximum(cold - slots_per_gpu * (gpus - reach), 0)
        best = max(best, float(((hottest[hot - 1] + cold_first[stuck]) / together_G[: len(reach)]).min()))
    return best


def _slow(ordered_E: Floats, gpus: int, slots_per_gpu: int) -> float:
    """The least that s slots of one GPU can weigh: the s lightest experts, all redundant slots given to where
    a replica more takes off most.
    """
    light_S = ordered_E[::-1][:slots_per_gpu]
    replicas_SC = np.arange(1, gpus)
    gain_SC = light_S[:, None] * (1 / replicas_SC - 1 / (replicas_SC + 1))  # falls with an expert's replicas
    redundant = gpus * slots_per_gpu - len(ordered_E)
    return max(float(light_S.sum() - np.sort(gain_SC.ravel())[::-1][:redundant].sum()), 0.0)


def _even(ordered_E: Floats, gpus: int, slots_per_gpu: int, above: float) -> float:
    """The largest T found by bisection that the pigeonhole test refutes, for k = 2, 3, 4; every refuted T is
    a bound.
    """
    best = above
    if best == 0.0:
        return 0.0
    for parts in (2, 3, 4):
        low, high = best, 2.0 * best
        for _ in range(24):
            middle = (low + high) / 2
            refuted = _too_many_big(ordered_E, gpus, gpus * slots_per_gpu, middle, parts)
            low, high = (middle, high) if refuted else (low, middle)
        best = low
    return best


def _too_many_big(ordered_E: Floats, gpus: int, slots: int, limit: float, parts: int) -> bool:
    """Whether more than (parts - 1) · G replicas must weigh over limit / parts, whatever the counts (a
    fractional knapsack relaxes the choice).
    """
    fewest_E = np.maximum(np.ceil(ordered_E / limit - 1e-12), 1)
    spare = slots - fewest_E.sum()
    big_E = np.where(ordered_E / fewest_E > limit / parts * (1 + 1e-12), fewest_E, 0)
    if spare < 0:
        return True
    # replicas at which none weighs over limit / parts
    lighter_E = np.maximum(np.ceil(parts * ordered_E / limit - 1e-12), fewest_E)
    extra_E = lighter_E - fewest_E
    gain = np.flatnonzero((big_E > 0) & (lighter_E <= gpus))
    order = gain[np.argsort(-(big_E[gain] / np.maximum(extra_E[gain], 1)), kind="stable")]
    before_E = np.concatenate([[0], np.cumsum(extra_E[order])[:-1]])
    room_E = np.clip((spare - before_E) / np.maximum(extra_E[order], 1), 0, 1)
    return bool(big_E.sum() - (big_E[order] * room_E).sum() > (parts - 1) * gpus + 1e-9)
