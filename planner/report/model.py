"""Models as tables for a terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes
from planner.load import spans
from planner.model import ModelSpec, model_aliases
from planner.report.tables import table_of


def model_rows(models: list[ModelSpec]) -> list[dict[str, Any]]:
    """Plain facts of each model, for machines."""
    return [_facts(model) for model in models]


def _facts(model: ModelSpec) -> dict[str, Any]:
    return {
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


def models_table(models: list[ModelSpec]) -> Table:
    shown = [_shown(model) for model in models]
    names = shown[0] if shown else ()
    return table_of(
        names, [tuple(cells.values()) for cells in shown], words=("model", "also called", "dtype")
    )


def _shown(model: ModelSpec) -> dict[str, str]:
    return {
        "model": model.name,
        "also called": ", ".join(model_aliases(model.name)),
        "MoE layers": f"{len(model.moe_layer_ids)} of {model.layers}",
        "draft": str(len(model.draft_layer_ids) or ""),
        "experts": str(model.experts),
        "top-k": str(model.top_k),
        "hidden": str(model.hidden),
        "expert width": str(model.expert_intermediate),
        "dtype": model.weight_dtype + (" (assumed)" if model.dtype_assumed else ""),
        "one expert": human_bytes(model.expert_bytes),
    }


def model_report(model: ModelSpec) -> RenderableType:
    every_expert = human_bytes(model.expert_bytes * model.experts * len(model.placed_layer_ids))
    drafts = f"; draft layers: {spans(model.draft_layer_ids)}" if model.draft_layer_ids else ""
    width = f"dispatch carries {model.dispatch_width} of {model.hidden} elements"
    lines = [
        f"MoE layers: {spans(model.moe_layer_ids)}{drafts}",
        f"{width}; all routed experts together: {every_expert}",
        f"source: {model.source}",
    ]
    return Group(models_table([model]), Text("\n".join(lines)))
