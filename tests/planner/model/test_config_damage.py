"""A damaged config.json gives a model or one line, and so does any JSON."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.model import ModelSpec, spec_from_config
from planner.model.families import FAMILIES
from tests.planner.model.configs import CONFIGS


def model_or_one_line(config: Any) -> bool:
    try:
        return isinstance(spec_from_config(config, "m", "f"), ModelSpec)
    except BadInput as error:
        return "\n" not in str(error)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["bfloat16", "fp8", "moe", "E", "1,2"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


OPTIONAL_KEYS = ["mlp_layer_types", "moe_layer_freq", "mlp_only_layers", "moe_layers"]
OPTIONAL_KEYS += ["quantization_config", "n_group", "expert_dtype", "zero_expert_num"]


@settings(deadline=None, derandomize=True, max_examples=400)
@given(data=st.data(), config=st.sampled_from(CONFIGS))
def test_any_damage_to_a_config_gives_a_model_or_one_line(
    data: st.DataObject, config: dict[str, Any]
) -> None:
    """Replace, drop and add values of a good config: never another exception than BadInput."""
    damaged = json.loads(json.dumps(config))
    parts = (damaged, damaged.get("text_config"), damaged.get("ffn_config"))
    part = data.draw(st.sampled_from([entry for entry in parts if entry]))
    keys = st.sampled_from(sorted({*part, *OPTIONAL_KEYS}))
    for key in data.draw(st.lists(keys, min_size=1, max_size=3)):
        part[key] = data.draw(JSON)
    assert model_or_one_line(damaged)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(config=JSON, kind=st.sampled_from(sorted(FAMILIES)))
def test_any_json_gives_a_model_or_one_line(config: Any, kind: str) -> None:
    """Not even a mapping is promised."""
    assert model_or_one_line(config)
    if isinstance(config, dict):
        assert model_or_one_line({**config, "model_type": kind})
