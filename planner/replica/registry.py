"""Replica rules by name. One file a rule; this one names them.

A rule says how an engine picks among the slots that hold one expert, at run time. It answers with share_SP
for each layer: the share of the assignments of source rank s, for the expert in slot p, that go to slot p.
Over the slots of one expert each row sums to 1. S is 1 where every source behaves alike, else G. Where the
engine picks without a draw, and the pick depends on the batch, `CHOICES` has its own pick for each token
too.
"""

from planner.base import BadInput
from planner.replica.best_split import lp
from planner.replica.blocks import round_robin, round_robin_slots
from planner.replica.by_source import fixed_by_source
from planner.replica.even_split import even
from planner.replica.near import nearest, nearest_dynamic
from planner.replica.rows import hashed, hashed_slots, row_index, row_index_slots
from planner.replica.situation import Choice, Rule
from planner.replica.static import nearest_static

RULES: dict[str, Rule] = {
    "even": even,
    "nearest": nearest,
    "nearest-static": nearest_static,
    "nearest-dynamic": nearest_dynamic,
    "row-index": row_index,
    "lp": lp,
    "hashed": hashed,
    "round-robin": round_robin,
    "fixed-by-source": fixed_by_source,
}
# A cheap stand-in, for search: the same mean, or for `lp` the even split that it is never worse than.
EXPECTATION = {"nearest-static": "nearest", "nearest-dynamic": "nearest", "lp": "even", "round-robin": "even"}
FOLLOW_LOAD = ("lp", "round-robin")  # shares depend on the load, not on the placement alone
ACROSS_LAYERS = ("nearest-static",)  # a layer's shares depend on the rows of others
CHOICES: dict[str, Choice] = {
    "hashed": hashed_slots,
    "row-index": row_index_slots,
    "round-robin": round_robin_slots,
}


def find_rule(name: str) -> Rule:
    if name not in RULES:
        raise BadInput(f"replica rule {name!r} is unknown; known are {', '.join(RULES)}")
    return RULES[name]
