"""TensorRT-LLM: its two YAML files, its launch, and what its judge says of a question.

Its own code could not be run; the rules re-stated here were read in its sources.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.base import BadInput
from planner.engines import Emission, Verdict, find_engine
from planner.model import ModelSpec, find_model
from planner.planning import find_topology
from planner.problem import Problem
from planner.topology import Topology
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("trtllm")
OPTIONS = "extra_llm_api_options.yaml"
TOKENS = {"decode": 128, "prefill": 4096}
FP8, INT4, NVFP4 = (replace(TINY, weight_dtype=dtype) for dtype in ("fp8", "int4", "nvfp4"))


def asked(model: ModelSpec, topology: Topology, phase: str = "decode", tokens: int = 0) -> Problem:
    """With a redundant expert for each GPU."""
    return question(model, topology, topology.gpu_count, phase, tokens or TOKENS[phase])


def emitted(problem: Problem, version: str | None = None, role: str = "mixed") -> Emission:
    placement = random_placement(problem.model, problem.gpus, problem.redundant)
    return ENGINE.emit(placement, problem, "org/m", version, role)


def options_of(emission: Emission) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(emission.files[OPTIONS])
    return found


def environment_of(emission: Emission) -> dict[str, str]:
    return dict(emission.commands[0].environment)


def of_gpus(name: str, *gpus: int, nodes_per_domain: int = 1) -> Topology:
    """A machine whose GPUs have that name."""
    topology = machine(*gpus, nodes_per_domain=nodes_per_domain)
    named = tuple(
        replace(node, gpus=tuple(replace(gpu, name=name) for gpu in node.gpus)) for node in topology.nodes
    )
    return replace(topology, nodes=named)


def refused(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.refused]


def test_map_names_every_placed_layer_by_its_absolute_id() -> None:
    """Keys 3..60 and the draft layer 61, without which MTP is a KeyError; every row as long as num_slots
    says.
    """
    emission = emitted(question(find_model("deepseek-v3"), machine(8, 8), 32))
    found = yaml.safe_load(emission.files["moe_load_balancer.yaml"])
    assert set(found) == {"num_slots", "layer_updates_per_iter", "initial_global_assignments"}
    assert found["layer_updates_per_iter"] == 0
    assert list(found["initial_global_assignments"]) == [*range(3, 62)]
    assert {len(row) for row in found["initial_global_assignments"].values()} == {found["num_slots"]} == {288}


def test_options_turn_the_load_balancer_on() -> None:
    """Attention DP and an EP size, without which the map is not served, and the map's path."""
    found = options_of(emitted(asked(TINY, machine(8, 8))))
    assert found["enable_attention_dp"] is True
    assert [found[key] for key in ("tensor_parallel_size", "moe_expert_parallel_size")] == [16, 16]
    assert found["gpus_per_node"] == 8
    assert found["moe_config"].items() >= {
        "backend": "WIDEEP", "load_balancer": "./moe_load_balancer.yaml",
    }.items()  # fmt: skip


def test_sizes_of_a_server_for_all_traffic_that_was_planned_for_decode() -> None:
    """Requests, graphs and the low-latency buffer are the plan's tokens; prompts come in chunks that are
    gathered, computed at once for no fewer tokens than a decode step of all ranks.
    """
    emission = emitted(asked(TINY, machine(8, 8), tokens=200))
    found = options_of(emission)
    assert (found["max_batch_size"], found["cuda_graph_config"]["max_batch_size"]) == (200, 200)
    assert environment_of(emission)["TRTLLM_DEEP_EP_TOKEN_LIMIT"] == "200"
    assert (found["max_num_tokens"], found["enable_chunked_prefill"]) == (4096, True)
    assert found["moe_config"]["max_num_tokens"] == 16384
    wide = options_of(emitted(asked(TINY, machine(8, 8), tokens=2000)))
    assert wide["moe_config"]["max_num_tokens"] == 2000 * 16


def test_sizes_of_a_server_for_all_traffic_that_was_planned_for_prefill() -> None:
    """A chunk is the plan's tokens; decode steps have graphs too."""
    found = options_of(emitted(asked(TINY, machine(8, 8), "prefill", 2048)))
    assert (found["max_num_tokens"], found["enable_chunked_prefill"]) == (2048, True)
    assert found["max_batch_size"] == found["cuda_graph_config"]["max_batch_size"] == 128
    assert "max_num_tokens" not in found["moe_config"]


