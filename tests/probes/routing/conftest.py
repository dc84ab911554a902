"""A server of an engine that runs while a test does, and the model that it serves."""

from collections.abc import Iterator

import pytest

from planner.model import ModelSpec, spec_from_config
from tests.probes.engine_server import Engine, serving
from tests.probes.routing.toy import CONFIG


@pytest.fixture
def engine() -> Iterator[Engine]:
    with serving(Engine()) as running:
        yield running


@pytest.fixture
def model() -> ModelSpec:
    return spec_from_config(CONFIG, "toy", "toy")
