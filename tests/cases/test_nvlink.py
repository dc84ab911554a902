"""C20, C21: what NVLink joins, and what DeepEP may use of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probes.machine.nvlink_fabric import fabric_key
from probes.nvml.decode import decode_health
from probes.record.file import write_record
from tests.cases.asked import Made, refusal, run, solved, told
from tests.probes.records import record


def topo(labels: list[list[str]], numa: list[int]) -> str:
    """`nvidia-smi topo -m` with tabs, as it prints them."""
    gpus = range(len(labels))
    head = "\t" + "\t".join(f"GPU{gpu}" for gpu in gpus) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    lines = [head]
    for i in gpus:
        links = [" X " if i == j else labels[i][j] for j in gpus]
        lines.append("\t".join([f"GPU{i}", *links, "0-23", str(numa[i]), "", "N/A"]))
    return "\n".join(lines) + "\n"


PAIRS = [
    ["NV4" if i // 2 == j // 2 else "NODE" if i // 4 == j // 4 else "SYS" for j in range(6)] for i in range(6)
]
TRAY = """\
        GPU0    GPU1    GPU2    GPU3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV18    NV18    NV18    0-71    0               N/A
GPU1    NV18     X      NV18    NV18    0-71    0               N/A
GPU2    NV18    NV18     X      NV18    72-143  1               N/A
GPU3    NV18    NV18    NV18     X      72-143  1               N/A
"""
GLUED = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPXB\tNODE\t0-55,112-16N/A
GPU1\tNV18\t X \tNODE\tPXB\t0-55,112-16N/A
NIC0\tPXB\tNODE\t X \tNODE
NIC1\tNODE\tPXB\tNODE\t X\x20
"""


@pytest.mark.parametrize(
    ("text", "gpu", "domains"),
    [
        (topo([["PHB"] * 3] * 3, [0] * 3), "A100-PCIE-80GB", [[0], [1], [2]]),
        (topo(PAIRS, [0, 0, 0, 0, 1, 1]), "A100-PCIE-80GB", [[0, 1], [2, 3], [4, 5]]),
        (TRAY, "GB200", [[0, 1, 2, 3]]),
    ],
    ids=["PHB only", "pairs", "tray"],
)
def test_c20_domains_are_what_nvlink_joins(text: str, gpu: str, domains: list[list[int]], save: Made) -> None:
    """Not the node, not the socket: components of NVLink, from tabs or spaces, without a legend.

    A rack's size is asked for, not guessed.
    """
    found = told(f"import {save('topo.txt', text)} --gpu {gpu}")
    assert (found["nvlink_domains"], found["nics"]) == (domains, 0)
    assert any("--nvlink-domain-nodes" in line for line in found["unknown"]) == (gpu == "GB200")


def test_c20_an_unknown_link_word_is_an_error(save: Made) -> None:
    """With the line, and the words that are known."""
    path = save("topo.txt", topo([["FOO"] * 3] * 3, [0] * 3))
    assert "topo.txt: line 2: 'FOO' in row GPU0 is no link word" in refusal(f"import {path}")


def test_c20_glued_columns_are_not_guessed(save: Made) -> None:
    """The NUMA node that ran into the CPU list is left out and said; NICs beside GPUs are kept."""
    found = told(f"import {save('topo.txt', GLUED)} --gpu H100-SXM --nic 400G")
    assert found["affinity"] == {"0": ["NIC0"], "1": ["NIC1"]}
    assert any("run into each other" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("engine", "backend"),
    [("sglang", "--moe-a2a-backend none"), ("vllm", "--all2all-backend allgather_reducescatter")],
)
def test_c20_deepep_normal_mode_is_not_used_over_pcie_pairs(
    engine: str, backend: str, save: Made, model: Made, tmp_path: Path
) -> None:
    """EP 4 over two NVLink pairs, which its kernels take for NVLink peers.

    The launch uses another backend, names the pair, and is judged with it.
    """
    pairs = save("topo.txt", topo([row[:4] for row in PAIRS[:4]], [0] * 4))
    cluster = tmp_path / "cluster.json"
    assert run(f"import {pairs} --gpu H100-SXM -o {cluster}").exit_code == 0
    question = f"--model {model(8)} --topology {cluster} --redundant 0 --phase prefill --engine {engine}"
    plan = solved(tmp_path / "plan.json", question)
    emitted = told(f"emit {plan} --engine {engine} -o {tmp_path}/out")
    assert any(f"GPUs 0 and 2 have none: the launch uses {backend}" in note for note in emitted["notes"])
    command = emitted["launch"].split("set -euo")[1]
    assert backend in " ".join(command.replace("\\\n", " ").split())
    assert "deepep" not in command
    assert json.loads(plan.read_text())["workload"]["transport"] == "allgather"
    assert not any("the plan was judged under" in note for note in emitted["notes"])


def test_c20_three_gpus_without_nvlink_and_nic_are_warned_of(save: Made, model: Made, tmp_path: Path) -> None:
    """`PHB` everywhere: in decode DeepEP's kernels have a way only where PCIe peer access is on.

    The paste does not tell.
    """
    paste, cluster = save("topo.txt", topo([["PHB"] * 3] * 3, [0] * 3)), tmp_path / "cluster.json"
    assert run(f"import {paste} --gpu H100-SXM -o {cluster}").exit_code == 0
    question = f"--model {model(8)} --topology {cluster} --redundant 1 --engine sglang"
    plan = solved(tmp_path / "plan.json", question)
    notes = told(f"emit {plan} --engine sglang -o {tmp_path}/out")["notes"]
    assert any(
        note.startswith("WARNING: DeepEP's low latency mode")
        and "GPUs 0 and 1 have no NVLink, their node lists no NIC" in note
        for note in notes
    )


def merged_domains(tmp_path: Path, hosts: int, gpus: int, fabric: str | None) -> list[list[int]]:
    """NVLink domains of hosts whose probe files are merged."""
    paths = []
    for number in range(hosts):
        found = record(number, gpus=gpus)
        host = replace(found.host, gpus=tuple(replace(gpu, fabric=fabric) for gpu in found.host.gpus))
        paths.append(write_record(replace(found, host=host), tmp_path))
    domains: list[list[int]] = told(f"probe --merge {' '.join(map(str, paths))}")["nvlink_domains"]
    return domains


def test_c21_one_fabric_is_one_domain(tmp_path: Path) -> None:
    """Eight hosts of four GPUs with one fabric UUID and clique: 32 GPUs that reach each other over NVLink."""
    key, fault = fabric_key(bytes.fromhex("3143b15bc2cd192b28cc9b5473fb5b93"), 0x7FFE, 3, 0)
    assert fault is None
    assert merged_domains(tmp_path, 8, 4, key) == [list(range(32))]


def test_c21_zeros_are_no_fabric(tmp_path: Path) -> None:
    """Two H200 hosts say 'completed', UUID 0, clique 0: two domains of eight."""
    key, _ = fabric_key(bytes(16), 0, 3, 0)
    assert merged_domains(tmp_path, 2, 8, key) == [list(range(8)), list(range(8, 16))]


def test_c21_a_health_mask_is_decoded_by_field() -> None:
    """0xaa says 'no' four times, which is healthy; 1 in the lowest field is degraded bandwidth."""
    assert decode_health(0xAA) == ()
    assert decode_health(0xA9) == ("NVLink bandwidth is degraded",)
