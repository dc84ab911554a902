"""What ships with moeplan besides code: the data folder and the preset topologies."""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def data_file(name: str) -> Path:
    """A file shipped in planner/data, such as 'models.yaml'."""
    path = _PACKAGE / "data" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} should be part of the installation")
    return path


def topologies_folder() -> Path:
    """The preset topologies: inside the package when installed, beside it in a checkout."""
    for folder in (_PACKAGE / "topologies", _PACKAGE.parent / "topologies"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"{_PACKAGE / 'topologies'} should be part of the installation")


def topology_names() -> list[str]:
    return sorted(path.stem for path in topologies_folder().glob("*.yaml"))
