"""The models of measured whole steps, from the configs that an installed aiconfigurator-core has of them."""

import re
from dataclasses import replace
from pathlib import Path

from planner.base import read_json
from planner.model import ModelSpec, spec_from_config

EXPERTS = re.compile(r'"(num_experts|n_routed_experts|num_local_experts)"')  # of a config that has some


class Models:
    """Releases as the package's configs say, with weights of a row's precision."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], ModelSpec] = {}

    def find(self, release: str, precision: str) -> ModelSpec:
        """fp4 rows are NVFP4 conversions with attention in bf16; MXFP4 releases are served as they are."""
        key = release, precision
        if key not in self._known:
            config = self._config(release)
            model = spec_from_config(read_json(config), release, config.name)
            self._known[key] = model if model.weight_dtype == "mxfp4" else _converted(model, precision)
        return self._known[key]

    def has_experts(self, release: str) -> bool:
        """False for the dense models of the list, and for one without a config."""
        config = self._config(release)
        return config.is_file() and bool(EXPERTS.search(config.read_text(encoding="utf-8")))

    def _config(self, release: str) -> Path:
        """The release's own, or that of the release it was converted from."""
        own = self._folder / f"{release.replace('/', '--')}_config.json"
        name = release.rsplit("/", maxsplit=1)[-1].removesuffix("-NVFP4")
        others = sorted(self._folder.glob(f"*--{name}_config.json"))
        return own if own.is_file() or not others else others[0]


def _converted(model: ModelSpec, precision: str) -> ModelSpec:
    assert model.body is not None, "the configs of the package are whole"
    if precision == model.weight_dtype:
        return model
    attention, rest = ("bf16", "nvfp4") if precision == "fp4" else ("fp8", "fp8")
    body = replace(model.body, attention_dtype=attention, dense_dtype=rest, shared_dtype=rest)
    return replace(model, weight_dtype=rest, body=body)
