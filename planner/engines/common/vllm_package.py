"""A package for pip that vLLM loads in each of its processes, and how a launch asks for it."""

from planner.engines.common.command import Requirement

_GROUP = "vllm.general_plugins"


def pyproject(package: str, release: str, description: str) -> str:
    """The module `package` beside it has a function `register`."""
    return f"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{package.replace("_", "-")}"
version = "{release}"
description = "{description}"
requires-python = ">=3.10"

[project.entry-points."{_GROUP}"]
{package} = "{package}:register"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""


def requirement(package: str, release: str, folder: str, what: str) -> Requirement:
    """That this release of it is installed, and not left out by VLLM_PLUGINS."""
    check = (
        "import os; from importlib.metadata import entry_points as found; "
        f'there = any(one.name == "{package}" and one.dist.version == "{release}" '
        f'for one in found(group="{_GROUP}")); '
        f'listed = "{package}" in os.environ.get("VLLM_PLUGINS", "{package}").split(","); '
        "raise SystemExit(not (there and listed))"
    )
    missing = (
        f"{what} is not in vLLM's environment on this node: pip install ./{folder}, "
        f"and list {package} in VLLM_PLUGINS where you set that"
    )
    return Requirement(check=f"python3 -c '{check}'", missing=missing, package=folder)
