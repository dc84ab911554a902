"""Which layers of a config.json hold routed experts: one rule for each way of saying it.

A rule takes the config and the number of decoder layers and returns ascending layer ids; a draft rule's ids
follow the decoder's.
"""

from collections.abc import Callable

from planner.base import BadInput
from planner.model.hf_config import HfConfig, shown
from planner.model.limits import MOST_LAYERS

LayerRule = Callable[[HfConfig, int], list[int]]
MOST_DRAFT_STEPS = 1000


def every(_config: HfConfig, layers: int) -> list[int]:
    return list(range(layers))


def after_dense(config: HfConfig, layers: int) -> list[int]:
    """DeepSeek and its kin: a list per layer where there is one.

    Else `first_k_dense_replace`, and every `moe_layer_freq`-th layer after it.
    """
    words = config.words("mlp_layer_types", layers, ("dense", "sparse", "moe", "hash_moe"))
    if words is not None:
        return [layer for layer, word in enumerate(words) if word != "dense"]
    if isinstance(config.get("moe_layer_freq"), list):
        return _flagged(config, layers)
    first = config.whole("first_k_dense_replace", 0, MOST_LAYERS)
    step = config.whole("moe_layer_freq", 1, MOST_LAYERS, default=1)
    return [layer for layer in range(first, layers) if layer % step == 0]


def _flagged(config: HfConfig, layers: int) -> list[int]:
    flags = config.wholes("moe_layer_freq", MOST_LAYERS) or []
    if len(flags) != layers or not set(flags) <= {0, 1}:
        expected = f"expected a 0 or 1 for each of {layers} layers"
        raise BadInput(f"{config.where}: 'moe_layer_freq' is {shown(flags)}; {expected}")
    return [layer for layer, flag in enumerate(flags) if flag]


def sparse_step(config: HfConfig, layers: int) -> list[int]:
    step = config.whole("decoder_sparse_step", 1, MOST_LAYERS, default=1)
    dense = set(config.wholes("mlp_only_layers", MOST_LAYERS) or [])
    return [layer for layer in range(layers) if (layer + 1) % step == 0 and layer not in dense]


def interleaved(config: HfConfig, layers: int) -> list[int]:
    listed = config.wholes("moe_layers", MOST_LAYERS)
    step = config.whole("interleave_moe_layer_step", 1, MOST_LAYERS, default=1)
    return sorted(listed) if listed is not None else list(range(step - 1, layers, step))


def period(config: HfConfig, layers: int) -> list[int]:
    step = config.whole("expert_layer_period", 1, MOST_LAYERS)
    return list(range(config.whole("expert_layer_offset", 0, step - 1), layers, step))


def interval(config: HfConfig, layers: int) -> list[int]:
    first = config.whole("moe_layer_start_index", 0, MOST_LAYERS)
    last = config.whole("moe_layer_end_index", -1, MOST_LAYERS, default=-1)
    step = config.whole("moe_layer_interval", 1, MOST_LAYERS, default=1)
    end = layers if last == -1 else min(last + 1, layers)
    return [layer for layer in range(first, end) if (layer + 1) % step == 0]


def after_skipped(config: HfConfig, layers: int) -> list[int]:
    return list(range(config.whole("moe_layer_num_skipped", 0, MOST_LAYERS, default=0), layers))


def enumerated(config: HfConfig, layers: int) -> list[int]:
    """Step: the enumeration may go past the decoder into draft layers."""
    listed = config.wholes("moe_layers_enum", MOST_LAYERS)
    if listed is None:
        return after_dense(config, layers)
    return sorted(layer for layer in listed if layer < layers)


def block_layers(config: HfConfig, _layers: int) -> list[int]:
    kinds = blocks(config, "hybrid_override_pattern", "layers_block_type")
    return [layer for layer, kind in enumerate(kinds) if kind == "moe"]


def blocks(config: HfConfig, pattern_key: str, list_key: str) -> list[str]:
    """Nemotron-H: the kind of each layer, from the list or from the older pattern of letters."""
    letters = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    listed = config.words(list_key, None, (*letters.values(), "linear_attention", "full_attention"))
    if listed is not None:
        return listed
    pattern = config.get(pattern_key)
    if isinstance(pattern, str) and 0 < len(pattern) <= MOST_LAYERS and set(pattern) <= set(letters):
        return [letters[letter] for letter in pattern]
    raise BadInput(
        f"{config.where}: '{pattern_key}' is {shown(pattern)}; "
        f"expected a letter M, E, * or - for each layer, or the list '{list_key}'"
    )


def no_draft(_config: HfConfig, _layers: int) -> list[int]:
    return []


def draft(config: HfConfig, layers: int) -> list[int]:
    """One layer of experts for each draft step.

    A config that names no steps has none: such layers may exist, but the file does not say so.
    """
    keys = "num_nextn_predict_layers|num_mtp_layers|mtp_num_hidden_layers"
    return list(range(layers, layers + config.whole(keys, 0, MOST_DRAFT_STEPS, default=0)))


def draft_blocks(config: HfConfig, layers: int) -> list[int]:
    """Nemotron-H: each draft step is a run of layers like the decoder's, of which only some hold experts."""
    steps = config.whole("num_nextn_predict_layers", 0, MOST_DRAFT_STEPS, default=0)
    run = blocks(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type") if steps else []
    if steps * len(run) > MOST_LAYERS:
        asked = f"{steps} draft steps of {len(run)} layers"
        raise BadInput(f"{config.where}: {asked} are more than {MOST_LAYERS:,} layers")
    return [layers + offset for offset, kind in enumerate(run * steps) if kind == "moe"]


def draft_enumerated(config: HfConfig, layers: int) -> list[int]:
    """Step: draft layers are dense unless the enumeration names them."""
    listed = set(config.wholes("moe_layers_enum", MOST_LAYERS) or [])
    return [layer for layer in draft(config, layers) if layer in listed]
