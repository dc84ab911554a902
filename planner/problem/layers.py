"""Some layers of a problem, as a problem of its own.

Layers share no slot and no link, so they are solved apart and put together again.

Shapes: L placed layers, R of them, E experts.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.load import LoadProfile, Trace
from planner.problem.problem import Problem


def layers_of(problem: Problem, rows: Sequence[int]) -> Problem:
    """The problem of these rows of a placement alone, in the order of the model.

    One of them at least must be of a decoder layer, not of a draft. The model keeps its number of decoder
    layers, so that what a method takes from it does not depend on the company that a layer is solved in.
    """
    model = problem.model
    layer_ids = tuple(model.placed_layer_ids[row] for row in rows)
    if layer_ids == model.placed_layer_ids:
        return problem
    decoder_ids = tuple(layer for layer in layer_ids if layer < model.layers)
    part = replace(model, moe_layer_ids=decoder_ids, draft_layer_ids=layer_ids[len(decoder_ids) :])
    return replace(problem, model=part, load=load_of(problem.load, rows))


def load_of(load: LoadProfile, rows: Sequence[int]) -> LoadProfile:
    """The same profile with these rows only."""
    layer_ids = tuple(load.layer_ids[row] for row in rows)
    trace = load.trace
    if trace is not None:
        trace = Trace(trace.experts_LTK[list(rows)], trace.sequence_lengths)
    return replace(
        load,
        tokens_WLE=np.ascontiguousarray(load.tokens_WLE[:, list(rows)]),
        layer_ids=layer_ids,
        trace=trace,
        unmeasured_layer_ids=tuple(layer for layer in load.unmeasured_layer_ids if layer in layer_ids),
    )


def blocks_of(problem: Problem, count: int) -> list[range]:
    """Rows in `count` runs whose sizes differ by one at most.

    Fewer where there are not so many decoder layers. Draft layers go with the last run.
    """
    decoder, rows = len(problem.model.moe_layer_ids), len(problem.model.placed_layer_ids)
    count = min(count, decoder)
    edges = [block * decoder // count for block in range(count)]
    return [range(first, end) for first, end in zip(edges, [*edges[1:], rows], strict=True)]
