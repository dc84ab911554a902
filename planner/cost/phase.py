"""A phase of the exchange, dispatch or combine: seconds of the messages over each resource.

Shapes: R resources.
"""

import numpy as np

from planner.cost.constants import PhaseConstants
from planner.cost.routing import Floats
from planner.problem import Problem


class Phase:
    """One direction of the exchange: what does not depend on the layer."""

    def __init__(self, problem: Problem, constants: PhaseConstants, message_bytes: float) -> None:
        self._resources = problem.topology.resources
        self._start_seconds = constants.start_seconds(problem.gpus, problem.slots_per_gpu)
        bytes_per_s_R = problem.topology.capacity_R * efficiency_R(problem, constants)
        self._messages_per_s_R = bytes_per_s_R / message_bytes

    def seconds(self, messages_R: Floats) -> tuple[float, str]:
        """Seconds of so many messages over each resource, and the one that is waited for."""
        if not len(messages_R) or not messages_R.max() > 0:
            return self._start_seconds, "start-up"
        seconds_R = messages_R / self._messages_per_s_R
        slowest = int(seconds_R.argmax())
        return self._start_seconds + float(seconds_R[slowest]), self._resources[slowest].name


def efficiency_R(problem: Problem, constants: PhaseConstants) -> Floats:
    """What messages reach of each rate: all of a measured one, a share of a line rate; of both what a
    calibration says.
    """
    resources = problem.topology.resources
    kinds = {(one.tier, one.rate.evidence.kind == "measured") for one in resources}
    reached = {(tier, measured): constants.reached(tier, measured=measured) for tier, measured in kinds}
    return np.array([reached[one.tier, one.rate.evidence.kind == "measured"] for one in resources])
