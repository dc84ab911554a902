"""PCIe, PCIe switches and sockets of one node: where things sit, which resources lie between two places."""

from itertools import permutations

from planner.topology.nodes import Node
from planner.topology.pcie import Pcie
from planner.topology.resources import LinkEnds, Resources

Place = tuple[int | None, int]  # PCIe switch (None: straight on the socket), socket


class Host:
    """One node of a machine while that is wired; `start` is the rank of its first GPU."""

    def __init__(self, number: int, start: int, node: Node, resources: Resources) -> None:
        self.number, self.start, self.node = number, start, node
        self.name = f"node{number}"
        self.ports: list[LinkEnds] = []  # of each GPU
        self.uplinks: list[LinkEnds] = []  # of each PCIe switch
        self.between: dict[tuple[int, int], int] = {}  # of two sockets
        switches = list(enumerate(node.pcie.switches)) if node.pcie else []
        self.switch_of_gpu = {gpu: index for index, switch in switches for gpu in switch.gpus}
        self.switch_of_nic = {nic: index for index, switch in switches for nic in switch.nics}
        if node.pcie is None:
            resources.joints += [(self.gpu(gpu), self.vertex((None, 0))) for gpu in range(len(node.gpus))]
        else:
            self._add_links(node.pcie, resources)
            self._join_sockets(node.pcie, resources)

    def _add_links(self, pcie: Pcie, resources: Resources) -> None:
        for gpu, rate in enumerate(pcie.rates):
            socket = self.vertex(self.place(gpu))
            self.ports.append(
                resources.add_link(f"{self.gpu(gpu)}/pcie", "pcie", rate, self.gpu(gpu), socket)
            )
        for index, switch in enumerate(pcie.switches):
            ends = self.vertex((index, 0)), self.vertex((None, pcie.sockets[switch.gpus[0]]))
            self.uplinks.append(
                resources.add_uplink(f"{self.name}/pcie{index}", "host", switch.uplink, *ends)
            )

    def _join_sockets(self, pcie: Pcie, resources: Resources) -> None:
        of_nics = (self.nic_place(nic)[1] for nic in range(len(self.node.nics)))
        for a, b in permutations(sorted({*pcie.sockets, *of_nics}), 2):
            ends = self.vertex((None, a)), self.vertex((None, b))
            if pcie.inter_socket is None:
                resources.joints.append(ends)
            else:
                name = f"{self.name}/socket{a}/socket{b}"
                self.between[a, b] = resources.add(name, "host", pcie.inter_socket, *ends)

    def words(self) -> str:
        """The node in a message."""
        return f"node {self.number}" + (f" '{self.node.name}'" if self.node.name else "")

    def gpu(self, gpu: int) -> str:
        """The vertex of a GPU."""
        return f"{self.name}/gpu{gpu}"

    def vertex(self, place: Place) -> str:
        switch, socket = place
        return f"{self.name}/pcie{switch}" if switch is not None else f"{self.name}/socket{socket}"

    def place(self, gpu: int) -> Place:
        return (self.switch_of_gpu.get(gpu), self.node.pcie.sockets[gpu]) if self.node.pcie else (None, 0)

    def nic_place(self, nic: int) -> Place:
        if self.node.pcie is None:
            return None, 0
        if nic in self.switch_of_nic:
            switch = self.switch_of_nic[nic]
            return switch, self.node.pcie.sockets[self.node.pcie.switches[switch].gpus[0]]
        socket = self.node.nics[nic].socket
        return self.place(self.node.nics[nic].gpus[0]) if socket is None else (None, socket)

    def port(self, gpu: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Out of the GPU and into it; nothing where no PCIe rate is known."""
        if not self.ports:
            return (), ()
        out, into = self.ports[gpu]
        return (out,), (into,)

    def way(self, here: Place, there: Place) -> tuple[int, ...]:
        """The resources from one place to another, in the order of travel."""
        (switch, socket), (other_switch, other_socket) = here, there
        if here == there:
            return ()
        up = (self.uplinks[switch][0],) if switch is not None else ()
        across = (self.between[socket, other_socket],) if socket != other_socket and self.between else ()
        down = (self.uplinks[other_switch][1],) if other_switch is not None else ()
        return up + across + down
