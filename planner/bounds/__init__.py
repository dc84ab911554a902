"""Lower bounds on load and seconds that hold for every placement. Nothing here looks at one."""

from planner.bounds.load import Bound, load_bound
from planner.bounds.time import PARTS, TimeBound, time_bound

__all__ = ["PARTS", "Bound", "TimeBound", "load_bound", "time_bound"]
