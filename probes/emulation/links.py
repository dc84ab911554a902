"""The links of an emulated cluster: addresses, and the shell lines that make and shape them."""

from dataclasses import dataclass

NETWORK = "10.77"
_MTU = 9000  # with 1500, headers would take 4 % of the shaped rate
_PASSABLE_BYTES = 65_536  # the largest packet that the kernel hands over in one piece
_CONGESTION = "reno"  # in every kernel; bbr leaves a tenth of a link unused that is busy both ways


@dataclass(frozen=True)
class Links:
    """`hosts` x `ranks_per_host` ranks, host by host. Rates in bytes/s, each way, of each rank."""

    hosts: int
    ranks_per_host: int
    inside_bytes_per_s: float
    between_bytes_per_s: float

    @property
    def ranks(self) -> int:
        return self.hosts * self.ranks_per_host

    def address(self, rank: int) -> str:
        return f"{NETWORK}.{rank // self.ranks_per_host}.{rank % self.ranks_per_host + 1}"

    def commands(self) -> list[str]:
        """The shell lines that make all of it. Nothing in them comes from outside."""
        lines = ["ip link set lo up", f"ip link add fabric mtu {_MTU} type bridge", "ip link set fabric up"]
        for rank in range(self.ranks):
            name, port = f"rank{rank}", f"port{rank}"
            host = f"{NETWORK}.{rank // self.ranks_per_host}.0/24"
            lines += [
                f"ip netns add {name}",
                f"ip link add {port} mtu {_MTU} type veth peer name eth0 mtu {_MTU} netns {name}",
                f"ip link set {port} master fabric up",
                f"ip -n {name} address add {self.address(rank)}/16 dev eth0",
                f"ip -n {name} link set eth0 up",
                f"ip -n {name} link set lo up",
                f"ip -n {name} route replace {NETWORK}.0.0/16 dev eth0 congctl {_CONGESTION}",
                *self._shaping(f"tc -n {name}", "eth0", f"dst {host}"),
                *self._shaping("tc", port, f"src {host}"),
            ]
        return lines

    def _shaping(self, tc: str, device: str, own_host: str) -> list[str]:
        """Two classes, that of the other hosts by default.

        Each has a queue of packets, since fq_codel is not in every kernel.
        """
        lines = [f"{tc} qdisc add dev {device} root handle 1: htb default 2"]
        for minor, rate in ((1, self.inside_bytes_per_s), (2, self.between_bytes_per_s)):
            # a millisecond's worth: the kernel's timer is no finer on some machines
            burst = _PASSABLE_BYTES + int(rate / 1000)
            limits = f"rate {round(rate * 8)}bit burst {burst} cburst {burst} quantum {_PASSABLE_BYTES}"
            lines += [
                f"{tc} class add dev {device} parent 1: classid 1:{minor} htb {limits}",
                f"{tc} qdisc add dev {device} parent 1:{minor} pfifo limit 500",
            ]
        own = f"protocol ip u32 match ip {own_host} flowid 1:1"
        return [*lines, f"{tc} filter add dev {device} parent 1: {own}"]
