"""A small `topo -m` table, machines to render as one, and what is read from a paste."""

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from probes.base.facts import HostFacts
from probes.importers import topo_m

BRIDGED = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tSYS\tSYS\tPIX\tSYS\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\tNODE\tSYS\t0-15\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNV4\tSYS\tPIX\t16-31\t1\t\tN/A
GPU3\tSYS\tSYS\tNV4\t X \tSYS\tNODE\t16-31\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_3
"""


def read(text: str) -> HostFacts:
    (host,) = topo_m.read(text.encode(), "paste")
    return host


def told(host: HostFacts) -> str:
    return " | ".join((*host.unknown, *host.warnings))


def essence(host: HostFacts) -> tuple[object, ...]:
    numa = [gpu.numa for gpu in host.gpus]
    return (
        len(host.gpus),
        host.domains,
        host.nvlink_kind,
        [nic.name for nic in host.nics],
        dict(host.gpu_paths),
        dict(host.nic_paths),
        numa,
    )


@dataclass(frozen=True)
class Machine:
    """A machine to render: labels between GPUs, distances to NICs, NUMA nodes."""

    links: list[list[str]]
    nics: list[list[str]]
    numa: list[int]
    gpu_numa_column: bool

    def text(self) -> str:
        gpus, nics = len(self.links), len(self.nics[0]) if self.nics else 0
        names = [*(f"GPU{i}" for i in range(gpus)), *(f"NIC{i}" for i in range(nics))]
        last = ["CPU Affinity", "NUMA Affinity", *(["GPU NUMA ID"] if self.gpu_numa_column else [])]
        lines = ["\t" + "\t".join([*names, *last])]
        for i in range(gpus):
            cells = [" X " if i == j else self.links[i][j] for j in range(gpus)] + self.nics[i]
            tail = [
                f"{16 * self.numa[i]}-{16 * self.numa[i] + 15}",
                str(self.numa[i]),
                *(["", "N/A"] if self.gpu_numa_column else []),
            ]
            lines.append("\t".join([f"GPU{i}", *cells, *tail]))
        for i in range(nics):
            cells = [self.nics[gpu][i] for gpu in range(gpus)] + [
                " X " if i == j else "SYS" for j in range(nics)
            ]
            lines.append("\t".join([f"NIC{i}", *cells]) + "\t\t\t\t")
        legend = [
            "",
            "Legend:",
            "",
            "  X    = Self",
            "  NV#  = Connection traversing a bonded set of # NVLinks",
            "",
        ]
        return (
            "\n".join(
                [*lines, *legend, "NIC Legend:", "", *(f"  NIC{i}: mlx5_{nics - i}" for i in range(nics))]
            )
            + "\n"
        )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    gpus, nics = draw(st.integers(1, 16)), draw(st.integers(0, 12))
    shape = draw(st.sampled_from(["switch", "mesh", "bridge", "none"]))
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    numa = [i * 2 // max(gpus, 1) for i in range(gpus)]
    links = [["" for _ in range(gpus)] for _ in range(gpus)]
    for i in range(gpus):
        for j in range(i):
            far = "SYS" if numa[i] != numa[j] else rng.choice(["PIX", "PXB", "PHB", "NODE"])
            label = {
                "switch": "NV18",
                "mesh": rng.choice(["NV1", "NV2", far]),
                "bridge": "NV12" if i == j + 1 and i % 2 else far,
                "none": far,
            }[shape]
            links[i][j] = links[j][i] = label
    distances = [[rng.choice(["PIX", "PXB", "PHB", "NODE", "SYS"]) for _ in range(nics)] for _ in range(gpus)]
    return Machine(links, distances, numa, draw(st.booleans()))
