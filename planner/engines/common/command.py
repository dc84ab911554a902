"""What a node runs: said by an engine, started by a launcher, which then needs to know no engine."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeCommand:
    """One node's command, in bash words."""

    words: tuple[str, ...]  # may use $HEAD_ADDRESS (of node 0) and $PLAN_DIR (where the files lie)
    environment: tuple[tuple[str, str], ...] = ()
    per_gpu: bool = False  # MPI starts it once for each GPU, in rank order; else the node starts it once
    accelerator: str = "nvidia"  # or ascend

    @property
    def with_environment(self) -> list[str]:
        """The words, behind `env` and the settings where there are any."""
        settings = [f"{name}={value}" for name, value in self.environment]
        return ["env", *settings, *self.words] if settings else list(self.words)


def node_command(words: Sequence[str], *, per_gpu: bool = False, accelerator: str = "nvidia") -> NodeCommand:
    """
    >>> node_command(["env", "A=1", "serve", "--x", "B=2"])
    NodeCommand(words=('serve', '--x', 'B=2'), environment=(('A', '1'),), per_gpu=False, accelerator='nvidia')
    """
    rest, pairs = list(words), []
    if rest[0] == "env":
        rest.pop(0)
        while "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            pairs.append((name, value))
    return NodeCommand(tuple(rest), tuple(pairs), per_gpu, accelerator)
