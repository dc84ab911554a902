"""Models: what a Mixture-of-Experts model is to a planner, from the catalogue or a config.json."""

from planner.model.catalog import find_model, model_aliases, model_names
from planner.model.config_json import spec_from_config
from planner.model.model import BYTES_PER_WEIGHT, ModelSpec

__all__ = ["BYTES_PER_WEIGHT", "ModelSpec", "find_model", "model_aliases", "model_names", "spec_from_config"]
