"""Machines for the fake NVML, as profiles.

Made up after public descriptions of the machines; PCI addresses, UUIDs and counts of memory are ours.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

Profile = dict[str, object]
SWITCHES = [f"0000:0{bus}:00.0" for bus in range(5, 9)]
FFFF = "fffffff:ffff:ff"  # how a virtual machine or a newer switch answers for a far end
RACK = "3143b15bc2cd192b28cc9b5473fb5b93"


def text(profile: Mapping[str, object]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in profile.items())


def bare(name: str, count: int, host: int = 0, memory: int = 80 << 30) -> Profile:
    """GPUs without NVLink, two sockets, PCIe generation 5 at full width, idle."""
    profile: Profile = {"driver": "570.86.15", "count": count}
    profile |= {
        "gpu.*.name": name,
        "gpu.*.memory": memory,
        "gpu.*.mig": 0,
        "gpu.*.virtualization": 0,
        "gpu.*.bw_mode": 0,
    }
    profile |= {
        "gpu.*.pcie.max_gen": 5,
        "gpu.*.pcie.gen": 1,
        "gpu.*.pcie.max_width": 16,
        "gpu.*.pcie.width": 16,
    }
    for gpu in range(count):
        profile[f"gpu.{gpu}.uuid"] = f"GPU-{host:08x}-0000-4000-8000-{gpu:012x}"
        profile[f"gpu.{gpu}.pci"] = pci(gpu)
        profile[f"gpu.{gpu}.numa_mask"] = 1 << (2 * gpu // count)
    for a, b in combinations(range(count), 2):
        profile[f"pair.{a}.{b}.ancestor"] = 50 if 2 * a // count != 2 * b // count else 40
    return profile | {"pair.*.*.p2p_read": 0, "pair.*.*.p2p_nvlink": 5}


def pci(gpu: int) -> str:
    return f"0000:{0x1B + 0x10 * gpu:02x}:00.0"


def switched(
    name: str, links: int, count: int = 8, version: int = 6, mbps: int = 26562, host: int = 0
) -> Profile:
    """All GPUs behind the same four NVSwitches."""
    profile = bare(name, count, host) | {
        "gpu.*.links": links,
        "gpu.*.link_count": links,
        "pair.*.*.p2p_nvlink": 0,
    }
    profile |= {
        f"gpu.*.link.*.{key}": value
        for key, value in (("state", 1), ("version", version), ("p2p", 1), ("remote_type", 2), ("mbps", mbps))
    }
    for gpu in range(count):
        profile |= {f"gpu.{gpu}.link.{link}.remote": SWITCHES[link % 4] for link in range(links)}
    return profile


def wired(name: str, cables: Mapping[tuple[int, int], int], count: int, version: int, mbps: int) -> Profile:
    """Direct NVLinks: so many between each listed pair."""
    profile = bare(name, count) | {
        "gpu.*.link.*.version": version,
        "gpu.*.link.*.mbps": mbps,
        "gpu.*.link.*.remote_type": 0,
        "gpu.*.link.*.p2p": 1,
    }
    for gpu in range(count):
        far = [
            b if a == gpu else a for (a, b), links in cables.items() if gpu in {a, b} for _ in range(links)
        ]
        profile[f"gpu.{gpu}.links"] = len(far)
        for link, other in enumerate(far):
            profile |= {f"gpu.{gpu}.link.{link}.state": 1, f"gpu.{gpu}.link.{link}.remote": pci(other)}
    return profile | {f"pair.{a}.{b}.p2p_nvlink": 0 for a, b in cables}


def dgx_1v() -> Profile:
    """The cube mesh: inside a quad and across it, six links a GPU."""
    quad = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2}
    across = {(0, 4): 2, (1, 5): 2, (2, 6): 1, (3, 7): 1}
    cables = quad | across | {(a + 4, b + 4): links for (a, b), links in quad.items()}
    return wired("Tesla V100-SXM2-32GB", cables, 8, version=2, mbps=25781)


def tray(
    host: int, clique: int = 1, uuid: str = RACK, state: int = 3, status: int = 0, health: int = 0xAA
) -> Profile:
    """Four GPUs of an NVL72 rack: the switches are elsewhere and cannot be read.

    The fabric says who belongs together.
    """
    profile = switched("NVIDIA GB200", 18, 4, version=7, mbps=53125, host=host)
    profile |= {f"gpu.{gpu}.link.{link}.remote": FFFF for gpu in range(4) for link in range(18)}
    return profile | fabric(uuid, clique, state, status, health)


def fabric(
    uuid: str, clique: int = 0, state: int = 3, status: int = 0, health: int = 0xAA, gpu: str = "*"
) -> Profile:
    keys = {"uuid": uuid, "clique": clique, "state": state, "status": status, "health": health, "summary": 1}
    return {f"gpu.{gpu}.fabric.{key}": value for key, value in keys.items()}


def islands(groups: Sequence[Sequence[int]]) -> Profile:
    """One host whose GPUs sit behind separate switches, as its switch ids and NVML's word on peers say."""
    count = sum(map(len, groups))
    profile = switched("NVIDIA H100 80GB HBM3", 18, count) | {"pair.*.*.p2p_nvlink": 5}
    for number, group in enumerate(groups):
        profile |= {
            f"gpu.{gpu}.link.{link}.remote": f"0000:{0xC0 + number:02x}:00.0"
            for gpu in group
            for link in range(18)
        }
        profile |= {f"pair.{a}.{b}.p2p_nvlink": 0 for a, b in combinations(group, 2)}
    return profile
