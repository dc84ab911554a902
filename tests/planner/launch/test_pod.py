"""What a pod does before the engine runs, run in a shell: arguments, the wait for DNS, the plugin."""

from pathlib import Path
from typing import Any

import pytest

from planner.engines.common.command import Requirement
from planner.launch import kubernetes
from planner.launch.job import Job
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, nameless, requiring
from tests.planner.launch.pods import Shell, objects, templates

PLUGIN = Requirement("python3 -c 'import it'", "the plan's plugin is missing: pip install ./plugin", "plugin")
WORKER = {"LWS_LEADER_ADDRESS": "leader", "LWS_WORKER_INDEX": "1"}


def two_nodes() -> Job:
    return job("vllm", nameless(machine(4, 4)), image="i")


def shell(folder: Path, started: Job) -> tuple[Shell, list[dict[str, Any]]]:
    launch = kubernetes.write(started)
    found = Shell(folder, {**started.files, **launch.files})
    found.engine("vllm")
    return found, templates(objects(launch))


def test_arguments_of_the_container_reach_the_engine(tmp_path: Path) -> None:
    """Those that the manifest has, so that other hosts are answered, and those that a person adds."""
    pod, (leader, _) = shell(tmp_path, two_nodes())
    code, errors = pod.run(leader, ["--extra", "two words"], **WORKER | {"LWS_WORKER_INDEX": "0"})
    assert (code, errors) == (0, "")
    assert pod.words is not None
    assert "--host" in pod.words
    assert pod.words[-2:] == ["--extra", "two words"]


def test_a_worker_waits_until_the_leader_is_in_dns(tmp_path: Path) -> None:
    """Two answers of no, then it starts: ending at the first would have its group recreated."""
    pod, (_, worker) = shell(tmp_path, two_nodes())
    pod.program("getent", f'echo "$*" >> {tmp_path}/asked; [ "$(wc -l < {tmp_path}/asked)" -gt 2 ]')
    assert pod.run(worker, **WORKER) == (0, "")
    assert (tmp_path / "asked").read_text() == "hosts leader\n" * 3
    assert pod.words is not None
    assert pod.words[pod.words.index("--data-parallel-address") + 1] == "leader"


def test_a_leader_that_never_comes_is_said_in_one_line(tmp_path: Path) -> None:
    """Exit code 2 after the bound, and nothing is started."""
    pod, (_, worker) = shell(tmp_path, two_nodes())
    pod.program("getent", "exit 2")
    code, errors = pod.run(worker, **WORKER, DNS_WAIT_SECONDS="1")
    assert code == 2
    assert "node 0, leader, is not in DNS after" in errors
    assert "\n" not in errors
    assert pod.words is None


def test_one_node_waits_for_nobody(tmp_path: Path) -> None:
    pod, (only,) = shell(tmp_path, job("vllm", machine(8), image="i"))
    pod.program("getent", "exit 2")
    assert pod.run(only) == (0, "")
    assert pod.words


def with_python(pod: Shell, pip: str) -> None:
    """A python3 that finds the plugin once `pip` has put a file named `installed` there."""
    pod.program(
        "python3", f'case "$2" in pip) {pip} ;; *) [ -e {pod.folder}/installed ] || [ "$1" != -c ] ;; esac'
    )


def test_a_plugin_is_installed_from_a_writable_copy(tmp_path: Path) -> None:
    """Its tool builds beside the sources, and the mount is read-only: the last argument lies elsewhere."""
    pod, (only, *_) = shell(tmp_path, requiring(job("vllm", machine(8), image="i"), PLUGIN))
    with_python(
        pod, f'echo "$*" >> {tmp_path}/pip; [ -f "${{@: -1}}/it/__init__.py" ] && > {tmp_path}/installed'
    )
    assert pod.run(only) == (0, "")
    assert pod.words
    asked = (tmp_path / "pip").read_text().split()
    assert asked[-1] == f"{tmp_path}/tmp/plan-build/plugin"
    assert {"install", "--no-deps", "--no-build-isolation"} <= set(asked)


def test_a_plugin_in_the_image_is_left_as_it_is(tmp_path: Path) -> None:
    pod, (only, *_) = shell(tmp_path, requiring(job("vllm", machine(8), image="i"), PLUGIN))
    with_python(pod, f"> {tmp_path}/pip")
    (tmp_path / "installed").touch()
    assert pod.run(only) == (0, "")
    assert not (tmp_path / "pip").exists()


@pytest.mark.parametrize(
    ("pip", "line"), [("exit 1", "moeplan: pip could not install plugin"), (":", PLUGIN.missing)]
)
def test_without_its_plugin_a_pod_starts_nothing(pip: str, line: str, tmp_path: Path) -> None:
    """The installer fails, or says that it did it and did not: exit code 2 and one line."""
    pod, (only, *_) = shell(tmp_path, requiring(job("vllm", machine(8), image="i"), PLUGIN))
    with_python(pod, pip)
    code, errors = pod.run(only)
    assert code == 2
    assert line in errors
    assert "\n" not in errors
    assert pod.words is None


def test_kubernetes_finds_nothing_to_put_a_value_into() -> None:
    """It would take $(NAME) for a variable of its own and make one of two dollar signs."""
    started = requiring(job("vllm", hosts=("a", "b"), image="i"), PLUGIN)
    for template in templates(objects(kubernetes.write(started))):
        assert not {"$(", "$$"} & {
            script[at : at + 2]
            for script in template["spec"]["containers"][0]["command"]
            for at in range(len(script))
        }
