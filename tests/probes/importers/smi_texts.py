"""Outputs of nvidia-smi as tests need them: the list, the matrix, and the machine they show."""

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PIX  = Connection traversing at most a single PCIe bridge
"""
NVLINK = "  NV#  = Connection traversing a bonded set of # NVLinks\n"


def listed(gpus: int = 4, host: int = 0, name: str = "NVIDIA H100 80GB HBM3") -> str:
    """`nvidia-smi -L` of a host; hosts have other UUIDs."""
    uuids = (f"GPU-{host:08x}-0000-4000-8000-{gpu:012x}" for gpu in range(gpus))
    return "".join(f"GPU {gpu}: {name} (UUID: {uuid})\n" for gpu, uuid in enumerate(uuids))


def matrix(
    gpus: int = 4,
    label: str = "NV18",
    near: dict[tuple[int, int], str] | None = None,
    nics: int | None = None,
) -> str:
    """`nvidia-smi topo -m` of a host with two sockets. NIC i is beside GPU i unless `near` says otherwise."""
    nics = gpus if nics is None else nics
    names = [*(f"GPU{i}" for i in range(gpus)), *(f"NIC{i}" for i in range(nics))]
    socket = [int(i >= gpus / 2) for i in range(gpus)]

    def path(gpu: int, nic: int) -> str:
        if near is not None:
            return near.get((gpu, nic), "SYS")
        return "PIX" if gpu == nic else "NODE" if socket[gpu] == socket[nic] else "SYS"

    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for gpu in range(gpus):
        links = [" X " if gpu == peer else label for peer in range(gpus)]
        cells = [*links, *(path(gpu, nic) for nic in range(nics))]
        numa = socket[gpu]
        lines.append("\t".join([f"GPU{gpu}", *cells, f"{32 * numa}-{32 * numa + 31}", str(numa), "", "N/A"]))
    for nic in range(nics):
        others = [" X " if nic == other else "SYS" for other in range(nics)]
        lines.append("\t".join([f"NIC{nic}", *(path(gpu, nic) for gpu in range(gpus)), *others]))
    legend = LEGEND + (NVLINK if label.startswith("NV") else "")
    devices = "".join(f"  NIC{nic}: mlx5_{nic}\n" for nic in range(nics))
    return "\n".join(lines) + "\n" + legend + "\nNIC Legend:\n\n" + devices


def behind(host: str, text: str) -> str:
    """As pdsh prints it."""
    return "".join(f"{host}: {line}\n" for line in text.splitlines())
