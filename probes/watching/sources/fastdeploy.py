"""FastDeploy 2.x: each rank's /get_per_expert_tokens_stats, counters of assignments by layer and expert.

Source: entrypoints/engine_client.py at 09aeac7, read. A rank answers with a table for each GPU of its own.
The counters grow until they are cleared, at a rearrangement or with the server. Who may ask is in
FD_EPLB_USER and FD_EPLB_PASSWORD, as for the launch.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import Heard, Known, Window, placed_counts, since
from planner.model import ModelSpec
from probes.routing.web import Server, post_json
from probes.watching.place import Place

NAME = "fastdeploy"
NEEDS = ("urls",)
ROUTE = "/get_per_expert_tokens_stats"
MOST = 1 << 53  # of a counter that JSON carries exactly


def source(place: Place, model: ModelSpec) -> "Ranks":
    return Ranks(tuple(place.servers()), model)


class Ranks:
    """Every rank is asked, or none counts: the load of some ranks is not the load."""

    def __init__(self, servers: tuple[Server, ...], model: ModelSpec) -> None:
        self._servers, self._model = servers, model

    def poll(self, known: Known) -> Iterator[Heard]:
        found = [self._counter(server) for server in self._servers]
        counters, said = {}, []
        sum_LE = np.zeros_like(found[0][0])
        for server, (counts_LE, _) in zip(self._servers, found, strict=True):
            name = f"{NAME} {server.url}"
            new_LE, anew = since(known.counter(name), counts_LE)
            counters[name], sum_LE = counts_LE, sum_LE + new_LE
            if anew:
                said.append(f"{server.url}: its counters began anew; what they show was counted since")
        windows = (Window(sum_LE, found[0][1]),) if sum_LE.any() else ()
        yield Heard(windows, counters=counters, notes=tuple(said))

    def _counter(self, server: Server) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
        """(tokens_LE of a rank, the layers of its rows)."""
        who = {"user": os.environ.get("FD_EPLB_USER", ""), "passwd": os.environ.get("FD_EPLB_PASSWORD", "")}
        where = server.at(ROUTE)
        tables = _tables(post_json(server, ROUTE, who), where)
        tokens_WLE, layer_ids = placed_counts(tables.sum(axis=0), self._model, where)
        return tokens_WLE[0], layer_ids


def _tables(answer: Any, where: str) -> npt.NDArray[np.int64]:
    """[GPU of the rank, decoder layer, expert]."""
    if not isinstance(answer, dict) or answer.get("code") != 0:
        said = str(answer.get("msg", answer))[:100] if isinstance(answer, dict) else type(answer).__name__
        raise BadInput(f"{where}: no counts ({said}); is --enable-eplb on, and who may ask in FD_EPLB_USER?")
    try:
        tables = np.array(answer.get("data"))
    except ValueError as error:
        raise BadInput(f"{where}: rows of different lengths; is this FastDeploy 2.x?") from error
    if tables.ndim != 3 or tables.dtype.kind not in "iu" or not tables.size:
        shape = f"{tables.dtype} {list(tables.shape)}"
        raise BadInput(f"{where}: whole numbers [GPU, layer, expert] were expected, and {shape} came")
    if (tables < 0).any() or (tables > MOST).any():
        raise BadInput(f"{where}: a counter is below 0 or above 2^53: {tables.min()} to {tables.max()}")
    return tables.astype(np.int64)
