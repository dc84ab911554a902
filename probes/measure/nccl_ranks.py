"""Over how many ranks an nccl-tests run was, and in which groups. Pure.

The tool does not print the number of ranks. It follows from the list of devices (often cut), from
size / (count · element) where the ranks share one buffer, and from busbw / algbw of an all-reduce; where
these contradict each other the facts say so.
"""

from collections.abc import Sequence

from probes.measure.nccl_table import ELEMENT_BYTES, Device, Row, Table

_MOST_RANKS = 1 << 20
# count is what one rank has of size
_SPLIT_BUFFER = ("alltoall", "allgather", "reducescatter", "gather", "scatter", "hypercube")


def ranks_of(table: Table, collective: str) -> tuple[int, list[str]]:
    """The number of ranks (0: nothing says it), and what a reader must know about how it was found."""
    listed = max((device.rank for device in table.devices), default=-1) + 1
    by_count = collective in _SPLIT_BUFFER
    candidates = _by_count(table.rows) if by_count else _by_ratio(table.rows, collective)
    how = "size / (count x element)" if by_count else "busbw / algbw"
    if candidates == {1}:
        return 1, [_alone(table.devices)]
    groups = len({device.group for device in table.devices})
    if listed and (not candidates or {listed, listed // groups} & candidates):
        return listed, []
    if len(candidates) != 1:
        fits = f"; {how} fits any of {min(candidates)} to {max(candidates)}" if candidates else ""
        return listed, [f"nothing says for certain over how many ranks it ran{fits}"]
    (derived,) = candidates
    if not listed:
        return derived, [f"no list of devices; {how} says {derived} ranks"]
    taken = max(listed, derived)
    both = f"the list of devices goes to rank {listed - 1}, {how} says {derived} ranks"
    return taken, [f"{both}; {taken} are taken: check which is right"]


def _alone(devices: Sequence[Device]) -> str:
    alone = max(sum(device.rank == 0 for device in devices), 1)
    processes = f"{alone} process{'es' if alone > 1 else ''} ran alone, each as rank 0 of 1"
    remedy = "build nccl-tests with MPI=1 and start it with the same MPI's launcher"
    return f"{processes}, so nothing crossed a link; {remedy}"


def _by_count(rows: tuple[Row, ...]) -> set[int]:
    counted = [row for row in rows if row.count and row.dtype in ELEMENT_BYTES]
    ratios = {row.size / (row.count * ELEMENT_BYTES[row.dtype]) for row in counted}
    whole = {int(ratio) for ratio in ratios if ratio == int(ratio) and 1 <= ratio <= _MOST_RANKS}
    return whole if len(whole) == len(ratios) else set()


def _by_ratio(rows: tuple[Row, ...], collective: str) -> set[int]:
    """Numbers of ranks for which busbw / algbw of the fastest row comes out as printed, to two decimals."""
    rates = [(half.busbw_bytes_per_s, half.algbw_bytes_per_s) for row in rows for half in row.halves]
    positive = [(busbw, algbw) for busbw, algbw in rates if busbw > 0 and algbw > 0]
    if collective != "allreduce" or not positive:
        return set()
    busbw, algbw = max(positive, key=lambda pair: pair[0])
    low, high = ((busbw + sign * 5e6) / (algbw - sign * 5e6) for sign in (-1, 1))
    if not 0 < low <= high < 2:
        return set()
    first, last = 2 / (2 - low), 2 / (2 - high)  # 2·(n-1)/n = ratio
    return set(range(max(1, -int(-first // 1)), min(int(last), _MOST_RANKS) + 1))


def groups_of(devices: tuple[Device, ...], ranks: int) -> tuple[int, str, list[str]]:
    """How NCCL_TESTS_SPLIT cut the ranks: one host each, the same GPU of each host, or otherwise."""
    of_group: dict[int, list[Device]] = {}
    for device in devices:
        of_group.setdefault(device.group, []).append(device)
    groups = list(of_group.values())
    if len(groups) < 2:
        return 1, "all", []
    if len(set(map(len, groups))) != 1 or len(devices) != ranks:
        broken = f"{len(groups)} groups that are not alike or not complete"
        return 1, "all", [f"the list of devices has {broken}: this was not a run of all ranks together"]
    hosts = [len({device.host for device in group}) for group in groups]
    if all(count == 1 for count in hosts):
        return len(groups), "domain", []
    one_index = all(len({device.index for device in group}) == 1 for group in groups)
    if one_index and hosts == list(map(len, groups)):
        return len(groups), "rail", []
    return (
        len(groups),
        "all",
        [f"the ranks were split into {len(groups)} groups that are neither hosts nor rails"],
    )
