"""The release as strangers get it: `python -m tests.release [PYTHON ...]`, by `make release`.

An sdist is built, a wheel from the sdist alone, and both are checked in empty environments outside the
checkout: one for each Python from 3.10 to 3.14 that this machine has (or that is named), with the pinned and
hashed dependencies of `requirements.lock`. Every Python must decide the same placement.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planner import __version__
from planner.cli.version import version_text
from tests.places import ROOT

NAMES = tuple(f"python3.{minor}" for minor in range(10, 15))
LIMIT_SECONDS = 900.0
CHAIN = (  # what a stranger tries first, in an empty folder
    ("--version",),
    ("topology", "list"),
    ("solve", "--model", "mixtral", "--topology", "hgx-h100:2x2", "-o", "plan.json"),
    ("check", "plan.json"),
    ("emit", "plan.json", "--engine", "trtllm", "-o", "out"),
    ("check", "out/moe_load_balancer.yaml"),
)


def run(*argv: str | Path, cwd: Path) -> str:
    """Standard output. RuntimeError, with all that it said, where it does not exit 0."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, argv)),
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pythons() -> list[str]:
    """Interpreters that start, one for each name; also pyenv's, whose own command may be for another."""
    found = []
    for name in NAMES:
        beside = sorted((Path.home() / ".pyenv/versions").glob(f"{name.removeprefix('python')}.*/bin/{name}"))
        for candidate in (shutil.which(name), *beside):
            if (
                candidate
                and not subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode
            ):
                found.append(str(candidate))
                break
    return found


def built(folder: Path) -> Path:
    """The wheel, made of the sdist alone."""
    make = (sys.executable, "-m", "build", "--no-isolation")
    run(*make, "--sdist", "--outdir", folder, ROOT, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    run(*make, "--wheel", "--outdir", folder, folder / f"moeplan-{__version__}", cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def tried(python: str, wheel: Path, folder: Path) -> str:
    """SHA-256 of the placement that the installed command decides there."""
    run(python, "-m", "venv", folder / "env", cwd=folder)
    pip = (folder / "env/bin/python", "-m", "pip", "install", "--quiet")
    run(*pip, "--require-hashes", "--requirement", ROOT / "requirements.lock", cwd=folder)
    run(*pip, "--no-deps", wheel, cwd=folder)
    work = folder / "work"
    work.mkdir()
    said = [run(folder / "env/bin/moeplan", *words, cwd=work) for words in CHAIN]
    if said[0].strip() != version_text():
        raise RuntimeError(f"{python}: --version says {said[0].strip()!r}, the checkout {version_text()!r}")
    placement = json.loads((work / "plan.json").read_text())["placement"]
    return hashlib.sha256(json.dumps(placement).encode()).hexdigest()


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(names: Sequence[str]) -> int:
    asked = list(names) or pythons()
    with tempfile.TemporaryDirectory(prefix="moeplan-release-") as text:
        folder = Path(text)
        wheel = built(folder)
        places = [folder / re.sub(r"\W", "-", name) for name in asked]
        for place in places:
            place.mkdir()
        with ThreadPoolExecutor(2) as pool:
            plans = list(pool.map(tried, asked, [wheel] * len(asked), places))
    for python, plan in zip(asked, plans, strict=True):
        tell(f"{python}: ok, placement {plan[:12]}")
    if len(set(plans)) != 1:
        tell("the placements differ: same input and seed must give the same one on every Python")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
