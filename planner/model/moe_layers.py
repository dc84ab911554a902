"""Which layers of a Hugging Face config.json hold routed experts: a checked reader of its keys, and one rule for each way of saying it.

A rule takes the config and the number of decoder layers and returns ascending layer ids; a draft rule's ids follow the decoder's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.base import BadInput
from planner.model.weight_dtype import shown

MOST_LAYERS = 10_000  # far past any model; a hostile file must not make us loop


@dataclass(frozen=True)
class HfConfig:
    """The text model's part of a config.json. Keys are tried from left to right in 'a|b'; a dot goes into a nested mapping; null counts as absent."""

    values: dict[str, Any]
    where: str

    def get(self, keys: str) -> Any:
        for key in keys.split("|"):
            found: Any = self.values
            for part in key.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            if found is not None:
                return found
        return None

    def whole(self, keys: str, least: int, most: int, default: int | None = None) -> int:
        value = self.get(keys)
        if value is None and default is None:
            raise BadInput(
                f"{self.where}: the key {quoted(keys)} is missing or null; give the model's complete config.json"
            )
        return self.check(keys, default if value is None else value, least, most)

    def check(self, keys: str, value: Any, least: int, most: int) -> int:
        if type(value) is not int or not least <= value <= most:
            raise BadInput(
                f"{self.where}: {quoted(keys)} is {shown(value)}; expected a whole number from {least} to {most:,}"
            )
        return value

    def wholes(self, key: str, most: int) -> list[int] | None:
        """A list of whole numbers, or its spelling '3,4,5'."""
        value = self.get(key)
        if isinstance(value, str):
            value = [
                int(part) if part.strip().isdecimal() and len(part) < 10 else part
                for part in value.split(",")
            ]
        if value is not None and (not isinstance(value, list) or len(value) > most):
            raise BadInput(
                f"{self.where}: '{key}' is {shown(value)}; expected a list of at most {most:,} whole numbers"
            )
        return None if value is None else [self.check(key, entry, 0, MOST_LAYERS) for entry in value]

    def words(self, key: str, layers: int | None, known: tuple[str, ...]) -> list[str] | None:
        """One of the known words for each layer."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MOST_LAYERS or layers not in (None, len(value)):
            count = f"{layers:,}" if layers is not None else f"at most {MOST_LAYERS:,}"
            raise BadInput(
                f"{self.where}: '{key}' is {shown(value)}; expected a list with one word for each of {count} layers"
            )
        for entry in value:
            if entry not in known:
                raise BadInput(f"{self.where}: '{key}' holds {shown(entry)}; known are {', '.join(known)}")
        return value


LayerRule = Callable[
    [HfConfig, int], list[int]
]  # config, number of decoder layers -> ids of the layers that hold routed experts


def every(_config: HfConfig, layers: int) -> list[int]:
    return list(range(layers))


def after_dense(config: HfConfig, layers: int) -> list[int]:
    """DeepSeek and its kin: a list per layer where there is one, else `first_k_dense_replace` and every `moe_layer_freq`-th layer after it."""
    words = config.words("mlp_layer_types", layers, ("dense", "sparse", "moe", "hash_moe"))
    if words is not None:
        return [layer for layer, word in enumerate(words) if word != "dense"]
    if isinstance(config.get("moe_layer_freq"), list):
        flags = config.wholes("moe_layer_freq", MOST_LAYERS) or []
        if len(flags) != layers or not set(flags) <= {0, 1}:
            raise BadInput(
                f"{config.where}: 'moe_layer_freq' is {shown(flags)}; expected a 0 or 1 for each of {layers} layers"
            )
        return [layer for layer, flag in enumerate(flags) if flag]
    first, step = (
        config.whole("first_k_dense_replace", 0, MOST_LAYERS),
        config.whole("moe_layer_freq", 1, MOST_LAYERS, default=1),
    )
    return [layer for layer in range(first, layers) if layer % step == 0]


def sparse_step(config: HfConfig, layers: int) -> list[int]:
    step, dense = (
        config.whole("decoder_sparse_step", 1, MOST_LAYERS, default=1),
        set(config.wholes("mlp_only_layers", MOST_LAYERS) or []),
    )
    return [layer for layer in range(layers) if (layer + 1) % step == 0 and layer not in dense]


def interleaved(config: HfConfig, layers: int) -> list[int]:
    listed = config.wholes("moe_layers", MOST_LAYERS)
    step = config.whole("interleave_moe_layer_step", 1, MOST_LAYERS, default=1)
    return sorted(listed) if listed is not None else list(range(step - 1, layers, step))


def period(config: HfConfig, layers: int) -> list[int]:
    step = config.whole("expert_layer_period", 1, MOST_LAYERS)
    return list(range(config.whole("expert_layer_offset", 0, step - 1), layers, step))


def interval(config: HfConfig, layers: int) -> list[int]:
    first, last = (
        config.whole("moe_layer_start_index", 0, MOST_LAYERS),
        config.whole("moe_layer_end_index", -1, MOST_LAYERS, default=-1),
    )
    step = config.whole("moe_layer_interval", 1, MOST_LAYERS, default=1)
    return [
        layer
        for layer in range(first, layers if last == -1 else min(last + 1, layers))
        if (layer + 1) % step == 0
    ]


def after_skipped(config: HfConfig, layers: int) -> list[int]:
    return list(range(config.whole("moe_layer_num_skipped", 0, MOST_LAYERS, default=0), layers))


def enumerated(config: HfConfig, layers: int) -> list[int]:
    """Step: the enumeration may go past the decoder into draft layers."""
    listed = config.wholes("moe_layers_enum", MOST_LAYERS)
    return (
        after_dense(config, layers) if listed is None else sorted(layer for layer in listed if layer < layers)
    )


def block_layers(config: HfConfig, _layers: int) -> list[int]:
    return [
        layer
        for layer, block in enumerate(blocks(config, "hybrid_override_pattern", "layers_block_type"))
        if block == "moe"
    ]


def blocks(config: HfConfig, pattern_key: str, list_key: str) -> list[str]:
    """Nemotron-H: the kind of each layer, from the list or from the older pattern of letters."""
    letters = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    listed = config.words(list_key, None, (*letters.values(), "linear_attention", "full_attention"))
    pattern = config.get(pattern_key)
    if listed is not None:
        return listed
    if (
        not isinstance(pattern, str)
        or not 0 < len(pattern) <= MOST_LAYERS
        or not set(pattern) <= set(letters)
    ):
        raise BadInput(
            f"{config.where}: '{pattern_key}' is {shown(pattern)}; expected a letter M, E, * or - for each layer, or the list '{list_key}'"
        )
    return [letters[letter] for letter in pattern]


def no_draft(_config: HfConfig, _layers: int) -> list[int]:
    return []


def draft(config: HfConfig, layers: int) -> list[int]:
    """One layer of experts for each draft step. A config that names no steps has none: such layers may exist, but the file does not say so."""
    return list(
        range(
            layers,
            layers
            + config.whole(
                "num_nextn_predict_layers|num_mtp_layers|mtp_num_hidden_layers", 0, 1000, default=0
            ),
        )
    )


def draft_blocks(config: HfConfig, layers: int) -> list[int]:
    """Nemotron-H: each draft step is a run of layers like the decoder's, of which only some hold experts."""
    steps = config.whole("num_nextn_predict_layers", 0, 1000, default=0)
    run = blocks(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type") if steps else []
    if steps * len(run) > MOST_LAYERS:
        raise BadInput(
            f"{config.where}: {steps} draft steps of {len(run)} layers are more than {MOST_LAYERS:,} layers"
        )
    return [layers + offset for offset, block in enumerate(run * steps) if block == "moe"]


def draft_enumerated(config: HfConfig, layers: int) -> list[int]:
    """Step: draft layers are dense unless the enumeration names them."""
    listed = set(config.wholes("moe_layers_enum", MOST_LAYERS) or [])
    return [layer for layer in draft(config, layers) if layer in listed]


def quoted(keys: str) -> str:
    return " or ".join(f"'{key}'" for key in keys.split("|"))
