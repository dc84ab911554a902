"""Plans, maps, machines or engines side by side, on one load: one thing varies, the rest is alike."""

from planner.planning.comparing.posing import first_posed, posed_beside
from planner.planning.comparing.request import CompareRequest, varied_of
from planner.planning.comparing.sides import Comparison, Side, side_of

__all__ = ["CompareRequest", "Comparison", "Side", "compare"]


def compare(request: CompareRequest) -> Comparison:
    """BadInput where more than one thing varies, or nothing does, or files are of different models."""
    varied = varied_of(request)
    base, notes, unseen = first_posed(request)
    asked = [base]
    if varied == "topology":
        asked = [base.on(text, request.anew.calibrations) for text in request.topologies]
    elif varied == "engine":
        asked = [base.served_by(name) for name in request.engines]
    else:
        asked += [posed_beside(path, base, request) for path in request.files[1:]]
    sides = tuple(side_of(one, asked[0]) for one in asked)
    return Comparison(sides, base.problem.load.source, unseen, varied, notes)
