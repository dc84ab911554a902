"""A small machine as the data of a topology file."""

from typing import Any

RATE = {"value": "400 Gb/s", "evidence": "read", "source": "sysfs"}


SMALL: dict[str, Any] = {
    "name": "lab",
    "source": "made up for tests",
    "nodes": [
        {
            "count": 2,
            "gpus": {"model": "H100-SXM-80GB", "count": 2},
            "nvlink": {"kind": "switch", "islands": [{"gpus": [0, 1], "rate": RATE}]},
            "pcie": {
                "rate": [RATE, RATE],
                "sockets": [0, 1],
                "switches": [{"gpus": [[0], [1]], "nics": [[0], [1]], "uplink": RATE}],
                "inter_socket": RATE,
            },
            "nics": [{"gpus": [[0], [1]], "rails": [0, 1], "rate": RATE}],
        }
    ],
    "fabric": {
        "kind": "rail",
        "nodes_per_leaf": 2,
        "oversubscription": 2,
        "evidence": "assumed",
        "source": "a guess",
    },
}
