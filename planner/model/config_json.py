"""A Hugging Face config.json -> ModelSpec.

A fact the file does not state is refused, not filled in with a class default: defaults and releases differ
(OLMoE, dots1). The text model of a multimodal config is read from its `text_config`.
"""

from dataclasses import dataclass
from typing import Any

from planner.base import BadInput
from planner.model.config_body import body_from_config
from planner.model.families import FAMILIES, Family
from planner.model.hf_config import HfConfig, quoted, shown
from planner.model.limits import LARGEST_WIDTH, MOST_EXPERTS, MOST_LAYERS
from planner.model.model import ModelSpec
from planner.model.moe_layers import blocks
from planner.model.weight_dtype import quant_method, weight_dtype


def spec_from_config(config: dict[str, Any], name: str, source: str) -> ModelSpec:
    """The model a config.json describes. `source` names the file in messages.

    BadInput where it is not a MoE model we know, or a fact is missing.
    """
    if not isinstance(config, dict):
        raise BadInput(f"{source}: expected a mapping of model facts; got {shown(config)}")
    text = config.get("text_config")
    reader = HfConfig(text if isinstance(text, dict) else config, source)
    architecture, family = _family(config, reader)
    _refuse_dense(reader, family)
    layers = _layers(reader, family)
    hidden = reader.whole(family.hidden, 1, LARGEST_WIDTH)
    dtype, assumed = weight_dtype(config, reader.values, source)
    facts: dict[str, Any] = {
        "layers": layers.count,
        "moe_layer_ids": tuple(layers.moe_ids),
        "experts": layers.whole(family.experts, 2, MOST_EXPERTS),
        "top_k": layers.whole(family.top_k, 1, MOST_EXPERTS),
        "hidden": hidden,
        "expert_intermediate": layers.whole(family.width, 1, LARGEST_WIDTH),
        "dispatch_width": _dispatch_width(reader, family, hidden),
        "weight_dtype": dtype,
        "draft_layer_ids": tuple(family.draft_layers(reader, layers.count)),
        "shared_experts": layers.shared(family.shared),
        "expert_groups": reader.whole(family.groups, 1, MOST_EXPERTS, default=1),
        "groups_per_token": reader.whole("topk_group", 1, MOST_EXPERTS, default=1),
        "expert_matrices": family.matrices,
        "dtype_assumed": assumed,
        "quant_method": quant_method(config, reader.values, dtype),
    }
    body = body_from_config(config, reader, family, facts)
    return ModelSpec(name=name, architecture=architecture, source=source, body=body, **facts)


def _family(config: dict[str, Any], reader: HfConfig) -> tuple[str, Family]:
    """The whole model's type where we know it, else its text model's.

    Some releases name only one of them, or put a known text model in a new frame.
    """
    named = [kind for kind in (config.get("model_type"), reader.values.get("model_type")) if kind is not None]
    for kind in named:
        if isinstance(kind, str) and kind in FAMILIES:
            return kind, FAMILIES[kind]
    if not named:
        raise BadInput(f"{reader.where}: the key 'model_type' is missing; give the model's config.json")
    names_experts = any("expert" in str(key) for key in reader.values)
    dense = " and names no experts, so it may be a dense model with nothing to place"
    raise BadInput(
        f"{reader.where}: model_type {shown(named[0])} is not one we read{'' if names_experts else dense}; "
        f"known are {', '.join(sorted(FAMILIES))}"
    )


def _refuse_dense(reader: HfConfig, family: Family) -> None:
    experts = reader.get(family.experts)
    if experts is None:
        raise _dense(reader, f"the key {quoted(family.experts)} is missing or null")
    if experts in (0, 1):
        raise _dense(reader, f"{quoted(family.experts)} is {experts}")
    if reader.get("enable_moe_block") is False:
        raise _dense(reader, "'enable_moe_block' is false")
    zero = reader.get("zero_expert_num")
    if zero is not None and reader.check("zero_expert_num", zero, 0, MOST_EXPERTS):
        raise BadInput(
            f"{reader.where}: its {zero} zero-compute experts take tokens but sit on no GPU; "
            "moeplan cannot describe such a model yet"
        )


def _dense(reader: HfConfig, said: str) -> BadInput:
    return BadInput(
        f"{reader.where}: {said}: a dense model has no experts to place; "
        "give the config.json of a Mixture-of-Experts model"
    )


def _dispatch_width(reader: HfConfig, family: Family, hidden: int) -> int:
    if not family.dispatch_width:
        return hidden
    return reader.whole(family.dispatch_width, 1, LARGEST_WIDTH, default=hidden)


@dataclass(frozen=True)
class _Layers:
    """The decoder's layers, and the facts that a file may state for each of them."""

    reader: HfConfig
    count: int
    moe_ids: list[int]

    def whole(self, keys: str, least: int, most: int) -> int:
        """A number, or Hunyuan's list with one for each layer, which must agree over the MoE layers."""
        value = self.reader.get(keys)
        if not isinstance(value, list):
            return self.reader.whole(keys, least, most)
        said = f"{self.reader.where}: {quoted(keys)}"
        if len(value) != self.count:
            expected = f"expected one for each of {self.count} layers"
            raise BadInput(f"{said} has {len(value)} entries; {expected}")
        inside = [layer for layer in self.moe_ids if layer < self.count]
        chosen = [self.reader.check(keys, value[layer], least, most) for layer in inside]
        if len(set(chosen)) != 1:
            raise BadInput(
                f"{said} differs between MoE layers ({shown(sorted(set(chosen)))}); "
                "moeplan plans models with one value"
            )
        return chosen[0]

    def shared(self, shared: str | int) -> int:
        """How many shared experts. Qwen states the width of its one instead."""
        if isinstance(shared, int):
            return shared
        if self.reader.get(shared) is None:
            return 0
        count = self.whole(shared, 0, LARGEST_WIDTH)
        return min(count, 1) if shared.endswith("_size") else count


def _layers(reader: HfConfig, family: Family) -> _Layers:
    if family.layers:
        count = reader.whole(family.layers, 1, MOST_LAYERS)
    else:
        count = len(blocks(reader, "hybrid_override_pattern", "layers_block_type"))
    return _Layers(reader, count, family.moe_layers(reader, count))
