"""The host side of one node: PCIe, PCIe switches and sockets. Values only, GPUs and NICs counted from 0."""

from dataclasses import dataclass, replace

from planner.base import BadInput, Rate
from planner.topology.members import check_groups, listed, renumbered


@dataclass(frozen=True)
class PcieSwitch:
    """GPUs and NICs below one PCIe switch; `uplink` is its rate to the socket, each way."""

    gpus: tuple[int, ...]
    uplink: Rate
    nics: tuple[int, ...] = ()

    def keep(self, new: dict[int, int], new_nic: dict[int, int]) -> "PcieSwitch":
        return replace(self, gpus=renumbered(self.gpus, new), nics=renumbered(self.nics, new_nic))


@dataclass(frozen=True)
class Pcie:
    """A rate and a socket for each GPU, the switches, and the link between sockets.

    `inter_socket` is None where it is not known: then it is not charged.
    """

    rates: tuple[Rate, ...]
    sockets: tuple[int, ...]
    switches: tuple[PcieSwitch, ...] = ()
    inter_socket: Rate | None = None

    def check(self, where: str, gpu_count: int, nic_count: int) -> None:
        if len(self.rates) != gpu_count or len(self.sockets) != gpu_count:
            raise BadInput(
                f"{where}: {gpu_count} GPUs need {gpu_count} PCIe rates and sockets; "
                f"got {len(self.rates)} and {len(self.sockets)}"
            )
        if min(self.sockets) < 0:
            raise BadInput(f"{where}: socket {min(self.sockets)} is not a number from 0 up")
        here = f"{where}: PCIe switch"
        check_groups(here, [switch.gpus for switch in self.switches], gpu_count)
        check_groups(here, [switch.nics for switch in self.switches if switch.nics], nic_count, "NIC")
        for switch in self.switches:
            if len({self.sockets[gpu] for gpu in switch.gpus}) > 1:
                raise BadInput(
                    f"{where}: the PCIe switch of GPUs {listed(switch.gpus)} spans several sockets; "
                    "a switch hangs on one"
                )

    def keep(self, new: dict[int, int], new_nic: dict[int, int]) -> "Pcie":
        """For the GPUs and NICs that have a new number, by it."""
        switches = [switch.keep(new, new_nic) for switch in self.switches]
        return replace(
            self,
            rates=tuple(self.rates[gpu] for gpu in new),
            sockets=tuple(self.sockets[gpu] for gpu in new),
            switches=tuple(switch for switch in switches if switch.gpus),
        )
