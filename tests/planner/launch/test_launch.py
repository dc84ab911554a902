"""Launchers: found by name, hosts in the plan's order, an engine without a command refused."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.engines.common.command import node_command
from planner.launch import hosts_of, hosts_of_pair, job_for, launched
from planner.launch.registry import find_launcher, launcher_names
from tests.planner.engines.examples import TINY, machine, question
from tests.planner.launch.jobs import emitted, nameless


def test_launchers_are_found_by_name() -> None:
    """The modules that are launchers, and no other."""
    assert launcher_names() == ("dynamo", "kubernetes", "llm-d", "shell", "slurm")
    with pytest.raises(BadInput, match="launcher 'slrum' is unknown; did you mean 'slurm'"):
        find_launcher("slrum")


def test_hosts_are_the_given_ones_or_the_topologys_own() -> None:
    """Given ones win; a topology whose nodes have no names, or one name for several, names no hosts."""
    assert hosts_of(machine(4, 4)) == ("host0", "host1")
    assert hosts_of(machine(4, 4), ["b", "a"]) == ("b", "a")
    assert hosts_of(nameless(machine(4, 4))) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a"], "1 distinct"),
        (["a", "a"], "1 distinct"),
        (["a", "$(touch x)"], "no host name"),
        (["a", ""], "no host"),
    ],
)
def test_hosts_that_cannot_be_are_refused(given: list[str], message: str) -> None:
    """One name for each node, and nothing that a shell would run."""
    with pytest.raises(BadInput, match=message):
        hosts_of(machine(4, 4), given)


def test_the_hosts_of_a_pair_are_prefills_then_decodes() -> None:
    """Two halves on one host would ask for the same GPUs."""
    halves = [machine(4), machine(4, 4)]
    assert hosts_of_pair(halves, ["c", "a", "b"]) == [("c",), ("a", "b")]
    assert hosts_of_pair([nameless(half) for half in halves]) == [(), ()]
    with pytest.raises(
        BadInput, match="2 names for a pair; give the 1 hosts of prefill, then the 2 of decode"
    ):
        hosts_of_pair(halves, ["a", "b"])
    for given in ((), ("a", "b", "a")):
        with pytest.raises(BadInput, match="is in both halves of the pair"):
            hosts_of_pair(halves, given)


def test_a_node_name_that_a_shell_would_run_is_not_a_host() -> None:
    """Names come from files that others wrote."""
    topology = machine(4, 4)
    nodes = tuple(replace(node, name=f"$(touch {index})") for index, node in enumerate(topology.nodes))
    assert hosts_of(replace(topology, nodes=nodes)) == ()


def test_an_emission_without_commands_is_refused() -> None:
    """A map alone cannot be launched."""
    emission, _ = emitted()
    with pytest.raises(BadInput, match="nothing to launch"):
        job_for(replace(emission, commands=()), question(TINY, machine(4, 4), 8), "sglang")


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "vllm"])
@pytest.mark.parametrize("launcher", ["shell", "slurm", "dynamo"])
def test_every_engine_under_every_launcher_keeps_its_files(engine: str, launcher: str) -> None:
    """A launcher adds files or takes the place of launch.sh; the map stays as it was."""
    pinned = "0.5.21" if (engine, launcher) == ("sglang", "dynamo") else None
    emission, job = emitted(engine, version=pinned)
    found = launched(emission, job, launcher)
    assert {name: found.files[name] for name in emission.files if name != "launch.sh"} == {
        name: text for name, text in emission.files.items() if name != "launch.sh"
    }
    assert set(emission.files) <= set(found.files)


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "vllm"])
def test_the_ep_size_is_explicit(engine: str) -> None:
    """Each command says the size of the group: a node that joins another one's job fails instead of serving
    half of it.
    """
    _, job = emitted(engine)
    flag = {"sglang": "--ep-size", "trtllm": "--ep_size", "vllm": "--data-parallel-size"}[engine]
    assert all(command.words[command.words.index(flag) + 1] == "8" for command in job.commands)


def test_settings_are_told_from_words() -> None:
    """A command that begins with env has its environment apart."""
    topology = machine(8)
    engine = find_engine("sglang")
    emission = engine.emit(
        engine.default_placement(TINY, 8, 8), question(TINY, topology, 8, tokens_per_rank=512), "m"
    )
    assert emission.commands[0].environment == (("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "512"),)
    assert emission.commands[0].words[0] == "python3"
    assert node_command(["serve", "A=1"]).environment == ()


def test_other_accelerators_get_the_plain_script_alone() -> None:
    """NPUs have neither NCCL nor NVIDIA's resource names; the shell script asks for nothing of the kind."""
    emission, job = emitted("vllm_ascend")
    assert launched(emission, job, "shell").launch.count("NCCL") == 0
    for launcher in ("slurm", "kubernetes", "llm-d", "dynamo"):
        with pytest.raises(
            BadInput, match=f"--launcher {launcher} asks for nvidia accelerators; vllm_ascend runs on ascend"
        ):
            launched(emission, job, launcher)
