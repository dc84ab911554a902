"""How a Hugging Face release stores its routed experts' weights: quantization settings -> a weight dtype.

The dtypes are those of `planner.model.model`. Beside the experts a release may hold others (attention in
bf16, dense layers in MXFP8); only what is said of the experts counts.
"""

from typing import Any

from planner.base import BadInput
from planner.model.hf_config import shown
from planner.model.model import USUAL_METHODS

# Spelling of a scheme, lower case -> weight dtype.
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "fp4": "mxfp4"}
_PLAIN = {"bf16": "bf16", "bfloat16": "bf16"}
_MODELOPT = {"nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "fp8_pb_wo": "fp8", "w4a8_mxfp4_fp8": "mxfp4"}
_SCHEMES = _METHODS | _PLAIN | _MODELOPT
# (bits, kind, weights to a scale) of a config group. A group of None is any.
_GROUPS = {
    (8, "float", None): "fp8",
    (4, "int", None): "int4",
    (4, "float", 16): "nvfp4",
    (4, "float", 32): "mxfp4",
}


def weight_dtype(config: dict[str, Any], text: dict[str, Any], where: str) -> tuple[str, bool]:
    """(weight dtype of the routed experts, whether that is assumed).

    `text` is the text model's part of `config`, or `config` itself.
    """
    quantization = text.get("quantization_config") or config.get("quantization_config")
    if quantization:
        if not isinstance(quantization, dict):
            raise BadInput(f"{where}: 'quantization_config' is {shown(quantization)}; expected a mapping")
        return _quantized(quantization, text.get("expert_dtype"), where), False
    spellings = [part.get(key) for part in (text, config) for key in ("dtype", "torch_dtype")]
    stored = next((dtype for dtype in spellings if dtype), None)
    if stored in ("bfloat16", "float16", "torch.bfloat16", "torch.float16"):
        return "bf16", False  # stands for both 16-bit floats: the same bytes and the same rate
    if stored in (None, "auto", "float32", "torch.float32"):
        return "bf16", True  # engines serve float32 releases in 16 bits
    raise BadInput(
        f"{where}: the weight dtype 'dtype' or 'torch_dtype' is {shown(stored)}; "
        "known are bfloat16, float16 and float32"
    )


def quant_method(config: dict[str, Any], text: dict[str, Any], dtype: str) -> str:
    """How the release spells its quantization, where that is not the usual spelling of its dtype."""
    stated = text.get("quantization_config") or config.get("quantization_config") or {}
    method = stated.get("quant_method") or ("modelopt" if "quant_algo" in stated else "")
    return "" if not isinstance(method, str) or method.lower() == USUAL_METHODS[dtype] else method.lower()


def _quantized(quantization: dict[str, Any], expert_dtype: Any, where: str) -> str:
    """What is said of the experts alone comes first, what is said of the whole model last."""
    method = quantization.get("quant_method")
    if quantization.get("moe_quant_algo"):
        return _scheme(quantization["moe_quant_algo"], where)
    if quantization.get("quantized_layers"):
        return _scheme(_of_experts(quantization["quantized_layers"], where), where)
    if quantization.get("config_groups"):
        return _grouped(quantization["config_groups"], where)
    if expert_dtype is not None:
        return _scheme(expert_dtype, where)
    if method in ("gptq", "awq") and quantization.get("bits", quantization.get("w_bit")) == 4:
        return "int4"
    return _scheme(quantization.get("quant_algo") or method, where)


def _scheme(name: Any, where: str) -> str:
    if isinstance(name, str) and name.lower() in _SCHEMES:
        return _SCHEMES[name.lower()]
    raise _unknown(shown(name), where)


def _of_experts(layers: Any, where: str) -> Any:
    """Mixed precision as modelopt writes it: the scheme of the layers that hold routed experts."""
    if not isinstance(layers, dict):
        raise BadInput(f"{where}: 'quantized_layers' is {shown(layers)}; expected a mapping of layer names")
    schemes = [
        entry.get("quant_algo")
        for layer, entry in layers.items()
        if isinstance(entry, dict) and _names_experts(layer)
    ]
    if not schemes or any(scheme != schemes[0] for scheme in schemes):
        raise _unknown("'quantized_layers' with no scheme, or with several, for the routed experts", where)
    return schemes[0]


def _grouped(groups: Any, where: str) -> str:
    """compressed-tensors and modelopt: the scheme of the group that holds the experts."""
    weights = _experts_group(groups, where)["weights"]
    bits, kind, group = (weights.get(key) for key in ("num_bits", "type", "group_size"))
    for (known_bits, known_kind, known_group), dtype in _GROUPS.items():
        if (bits, kind) == (known_bits, known_kind) and known_group in (None, group):
            return dtype
    raise _unknown(f"{shown(bits)}-bit {shown(kind)} weights in groups of {shown(group)}", where)


def _experts_group(groups: Any, where: str) -> dict[str, Any]:
    """The group that names experts, else the only group."""
    entries: list[dict[str, Any]] = list(groups.values()) if isinstance(groups, dict) else []
    if not entries or not all(map(_is_group, entries)):
        expected = "expected groups, each with its 'weights'"
        raise BadInput(f"{where}: 'config_groups' is {shown(groups)}; {expected}")
    chosen = [entry for entry in entries if _targets_experts(entry)] or entries
    if len(chosen) > 1:
        silent = f"{len(entries)} config groups that do not say which one holds the routed experts"
        raise _unknown(silent, where)
    return chosen[0]


def _is_group(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("weights"), dict)


def _targets_experts(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("targets"), list) and any(map(_names_experts, entry["targets"]))


def _names_experts(layer: Any) -> bool:
    return isinstance(layer, str) and "experts" in layer and "shared_experts" not in layer


def _unknown(what: str, where: str) -> BadInput:
    return BadInput(
        f"{where}: quantization {what} is not one we know; "
        "take 'quantization_config' out of a copy of the file to plan with its unquantized dtype"
    )