def test_the_halves_of_a_pair() -> None:
    """A context server has chunks and no decode steps, a generation server the reverse, and both hand over
    the KV cache.
    """
    decode = options_of(emitted(asked(TINY, machine(8, 8)), role="decode"))
    assert (decode["max_batch_size"], decode["max_num_tokens"]) == (128, 128)
    assert "enable_chunked_prefill" not in decode
    prefill = options_of(emitted(asked(TINY, machine(8, 8), "prefill"), role="prefill"))
    assert (prefill["max_num_tokens"], prefill["cuda_graph_config"]) == (4096, None)
    assert prefill["disable_overlap_scheduler"] is True
    assert decode["cache_transceiver_config"] == prefill["cache_transceiver_config"] == {"backend": "DEFAULT"}


def test_the_router_knows_both_servers(tmp_path: Path) -> None:
    """What `trtllm-serve disaggregated` is really given, and the file it reads; a line without an address."""
    problem = asked(TINY, machine(8, 8))
    script, program = tmp_path / "router.sh", tmp_path / "trtllm-serve"
    script.write_text(find_engine("trtllm").router_text(problem, problem))  # type: ignore[attr-defined]
    program.write_text('#!/bin/bash\necho "$1" "${@:4}"; cat "$3"\n')
    program.chmod(0o755)
    where = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PREFILL_HEAD": "p0"}
    missing = subprocess.run(["bash", script], env=where, stderr=subprocess.PIPE, check=False, timeout=10)
    assert b"DECODE_HEAD: set it to" in missing.stderr
    where["DECODE_HEAD"] = "d0"
    found_text = subprocess.check_output(["bash", script], env=where, text=True, timeout=10)
    command, _, config = found_text.partition("\n")
    assert command == "disaggregated --server_start_timeout 3600"
    found = yaml.safe_load(config)
    assert found["context_servers"] == {"num_instances": 1, "urls": ["p0:8000"]}
    assert found["generation_servers"] == {"num_instances": 1, "urls": ["d0:8000"]}
    assert (found["hostname"], found["port"]) == ("0.0.0.0", 8080)


def test_launch_on_one_node(tmp_path: Path) -> None:
    """The words that launch.sh really gives trtllm-serve, in the folder that the options are relative to:
    other hosts reach it, and the options file goes by the name that every release knows.
    """
    words = started(emitted(asked(TINY, machine(8))), tmp_path, "trtllm-serve", node_rank=None)
    assert words[:3] == ["org/m", "--host", "0.0.0.0"]
    assert words[3:] == ["--tp_size", "8", "--ep_size", "8", "--extra_llm_api_options", OPTIONS]


@pytest.mark.parametrize("version", ["1.0", "1.2.1"])
def test_no_release_is_given_a_flag_it_has_not(version: str) -> None:
    """--config came after 1.0."""
    for command in emitted(asked(TINY, machine(8, 8)), version).commands:
        assert "--config" not in command.words
        assert "--extra_llm_api_options" in command.words


def test_1_0_is_told_its_sizes_on_the_command_line() -> None:
    """There the defaults of the command line take the place of what the options file says."""
    words = emitted(asked(TINY, machine(8, 8), tokens=200), "1.0").commands[0].words
    at = words.index("--max_batch_size")
    assert words[at : at + 4] == ("--max_batch_size", "200", "--max_num_tokens", "4096")
    assert "--max_batch_size" not in emitted(asked(TINY, machine(8, 8))).commands[0].words


def test_several_nodes_are_started_by_mpi(tmp_path: Path) -> None:
    """Under MPI the launcher is put before the server; outside it the script says how to start it."""
    emission = emitted(asked(TINY, machine(4, 4)))
    words = started(emission, tmp_path, "trtllm-llmapi-launch", node_rank=None, PMIX_RANK="0")
    assert words[:2] == ["trtllm-serve", "org/m"]
    assert "srun --mpi=pmix -N 2 -n 8 ./launch.sh" in emission.launch


