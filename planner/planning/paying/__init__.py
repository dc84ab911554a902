"""Does it pay? Default, permutation, static plan, online and perfect balancing, side by side."""

from planner.planning.paying.answer import pays
from planner.planning.paying.balancer import Rebalancing
from planner.planning.paying.verdict import Pays, Row

__all__ = ["Pays", "Rebalancing", "Row", "pays"]
