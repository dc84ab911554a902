"""Exchange: a plan's traffic as others' benchmarks take it, and what they measured of it beside the cost."""

from planner.exchange.commands import NCCL, RESULT, UCC
from planner.exchange.folder import TRAFFIC, Traffic, Written, check_unchanged, read_traffic, write_traffic
from planner.exchange.held import Gain, Held, Run, gains, held_to_dict, hold
from planner.exchange.sides import DEFAULT, PLAN, LayerExchange, layer_exchanges

__all__ = [
    "DEFAULT",
    "NCCL",
    "PLAN",
    "RESULT",
    "TRAFFIC",
    "UCC",
    "Gain",
    "Held",
    "LayerExchange",
    "Run",
    "Traffic",
    "Written",
    "check_unchanged",
    "gains",
    "held_to_dict",
    "hold",
    "layer_exchanges",
    "read_traffic",
    "write_traffic",
]
