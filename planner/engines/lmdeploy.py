"""LMDeploy 0.18.0, PyTorch engine. It reads no map but a table of counts, from which its balancer makes one.

Its balancer, a copy of DeepSeek's EPLB, was run from its wheel on a CPU: see `common.count_table` for how far
a table can say what the plan says. Flags and classes were read in the wheel; it was never served.
"""

from collections.abc import Iterator

from planner.base import dump_json
from planner.engines.common import count_table, script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, refuse_broken, uneven_nodes
from planner.engines.common.releases import Release
from planner.engines.common.sizes import AUTO, sizes_of
from planner.engines.common.verdict import MIXED, Finding, Verdict
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation

NAME = "lmdeploy"
TITLE = "LMDeploy"
VERSION = "0.18.0"
REPLICA_RULE = "even"  # a draw for each assignment, among all replicas, whatever the rank
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = small.ROLES
TABLE_NAME = "experts_statistic.json"
MASTER_PORT = 29555
# model_type of the classes that start LMDeploy's balancer, and whose experts it then loads: in blocks of fp8.
BALANCED = frozenset(
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "kimi_k2", "qwen3_moe")
)
RELEASES = (Release(VERSION, "its wheel, read; its balancer run on a CPU", BALANCED),)
ENDPOINT = Endpoint(("--server-name", "0.0.0.0"), "--server-port", 23333)  # noqa: S104 - others must reach it
transport = usual.deepep_transport
replica_rule = usual.one_rule(REPLICA_RULE)
dispatch_dtype = usual.block_fp8
read_map = usual.no_map


def reads_map(model: ModelSpec) -> bool:
    """Whether the balancer runs for it: LMDeploy raises NotImplementedError for weights other than fp8."""
    return model.architecture in BALANCED and model.weight_dtype == "fp8"


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Without a table LMDeploy balances made-up counts; the cyclic map stands in for that."""
    return cyclic_placement(model, gpus, redundant)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del model, slots
    return [Violation("gpus", "LMDeploy balances experts over more than 1 GPU")] if gpus < 2 else []


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def served(placement: Placement, problem: Problem) -> Placement:
    """The placement that LMDeploy makes of what is emitted."""
    return count_table.count_table(placement, problem).served


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The table and the launch script."""
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _ignored(problem.model)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch has no redundant experts",)
    else:
        table = count_table.count_table(placement, problem)
        files[TABLE_NAME] = dump_json(table.decoder_rows(problem.model.layers))
        notes += (count_table.note(TITLE, table, placement, problem, REPLICA_RULE),)
        notes += small.said(verdict, ("folder", "draft"))
    notes += small.said(verdict, ("ports", "role", *small.DEEPEP))
    commands = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    title = f"{TITLE} {version or release.version}"
    return small.emission(title, problem, commands, files, notes, ignored, endpoint=ENDPOINT)


def _ignored(model: ModelSpec) -> str:
    if reads_map(model):
        return ""
    if model.architecture not in BALANCED:
        why = f"has no expert balancer for {model.architecture}"
    else:
        why = f"balances fp8 experts only, and {model.name} is {model.weight_dtype}"
    return f"LMDeploy {VERSION} {why}: it would serve one block of experts a GPU, not the plan's"


def _findings(problem: Problem) -> Iterator[Finding]:
    uneven = uneven_nodes(problem.topology, "LMDeploy starts as many ranks on each node")
    yield from small.refused(uneven, "--dp and --nnodes, read")
    limits_of_map = map_limits(problem.model, problem.slots, problem.gpus)
    yield from small.refused(limits_of_map, "cli/serve.py, --enable-eplb, read")
    yield from small.deepep_only(TITLE, problem, problem.workload.phase, pads_hidden=False)
    text = "LMDeploy listens on all interfaces by default; the launch says so"
    yield Finding("host", text, "cli/serve.py:46, read", ENDPOINT.listen)
    text = "each rank serves a port of its own, from 23333 on; Ray, DeepEP and DeepGEMM are needed"
    yield Finding("ports", text, "cli/serve.py, read")
    text = "the low-latency buffer and the largest graph are those of the requests that run on a rank"
    source = "pytorch/model_inputs.py:538, pytorch/engine/config_builder.py:38; read"
    yield Finding("sizes", text, source, tuple(_size_words(problem)))
    ignored = _ignored(problem.model)
    if ignored:
        yield Finding("map", ignored, "its classes; backends/cuda/moe, read", ("--flags-only",))
    else:
        text = "LMDeploy reads no map: its balancer makes one of the plan's counts, in one group of all ranks"
        yield Finding("map", text, "pytorch/nn/eplb.py, run", ("--enable-eplb", *_settings(problem)))
        text = "the ranks read the table from one path: every node needs the plan's folder in the same place"
        yield Finding("folder", text, "pytorch/nn/eplb.py, read")
        if problem.model.draft_layer_ids:
            text = "leave MTP off: its draft layer looks for a row after the table's last and stops"
            yield Finding("draft", text, "pytorch/nn/eplb.py, run")
    yield small.other_phase(problem, "each kind of step in its own mode of DeepEP")


def _size_words(problem: Problem) -> list[str]:
    workload = problem.workload
    sizes = sizes_of(workload.phase, workload.tokens_per_rank, MIXED, AUTO, gpus=problem.gpus, page=1)
    return ["--max-batch-size", str(sizes.running), "--max-prefill-token-num", str(sizes.chunk)]


def _settings(problem: Problem) -> list[str]:
    """What the balancer is told. One group and one node: it deals over all GPUs at once."""
    return [
        f"LMDEPLOY_EPLB_EXPERTS_STATISTIC_FILE={script.PLAN_DIR}/{TABLE_NAME}",
        f"LMDEPLOY_EPLB_NUM_REDUNDANT_EXPERTS={problem.redundant}",
        "LMDEPLOY_EPLB_NUM_GROUPS=1",
        f"LMDEPLOY_EPLB_RANKS_PER_NODE={problem.gpus}",
    ]


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words."""
    gpus, nodes, with_table = str(problem.gpus), problem.topology.node_count, reads_map(problem.model)
    head = '"$HEAD_ADDRESS"' if nodes > 1 else "127.0.0.1"
    settings = [f"LMDEPLOY_DP_MASTER_ADDR={head}", f"LMDEPLOY_DP_MASTER_PORT={MASTER_PORT}"]
    settings += _settings(problem) if with_table else []
    words = ["env", *settings, "lmdeploy", "serve", "api_server", script.quote(model_path), *ENDPOINT.listen]
    words += ["--backend", "pytorch", "--tp", "1", "--dp", gpus, "--ep", gpus, *_size_words(problem)]
    if nodes > 1:
        words += ["--nnodes", str(nodes), "--node-rank", str(node)]
    return [*words, "--enable-eplb"] if with_table else words
