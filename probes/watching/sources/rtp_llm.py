"""RTP-LLM: the gauge rtp_llm_gpu_loads by rank and layer, as Prometheus text. Loads of GPUs, not of experts.

So it tells how even the server is, and no plan can be made of it. Source: its metrics at 4b8d39c, read.
"""

from collections import defaultdict
from collections.abc import Iterator

from planner.base import BadInput
from planner.load import Heard, Known
from planner.model import ModelSpec
from probes.routing.web import Server, fetch
from probes.watching.place import Place
from probes.watching.prometheus import Sample, samples

NAME = "rtp_llm"
NEEDS = ("urls",)
LOADS = "rtp_llm_gpu_loads"


def source(place: Place, model: ModelSpec) -> "GpuLoads":
    del model
    return GpuLoads(tuple(place.servers()))


class GpuLoads:
    """`servers`: the exporter of every rank, or one that has them all; the path /metrics of each."""

    def __init__(self, servers: tuple[Server, ...]) -> None:
        self._servers = servers

    def poll(self, known: Known) -> Iterator[Heard]:
        del known
        found: list[Sample] = []
        for server in self._servers:
            where = server.at("/metrics")
            found += samples(fetch(server, "/metrics"), where, LOADS)
        yield Heard(signals={"served_max_over_mean": _max_over_mean(found, self._servers[0].url)})


def _max_over_mean(found: list[Sample], where: str) -> float:
    """The mean over layers of the busiest rank beside the mean one."""
    by_layer: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in found:
        if not {"ep_rank", "layer"} <= set(sample.labels) or sample.value < 0:
            raise BadInput(f"{where}: {LOADS} comes without ep_rank and layer, or below 0")
        by_layer[sample.labels["layer"]][sample.labels["ep_rank"]] = sample.value
    heard = [loads for loads in by_layer.values() if sum(loads.values()) > 0]
    if not heard:
        raise BadInput(f"{where}: no {LOADS} above 0; is its EPLB on, and is this where it exports metrics?")
    return sum(max(loads.values()) * len(loads) / sum(loads.values()) for loads in heard) / len(heard)
