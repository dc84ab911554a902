"""Slurm's `topology.conf` and `topology.yaml`: which hosts are near each other, never how fast."""

import re

from probes.base.facts import FabricFacts
from probes.importers.slurm_conf import read_conf
from probes.importers.slurm_yaml import KINDS, read_yaml
from probes.importers.text import utf8_text

_CONF = re.compile(rb"^[ \t]{0,40}(?:SwitchName|BlockName)[ \t]{0,9}=", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(rb"^[ \t]{0,40}(?:-[ \t]{1,9})?topology:[ \t]{1,40}\S", re.MULTILINE)
_YAML_KIND = re.compile(rb"^[ \t]{1,40}(?:-[ \t]{1,9})?(?:%s):" % "|".join(KINDS).encode(), re.MULTILINE)
_LIST = re.compile(rb"^-[ \t]", re.MULTILINE)


def recognise(content: bytes, name: str) -> bool:
    """Whether it is one of the two files."""
    if _CONF.search(content):
        return True
    return all(pattern.search(content) for pattern in (_YAML, _YAML_KIND, _LIST))


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value: of topology.yaml the cluster's default topology, the others named in a warning."""
    text = utf8_text(content, name)
    return (read_conf(text, name) if _CONF.search(content) else read_yaml(text, name),)
