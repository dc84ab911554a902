"""The answer of `moeplan capacity`: each engine's drops by factor, as text and as plain data.

Shapes: L layers.
"""

from dataclasses import dataclass
from typing import Any

from planner.load.capacity.engines import CapacityEngine


@dataclass(frozen=True)
class Drop:
    """What one factor drops: shares of a layer's assignments."""

    factor: float
    capacity: int
    dropped_L: tuple[float, ...]
    padding: float  # rows that an expert's buffers have for each assignment of the step

    @property
    def dropped(self) -> float:
        return sum(self.dropped_L) / len(self.dropped_L)

    @property
    def worst(self) -> float:
        return max(self.dropped_L)

    def to_dict(self) -> dict[str, Any]:
        return {
            "factor": self.factor,
            "capacity": self.capacity,
            "padding": self.padding,
            "dropped": self.dropped,
            "worst_layer_dropped": self.worst,
            "dropped_per_layer": list(self.dropped_L),
        }


@dataclass(frozen=True)
class EngineDrops:
    """One engine's drops by factor; the least factor that keeps the target, and the words that set it."""

    engine: CapacityEngine
    by_factor: tuple[Drop, ...]
    chosen: Drop | None
    flags: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine.name,
            "version": self.engine.title,
            "factors": [drop.to_dict() for drop in self.by_factor],
            "chosen": self.chosen.to_dict() if self.chosen else None,
            "flags": self.flags,
        }


@dataclass(frozen=True)
class CapacityReport:
    """Every engine's drops of one load."""

    layer_ids: tuple[int, ...]
    tokens: int  # of a source rank and step
    target: float | None
    engines: tuple[EngineDrops, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        lines = [f"dropped assignments, {self.tokens} tokens a rank and step: mean over layers, worst layer"]
        for found in self.engines:
            lines.append(found.engine.title)
            lines += [
                f"  factor {drop.factor:<5g} capacity {drop.capacity:<6} {self._shares(drop)}"
                for drop in found.by_factor
            ]
            if found.chosen:
                factor, shares = found.chosen.factor, self._shares(found.chosen)
                lines.append(f"  every layer within {self.target:.3%}: factor {factor:g}, {shares}")
                lines.append(f"  {found.flags}")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _shares(self, drop: Drop) -> str:
        layer = self.layer_ids[drop.dropped_L.index(drop.worst)]
        buffers = f"buffers {drop.padding:.2f} x the load"
        return f"{drop.dropped:.3%}, {drop.worst:.3%} (layer {layer}); {buffers}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "tokens_per_rank": self.tokens,
            "layers": list(self.layer_ids),
            "target": self.target,
            "engines": [found.to_dict() for found in self.engines],
            "notes": list(self.notes),
        }
