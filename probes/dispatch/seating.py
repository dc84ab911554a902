"""Do the ranks of a launched run sit where the plan has them? Asked before anything is timed. No torch.

A node of the plan is one host, also where an NVLink domain spans several: so hosts are compared with nodes,
never with domains. The order of GPUs on a host is compared by PCI bus, which is how NVML and so the plan
count them; that part was not run on a GPU when this was written.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from planner.topology import Seat, compare, seat_from_dict
from probes.nvml.seat import seat_here
from probes.ranks.launch import launch_of
from probes.ranks.party import RunFailed

if TYPE_CHECKING:  # torch comes with it
    from torch import device

    from probes.ranks.wire import Wire

Bus = tuple[int, int, int]  # PCI domain, bus and device


@dataclass(frozen=True)
class Seen:
    """Where one rank sits; `bus` None: on the CPU, or nobody could tell."""

    seat: Seat
    bus: Bus | None = None


def seen_here(where: "device") -> Seen:
    """Where this rank sits, which a launcher has started."""
    launch = launch_of(os.environ)
    assert launch is not None, "only a launcher's ranks have seats of their own"
    return Seen(seat_here(launch), _bus_of(where))


def ask_seats(wire: "Wire", planned: Sequence[Seat], own: Seen) -> tuple[str, ...]:
    """What is to be noted of all seats, at every rank. RunFailed names the first rank that sits elsewhere."""
    seat = {key: value for key, value in asdict(own.seat).items() if key != "node"}
    texts = wire.gather(json.dumps({"seat": seat, "bus": own.bus}))
    wire.barrier()  # nobody leaves before all have heard it
    seen = []
    for rank, text in enumerate(texts):
        told = json.loads(text)
        place = tuple(told["bus"]) if told["bus"] else None
        seen.append(Seen(seat_from_dict(told["seat"], f"rank {rank}"), place))
    return judge_seats(planned, seen)


def _bus_of(where: "device") -> Bus | None:
    """The PCI bus of a rank's GPU; None where torch does not tell, and on the CPU."""
    if where.type != "cuda":
        return None
    import torch

    told = torch.cuda.get_device_properties(where)
    domain, bus, slot = (int(getattr(told, f"pci_{name}_id", -1)) for name in ("domain", "bus", "device"))
    return None if min(domain, bus, slot) < 0 else (domain, bus, slot)


def judge_seats(planned: Sequence[Seat], seen: Sequence[Seen]) -> tuple[str, ...]:
    """Notes; RunFailed where ranks sit elsewhere.

    A plan of several nodes whose ranks are all on one host is a rehearsal, not a wrong order.
    """
    hosts = {one.seat.host for one in seen}
    nodes = len({seat.node for seat in planned})
    if len(hosts) == 1 and nodes > 1:
        return (f"the plan's {nodes} nodes were all on this machine",)
    faults = [*compare(planned, [one.seat for one in seen]).mismatches, *_out_of_bus_order(seen)]
    if faults:
        more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
        order = "start the ranks in the plan's order, as `moeplan emit` writes it"
        raise RunFailed(f"wrong rank order, nothing was timed: {faults[0]}{more}; {order}")
    return ()


def _out_of_bus_order(seen: Sequence[Seen]) -> list[str]:
    """Ranks whose GPU comes before that of the rank before them on the same host."""
    last: dict[str | None, Seen] = {}
    found = []
    for one in sorted(seen, key=lambda one: one.seat.rank):
        before = last.get(one.seat.host)
        if one.bus is not None and before is not None and before.bus is not None and one.bus < before.bus:
            which = f"the GPU of rank {one.seat.rank} on host {one.seat.host} ({_bus_text(one.bus)})"
            found.append(f"{which} comes before that of rank {before.seat.rank} ({_bus_text(before.bus)})")
        last[one.seat.host] = one
    return found


def _bus_text(bus: Bus) -> str:
    """
    >>> _bus_text((0, 26, 0))
    '0000:1a:00'
    """
    return f"{bus[0]:04x}:{bus[1]:02x}:{bus[2]:02x}"