@pytest.mark.parametrize(
    ("gpus", "span", "phase", "transport", "environment"),
    [
        ((8, 8), 1, "decode", "slot", {"FORCE": "DeepEPLowLatency", "ALLOW": "1"}),
        ((8, 8), 1, "prefill", "node", {"FORCE": "DeepEP", "ALLOW": "1"}),
        ((8,) * 3, 1, "prefill", "allgather", {"FORCE": "NotEnabled"}),
        ((4,) * 4, 1, "prefill", "allgather", {"FORCE": "NotEnabled"}),
        ((4,) * 4, 1, "decode", "slot", {"FORCE": "DeepEPLowLatency", "ALLOW": "1"}),
        ((4,) * 3, 1, "decode", "allgather", {"FORCE": "NotEnabled"}),
        ((16,), 1, "decode", "rank", {"FORCE": "NVLinkTwoSided"}),
        ((4,) * 3, 3, "prefill", "rank", {"FORCE": "NVLinkTwoSided"}),
        ((8,), 1, "decode", "allgather", {"FORCE": "NotEnabled"}),
    ],
)
def test_the_launch_fixes_the_all_to_all_that_was_priced(
    gpus: tuple[int, ...], span: int, phase: str, transport: str, environment: dict[str, str]
) -> None:
    """NVLink kernels within a domain; across, DeepEP where its ranks allow (8 GPUs a node times 2, 4, 8, 16
    in normal mode, a multiple of 8 ranks in low latency); gathering elsewhere, and where the EP size is no
    more than top_k (8 here). Never what the engine would fall back to by itself.
    """
    topology = machine(*gpus, nodes_per_domain=span)
    names = {"TRTLLM_FORCE_ALLTOALL_METHOD": "FORCE", "TRTLLM_CAN_USE_DEEP_EP": "ALLOW"}
    found = environment_of(emitted(question(TINY, topology, -64 % sum(gpus), phase)))
    assert {names[name]: value for name, value in found.items() if name in names} == environment
    assert ENGINE.transport(phase, topology, TINY) == transport


def test_a_width_without_low_latency_kernels_goes_through_normal_mode() -> None:
    """3072 is no width of the DeepEP that TensorRT-LLM builds."""
    wide = replace(TINY, dispatch_width=3072)
    assert ENGINE.transport("decode", machine(8, 8), wide) == "node"
    assert ENGINE.transport("decode", machine(4, 4, 4, 4), wide) == "allgather"
    said = [finding.text for finding in ENGINE.judge(asked(wide, machine(8, 8))).findings]
    assert any("hidden sizes" in text and "normal mode" in text for text in said)


def test_a_node_whose_gpus_nvlink_joins_in_pairs_gathers() -> None:
    """Neither NVLink kernels nor DeepEP run there; between nodes low latency has the NICs."""
    model = replace(TINY, top_k=2)
    pairs, _ = find_topology("azure-nc96ads-a100-v4:1", None)
    assert ENGINE.transport("decode", pairs, model) == "allgather"
    assert ENGINE.transport("decode", machine(*(1,) * 16), model) == "slot"


def test_1_0_has_other_names_and_fewer_kernels() -> None:
    """NVLink's method is MNNVL and for GB200 alone; DeepEP's normal mode captures no graphs, and the launch
    says so.
    """
    rack = of_gpus("GB200-186GB", *(4,) * 4, nodes_per_domain=4)
    assert environment_of(emitted(asked(TINY, rack), "1.0")) == {"TRTLLM_FORCE_ALLTOALL_METHOD": "MNNVL"}
    hopper = of_gpus("H100-SXM-80GB", 16)
    assert environment_of(emitted(asked(TINY, hopper), "1.0")) == {
        "TRTLLM_FORCE_ALLTOALL_METHOD": "NotEnabled"
    }
    emission = emitted(asked(TINY, machine(8, 8), "prefill"), "1.0")
    assert options_of(emission)["cuda_graph_config"] is None
    assert any(note.startswith("WARNING: DeepEP's normal mode of 1.0") for note in emission.notes)


