"""A Hugging Face config.json -> the model's Body; None where the file does not say all of it."""

from dataclasses import replace
from typing import Any

from planner.model.attention import Attention
from planner.model.attention_layers import WIDEST
from planner.model.body import Body
from planner.model.body_dtype import body_dtypes, kv_dtype
from planner.model.families import Family
from planner.model.hf_config import HfConfig, Missing
from planner.model.moe_layers import blocks


def body_from_config(
    config: dict[str, Any], reader: HfConfig, family: Family, spec_facts: dict[str, Any]
) -> Body | None:
    """`spec_facts`: what was read of the same file for the ModelSpec, by field."""
    try:
        return _read(config, reader, family, spec_facts)
    except Missing:
        return None


def _read(config: dict[str, Any], reader: HfConfig, family: Family, spec: dict[str, Any]) -> Body:
    layers, drafts = spec["layers"], len(spec["draft_layer_ids"])
    attention = family.attention(reader, layers)
    dense = _dense_layers(reader, family, spec)
    width = reader.whole(family.dense_width, 1, WIDEST) if dense else 0
    return Body(
        attention=_counted(attention),
        vocabulary=reader.whole("vocab_size", 1, WIDEST),
        tied=_tied(config, reader, family),
        draft_attention=_counted(_of_drafts(attention, drafts)),
        dense_layers=dense,
        dense_width=width,
        dense_matrices=family.matrices,
        shared_width=_shared_width(reader, family, spec),
        **body_dtypes(config, reader.values, spec["weight_dtype"]),
        kv_dtype=kv_dtype(config, reader.values),
    )


def _counted(layers: list[Attention | None]) -> tuple[Attention, ...]:
    """A kind each with its number of layers, in the order in which they first come."""
    kinds: dict[Attention, int] = {}
    for layer in layers:
        if layer is not None:
            kinds[layer] = kinds.get(layer, 0) + 1
    return tuple(replace(kind, layers=count) for kind, count in kinds.items())


def _of_drafts(layers: list[Attention | None], drafts: int) -> list[Attention | None]:
    """A draft layer's attention is that of the decoder's layers without a state; DeepSeek-V4's a window."""
    kinds = [
        layer for layer in layers if layer is not None and layer.kind in ("grouped", "mla", "compressed")
    ]
    if not kinds:
        return []
    return [min(kinds, key=lambda kind: (kind.ratio, kind.window, -kind.index_dim))] * drafts


def _dense_layers(reader: HfConfig, family: Family, spec: dict[str, Any]) -> int:
    layers: int = spec["layers"]
    if family.dense == "beside":
        return layers
    if family.dense == "twice":
        return 2 * layers
    if family.dense == "blocks":
        return blocks(reader, "hybrid_override_pattern", "layers_block_type").count("mlp")
    moe: int = len(spec["moe_layer_ids"])
    return layers - moe


def _shared_width(reader: HfConfig, family: Family, spec: dict[str, Any]) -> int:
    """Of all shared experts of a layer; a family has a key for it, or they are as wide as routed ones."""
    count: int = spec["shared_experts"]
    if not count:
        return 0
    if not family.shared_width:
        width: int = spec["expert_intermediate"]
        return count * width
    return reader.whole(family.shared_width, 0, WIDEST)


def _tied(config: dict[str, Any], reader: HfConfig, family: Family) -> bool:
    said = reader.get("tie_word_embeddings")
    if said is None:
        said = config.get("tie_word_embeddings")
    return family.tied if said is None else bool(said)
