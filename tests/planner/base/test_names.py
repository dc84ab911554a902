"""Names like a wrong one, and the files that ship."""

import pytest

from planner.base import data_file, nearest, read_yaml, topologies_folder, topology_names


def test_nearest_joins_at_most_three_names_and_ties_break_the_same_way() -> None:
    """The order of the names given does not matter."""
    names = ["h100-dgx", "h200-dgx", "b200-dgx", "laptop"]
    assert nearest("h100", names).startswith("'h100-dgx', ")
    assert nearest("H300-dgx", names) == nearest("H300-dgx", names[::-1])
    assert nearest("x", []) == ""


def test_data_file_is_found_or_is_our_bug() -> None:
    """A missing shipped file keeps its traceback."""
    assert read_yaml(data_file("models.yaml"))
    with pytest.raises(FileNotFoundError):
        data_file("nothing.yaml")


def test_topology_names_are_the_files_of_the_folder() -> None:
    """Stems of the presets, sorted."""
    assert topology_names() == sorted(
        path.stem for path in topologies_folder().iterdir() if path.suffix == ".yaml"
    )