def test_an_architecture_off_the_list_is_launched_without_the_map() -> None:
    """A server with one would fail at start, and with an empty section too: it gets none, the options name
    no backend, and nothing is forced.
    """
    olmoe = find_model("olmoe")
    emission = emitted(asked(olmoe, machine(8)))
    assert ENGINE.transport("decode", machine(8, 8), olmoe) == "allgather"
    assert "moe_config" not in emission.files[OPTIONS]
    assert environment_of(emission) == {}
    assert emission.ignored.startswith("TensorRT-LLM 1.2.1 loads no map for olmoe")
    assert "fails at start" in emission.ignored
    assert emission.notes[0].startswith(f"WARNING: {emission.ignored}")
    assert sorted(emission.files) == [OPTIONS, "launch.sh"]


@pytest.mark.parametrize(
    ("model", "version", "why"),
    [
        (find_model("gpt-oss-20b"), "1.0", "list of models"),
        (find_model("gpt-oss-20b"), None, "no kernel for mxfp4"),
        (replace(TINY, architecture="gpt_oss"), None, "biases"),
        (INT4, None, "no kernel for compressed-tensors"),
        (replace(TINY, architecture="glm_moe_dsa"), None, "list of models"),
    ],
)
def test_what_the_backend_could_not_run_is_no_map(model: ModelSpec, version: str | None, why: str) -> None:
    """The list of models, the weights and the biases of experts: each has its reason and the flag that goes
    on without the map.
    """
    problem = asked(model, machine(8))
    assert why in emitted(problem, version).ignored
    (found,) = [one for one in ENGINE.judge(problem, version).findings if one.rule == "map"]
    assert (found.flags, why in found.text) == (("--flags-only",), True)
    assert version is not None or not ENGINE.reads_map(model)


@pytest.mark.parametrize(
    ("gpu", "model", "version", "rules"),
    [
        ("H100-SXM-80GB", FP8, None, []),
        ("B200-SXM-180GB", FP8, None, []),
        ("B200-SXM-180GB", FP8, "1.0", ["weights"]),
        ("A100-SXM-80GB", FP8, None, ["weights"]),
        ("H100-SXM-80GB", NVFP4, None, ["weights"]),
        ("B200-SXM-180GB", NVFP4, None, []),
        ("A100-SXM-80GB", TINY, None, []),
        ("V100-SXM2-32GB", TINY, None, ["gpu"]),
    ],
)
def test_gpus_that_have_no_kernels_are_refused(
    gpu: str, model: ModelSpec, version: str | None, rules: list[str]
) -> None:
    """By the compute capability behind the GPU's name; emission stops with the same reason."""
    problem = asked(model, of_gpus(gpu, 8, 8))
    assert refused(ENGINE.judge(problem, version)) == rules
    if rules:
        with pytest.raises(BadInput, match=gpu):
            emitted(problem, version)


def test_the_judge_says_what_answers_each_rule_and_where_it_is_from() -> None:
    """Host, options, map, all-to-all, sizes, role; each with a source, and none refused."""
    verdict = ENGINE.judge(asked(FP8, of_gpus("H200-SXM-141GB", 8, 8)))
    assert verdict.outcome == "serves with flags"
    assert [finding.rule for finding in verdict.findings] == [
        "host", "options", "map", "all-to-all", "sizes", "role",
    ]  # fmt: skip
    assert all(finding.source for finding in verdict.findings)
    flags = {flag for finding in verdict.findings for flag in finding.flags}
    assert {"TRTLLM_CAN_USE_DEEP_EP=1", "max_batch_size=128", "enable_chunked_prefill=true"} <= flags


def test_roles_are_refused_where_they_are_not_known() -> None:
    """A plan for the other half, and a release whose options of a pair nobody has read."""
    problem = asked(TINY, machine(8, 8))
    with pytest.raises(BadInput, match="the plan is for decode"):
        emitted(problem, role="prefill")
    with pytest.raises(BadInput, match=r"not known of TensorRT-LLM 1\.0"):
        emitted(problem, "1.0", role="decode")


def test_a_release_without_the_backend_is_refused() -> None:
    """1.3 refuses WIDEEP."""
    with pytest.raises(BadInput, match=r"TensorRT-LLM 1\.3\.0: its sources refuse the WIDEEP backend"):
        emitted(asked(TINY, machine(8)), "1.3.0")


def test_a_relative_model_path_is_refused() -> None:
    """The launch changes folder, so './model' would be looked for in the plan's."""
    with pytest.raises(BadInput, match="relative"):
        ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "./model")
