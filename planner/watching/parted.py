"""Counts parted by chance: what a plan is fitted to, and what judges it, of one and the same load.

Windows held out would be the past or the future of those fitted; after a shift there is one window alone.
"""

from dataclasses import replace

import numpy as np

from planner.load import LoadProfile

JUDGED = 1 / 3  # of the assignments


def parted(load: LoadProfile, judged: float = JUDGED, seed: int = 0) -> tuple[LoadProfile, LoadProfile]:
    """(fitted, judged): each assignment is in one of them. What is luck in the counts is luck in one."""
    random = np.random.default_rng([seed, load.windows])
    judged_WLE = random.binomial(load.tokens_WLE, judged).astype(np.int64)
    return replace(load, tokens_WLE=load.tokens_WLE - judged_WLE), replace(load, tokens_WLE=judged_WLE)
