"""What one rank of a validation run saw, and tells as JSON. Shapes: G GPUs, one rank each."""

from dataclasses import dataclass

PHASES = ("dispatch", "compute", "combine")
ANY_SOURCE = -1  # where kernels tell how much came, and not from whom


@dataclass(frozen=True)
class Seen:
    """What one rank saw in one layer under one placement.

    Bytes are by peer; the own rank's entry is local copies. They are empty where kernels do not tell them.
    """

    rank: int
    side: str  # plan, default, ...
    row: int  # of the job's layers
    sent_bytes_G: list[int]
    received_bytes_G: list[int]
    sent_back_bytes_G: list[int]  # combine
    received_back_bytes_G: list[int]
    received: list[list[int]]  # source, expert, assignments
    distinct_tokens: int  # different vectors among its tokens, and among what came back of them
    distinct_results: int
    matrices: list[list[int]]  # of each slot: expert, zeros of its matrix, checksum
    misplaced: str  # the first assignment that came to a slot which does not hold its expert
    wrong_sums: list[str]  # passes in which a token came back wrong
    seconds: dict[str, list[float]]  # by phase, one for each repeat
