"""What was compared: the sides, their gains over each other, and when a difference is none."""

from dataclasses import dataclass

from planner.cost import Cost, WholeStep, cost, ledger, whole_step
from planner.placement import Placement
from planner.plan import Moves, aligned, moves_L, plan_moves
from planner.planning.comparing.posing import Posed
from planner.planning.worth import WORTH_IT
from planner.problem import Problem


@dataclass(frozen=True, eq=False)
class Side:
    """One of the things compared, on the load of all."""

    name: str
    problem: Problem
    placement: Placement
    engine: str | None
    cost: Cost
    whole: WholeStep
    kv_left_bytes: float  # of the GPU that keeps least
    differing: int | None  # slots with an expert new to their GPU beside the first side; None: other GPUs
    moves: Moves | None  # from the first side, where GPUs and slots are as many

    @property
    def tokens_per_s_per_gpu(self) -> float:
        return self.whole.tokens_per_s_per_gpu


@dataclass(frozen=True, eq=False)
class Comparison:
    """`unseen`: the load is one that the first plan was not fitted to."""

    sides: tuple[Side, ...]
    load: str
    unseen: bool
    varied: str  # placement, topology or engine
    notes: tuple[str, ...]

    @property
    def best(self) -> int:
        """The side that serves most; of equals the first."""
        return max(range(len(self.sides)), key=lambda at: (self.sides[at].tokens_per_s_per_gpu, -at))

    def gain(self, at: int, over: int = 0) -> float:
        """Tokens/s a GPU of one side over another's, less 1."""
        return self.sides[at].tokens_per_s_per_gpu / self.sides[over].tokens_per_s_per_gpu - 1

    def tie(self, at: int, over: int = 0) -> bool:
        """Whether a difference may be the model's: of placements alone most of its error is common."""
        return abs(self.gain(at, over)) <= self._doubt(at, over)

    def _doubt(self, at: int, over: int) -> float:
        one, other = self.sides[at], self.sides[over]
        if one.problem.topology == other.problem.topology and one.engine == other.engine:
            return WORTH_IT
        return max(WORTH_IT, *(side.whole.error_share or 0.0 for side in (one, other)))


def side_of(one: Posed, first: Posed) -> Side:
    """Priced on its own question; moves are those from `first`."""
    priced = cost(one.problem, one.placement)
    alike = one.problem.gpus == first.problem.gpus
    moves = None
    if alike and one is not first and one.placement.slots == first.placement.slots:
        target = aligned(first.placement, one.placement)
        moves = plan_moves(one.problem, first.placement, target, first.name)
    return Side(
        one.name,
        one.problem,
        one.placement,
        one.engine,
        priced,
        whole_step(one.problem, priced, one.engine),
        ledger(one.problem, one.engine).kv_left_bytes,
        int(moves_L(first.placement, one.placement).sum()) if alike else None,
        moves,
    )
