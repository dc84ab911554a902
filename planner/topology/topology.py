"""Topology: the GPUs of a cluster in rank order, and the links between them as directed capacities.

Shapes: G GPUs (node by node, then by index in the node), R resources.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import GpuModel
from planner.topology.calibration import Calibration
from planner.topology.calibration_dict import calibration_to_dict
from planner.topology.domains import nvlink_domain_G
from planner.topology.fabric import Fabric
from planner.topology.machine import check_machine, first_nodes, nodes_at_speeds, nodes_left
from planner.topology.nodes import Node
from planner.topology.resources import Resource
from planner.topology.routes import Routes
from planner.topology.to_dict import machine_to_dict
from planner.topology.wiring import compile_routes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gpu:
    """One GPU: its rank, its node and index there, and the NVLink domain it belongs to."""

    rank: int
    node: int
    index: int
    domain: int
    model: GpuModel


@dataclass(frozen=True)
class Topology:
    """A machine. Rates in bytes/s per direction.

    `Topology("lab", (node, node), fabric, "probe of 2026-01-15")` with two nodes of two GPUs has gpu_count 4,
    node_G [0, 0, 1, 1], index_G [0, 1, 0, 1].
    """

    name: str
    nodes: tuple[Node, ...]
    fabric: Fabric
    source: str
    calibration: Calibration | None = None  # what runs on this machine said of its exchange

    def __post_init__(self) -> None:
        check_machine(f"topology {self.name}", self.nodes, self.fabric)
        _ = self.routes  # a machine with unreachable GPUs is refused here, not at its first use

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @cached_property
    def gpu_count(self) -> int:
        return sum(len(node.gpus) for node in self.nodes)

    @property
    def domain_count(self) -> int:
        return int(self.domain_G.max()) + 1

    @cached_property
    def routes(self) -> Routes:
        return compile_routes(self.nodes, self.fabric)

    @property
    def resources(self) -> tuple[Resource, ...]:
        return self.routes.resources

    @cached_property
    def capacity_R(self) -> Floats:
        """Bytes/s of every resource."""
        return _fixed(np.array([resource.rate.bytes_per_s for resource in self.resources], dtype=np.float64))

    @property
    def node_G(self) -> Ints:
        return self.routes.node_G

    @cached_property
    def index_G(self) -> Ints:
        return _fixed(np.concatenate([np.arange(len(node.gpus), dtype=np.int64) for node in self.nodes]))

    @cached_property
    def speed_G(self) -> Floats:
        """How fast each GPU computes beside others of its model; 1.0 is nominal."""
        speeds = [np.array(node.speeds or (1.0,) * len(node.gpus)) for node in self.nodes]
        return _fixed(np.concatenate(speeds))

    @cached_property
    def domain_G(self) -> Ints:
        """NVLink domain of each GPU, numbered by first GPU."""
        return _fixed(nvlink_domain_G(self.nodes, self.routes.switch_G))

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        models = (model for node in self.nodes for model in node.gpus)
        labels = zip(self.node_G.tolist(), self.index_G.tolist(), self.domain_G.tolist(), models, strict=True)
        return tuple(Gpu(rank, *label) for rank, label in enumerate(labels))

    @cached_property
    def memory_bytes_per_s_G(self) -> Floats:
        return _fixed(np.array([gpu.model.memory_bytes_per_s for gpu in self.gpus]))

    def peak_flops_per_s_G(self, dtype: str) -> Floats:
        """Dense peak of each GPU for `dtype`, or for the next wider type that it has."""
        return np.array([model.peak_flops_per_s(dtype) for model in self.models])[self.model_G]

    @cached_property
    def models(self) -> tuple[GpuModel, ...]:
        """The GPU models there are, in rank order."""
        return tuple({gpu.model.name: gpu.model for gpu in self.gpus}.values())

    @cached_property
    def model_G(self) -> Ints:
        """Which of `models` each GPU is of."""
        number = {model.name: number for number, model in enumerate(self.models)}
        return _fixed(np.array([number[gpu.model.name] for gpu in self.gpus]))

    def route(self, i: int, j: int) -> tuple[int, ...]:
        """Indices of the resources that traffic from GPU i to GPU j uses; empty for i == j.

        The rules are in planner/topology/routes.py.
        """
        return self.routes.route(i, j)

    def resource_bytes(self, bytes_GG: Floats) -> Floats:
        """Load [R] on every resource of a traffic matrix [source, destination]; its diagonal is free."""
        return self.routes.resource_bytes(bytes_GG)

    def there_and_back(self, bytes_GG: Floats) -> tuple[Floats, Floats]:
        """The same, and the load of the transpose: what was sent comes back the way it went."""
        return self.routes.there_and_back(bytes_GG)

    def select(self, nodes: int, gpus_per_node: int | None = None) -> "Topology":
        """The first `nodes` nodes, and the first `gpus_per_node` GPUs of each.

        Leaf uplinks shrink with the NICs below them: the job's share.
        """
        return replace(self, nodes=first_nodes(f"topology {self.name}", self.nodes, nodes, gpus_per_node))

    def ep_sizes(self) -> tuple[int, ...]:
        """How many GPUs a group can have: some of the first node's, or all of the first nodes'."""
        sizes = [len(node.gpus) for node in self.nodes]
        whole = (sum(sizes[:count]) for count in range(2, len(sizes) + 1))
        return (*range(1, sizes[0] + 1), *whole)

    def without(self, lost: Collection[int]) -> "Topology":
        """The machine that is left when these GPUs are lost, ranks closed up, devices of hosts remembered.

        A node that lost all its GPUs is gone, and the nodes after it move up in the fabric: where several
        share a leaf or an NVLink domain, one of them may end up under the switch before.
        """
        return replace(self, nodes=nodes_left(f"topology {self.name}", self.nodes, lost))

    def with_speeds(self, speed_of: Mapping[int, float]) -> "Topology":
        """The same machine with these speeds for GPUs by rank; the others keep theirs.

        BadInput for a rank that there is not.
        """
        return replace(self, nodes=nodes_at_speeds(f"topology {self.name}", self.nodes, speed_of))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `topology_from_dict` reads back to an equal value."""
        of_runs = self.calibration and {"calibration": calibration_to_dict(self.calibration)}
        machine = machine_to_dict(self.nodes, self.fabric)
        return {"name": self.name, "source": self.source, **machine, **(of_runs or {})}

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON of `to_dict`."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
