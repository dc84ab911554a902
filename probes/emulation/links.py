"""Addresses of an emulated cluster, and the lines that make and shape its links. Pure.

Every rank has a network namespace with `eth0`, whose other end `port7` is in the helper's namespace. A pipe
is a pair of devices there, `in12` and `out12`: what goes into the first is held to the rate of resource 12
and comes out of the second. Hops are filters on what comes in at `port7` and `out12`; they hand packets on by
address. There is no bridge and nobody asks for addresses: all links have one hardware address.
"""

from collections.abc import Iterable

from planner.topology import Topology
from probes.emulation.wiring import Hop, Shaper, Wiring, wiring_of

NETWORK = "10.77"
_HARDWARE = "02:00:00:00:00:77"  # a packet is for whoever gets it, so all have the same
_MTU = 9000  # with 1500, headers would take 4 % of the shaped rate
_FRAME_SHARE = (_MTU + 14) / (_MTU - 52)  # bytes that tc counts for each byte that TCP carries
_PIECE_BYTES = 2 * (_MTU + 14)  # what the kernel hands over at once: small, so that links are not bursty
_ENDS = f"mtu {_MTU} gso_max_size {_PIECE_BYTES}"
_BURST_BYTES = 4_000  # what an idle link may send ahead; a piece may be larger, its excess is paid back
_PROMPT_SECONDS = 0.001  # and what it may catch up when the machine was busy elsewhere
_QUEUE_PACKETS = 20_000  # never full: windows end before, and a lost packet costs TCP 0.2 s
_WINDOW_BYTES = 262_144  # under way on a connection: more is waited for in a pipe, less stalls when busy
_CONGESTION = "reno"  # in every kernel; bbr leaves a tenth of a link unused that is busy both ways


def address(topology: Topology, rank: int) -> str:
    return f"{NETWORK}.{topology.node_G[rank]}.{topology.index_G[rank] + 1}"


def setup_script(topology: Topology) -> str:
    """A shell script that makes all of it. Nothing in it comes from outside but numbers."""
    wiring = wiring_of(topology)
    ranks = range(wiring.ranks)
    here = ["link set lo up", *(line for rank in ranks for line in _rank_lines(rank))]
    here += [line for pipe in wiring.pipes for line in _pipe_lines(pipe)]
    blocks = [_batch("ip", here), _batch("tc", _shared_shaping(topology, wiring))]
    for rank in ranks:
        blocks.append(_batch(f"ip -n rank{rank}", _inside_lines(topology, rank)))
        shapers = [shaper for shaper in wiring.sending if shaper.rank == rank]
        blocks.append(_batch(f"tc -n rank{rank}", _shaped_ends(topology, "eth0", shapers, "dst")))
    return "\n".join(["set -e", *filter(None, blocks), ""])


def _batch(program: str, lines: list[str]) -> str:
    return "\n".join([f"{program} -batch - <<'END'", *lines, "END"]) if lines else ""


def _rank_lines(rank: int) -> list[str]:
    return [
        f"netns add rank{rank}",
        f"link add port{rank} {_ENDS} type veth peer name eth0 address {_HARDWARE} {_ENDS} netns rank{rank}",
        f"link set port{rank} up",
    ]


def _inside_lines(topology: Topology, rank: int) -> list[str]:
    way = f"congctl {_CONGESTION} window {_WINDOW_BYTES}"
    return [
        f"address add {address(topology, rank)}/16 dev eth0",
        "link set eth0 arp off up",
        "link set lo up",
        f"route replace {NETWORK}.0.0/16 dev eth0 {way}",
    ]


def _pipe_lines(pipe: int) -> list[str]:
    return [
        f"link add in{pipe} {_ENDS} type veth peer name out{pipe} {_ENDS}",
        f"link set in{pipe} up",
        f"link set out{pipe} up",
    ]


def _shared_shaping(topology: Topology, wiring: Wiring) -> list[str]:
    lines = []
    for rank in range(wiring.ranks):
        shapers = [shaper for shaper in wiring.receiving if shaper.rank == rank]
        lines += _shaped_ends(topology, f"port{rank}", shapers, "src")
        lines.append(f"qdisc add dev port{rank} clsact")
    for pipe in wiring.pipes:
        lines += [
            f"qdisc add dev in{pipe} root handle 1: htb default 1",
            *_held(topology, f"in{pipe}", 1, pipe),
        ]
        lines.append(f"qdisc add dev out{pipe} clsact")
    return [*lines, *(_hop_line(topology, hop) for hop in wiring.hops)]


def _hop_line(topology: Topology, hop: Hop) -> str:
    at = f"port{hop.source}" if hop.after is None else f"out{hop.after}"
    sent = (
        "" if hop.after is None or hop.source is None else f"match ip src {address(topology, hop.source)}/32 "
    )
    match = f"{sent}match ip dst {address(topology, hop.target)}/32"
    into = f"port{hop.target}" if hop.into is None else f"in{hop.into}"
    return f"filter add dev {at} ingress protocol ip u32 {match} action mirred egress redirect dev {into}"


def _shaped_ends(topology: Topology, device: str, shapers: Iterable[Shaper], field: str) -> list[str]:
    """A class for each resource that is held here; packets of no class pass at once."""
    lines = []
    for number, shaper in enumerate(shapers, start=1):
        lines += _held(topology, device, number, shaper.resource)
        for peer in shaper.peers:
            match = f"protocol ip u32 match ip {field} {address(topology, peer)}/32"
            lines.append(f"filter add dev {device} parent 1: {match} flowid 1:{number}")
    return [f"qdisc add dev {device} root handle 1: htb", *lines] if lines else []


def _held(topology: Topology, device: str, number: int, resource: int) -> list[str]:
    """A class with the rate of a resource. Its queue holds packets: fq_codel is not in every kernel."""
    rate = float(topology.capacity_R[resource]) * _FRAME_SHARE
    burst = _BURST_BYTES + int(rate * _PROMPT_SECONDS)
    limits = f"rate {round(rate * 8)}bit burst {burst} cburst {burst} quantum {_PIECE_BYTES}"
    return [
        f"class add dev {device} parent 1: classid 1:{number:x} htb {limits}",
        f"qdisc add dev {device} parent 1:{number:x} pfifo limit {_QUEUE_PACKETS}",
    ]
