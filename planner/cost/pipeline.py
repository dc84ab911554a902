"""Hops of one exchange that overlap: a message crosses them one after the other, all messages at once.

Shapes: H hops, R resources.
"""

from planner.cost.routing import Floats


def pipelined_seconds(seconds_HR: Floats, chunks: int | None = None) -> float:
    """Seconds until every message has crossed every hop. `seconds_HR`: of each hop's bytes on each resource.

    With endless small chunks (None) all hops run at once: the busiest resource, of all hops together. That is
    how DeepEP's normal kernels work. With a finite number a hop begins when the first chunk has crossed the
    hop before, and the pipeline fills and drains by one chunk: with one chunk the hops follow each other.

    >>> import numpy as np
    >>> both = np.array([[4.0, 0.0], [0.0, 2.0]])
    >>> [pipelined_seconds(both, chunks) for chunks in (1, 4, None)]
    [6.0, 4.5, 4.0]
    """
    together = float(seconds_HR.sum(axis=0).max(initial=0.0))
    if chunks is None:
        return together
    if chunks < 1:
        raise ValueError(f"an exchange in {chunks} chunks; there is at least one")
    in_series = float(seconds_HR.max(axis=1, initial=0.0).sum())
    return together + (in_series - together) / chunks
