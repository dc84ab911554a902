"""Lines of the ledger, and what they add up to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One use of memory. `basis`: exact, read or assumed, and of what."""

    name: str
    size_bytes: float
    basis: str


NOT_WEIGHTS = ("all_to_all", "transfer", "reserve")


@dataclass(frozen=True)
class Ledger:
    """The GPU that keeps least, and what it holds.

    A request is held by a group of GPUs that share its attention; bytes are those on each GPU of the group.
    """

    gpu: int
    memory_bytes: float
    lines: tuple[Line, ...]
    kv_token_bytes: float  # of one more token of a request
    request_bytes: float  # of a request at its full context: KV cache, windows and states
    kv_basis: str
    planned_requests: int  # a group has at once by the plan
    context_tokens: int
    kv_floor_bytes: float = 0.0

    @property
    def kv_left_bytes(self) -> float:
        """For the KV cache; negative where the lines do not fit."""
        return self.memory_bytes - sum(line.size_bytes for line in self.lines)

    @property
    def weights_bytes(self) -> float:
        """Of the model, replicas included."""
        return sum(line.size_bytes for line in self.lines if line.name not in NOT_WEIGHTS)

    @property
    def needed_bytes(self) -> float:
        """Of KV cache: the floor that was asked for, else that of the planned batch at full context."""
        return self.kv_floor_bytes or self.planned_requests * self.request_bytes

    @property
    def requests(self) -> int:
        """Requests at full context that a group of GPUs holds at once."""
        return max(0, int(self.kv_left_bytes // self.request_bytes))

    @property
    def missing_bytes(self) -> float:
        return max(0.0, self.needed_bytes - self.kv_left_bytes)

    @property
    def fits(self) -> bool:
        return self.kv_left_bytes >= self.needed_bytes
