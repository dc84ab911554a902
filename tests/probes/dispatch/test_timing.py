"""What is timed of a pass: the exact integers on the CPU; on GPUs the experts of the model's shapes."""

import importlib.util
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from probes.ranks.party import Party, Task
from tests.probes.dispatch.test_dispatch import make_job

if TYPE_CHECKING:  # torch comes with it
    from torch import Tensor

    from probes.ranks.wire import Wire

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@dataclass
class Told:
    """A pass that writes down what is asked of it; results are twice what arrived."""

    told: list[str] = field(default_factory=list)
    counts_bytes: bool = True

    def dispatch(self) -> "Tensor":
        import torch

        self.told.append("dispatch")
        return torch.full((1,), 3.0 * self.told.count("dispatch"))

    def compute(self, arrived: "Tensor") -> "Tensor":
        self.told.append("compute")
        return 2 * arrived

    def combine(self, arrived: "Tensor", results: "Tensor") -> "Tensor":
        self.told.append("combine")
        return results + arrived

    @property
    def matrices(self) -> list[list[int]]:
        return []

    def rows_Z(self) -> list[int]:
        return [1]

    def received(self, arrived: Any) -> tuple[list[list[int]], str]:
        return [], ""


def times(one: Told, passes: int) -> tuple[list[float], dict[str, list[float]]]:
    """The sums of some passes of one rank, and the seconds."""
    from probes.dispatch.timing import timing_of
    from probes.ranks.virtual import run_virtual

    sums: list[float] = []
    seconds: dict[str, list[float]] = {}

    def work(wire: "Wire") -> str:
        timing, _ = timing_of(make_job(), wire, one)
        one.told.clear()
        sums.extend(float(timing.once(wire, "of a test")) for _ in range(passes))
        seconds.update(timing.seconds())
        return ""

    run_virtual(Task(Party((0,), "cpu", 60.0), work))
    return sums, seconds


def test_every_phase_is_timed_once_a_pass() -> None:
    """Sums are of the pass itself."""
    one = Told()
    sums, seconds = times(one, 2)
    assert one.told == ["dispatch", "compute", "combine"] * 2
    assert sums == [9.0, 18.0]
    assert {phase: len(of_phase) for phase, of_phase in seconds.items()} == {
        "dispatch": 2, "compute": 2, "combine": 2,
    }  # fmt: skip


def test_experts_of_the_models_shapes_are_timed_in_place_of_the_integers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those are worked on after them, before combine is timed."""
    from probes.dispatch import timing

    one = Told()
    monkeypatch.setattr(timing, "experts_of", lambda *_: (lambda: one.told.append("experts"), ()))
    sums, _ = times(one, 2)
    assert one.told == ["dispatch", "experts", "compute", "combine"] * 2
    assert sums == [9.0, 18.0]
