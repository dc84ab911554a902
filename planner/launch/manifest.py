"""Kubernetes objects that several launchers write: names, the ConfigMap with the files, YAML."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from planner.base import BadInput
from planner.launch.job import Job

LARGEST_CONFIG_BYTES = 1_000_000  # Kubernetes keeps a ConfigMap below 1 MiB, names included
LONGEST_NAME = 40  # room for what controllers and this room add, up to the 63 letters of a DNS label


def object_name(job: Job) -> str:
    """A name that Kubernetes takes for a Service too: the set's is one. Each half of a pair has its own."""
    words = re.sub(r"[^a-z0-9]+", "-", f"moeplan-{job.engine}-{job.label}".lower()).strip("-")
    return words[:LONGEST_NAME].strip("-")


def label_value(text: str) -> str:
    """
    >>> label_value("org/Model 1 (fp8)")
    'org-Model-1-fp8'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._")


def config_map(job: Job, files: Mapping[str, str]) -> dict[str, Any]:
    """The files as a ConfigMap. BadInput where it cannot hold them."""
    size = sum(len(text.encode()) for text in files.values())
    if size > LARGEST_CONFIG_BYTES:
        raise BadInput(
            f"the files have {size:,} bytes, a ConfigMap holds {LARGEST_CONFIG_BYTES:,}; "
            "use --launcher shell and a volume that the pods share"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(job)},
        "data": {file_key(name): files[name] for name in sorted(files)},
    }


def file_key(name: str) -> str:
    """A ConfigMap's keys hold no slash."""
    return name.replace("/", "__")


def documents(*objects: Mapping[str, Any]) -> str:
    return "---\n".join(map(_yaml, objects))


def _yaml(value: Mapping[str, Any]) -> str:
    class Blocks(yaml.SafeDumper):
        """Texts of several lines stay readable."""

        def ignore_aliases(self, data: Any) -> bool:
            del data
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Blocks.add_representer(str, represent)
    return str(yaml.dump(dict(value), Dumper=Blocks, sort_keys=False, width=1000))
