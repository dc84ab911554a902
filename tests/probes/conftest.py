"""The fake NVML: built once with the system's C compiler, loaded by the real pynvml in a child process."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from probes.base.facts import HostFacts
from probes.nvml.ask import ask_nvml
from probes.nvml.facts import facts_of
from tests.probes.fake_nvml.machines import Profile, text

SOURCE = Path(__file__).parent / "fake_nvml" / "fake_nvml.c"
Install = Callable[..., None]
ReadNvml = Callable[..., HostFacts]


@pytest.fixture(scope="session")
def nvml_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with new/libnvidia-ml.so.1 and old/libnvidia-ml.so.1, which lacks the functions that older
    drivers lack.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux":
        pytest.skip(f"the fake NVML is a Linux library; this is {sys.platform}")
    if compiler is None:
        pytest.skip("the fake NVML needs a C compiler; none of cc, gcc, clang is on PATH")
    folder = tmp_path_factory.mktemp("nvml")
    for name, flags in (("new", []), ("old", ["-DOLD_DRIVER"])):
        (folder / name).mkdir()
        made = folder / name / "libnvidia-ml.so.1"
        command = [
            compiler,
            "-std=c11",
            "-D_GNU_SOURCE",
            *flags,
            "-shared",
            "-fPIC",
            "-o",
            str(made),
            str(SOURCE),
        ]
        subprocess.run(command, check=True, timeout=60)
    return folder


@pytest.fixture
def install_nvml(nvml_libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install_nvml(profile)`: from now on in this test, NVML answers so.

    With `driver="old"`, as an older driver would.
    """

    def install(profile: Mapping[str, object], driver: str = "new") -> None:
        (tmp_path / "nvml.profile").write_text(text(profile))
        monkeypatch.setenv("FAKE_NVML_PROFILE", str(tmp_path / "nvml.profile"))
        monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_libraries / driver))

    return install


@pytest.fixture
def read_nvml(install_nvml: Install) -> ReadNvml:
    """`read_nvml(profile)`: the facts of that machine."""

    def read(profile: Profile, driver: str = "new", timeout_seconds: float = 20) -> HostFacts:
        install_nvml(profile, driver)
        return facts_of(ask_nvml(timeout_seconds))

    return read


def faults(facts: HostFacts) -> dict[int, tuple[str, ...]]:
    """Of the GPUs that have any."""
    return {gpu.index: gpu.faults for gpu in facts.gpus if gpu.faults}
