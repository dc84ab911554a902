"""Why NICs may carry less than is stated: RDMA, uplinks, rails, ports, slots. The lowest is likeliest."""

from planner.planning.diagnosis.signs import (
    ALL_TO_ALL,
    HALF,
    NO_RDMA_SHARE,
    OVERSUBSCRIPTIONS,
    PCIE_BYTES_PER_S,
    SOCKET_BYTES_PER_S,
    TWO_PLANES_BYTES_PER_S,
    Cause,
    Ranked,
    Signs,
)
from planner.topology import ABOVE, REACHED

RDMA = Cause(
    "GPUDirect or RDMA off?",
    f"NCCL_DEBUG=INFO {ALL_TO_ALL} | grep -E 'NET/|GDRDMA': 'NET/Socket' is no RDMA, 'NET/IB' without "
    "'GDRDMA' no GPUDirect",
    "load nvidia_peermem (or use DMA-BUF), give containers /dev/infiniband, unset NCCL_IB_DISABLE",
)
ACS = Cause(
    "PCIe ACS, or a VM without ATS, between GPU and NIC?",
    "lspci -vvv | grep ACSCtl (as root): 'SrcValid+' sends GPU-NIC traffic through the CPU",
    "switch ACS off on the PCIe switches; in a VM ask for ATS and NCCL's topology file",
)
FLOWS = Cause(
    "flows that collide, or one slow NIC?",
    "ib_write_bw --report_gbits for each NIC between two hosts: one slow NIC holds up all",
    "adaptive routing (InfiniBand), NCCL_IB_QPS_PER_CONNECTION=4 (RoCE); a new cable for the slow NIC",
)


def nic_causes(signs: Signs) -> Ranked:
    yield from _rdma(signs)
    yield from _uplinks(signs)
    yield from _cross_rail(signs)
    yield from _ports(signs)
    yield from _slot(signs)
    if signs.share > NO_RDMA_SHARE:
        yield (4 if signs.share > HALF[1] else 9), FLOWS
        yield 8, ACS


def _rdma(signs: Signs) -> Ranked:
    if signs.share <= NO_RDMA_SHARE:
        yield 0, RDMA
    elif signs.rate / signs.seen.nics <= SOCKET_BYTES_PER_S:
        yield 3, RDMA


def _uplinks(signs: Signs) -> Ranked:
    """An uplink of N:1 holds the NICs below it to 1/N where all of their traffic leaves the leaf."""
    crossing = 1.0 if signs.crossing is None else signs.crossing
    told = signs.fabric.evidence.kind in ("read", "imported")
    for ratio in OVERSUBSCRIPTIONS:
        if crossing and REACHED["nic"] <= signs.share * ratio * crossing < ABOVE:
            yield (
                (6 if told else 1),
                Cause(
                    f"uplinks {ratio}:1?",
                    f"{ALL_TO_ALL} on two hosts of one leaf switch: at full rate there, it is the uplinks",
                    f"place the job under one leaf, or plan with it: import --oversubscription {ratio}",
                ),
            )


def _cross_rail(signs: Signs) -> Ranked:
    """Not of a run of rails alone; proven where such a run was well."""
    run = signs.seen.run
    if run is not None and run.scope == "rail":
        return
    alone_well = signs.rails is not None and signs.rails >= REACHED["nic"]
    if alone_well or signs.fabric.kind == "rail":
        split = f"NCCL_TESTS_SPLIT='MOD {len(signs.node.gpus)}' {ALL_TO_ALL}"
        yield (
            (0 if alone_well else 2),
            Cause(
                "pairs on different rails slow (rail-only, PXN off)?",
                f"{split}: at full rate so, it is the pairs across rails",
                "NCCL_PXN_DISABLE=0, with NVLink inside hosts; else wire the rails over spines",
            ),
        )


def _ports(signs: Signs) -> Ranked:
    """Some of the ports, planes or NICs carry all."""
    test = f"NCCL_DEBUG=INFO {ALL_TO_ALL} | grep 'NET/IB : Using': lists each NIC and port in use"
    remedy = "name every port in NCCL_IB_HCA, let NCCL merge them (NCCL_NET_MERGE_LEVEL); are all up?"
    several = round(signs.nics_a_gpu)
    if several > 1 and REACHED["nic"] <= signs.share * several < ABOVE:
        yield 0, Cause(f"one of the {several} NICs of each GPU carries all?", test, remedy)
    elif HALF[0] <= signs.share <= HALF[1]:
        dual = signs.seen.stated.bytes_per_s / signs.seen.nics >= TWO_PLANES_BYTES_PER_S
        yield (0 if dual else 5), Cause("one port or plane of each NIC?", test, remedy)
        if signs.seen.links > 1 and signs.nics_a_gpu == 1:
            yield 7, Cause("two GPUs on each NIC, half of the NICs unused?", test, remedy)


def _slot(signs: Signs) -> Ranked:
    """What a PCIe link of an older generation carries: more than half of a NIC of twice its rate reaches."""
    pcie = signs.node.pcie
    for name, (least, most) in PCIE_BYTES_PER_S.items():
        through = {signs.rate / signs.seen.nics, signs.rate / signs.seen.gpus}  # a NIC's slot, a GPU's
        if any(least <= rate <= most for rate in through):
            read = pcie is not None and pcie.rates[0].evidence.kind in ("read", "measured")
            faster = read and pcie is not None and pcie.rates[0].bytes_per_s > 1.5 * most
            yield (
                (6 if faster else 0),
                Cause(
                    f"a PCIe {name} link of GPU or NIC?",
                    "lspci -vv | grep -E 'controller|LnkSta:' (as root, under load): speed and width of each",
                    "a slot or riser of the next generation; the BIOS link speed; reseat the card",
                ),
            )
