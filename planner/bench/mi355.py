"""A machine of 8 MI355X, for a study: AMD's data sheet, and a mesh of seven Infinity Fabric links a GPU."""

from itertools import combinations

from planner.topology import Topology, topology_from_dict

SHEET = "AMD Instinct MI355X data sheet"


def eight_mi355() -> Topology:
    """Every pair of GPUs has a link of 153.6 GB/s, both directions together; no fabric is used."""
    link = {
        "value": "76.8 GB/s",
        "evidence": "preset",
        "source": f"{SHEET}: 7 links of 153.6 GB/s, both directions",
    }
    gpu = {
        "memory": "288 GB",
        "memory_rate": "8000 GB/s",
        "flops": {"bf16": "2500 TFLOP/s", "fp8": "5000 TFLOP/s"},
        "evidence": "preset",
        "source": f"{SHEET}, dense rates",
    }
    pairs = [list(pair) for pair in combinations(range(8), 2)]
    node = {
        "count": 1,
        "gpus": {"model": "MI355X-288GB", "count": 8},
        "nvlink": {"kind": "mesh", "pairs": [{"gpus": pairs, "rate": link}]},
    }
    fabric = {"kind": "none", "evidence": "assumed", "source": "one node"}
    return topology_from_dict(
        {
            "name": "8 x MI355X",
            "source": SHEET,
            "gpu_models": {"MI355X-288GB": gpu},
            "nodes": [node],
            "fabric": fabric,
        }
    )
