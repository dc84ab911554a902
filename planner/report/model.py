"""Models as tables for a terminal."""

from typing import Any

from rich.console import RenderableType
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
    """A row a model; `model show` has the rest. Names come first, and all of them."""
    rows = [
        (
            " ".join((model.name, *(f"({alias})" for alias in model_aliases(model.name)))),
            f"{len(model.moe_layer_ids)} of {model.layers}",
            str(model.experts),
            str(model.top_k),
            model.weight_dtype + (" assumed" if model.dtype_assumed else ""),
            human_bytes(model.expert_bytes),
        )
        for model in models
    ]
    names = ("model", "MoE layers", "experts", "top-k", "dtype", "one expert")
    return table_of(names, rows, words=("model", "dtype"))


def model_report(model: ModelSpec) -> RenderableType:
    every_expert = human_bytes(model.expert_bytes * model.experts * len(model.placed_layer_ids))
    drafts = f"; draft layers: {spans(model.draft_layer_ids)}" if model.draft_layer_ids else ""
    width = f"dispatch carries {model.dispatch_width} of {model.hidden} elements"
    assumed = " (assumed)" if model.dtype_assumed else ""
    lines = [
        model.name,
        f"also called: {', '.join(model_aliases(model.name)) or 'nothing else'}",
        f"{model.experts} experts a layer, top-{model.top_k}, and {model.shared_experts} shared",
        f"weights in {model.weight_dtype}{assumed}: {human_bytes(model.expert_bytes)} an expert of a layer",
        f"hidden {model.hidden}, expert width {model.expert_intermediate}",
        f"MoE layers: {spans(model.moe_layer_ids)}{drafts}",
        f"{width}; all routed experts together: {every_expert}",
        f"source: {model.source}",
    ]
    return Text("\n".join(lines))
