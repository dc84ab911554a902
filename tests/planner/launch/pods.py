"""A manifest's pods, held against published schemas, and their commands run in a shell with stand-ins."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.launch import pod
from planner.launch.job import Launch

POSITIVE = {"type": "integer", "minimum": 1}
NAMED = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"pattern": "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"}},
}
RESTARTS = ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "Default", "None"]


def closed(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """The schema of an object with these fields and no other."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": dict(properties),
    }


LWS = closed(  # leaderworkerset.x-k8s.io/v1 as its API reference has it; pod templates are judged apart
    {
        "apiVersion": {"const": "leaderworkerset.x-k8s.io/v1"},
        "kind": {"const": "LeaderWorkerSet"},
        "metadata": NAMED,
        "spec": closed(
            {
                "replicas": {"type": "integer", "minimum": 0},
                "startupPolicy": {"enum": ["LeaderCreated", "LeaderReady"]},
                "rolloutStrategy": {"type": "object"},
                "networkConfig": {"type": "object"},
                "leaderWorkerTemplate": closed(
                    {
                        "size": POSITIVE,
                        "restartPolicy": {"enum": RESTARTS},
                        "leaderTemplate": {"type": "object"},
                        "workerTemplate": {"type": "object"},
                        "subGroupPolicy": {"type": "object"},
                    },
                    "workerTemplate",
                ),
            },
            "startupPolicy",
            "leaderWorkerTemplate",
        ),
    },
    "apiVersion",
    "kind",
    "metadata",
    "spec",
)
COMPONENT = closed(
    {
        "name": {"pattern": "^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$", "maxLength": 63},
        "type": {"enum": ["frontend", "worker", "prefill", "decode"]},
        "replicas": POSITIVE,
        "multinode": closed({"nodeCount": {"type": "integer", "minimum": 2}}, "nodeCount"),
        "sharedMemorySize": {"type": "string"},
        "globalDynamoNamespace": {"type": "boolean"},
        "podTemplate": {"type": "object"},
    },
    "name",
)
DGD = closed(  # nvidia.com/v1beta1 DynamoGraphDeployment, the fields used here as its Go types have them
    {
        "apiVersion": {"const": "nvidia.com/v1beta1"},
        "kind": {"const": "DynamoGraphDeployment"},
        "metadata": NAMED,
        "spec": closed(
            {
                "backendFramework": {"enum": ["sglang", "vllm", "trtllm"]},
                "components": {"type": "array", "items": COMPONENT, "minItems": 1},
            },
            "components",
        ),
    },
    "apiVersion",
    "kind",
    "metadata",
    "spec",
)


def objects(launch: Launch) -> dict[str, dict[str, Any]]:
    """The manifest's objects by kind."""
    return {found["kind"]: found for found in yaml.safe_load_all(launch.files[launch.first])}


def templates(found: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The pod templates of a set, its leader's first, or of a graph's components."""
    if "DynamoGraphDeployment" in found:
        return [part["podTemplate"] for part in found["DynamoGraphDeployment"]["spec"]["components"]]
    template = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    return [template[name] for name in ("leaderTemplate", "workerTemplate") if name in template]


def validate(found: Mapping[str, dict[str, Any]]) -> None:
    """Every object by its schema, pods and what Kubernetes has itself by its own; a misspelt field fails."""
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    version = kubernetes_validate.latest_version()
    for kind, value in found.items():
        if kind in ("LeaderWorkerSet", "DynamoGraphDeployment"):
            jsonschema.validate(value, {"LeaderWorkerSet": LWS, "DynamoGraphDeployment": DGD}[kind])
        else:
            kubernetes_validate.validate(value, version, strict=True)
    for template in templates(found):
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **template}
        whole["metadata"] = {"name": "x", **template.get("metadata", {})}
        kubernetes_validate.validate(whole, version, strict=True)


class Shell:
    """A folder that plays the pod's mount, with programs that play the image's."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder, self.programs = folder, folder / "bin"
        self.programs.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self.program("getent", "exit 0")

    def program(self, name: str, body: str) -> None:
        (self.programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.programs / name).chmod(0o755)

    def engine(self, name: str, before: str = "") -> None:
        """A program that writes down the words it is started with, one a line."""
        self.program(name, f'{before}\nprintf "%s\\n" "$@" > "{self.folder}/words"')

    def run(
        self, template: Mapping[str, Any], more: Sequence[str] = (), **environment: str
    ) -> tuple[int, str]:
        """Exit code and stderr of the command that the template's container is started with."""
        started = template["spec"]["containers"][0]
        words = [*started["command"], *started["args"], *more]
        places = {"PATH": f"{self.programs}:/usr/bin:/bin", "TMPDIR": str(self.folder / "tmp")}
        done = subprocess.run(
            [word.replace(pod.MOUNT, str(self.folder)) for word in words],
            env={**places, **environment},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.returncode, done.stderr.strip()

    @property
    def words(self) -> list[str] | None:
        """What the engine was started with; None where it was not."""
        path = self.folder / "words"
        return path.read_text().splitlines() if path.exists() else None
