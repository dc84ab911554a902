"""Models: what a Mixture-of-Experts model is to a planner, from the catalogue or a config.json."""

from planner.model.attention import Attention
from planner.model.body import KV_BYTES, Body, body_from_dict, body_to_dict
from planner.model.body_weights import body_parts
from planner.model.catalog import find_model, model_aliases, model_names, recorded_on_another
from planner.model.config_json import spec_from_config
from planner.model.model import BYTES_PER_WEIGHT, ModelSpec
from planner.model.model_shape import MODEL_SHAPE

__all__ = [
    "BYTES_PER_WEIGHT",
    "KV_BYTES",
    "MODEL_SHAPE",
    "Attention",
    "Body",
    "ModelSpec",
    "body_from_dict",
    "body_parts",
    "body_to_dict",
    "find_model",
    "model_aliases",
    "model_names",
    "recorded_on_another",
    "spec_from_config",
]
