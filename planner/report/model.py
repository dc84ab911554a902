"""Models as tables for a terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes
from planner.load import spans
from planner.model import ModelSpec, model_aliases


def model_rows(models: list[ModelSpec]) -> list[dict[str, Any]]:
    """Plain facts of each model, for machines."""
    return [
        {
            "name": model.name,
            "aliases": list(model_aliases(model.name)),
            "architecture": model.architecture,
            "layers": model.layers,
            "moe_layer_ids": list(model.moe_layer_ids),
            "draft_layer_ids": list(model.draft_layer_ids),
            "experts": model.experts,
            "shared_experts": model.shared_experts,
            "top_k": model.top_k,
            "hidden": model.hidden,
            "expert_intermediate": model.expert_intermediate,
            "dispatch_width": model.dispatch_width,
            "weight_dtype": model.weight_dtype,
            "dtype_assumed": model.dtype_assumed,
            "expert_bytes": model.expert_bytes,
            "source": model.source,
        }
        for model in models
    ]


def models_table(models: list[ModelSpec]) -> Table:
    table = Table()
    for name in (
        "model",
        "also called",
        "MoE layers",
        "draft",
        "experts",
        "top-k",
        "hidden",
        "expert width",
        "dtype",
        "one expert",
    ):
        table.add_column(name, justify="left" if name in ("model", "also called", "dtype") else "right")
    for model in models:
        table.add_row(
            model.name,
            ", ".join(model_aliases(model.name)),
            f"{len(model.moe_layer_ids)} of {model.layers}",
            str(len(model.draft_layer_ids) or ""),
            str(model.experts),
            str(model.top_k),
            str(model.hidden),
            str(model.expert_intermediate),
            model.weight_dtype + (" (assumed)" if model.dtype_assumed else ""),
            human_bytes(model.expert_bytes),
        )
    return table


def model_report(model: ModelSpec) -> RenderableType:
    every_expert = model.expert_bytes * model.experts * len(model.placed_layer_ids)
    lines = [
        f"MoE layers: {spans(model.moe_layer_ids)}"
        + (f"; draft layers: {spans(model.draft_layer_ids)}" if model.draft_layer_ids else ""),
        f"dispatch carries {model.dispatch_width} of {model.hidden} elements; all routed experts together: {human_bytes(every_expert)}",
        f"source: {model.source}",
    ]
    return Group(models_table([model]), Text("\n".join(lines)))
