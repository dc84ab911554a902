"""Shell prompts in a paste: which host the output below is of."""

import re
from dataclasses import dataclass

_TOOLS = (
    "nvidia-smi|ibstat|ibstatus|ibv_devinfo|ibv_devices|ibdev2netdev|show_gids|lstopo|hostname|ssh|srun"
    "|mpirun|pdsh|clush|kubectl|docker|podman|rocm-smi|amd-smi|scontrol|cat|head|tail|sudo|python3?|nvbandwidth"
    "|ibnetdiscover|iblinkinfo"
)
_PROMPT = re.compile(
    r"(?:\([\w.-]{1,64}\) )?\[?[\w.-]{1,64}@(?P<host>[\w.-]{1,128})(?:[: ][^\n#$%>]{0,120})?\]?[#$%>]"
    r"(?: (?P<command>.*)|\s*)"
)
_BARE = re.compile(
    rf"(?:(?:sh|bash)-[\d.]{{1,8}})?(?P<host>[A-Za-z][\w.-]{{0,127}})?(?::[^\s#$%>]{{0,120}} ?)?[#$%>] ?"
    rf"(?P<command>(?:{_TOOLS})\b.*)"
)
_SSH = re.compile(
    r"(?:sudo )?ssh (?:-[A-Za-z](?: ?[^\s-]\S*)? )*(?:[\w.-]+@)?(?P<host>[A-Za-z0-9][\w.-]*)(?: |$)"
)
_ON_ONE = re.compile(r"(?:sudo )?srun .{0,200}?(?:-w ?|--nodelist[= ])(?P<host>[A-Za-z][\w.-]*)(?: |$)")
_ELSEWHERE = re.compile(r"(?:sudo )?(?:srun|mpirun|pdsh|clush|kubectl|ansible|parallel-ssh|pssh)\b")
_CONTAINER = re.compile(r"[0-9a-f]{12}|localhost")


@dataclass(frozen=True)
class Prompt:
    """`host` is whose output follows: None where the line says nothing of it.

    One that begins with NUL is no name: some other host, a container. `asks_name`: the name comes next.
    """

    host: str | None
    asks_name: bool = False


def prompt_of(line: str) -> Prompt | None:
    """The prompt that a line is, or None."""
    if len(line) > 1024:
        return None
    match = _PROMPT.fullmatch(line) or _BARE.fullmatch(line)
    if match is None:
        return None
    host, command = match["host"], (match["command"] or "").strip()
    if command and (there := _SSH.match(command) or _ON_ONE.match(command)):
        return Prompt(there["host"])
    if _ELSEWHERE.match(command):
        return Prompt(f"\0{command}")
    if host and _CONTAINER.fullmatch(host):
        host = f"\0{host}"
    return Prompt(host, asks_name=re.fullmatch(r"hostname(?: -[sf])?", command) is not None)
