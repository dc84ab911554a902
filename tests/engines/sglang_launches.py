"""The launches of test_sglang_launches.py, and how SGLang is asked about each."""

import shlex
from collections.abc import Iterator
from functools import cached_property

from planner.engines import Emission
from tests.engines import launches
from tests.engines.launches import Answer, Launch
from tests.engines.sglang_catalogue import config_of

DRIVERS = {  # MiB of memory and compute capability as the driver says them
    "8 x H100": (81559, (9, 0)),
    "2 x 8 H100": (81559, (9, 0)),
    "2 x 8 B200": (183359, (10, 0)),
    "GB200 rack": (189471, (10, 0)),
}


class Asked(Launch):
    ENGINE = "sglang"
    CHECKED = "SGLang 0.5.23's own resolution and expert layers, on a CPU"

    @cached_property
    def launch(self) -> Answer:
        """The first node's, for the resolver."""
        assert isinstance(self.emission, Emission)
        memory, capability = DRIVERS[self.machine]
        command, topology = self.emission.commands[0], self.problem.topology
        told = " ".join(command.words).replace('"$PLAN_DIR"', "/plan").replace("$HEAD_ADDRESS", "10.0.0.1")
        words = shlex.split(told)
        return {
            "words": words[words.index("MODEL") + 1 :], "env": dict(command.environment),
            "config": self.config, "memory_mib": memory, "capability": capability,
            "devices": topology.gpu_count // topology.node_count,
        }  # fmt: skip

    @property
    def outcome(self) -> str:
        assert isinstance(self.emission, Emission)
        return "map ignored" if self.emission.ignored else super().outcome


def catalogue() -> Iterator[Asked]:
    return launches.catalogue(Asked, config_of)


def shared_attention() -> Iterator[Asked]:
    return launches.shared_attention(Asked, config_of)


def quantised() -> Iterator[Asked]:
    roles = (("decode", "decode"), ("prefill", "prefill"), ("decode", "mixed"))
    return launches.quantised(Asked, roles)
