"""How a release stores its weights outside the routed experts: quantization settings -> a dtype a part.

A part that the settings leave out is in bf16, also where only some of its weights are named: that is never
less than what the part takes.
"""

import re
from typing import Any

NAMES = {
    "attention": re.compile(r"(self_attn|linear_attn|(^|[.*])attn([.*]|$)|mixer\.(q|k|v|o|in|out)_)"),
    "shared": re.compile(r"shared_expert(s|\b)(?!_gate)"),
    "dense": re.compile(r"(mlp|ffn)(\*|\\?\.(\*|\(|(gate|up|down|gate_up)_))"),
}
SMALL = re.compile(r"(norm|conv1d|index|bias|_gate\b|\.[ab]_proj|\.in_proj_[ab]\b|experts\.\d)")
LISTS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")
# Methods and algorithms that quantize only the routed experts, whatever they leave out.
EXPERTS_ALONE = ("mxfp4",)
FLOAT8 = 8  # bits


def body_dtypes(config: dict[str, Any], text: dict[str, Any], weight_dtype: str) -> dict[str, str]:
    """`attention_dtype`, `dense_dtype` and `shared_dtype` of a config whose experts are in `weight_dtype`."""
    stated = _settings(config, text)
    if not stated or _method(stated) in EXPERTS_ALONE:
        return {f"{part}_dtype": "bf16" for part in NAMES}
    left_out = [name for key in LISTS for name in _names(stated.get(key)) if not SMALL.search(name)]
    usual = "fp8" if _method(stated) == "fp8" else weight_dtype  # beside experts of another dtype
    return {
        f"{part}_dtype": "bf16" if any(map(pattern.search, left_out)) else _listed(stated, pattern, usual)
        for part, pattern in NAMES.items()
    }


def kv_dtype(config: dict[str, Any], text: dict[str, Any]) -> str:
    """fp8 where the release asks for it: its scales are in the checkpoint."""
    stated = _settings(config, text)
    scheme = stated.get("kv_cache_scheme")
    bits = scheme.get("num_bits") if isinstance(scheme, dict) else None
    asked = str(stated.get("kv_cache_quant_algo") or "").upper() == "FP8"
    return "fp8" if asked or bits == FLOAT8 else "bf16"


def _settings(config: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    found = text.get("quantization_config") or config.get("quantization_config") or {}
    return found if isinstance(found, dict) else {}


def _method(stated: dict[str, Any]) -> str:
    return str(stated.get("quant_method") or "").lower()


def _names(listed: Any) -> list[str]:
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _listed(stated: dict[str, Any], pattern: re.Pattern[str], usual: str) -> str:
    """Where modelopt lists every quantized layer, a part that is not among them is in bf16."""
    layers = stated.get("quantized_layers")
    if not isinstance(layers, dict) or not layers:
        return usual
    schemes = {
        str(entry.get("quant_algo")).upper()
        for name, entry in layers.items()
        if isinstance(entry, dict) and pattern.search(name) and not SMALL.search(name)
    }
    if not schemes:
        return "bf16"
    return "fp8" if schemes & {"FP8", "MXFP8", "FP8_PB_WO"} else usual
