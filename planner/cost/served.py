"""What some GPUs serve: a step of the expert layers, the engine's whole step, and tokens/s by that."""

from dataclasses import dataclass

from planner.cost.priced import Cost
from planner.cost.whole import WholeStep
from planner.problem import Problem


@dataclass(frozen=True)
class Served:
    """A step of some GPUs, and the tokens a second that it comes to."""

    gpus: int
    tokens_per_rank: int
    total_seconds: float  # of the expert layers, as a plan has it
    whole_seconds: float  # of the engine's whole step
    tokens_per_s: float  # by that, of all these GPUs
    max_over_mean: float


@dataclass(frozen=True, eq=False)
class Step:
    """A step of some GPUs: of the expert layers, and whole."""

    problem: Problem
    cost: Cost
    whole: WholeStep

    def served(self, tokens: int) -> Served:
        workload, seconds = self.problem.workload, self.whole.total_seconds
        return Served(
            gpus=self.problem.gpus,
            tokens_per_rank=workload.tokens_per_rank,
            total_seconds=self.cost.total_seconds,
            whole_seconds=seconds,
            tokens_per_s=tokens / seconds,
            max_over_mean=self.cost.max_over_mean,
        )

    def gain(self, after: "Step", share: float) -> str:
        """Why `share` of the tokens takes no longer than that share of this step: the part of the step that
        gives most, and what it waited for. Empty where it does take longer.
        """
        if after.whole.total_seconds > share * self.whole.total_seconds:
            return ""
        saved = {
            part: share * self.whole.seconds[part] - after.whole.seconds[part] for part in after.whole.seconds
        }
        part = max(saved, key=lambda name: saved[name])
        if part in {"dispatch", "combine"}:
            crossed, crosses = self.cost.cross_node_share, after.cost.cross_node_share
            away = f"{crossed:.0%} of the assignments left their node, now {crosses:.0%}"
            return (
                f"{part} waited for {self.cost.bottleneck} ({away}): smaller groups of GPUs are faster here"
            )
        if part == "compute":
            balance = f"max/mean {self.cost.max_over_mean:.2f} to {after.cost.max_over_mean:.2f}"
            return f"compute waited for GPUs that were lost or are less busy beside the others ({balance})"
        return f"{part} takes {saved[part] * 1e3:.3g} ms less than its share"
