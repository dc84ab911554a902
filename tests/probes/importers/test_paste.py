"""Pastes as people make them: colours, prompts, prefixes, several hosts in one file."""

import random
from collections.abc import Callable

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers.paste import plain
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import behind, listed, matrix

ONE = listed() + "\n" + matrix()


def hosts_of(text: str | bytes) -> list[tuple[str, int, bool]]:
    """Name, GPUs and whether they are one NVLink domain, of each host that the paste makes."""
    content = text.encode() if isinstance(text, str) else text
    found = assemble(read_facts(content, "paste.txt"), Hints(nic_bytes_per_s=50e9))
    assert found.topology is not None, (found.unknown, found.warnings)
    nodes = found.topology.nodes
    return [(node.name, len(node.gpus), node.nvlink.kind == "switch") for node in nodes]


def coloured(text: str) -> bytes:
    lines = text.replace("GPU0\tGPU1", "\x1b[4mGPU0\tGPU1").replace("ID\n", "ID\x1b[0m\n")
    return f"\x1b]0;user@node\x07\x1b[1;32m{lines}\x1b[m".encode()


WRAPPINGS: dict[str, Callable[[str], str | bytes]] = {
    "as it is": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "old Mac": lambda text: text.replace("\n", "\r"),
    "colours": coloured,
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16 of PowerShell": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "comments": lambda text: f"# our new machine, see below\n\n{text}\n-- \nthanks!\n",
    "bare prompts": lambda text: f"$ nvidia-smi -L; nvidia-smi topo -m\n{text}$ \n",
    "a fence": lambda text: f"```\n{text}```\n",
    "a code block": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "hard spaces": lambda text: text.replace(" ", "\u00a0"),
    "a quotation": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "a quoted fence": lambda text: "```\n" + "".join(f"> > {line}\n" for line in text.splitlines()) + "```\n",
    "container": lambda text: f"root@3f2a1b4c5d6e:/workspace# nvidia-smi -L\n{text}",
    "srun": lambda text: f"me@login:~$ srun -p gpu nvidia-smi -L\n{text}me@login:~$ exit\n",
    "srun -l of one task": lambda text: behind("0", text),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_one_host_in_any_wrapping(wrapping: str) -> None:
    """Four GPUs of one host without a name: neither a login node's nor a container's is one."""
    assert hosts_of(WRAPPINGS[wrapping](ONE)) == [("", 4, True)]


NAMED: dict[str, Callable[[str], str]] = {
    "pdsh": lambda text: behind("node7", text),
    "pdsh with its command": lambda text: (
        f"[ops@head ~]$ pdsh -w node7 nvidia-smi topo -m\n{behind('node7', text)}"
    ),
    "kubectl logs": lambda text: "".join(f"[pod/node7/main] {line}\n" for line in text.splitlines()),
    "pssh": lambda text: "".join(f"[node7] {line}\n" for line in text.splitlines()),
    "dshbak": lambda text: f"----------------\nnode7\n----------------\n{text}",
    "ansible": lambda text: f"node7 | CHANGED | rc=0 >>\n{text}",
    "banner": lambda text: f"=== node7 ===\n{text}",
    "host line": lambda text: f"Hostname: node7\n{text}",
    "prompt": lambda text: (
        f"(base) ops@node7:~/work$ nvidia-smi -L && nvidia-smi topo -m\n{text}ops@node7:~/work$ \n"
    ),
    "prompt of root": lambda text: f"[root@node7 ~]# nvidia-smi topo -m\n{text}[root@node7 ~]# exit\n",
    "short prompt": lambda text: f"node7# nvidia-smi topo -m\n{text}",
    "ssh": lambda text: f"ops@head:~$ ssh -o BatchMode=yes ops@node7 nvidia-smi topo -m\n{text}",
    "hostname": lambda text: f"$ hostname -s\nnode7\n$ nvidia-smi -L\n{text}",
}


@pytest.mark.parametrize("way", NAMED)
def test_a_host_that_the_paste_names(way: str) -> None:
    """The name goes to the node, and nothing of the other host to it."""
    assert hosts_of(NAMED[way](ONE)) == [("node7", 4, True)]
    two = NAMED[way](ONE) + NAMED[way](listed(host=1) + matrix()).replace("node7", "node12")
    assert hosts_of(two) == [("node7", 4, True), ("node12", 4, True)]


def test_lines_of_hosts_that_come_mixed() -> None:
    """Behind pdsh lines come as they are printed; each host's own keep their order."""
    lines = [behind(f"n{n}", listed(host=n) + matrix()).splitlines() for n in range(3)]
    rng, mixed = random.Random(1), []
    while any(lines):
        mixed.append(rng.choice([mine for mine in lines if mine]).pop(0))
    assert hosts_of("\n".join(mixed)) == [(f"n{n}", 4, True) for n in range(3)]


def test_hosts_that_answered_alike() -> None:
    """What dshbak -c and clush -b print: one text for all of them."""
    for head in ("node[01-03]", "node[01-03] (3)"):
        text = f"---------------\n{head}\n---------------\n{matrix()}"
        facts = read_facts(text.encode(), "x")
        assert [fact.host for fact in facts if isinstance(fact, HostFacts)] == ["node01", "node02", "node03"]


@pytest.mark.parametrize("order", ["LTLT", "TLTL", "LLTLLT"])
def test_hosts_one_after_the_other(order: str) -> None:
    """The UUIDs tell them apart, in whatever order their outputs come; the same list twice is one host."""
    half = len(order) // 2
    text = "".join(
        listed(host=place // half) if kind == "L" else matrix() for place, kind in enumerate(order)
    )
    assert hosts_of(text) == [("", 4, True), ("", 4, True)]


def test_labels_of_tasks_name_no_host() -> None:
    """Two tasks of `srun -l`, on a host each."""
    text = behind("0", ONE) + behind("1", listed(host=1) + matrix())
    assert hosts_of(text) == [("", 4, True), ("", 4, True)]


def test_binary_stays_as_it_is() -> None:
    """An archive is not text, whatever is in it."""
    for content in (b"\x1f\x8b\x08\r\n\x1b[0m", b"a\0\r\n"):
        assert plain(content) == content


def test_no_control_character_gets_in() -> None:
    """Of C0, C1 and DEL: a name with one would reach a terminal, and the topology file."""
    text = listed().replace("80GB", "80\x07\x85GB\x7f\x1b")
    (host,) = (fact for fact in read_facts(text.encode(), "x") if isinstance(fact, HostFacts))
    assert {gpu.name for gpu in host.gpus} == {"NVIDIA H100 80GB HBM3"}


def test_a_cut_anywhere_gives_no_other_count_in_silence() -> None:
    """Two hosts behind their names, cut at any byte: as many GPUs, or a sentence, or a refusal."""
    text = (behind("n1", ONE) + behind("n2", listed(host=1) + matrix())).encode()
    for cut in range(1, len(text), 97):
        try:
            found = assemble(read_facts(text[:cut], "x"), Hints())
        except BadInput:
            continue
        said = " ".join((*found.unknown, *found.warnings))
        assert found.gpus == 8 or said, cut
