"""What an engine does when it loses ranks, and how it takes ranks in or lets them go while it serves.

An engine's module says so in an `ELASTIC`; one that has none places nothing anew and keeps its size.
"""

from dataclasses import dataclass

from planner.base import Infeasible


@dataclass(frozen=True)
class Elastic:
    """Slots a GPU stay what they were launched with, whatever happens: R follows from the number of GPUs."""

    # After a loss: experts are placed anew on the ranks that are left, those without a copy read again.
    replaces: bool = False
    replaces_by: tuple[str, ...] = ()  # words of a launch that does so
    replaces_source: str = ""  # what was read, with its release; also of what it does not do
    grows: bool = False
    shrinks: bool = False  # the ranks with the highest numbers go, and send their experts first
    request: str = ""  # that changes its size to GPUS, a rank each
    resizes_by: tuple[str, ...] = ()  # words of a launch that can be resized; GPUS: the most it will have
    most_redundant: int | None = None
    resizes_source: str = ""


FIXED = Elastic(
    replaces_source="no placement anew after a loss was found in what was read of it",
    resizes_source="no change of size while it serves was found in what was read of it",
)


def check_resize(
    title: str, elastic: Elastic, old: int, new: int, *, experts: int, slots_per_gpu: int
) -> None:
    """Infeasible where the engine does not go from `old` GPUs to `new` ones while it serves."""
    if new > old and not elastic.grows:
        raise Infeasible(_restart(title, "takes no ranks in", elastic, new))
    if new < old and not elastic.shrinks:
        raise Infeasible(_restart(title, "lets no ranks go", elastic, new))
    least = -(-experts // slots_per_gpu)
    if new < least:
        raise Infeasible(
            f"{new} GPUs of {slots_per_gpu} slots cannot hold {experts} experts, and {title} keeps the slots "
            f"a GPU: the smallest size is {least} GPUs"
        )
    redundant, most = new * slots_per_gpu - experts, elastic.most_redundant
    if most is not None and redundant > most:
        largest = (experts + most) // slots_per_gpu
        raise Infeasible(
            f"{new} GPUs of {slots_per_gpu} slots have {redundant} redundant experts, and {title} takes "
            f"{most}: the largest size is {largest} GPUs"
        )


def _restart(title: str, does_not: str, elastic: Elastic, new: int) -> str:
    return (
        f"{title} {does_not} while it serves ({elastic.resizes_source}): "
        f"plan the {new} GPUs without --from, and restart"
    )
