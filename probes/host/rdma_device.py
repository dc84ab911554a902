"""One RDMA adapter as the kernel shows it: its ports, rates and states, and its place in the PCI tree."""

from dataclasses import dataclass, replace

from probes.base.facts import NicFact
from probes.base.port_rates import port_bytes_per_s
from probes.fabric.naming import gid_guid, natural, normal_guid
from probes.host.adapters import port_fact
from probes.host.pci_paths import PCI_ADDRESS, numa_node_in, pci_parts
from probes.host.sysfs_tree import Tree, entries, resolve, text

_STATES = {"1": "Down", "2": "Initializing", "3": "Armed", "4": "Active"}  # as ibstat writes them


@dataclass(frozen=True)
class RdmaDevice:
    """`path` is its PCI device's folder in the tree, None where not told; `nic` what all `ports` share."""

    path: str | None
    driver: str | None
    nic: NicFact
    ports: tuple[NicFact, ...]

    def switch_ports(self) -> list[str]:
        """Folders of the PCIe bridges between root port and device.

        Peer traffic below one switch turns at these.
        """
        parts = (self.path or "").split("/")
        places = [index for index, part in enumerate(parts) if PCI_ADDRESS.fullmatch(part)]
        return ["/".join(parts[: index + 1]) for index in places[1:-1]]


def rdma_device(tree: Tree, place: str, name: str) -> RdmaDevice:
    """The device `name`, whose folder or link in sys/class/infiniband is `place`."""
    path = resolve(tree, f"{place}/device") if entries(tree, place) else resolve(tree, place)
    parts = path.split("/") if path else []
    complexes, addresses = pci_parts(parts)
    pci = addresses[-1] if addresses else None
    folder = "/".join(parts[: parts.index(pci) + 1]) if pci else None
    node, image = (
        normal_guid(text(tree, f"{place}/{file}") or "") for file in ("node_guid", "sys_image_guid")
    )
    slot = pci.rpartition(".")[0] if pci else None
    nic = NicFact(  # a virtual function shares its card's port: it is not for compute
        name,
        pci=pci,
        numa=numa_node_in(tree, folder) if folder else None,
        guid=node,
        model=text(tree, f"{place}/hca_type"),
        card=image or slot,
        pci_path="/".join([*complexes[-1:], *addresses]) if pci else None,
        compute=False if folder and resolve(tree, f"{folder}/physfn") != f"{folder}/physfn" else None,
    )
    driver = resolve(tree, f"{folder}/driver") if folder else None
    loaded = driver.rpartition("/")[2] if driver and driver != f"{folder}/driver" else None
    return RdmaDevice(folder, loaded, nic, _ports(tree, f"{place}/ports", nic))


def _ports(tree: Tree, place: str, nic: NicFact) -> tuple[NicFact, ...]:
    numbers = [port for port in entries(tree, place) if port.isascii() and port.isdigit()]
    if len(numbers) == 1:
        return (_port(tree, f"{place}/{numbers[0]}", nic),)
    return tuple(
        _port(tree, f"{place}/{number}", replace(nic, name=f"{nic.name}:{number}", device=nic.name))
        for number in sorted(numbers, key=natural)
    )


def _port(tree: Tree, port: str, nic: NicFact) -> NicFact:
    layer = text(tree, f"{port}/link_layer")
    own = gid_guid(text(tree, f"{port}/gids/0") or "") if layer == "InfiniBand" else None
    nic = replace(
        nic,
        link_layer=layer if layer in ("InfiniBand", "Ethernet") else None,
        rate_bytes_per_s=port_bytes_per_s(text(tree, f"{port}/rate") or ""),
        guid=own or nic.guid,
    )
    state, physical = (
        text(tree, f"{port}/state"),
        text(tree, f"{port}/phys_state"),
    )  # '4: ACTIVE', '5: LinkUp'
    return port_fact(
        nic,
        _STATES.get(state.split(":")[0], state) if state else None,
        physical.split(":")[-1].strip() if physical else None,
    )
