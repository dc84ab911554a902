"""Writes down the commit that a wheel or an sdist is built from: `moeplan --version` tells it."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "planner/data/commit"
ASK = ["git", "describe", "--always", "--dirty=, with changes", "--abbrev=10", "--exclude=*"]


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]  # no configuration of its own
    """Out of an sdist there is no commit to ask for, and the file is there already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        asked = subprocess.run(ASK, cwd=root, capture_output=True, text=True, timeout=20, check=False)
        if asked.returncode == 0:
            self.folder = tempfile.TemporaryDirectory()
            file = Path(self.folder.name) / "commit"
            file.write_text(asked.stdout)
            build_data["force_include"][str(file)] = INSIDE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        if hasattr(self, "folder"):
            self.folder.cleanup()
