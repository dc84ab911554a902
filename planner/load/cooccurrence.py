"""Co-occurrence counts made into tokens, where an engine recorded pairs of experts but not the tokens.

Tokens are drawn whose pairs come as often as those recorded: pairs are measured then, triples and more are
what the pairs imply. The load stays that of the recorded counts.
Shapes: L layers, E experts, T tokens, K = top_k, W windows.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.profile import Counts, Ids, Trace

TOKENS = 2048  # drawn in all; the traffic is averaged over as many
SWEEPS = 16  # over the K choices of every token; after each, experts that come too rarely are made likelier
LIKE_ONE = (
    0.5  # added to every pair count, spread as for independent choices: unseen pairs are rare, not impossible
)


def drawn_trace(together_LEE: Counts, tokens_WLE: Counts, layer_ids: tuple[int, ...], top_k: int) -> Trace:
    """A trace with a sequence a window, as long as the window's share of all assignments.

    The same counts give the same tokens.
    """
    share_W = tokens_WLE.sum(axis=(1, 2)) / max(tokens_WLE.sum(), 1)
    lengths = np.maximum(np.rint(share_W * TOKENS).astype(np.int64), 1)
    tokens, counts_LE = int(lengths.sum()), tokens_WLE.sum(axis=0)
    drawn = [
        drawn_tokens(together_EE, counts_E, top_k, tokens, np.random.default_rng(layer_id))
        for layer_id, together_EE, counts_E in zip(layer_ids, together_LEE, counts_LE, strict=True)
    ]
    return Trace(np.array(drawn, dtype=np.int32), tuple(lengths.tolist()))


def drawn_tokens(
    together_EE: Counts, counts_E: Counts, top_k: int, tokens: int, random: np.random.Generator
) -> Ids:
    """experts_TK drawn by Gibbs sampling: likely is who was often chosen beside the others of the token.

    >>> pairs = 90000 * np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> drawn = drawn_tokens(pairs, np.full(4, 90000), 2, 50, np.random.default_rng(0))
    >>> np.unique(np.sort(drawn, axis=1), axis=0).tolist()
    [[0, 1], [2, 3]]
    """
    experts = len(counts_E)
    chance_E = np.clip(top_k * (counts_E + 1e-3) / (counts_E + 1e-3).sum(), 1e-9, 1 - 1e-9)
    lift_EE = _lift_EE(together_EE, chance_E, top_k)
    field_E = np.log(chance_E / (1 - chance_E))
    keys_TE = np.log(chance_E) + random.gumbel(size=(tokens, experts))
    experts_TK = np.argsort(-keys_TE, axis=1, kind="stable")[:, :top_k]
    for sweep in range(SWEEPS):
        for k in range(top_k):
            others_TK = np.delete(experts_TK, k, axis=1)
            liked_TE = sum(lift_EE[others_TK[:, j]] for j in range(top_k - 1))
            experts_TK[:, k] = _chosen_T(field_E + liked_TE, random)
        if sweep < SWEEPS - 2:
            came_E = np.bincount(experts_TK.ravel(), minlength=experts) / tokens
            field_E += np.log((chance_E + 1 / tokens) / (came_E + 1 / tokens)) / 2
    return experts_TK.astype(np.int32)


def _lift_EE(together_EE: Counts, chance_E: npt.NDArray[np.float64], top_k: int) -> npt.NDArray[np.float64]:
    """Logarithm of how much likelier two experts come together than by chance; nobody is chosen twice."""
    counted_tokens = max(float(together_EE.sum() - np.trace(together_EE)) / (top_k * (top_k - 1)), 1.0)
    independent_EE = np.outer(chance_E, chance_E)
    pair_EE = (together_EE + LIKE_ONE * independent_EE) / (counted_tokens + LIKE_ONE)
    lift_EE = np.asarray(np.log(pair_EE / independent_EE), dtype=np.float64)
    np.fill_diagonal(lift_EE, -np.inf)
    return lift_EE


def _chosen_T(weight_TE: npt.NDArray[np.float64], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """One expert a token, with chances as exp(weight)."""
    cumulated_TE = np.cumsum(np.exp(weight_TE - weight_TE.max(axis=1, keepdims=True)), axis=1)
    drawn_T1 = random.random((len(weight_TE), 1)) * cumulated_TE[:, -1:]
    return np.asarray((cumulated_TE <= drawn_T1).sum(axis=1).clip(max=weight_TE.shape[1] - 1))


def check_pairs(
    together_LEE: npt.NDArray[np.generic], path: str, layer_ids: tuple[int, ...], experts: int
) -> Counts:
    """Symmetric whole counts [L, E, E]; BadInput names layer, experts and values of what is not."""
    shape, kind = [len(layer_ids), experts, experts], together_LEE.dtype.kind
    if list(together_LEE.shape) != shape:
        got = f"have shape {list(together_LEE.shape)}; expected {shape}"
        raise BadInput(f"{path}: co-occurrence counts {got}")
    if kind not in "iuf" or (kind == "f" and not (np.mod(together_LEE, 1) == 0).all()):
        got = f"their array is of type {together_LEE.dtype}"
        raise BadInput(f"{path}: co-occurrence counts must be whole numbers; {got}")
    whole_LEE = together_LEE.astype(np.int64)
    bad = np.argwhere((whole_LEE < 0) | (whole_LEE != whole_LEE.transpose(0, 2, 1)))
    if len(bad):
        row, one, other = bad[0].tolist()
        pair_EE = whole_LEE[row]
        raise BadInput(
            f"{path}: layer {layer_ids[row]}: "
            f"experts {one} and {other} were chosen together {pair_EE[one, other]} times, "
            f"{other} and {one} {pair_EE[other, one]} times; the counts must be equal, and not negative"
        )
    return whole_LEE
