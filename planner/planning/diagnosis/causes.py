"""Why links may carry less, or more, than is stated of them: likely causes by the pattern of the ratio.

A cause is a guess until its test was run: it is put as a question.
"""

from planner.planning.diagnosis.nic_causes import RDMA, nic_causes
from planner.planning.diagnosis.signs import ALL_TO_ALL, HALF, NO_RDMA_SHARE, Cause, Ranked, Signs
from planner.topology import ABOVE, REACHED

MOST_CAUSES = 3
WRONG_FIGURE = Cause(
    "stated rate too low, or traffic that never left the node?",
    "compare ibstat's Rate and the host names in the log: containers of one host may have two names",
    "state the rate that ibstat says (import it beside), or give the log of this machine",
)
NVLINK_UNUSED = Cause(
    "NVLink not in use: traffic over PCIe?",
    "nvidia-smi topo -p2p n; nvidia-smi nvlink -s: all OK, all links up",
    "start the fabric manager; unset NCCL_P2P_DISABLE; containers of a host in one IPC namespace",
)
NVLINKS_DOWN = Cause(
    "NVLinks down, or messages too small in the log?",
    "nvidia-smi nvlink -s: count the links of each GPU; run to -e 8G",
    "reset or drain the GPU whose links are down",
)
NO_PEERS = Cause(
    "peer-to-peer off: copies through host memory?",
    "nvidia-smi topo -p2p r: anything but OK",
    "switch ACS and the IOMMU off; cards without peer-to-peer have no remedy",
)
SLOW_LINK = Cause(
    "a PCIe link below its width or speed?",
    "lspci -vv | grep -E 'controller|LnkSta:' (as root, under load)",
    "reseat the card; the BIOS link speed",
)


def causes(signs: Signs) -> tuple[Cause, ...]:
    """The likeliest first; none where the links do what can be expected of them."""
    if signs.share > ABOVE:
        return (WRONG_FIGURE,)
    if signs.share >= REACHED[signs.seen.tier]:
        return ()
    rules = {"nvlink": _nvlink, "pcie": _through_host, "host": _through_host, "nic": nic_causes}
    ranked = sorted(rules.get(signs.seen.tier, _uplinks_worse)(signs), key=lambda pair: pair[0])
    return tuple(cause for _, cause in ranked)[:MOST_CAUSES]


def _nvlink(signs: Signs) -> Ranked:
    if signs.share <= NO_RDMA_SHARE:
        yield 0, NVLINK_UNUSED
    yield 1, NVLINKS_DOWN


def _through_host(signs: Signs) -> Ranked:
    del signs  # whatever the ratio, these are what there is
    yield 0, NO_PEERS
    yield 1, SLOW_LINK


def _uplinks_worse(signs: Signs) -> Ranked:
    """NICs that stay far below even what such uplinks leave them have a fault of their own."""
    stated = signs.fabric.oversubscription
    if signs.share <= HALF[1] and signs.share / stated <= NO_RDMA_SHARE:
        yield 0, RDMA
    ratio = f"{stated / signs.share:.2g}"
    test = f"{ALL_TO_ALL} on two hosts of one leaf switch: at full rate there, it is the uplinks"
    remedy = f"look for uplinks that are down; plan with --oversubscription {ratio}"
    yield 1, Cause(f"uplinks nearer {ratio}:1 than {stated:g}:1?", test, remedy)
