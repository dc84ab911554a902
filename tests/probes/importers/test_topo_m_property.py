"""`nvidia-smi topo -m`: machines rendered, damaged in any way and read back right, or said to be unknown."""

import contextlib
import random
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import topo_m
from tests.probes.importers.topo_pastes import BRIDGED, Machine, essence, machines, read


def spaced(text: str, rng: random.Random) -> str:
    return re.sub(r"\t+", lambda _: " " * rng.randint(2, 9), text)


def ansi(text: str, rng: random.Random) -> str:
    return "\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1)


def quoted(text: str, rng: random.Random) -> str:
    mark = rng.choice(["> ", "    ", "* ", "\t"])
    return "\n".join(mark + line for line in text.split("\n"))


def logged(text: str, rng: random.Random) -> str:
    return "PyTorch version: 2.6\nGPU models: some\n" * rng.randint(1, 3) + text + "\nversions: numpy 2.1\n"


def glued(text: str, rng: random.Random) -> str:
    """A random tab between two cells is lost."""
    places = [match.start() for match in re.finditer(r"(?<=[A-Z0-9 ])\t(?=[A-Z ])", text)]
    lost = rng.choice(places) if places else None
    return text if lost is None else text[:lost] + text[lost + 1 :]


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randint(1, len(text))]


def beheaded(text: str, rng: random.Random) -> str:
    return text[rng.randint(0, len(text) - 1) :]


def line_lost(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


Damage = Callable[[str, random.Random], str]
DAMAGES: tuple[Damage, ...] = (spaced, ansi, quoted, logged, glued, cut, beheaded, line_lost)


def check_honest(machine: Machine, text: str) -> None:
    """Either equal facts, or the incompleteness is said; counts that are wrong are said to be unproven.

    Nothing at all may also be said.
    """
    whole = read(machine.text())
    if not topo_m.recognise(text.encode(), "paste"):
        return
    try:
        host = read(text)
    except BadInput:
        return
    if (len(host.gpus), len(host.nics)) != (len(whole.gpus), len(whole.nics)):
        assert host.unknown, f"{len(host.gpus)} GPUs and {len(host.nics)} NICs in silence:\n{text}"
    elif essence(host) != essence(whole) or [nic.device for nic in host.nics] != [
        nic.device for nic in whole.nics
    ]:
        assert host.unknown or host.warnings or devices_missing(host, whole), (
            f"something is lost in silence:\n{text}"
        )
    for pair, path in host.gpu_paths.items():
        if len(host.gpus) == len(whole.gpus):
            assert path == whole.gpu_paths[pair], f"a wrong link {pair}:\n{text}"


def devices_missing(host: HostFacts, whole: HostFacts) -> bool:
    """A legend that is cut off leaves device names None, which says so itself."""
    same = essence(host) == essence(whole)
    return same and all(
        mine.device in {None, other.device} for mine, other in zip(host.nics, whole.nics, strict=True)
    )


@given(machines(), st.lists(st.sampled_from(DAMAGES[:4]), max_size=3), st.integers(0, 1 << 30))
def test_harmless_damage_gives_equal_facts(machine: Machine, damages: list[Damage], seed: int) -> None:
    """Spaces, colours, quotes and text around lose nothing."""
    text = machine.text()
    for damage in damages:
        text = damage(text, random.Random(seed))
    assert essence(read(text)) == essence(read(machine.text()))


@given(machines(), st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=3), st.integers(0, 1 << 30))
def test_any_damage_is_read_right_or_said(machine: Machine, damages: list[Damage], seed: int) -> None:
    """Rendered, damaged, imported: equal facts or the incompleteness said.

    Never a wrong count or link in silence.
    """
    text = machine.text()
    for damage in damages:
        text = damage(text, random.Random(seed)) or " "
    check_honest(machine, text)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_only_bad_input_leaves(junk: bytes, place: int) -> None:
    """Junk in the middle of a table is refused or read, never a crash."""
    content = BRIDGED.encode()[:place] + junk + BRIDGED.encode()[place:]
    topo_m.recognise(content, "x")
    with contextlib.suppress(BadInput):
        topo_m.read(content, "x")
