"""What a node runs: said by an engine, started by a launcher, which then needs to know no engine."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """What must be there before the command may start: launch.sh and pods refuse where it is not."""

    check: str  # a bash command that succeeds where it is there
    missing: str  # one line: what is missing, and what to do
    package: str = ""  # the folder beside launch.sh that pip installs, empty where the files bring none


@dataclass(frozen=True)
class Endpoint:
    """How a server is made to listen to other hosts, and where it then answers over HTTP."""

    # Empty where an engine listens to all and has no flag for it.
    listen: tuple[str, ...] = ("--host", "0.0.0.0")  # noqa: S104 - a Service reaches no loopback address
    port_flag: str = "--port"  # may list several with commas: the first answers
    port: int = 8000
    health: str = "/health"


@dataclass(frozen=True)
class NodeCommand:
    """One node's command, in bash words."""

    words: tuple[str, ...]  # may use $HEAD_ADDRESS (of node 0) and $PLAN_DIR (where the files lie)
    environment: tuple[tuple[str, str], ...] = ()
    per_gpu: bool = False  # MPI starts it once for each GPU, in rank order; else the node starts it once
    accelerator: str = "nvidia"  # or ascend, hygon
    requires: tuple[Requirement, ...] = ()
    endpoint: Endpoint = Endpoint()

    @property
    def with_environment(self) -> list[str]:
        """The words, behind `env` and the settings where there are any."""
        settings = [f"{name}={value}" for name, value in self.environment]
        return ["env", *settings, *self.words] if settings else list(self.words)

    def value(self, flag: str) -> str | None:
        """What the words give a flag, the last one where they give several; None where they do not name it.

        >>> command = NodeCommand(("serve", "--host", "h", "--port=1"))
        >>> command.value("--host"), command.value("--port"), command.value("--name")
        ('h', '1', None)
        """
        found = None
        for word, following in zip(self.words, [*self.words[1:], ""], strict=True):
            if word == flag:
                found = following
            elif word.startswith(f"{flag}="):
                found = word.partition("=")[2]
        return found

    @property
    def port(self) -> int:
        """Where it answers over HTTP, once it is told to listen there."""
        said = self.value(self.endpoint.port_flag)
        return int(said.partition(",")[0]) if said else self.endpoint.port

    def listening(self, port: int) -> tuple[str, ...]:
        """The words to add so that other hosts reach it at this port: none where the command says so itself.

        >>> NodeCommand(("serve", "--host", "h")).listening(8000)
        ('--port', '8000')
        """
        host, flag = self.endpoint.listen, self.endpoint.port_flag
        added = () if not host or self.value(host[0]) else host
        said = (self.value(flag) or "").partition(",")[0]
        return added if said == str(port) else (*added, flag, str(port))


def node_command(
    words: Sequence[str],
    *,
    per_gpu: bool = False,
    accelerator: str = "nvidia",
    requires: Sequence[Requirement] = (),
    endpoint: Endpoint | None = None,
) -> NodeCommand:
    """
    >>> node_command(["env", "A=1", "serve", "--x", "B=2"]).with_environment
    ['env', 'A=1', 'serve', '--x', 'B=2']
    >>> node_command(["env", "A=1", "serve", "--x", "B=2"]).environment
    (('A', '1'),)
    """
    rest, pairs = list(words), []
    if rest[0] == "env":
        rest.pop(0)
        while "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            pairs.append((name, value))
    said = endpoint or Endpoint()
    return NodeCommand(tuple(rest), tuple(pairs), per_gpu, accelerator, tuple(requires), said)
