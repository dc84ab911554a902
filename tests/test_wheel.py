"""The wheel as a stranger gets it: the right files, and a command that runs without the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from planner import __version__
from tests.places import ROOT


def run(*arguments: str, cwd: Path, **environment: str) -> str:
    """Standard output of `python ARGUMENTS`, which must exit 0."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else; its dependencies come from the environment of
    the tests.
    """
    folder = tmp_path_factory.mktemp("installed")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    run(*install, "--target", str(folder), str(wheel), cwd=folder)
    return folder


def test_top_level_names(names: set[str]) -> None:
    """The two import packages and the metadata, nothing else: `planner` is a generic name, and no third one
    may join it.
    """
    assert {name.split("/")[0] for name in names} == {"planner", "probes", f"moeplan-{__version__}.dist-info"}


@pytest.mark.parametrize(
    ("here", "inside"),
    [
        ("topologies", "planner/topologies"),
        ("planner/data", "planner/data"),
        ("planner", "planner"),
        ("probes", "probes"),
    ],
)
def test_files_are_inside(here: str, inside: str, names: set[str]) -> None:
    """Every file of the checkout's shipped folders is in the wheel."""
    files = [
        path.relative_to(ROOT / here).as_posix()
        for path in (ROOT / here).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert files
    assert {f"{inside}/{file}" for file in files} - names == set()


def test_licence_is_inside(names: set[str]) -> None:
    """The licence travels with the code."""
    assert f"moeplan-{__version__}.dist-info/licenses/LICENSE" in names


def test_command_is_declared(wheel: Path) -> None:
    """Installing the wheel makes the command `moeplan`."""
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.read(f"moeplan-{__version__}.dist-info/entry_points.txt").decode()
    assert "moeplan = planner.cli:main" in entries


def test_installed_copy_is_the_one_imported(installed: Path, tmp_path: Path) -> None:
    """Guards the two tests below: they would prove nothing on the checkout's own files."""
    found = run("-c", "import planner; print(planner.__file__)", cwd=tmp_path, PYTHONPATH=str(installed))
    assert Path(found.strip()).is_relative_to(installed)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["topology", "list"]])
def test_command_runs_without_the_checkout(arguments: list[str], installed: Path, tmp_path: Path) -> None:
    """The installed command answers from an empty folder, with its presets."""
    assert run("-m", "planner", *arguments, cwd=tmp_path, PYTHONPATH=str(installed)).strip()
