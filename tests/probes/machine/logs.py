"""Output of nccl-tests as a made-up cluster would print it."""

from collections.abc import Sequence

NVLINK_BYTES_PER_S, START_SECONDS = 360e9, 60e-6


def alltoall_log(
    hosts: Sequence[str], nic_bytes_per_s: float, *, gpus: int = 8, gpu: str = "NVIDIA H100 80GB HBM3"
) -> str:
    """An all-to-all over all GPUs of the hosts; a GPU's share of NICs carries `nic_bytes_per_s`.

    Each rank sends size / ranks to each other one, those of its host over NVLink.
    """
    ranks, count = len(hosts) * gpus, len(hosts)
    devices = [
        f"#  Rank {rank:2d} Group  0 Pid {4000 + rank} on {hosts[rank // gpus]} device {rank % gpus:2d} "
        f"[0000:{0x1B + rank % gpus:02x}:00] {gpu}"
        for rank in range(ranks)
    ]
    rows = []
    for size in (1 << power for power in range(18, 33, 2)):
        over_nics = size * (count - 1) / count / nic_bytes_per_s
        seconds = START_SECONDS + max(over_nics, size * (gpus - 1) / ranks / NVLINK_BYTES_PER_S)
        algbw = size / seconds / 1e9
        figures = f"{seconds * 1e6:9.2f} {algbw:7.2f} {algbw * (ranks - 1) / ranks:7.2f}"
        rows.append(f"{size:12d} {size // 4 // ranks:12d} float none -1 {figures} 0 {figures} N/A")
    columns = "size count type redop root " + "time algbw busbw #wrong " * 2
    start = "# Collective test starting: alltoall_perf\n# Using devices"
    return "\n".join([start, *devices, f"#  {columns.strip()}", *rows, "# Out of bounds values : 0 OK", ""])
