"""Emulated clusters measured from inside: checked against what they were shaped to, and probed."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.base import Rate
from planner.cli import main
from planner.topology import Topology, topology_from_dict
from probes.emulation.check import MOST_OFF, CheckedLink
from probes.emulation.namespaces import emulated, unavailable
from probes.ranks.party import RunFailed
from probes.ranks.run import run_over_ranks
from tests.probes.emulation import check_task
from tests.probes.emulation.shapes import SAID, SHAPES

NO_CLUSTER = unavailable()
needs_cluster = [
    pytest.mark.skipif(NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def check(made: Topology, expected: Topology) -> list[CheckedLink]:
    def save(folder: Path) -> None:
        (folder / check_task.FILE).write_text(json.dumps(expected.to_dict()))

    with emulated(made) as cluster:
        _, texts = run_over_ranks(check_task.task(expected), "test", save, check_task.__name__, cluster)
    return [CheckedLink(**one) for one in json.loads(texts[0])]


class TestMeasured:
    """On real links, which a busy machine makes slow: alone."""

    pytestmark = [*needs_cluster, pytest.mark.alone]  # noqa: RUF012 - pytest wants a list

    def test_links_are_what_they_were_shaped_to(self) -> None:
        """Of every kind in a cluster with a NIC that two GPUs share, to 5 %."""
        links = check(SHAPES["shared NIC"], SHAPES["shared NIC"])
        assert len(links) == 4 * 2 + 2 * 2  # NVLink of each GPU, NIC of each host, both ways
        assert all(abs(link.off) <= MOST_OFF for link in links)

    def test_a_link_that_is_off_is_named_with_its_rates(self) -> None:
        """The NIC of the second host should be at 7 MB/s, and is at 10."""
        true = SHAPES["shared NIC"]
        nic = replace(true.nodes[1].nics[0], rate=Rate(7e6, SAID))
        slower = replace(true, nodes=(true.nodes[0], replace(true.nodes[1], nics=(nic,))))
        with pytest.raises(
            RunFailed, match=r"cluster is off: node1/nic0/(in|out) carries .* shaped to 7 MB/s \([34]\d% off"
        ):
            check(true, slower)

    def test_a_cluster_is_probed_whose_links_nobody_told(self, tmp_path: Path) -> None:
        """Four hosts, two on each leaf, uplinks at half: rates and switches, in a file that solve reads."""
        true = replace(
            SHAPES["leaves of two hosts"], nodes=(SHAPES["leaves of two hosts"].nodes[0].first(1),) * 4
        )
        given, found = tmp_path / "true.json", tmp_path / "probed.json"
        given.write_text(json.dumps(true.to_dict()))
        argv = ["probe", "--measure", "--emulate", str(given), "-o", str(found)]
        result = CliRunner().invoke(main, argv)
        assert result.exit_code == 0, result.output
        probed = topology_from_dict(json.loads(found.read_text()), "probed")
        assert [node.nics[0].rate.bytes_per_s for node in probed.nodes] == pytest.approx([1e7] * 4, rel=0.1)
        assert {one.rate.evidence.kind for one in probed.resources if one.tier == "nic"} == {"measured"}
        assert (probed.fabric.kind, probed.fabric.nodes_per_leaf) == ("leaf-spine", 2)
        assert probed.fabric.oversubscription == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize(
    "argv", [["--emulate", "hgx-h100"], ["--measure", "--emulate", "hgx-h100", "--merge", "a.json"]]
)
def test_an_emulated_cluster_is_only_measured(argv: list[str]) -> None:
    """One line that says how."""
    result = CliRunner().invoke(main, ["probe", *argv])
    assert result.exit_code == 2
    assert "say --measure --emulate TOPOLOGY alone" in result.output
