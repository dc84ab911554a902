"""`nvidia-smi nvlink -R`: which GPUs the far ends of NVLinks join."""

import pytest

from probes.base.facts import HostFacts
from probes.importers import nvidia_smi
from tests.probes.importers.smi_texts import listed


def text_of(links: dict[int, list[tuple[str, int]]], gpus: int = 0) -> str:
    """The output for GPUs with these far ends, link by link."""
    heads = listed(gpus or len(links)).splitlines()
    lines = []
    for gpu, head in enumerate(heads):
        lines.append(head)
        far = enumerate(links.get(gpu, []))
        lines += [f"\t Link {link}: Remote Device {address}: Link {port}" for link, (address, port) in far]
    return "\n".join(lines) + "\n"


def read(text: str) -> HostFacts:
    (host,) = nvidia_smi.read(text.encode(), "nvlink.txt")
    return host


def switch(number: int) -> str:
    return f"00000000:0{number + 5}:00.0"


def gpu(number: int) -> str:
    return f"00000000:{number + 1}B:00.0"


SWITCHED = {one: [(switch(link % 4), 16 * (link // 4) + one) for link in range(18)] for one in range(8)}
MESHED = {a: [(gpu(b), 4 * a + n) for b in range(4) if b != a for n in range(4)] for a in range(4)}
BRIDGED = {a: [(gpu(1 - a), n) for n in range(12)] for a in range(2)}


@pytest.mark.parametrize(
    ("links", "kind", "domains", "count"),
    [
        (SWITCHED, "switch", (tuple(range(8)),), 18),
        ({one: SWITCHED[one] for one in (0, 1)}, "switch", ((0, 1),), 18),
        (MESHED, "mesh", ((0, 1, 2, 3),), 12),
        (BRIDGED, "bridge", ((0, 1),), 12),
        (
            BRIDGED | {2: [(gpu(3), n) for n in range(12)], 3: [(gpu(2), n) for n in range(12)]},
            "bridge",
            ((0, 1), (2, 3)),
            12,
        ),
        (
            {one: [("ffffffff:ff:ff.0", n) for n in range(18)] for one in range(4)},
            "switch",
            ((0, 1, 2, 3),),
            18,
        ),
    ],
    ids=["switch", "two of it", "mesh", "bridge", "two bridges", "a virtual machine"],
)
def test_what_joins_them(
    links: dict[int, list[tuple[str, int]]], kind: str, domains: tuple[object, ...], count: int
) -> None:
    """Addresses that all share are switches, addresses in a circle are the GPUs themselves."""
    host = read(text_of(links))
    assert (host.nvlink_kind, host.domains) == (kind, domains)
    assert {one.nvlinks for one in host.gpus} == {count}
    assert (host.unknown, host.warnings) == ((), ())


def test_a_cut_text_is_said() -> None:
    """The last GPU shows one link of 18: which are active is not known, and no fault of it."""
    text = text_of(SWITCHED)
    host = read(text[: text.index("Link 1:", text.index("GPU 7:"))].rsplit("\n", 1)[0] + "\n")
    assert (host.nvlink_kind, host.domains) == ("switch", (tuple(range(8)),))
    assert [one.nvlinks for one in host.gpus] == [18] * 7 + [None]
    assert host.unknown == ("GPU 7: the text lists 1 of its 18 NVLinks; how many are active is not known",)
    assert host.warnings == ()


def test_a_gpu_that_is_not_shown_is_no_switch() -> None:
    """Three of a mesh of four all lead to the fourth, whose lines are missing, or its first line alone."""
    three = {one: MESHED[one] for one in range(3)}
    assert read(text_of(three)).domains is None
    headless = text_of(MESHED).replace(listed(4).splitlines()[3] + "\n", "")
    assert "the line of another GPU is missing" in read(headless).unknown[0]


def test_islands_behind_switches() -> None:
    """Four GPUs on two switches, four on two others; a list of one GPU is cut."""
    far = {one: [(switch(2 * (one // 4) + link % 2), link) for link in range(12)] for one in range(8)}
    assert read(text_of(far)).domains == ((0, 1, 2, 3), (4, 5, 6, 7))
    cut = far | {7: far[7][:1]}
    assert read(text_of(cut)).domains == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_far_ends_that_fit_nothing_are_said() -> None:
    """An address of no GPU: who is joined is not known. So where a GPU shows no link."""
    strange = {**MESHED, 3: [(gpu(7), n) for n in range(12)]}
    assert (read(text_of(strange)).domains, read(text_of(MESHED, gpus=5)).domains) == (None, None)
    assert "fit no machine" in read(text_of(strange)).unknown[-1]
