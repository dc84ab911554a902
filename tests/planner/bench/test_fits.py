"""Fits: known figures are found again, and the shipped constants are those of the published tables."""

import os
from pathlib import Path

import numpy as np
import pytest

from docs.make_constants import constants_text, entry
from planner.base import BadInput, data_file, parse_yaml, read_yaml
from planner.bench import run_bench
from planner.bench.fits import Refit, read_tables, refit
from planner.bench.fits.phase_fit import fit_phase
from planner.bench.fits.phase_rows import PhaseRows, hit_chance
from planner.fitting import held_out_N, relative_fit
from tests.places import SHARED

FIGURES = SHARED / "data/perf"
WHEEL = os.environ.get("MOEPLAN_AICONFIGURATOR_WHEEL", "")


def test_figures_behind_rows_are_found_again() -> None:
    """Rows made of known figures, a few of them far off: those have no say."""
    draw = np.random.default_rng(3)
    columns_NF = np.stack([np.ones(200), draw.uniform(0, 9, 200), draw.uniform(0, 1e-3, 200)], axis=1)
    seconds_N = columns_NF @ [5.0, 2.0, 3e4]
    seconds_N[:5] *= 7
    assert relative_fit(columns_NF, seconds_N) == pytest.approx([5.0, 2.0, 3e4], rel=0.01)


def test_no_figure_is_negative() -> None:
    """A column that would have to be taken off is dropped."""
    columns_NF = np.stack([np.ones(50), np.linspace(0, 1, 50)], axis=1)
    found = relative_fit(columns_NF, 5 - columns_NF[:, 1])
    assert found[1] == 0
    assert found[0] == pytest.approx(4.5, rel=0.05)


def test_a_group_is_judged_by_a_fit_that_has_not_seen_it() -> None:
    """Three groups; each is predicted by the mean of the two others, and group 0 by nobody."""
    group_N, seconds_N = np.array([0.0, 1, 1, 2, 3]), np.array([9.0, 1, 3, 4, 6])

    def others(seen_N: np.ndarray) -> float:
        return float(seconds_N[seen_N & (group_N > 0)].mean())

    found = held_out_N(group_N, others, lambda mean: np.full(5, mean))
    assert found[1:].tolist() == pytest.approx([5, 5, 10 / 3, 8 / 3])
    assert np.isnan(found[0])


def test_one_node_takes_its_growth_from_a_chip_that_has_several() -> None:
    """Rows of 4 ranks that start in 5 us + 0.1 us a slot, and a chip whose start grows by 2 us a doubling."""
    draw = np.random.default_rng(1)
    slots_N, nvlink_N = draw.integers(1, 60, 40).astype(float), draw.uniform(0, 1e-4, 40)
    ranks_N, none_N = np.full(40, 4.0), np.zeros(40)
    own_N = 5e-6 + 1e-7 * slots_N + nvlink_N / 0.5
    rows = PhaseRows(ranks_N, slots_N, nvlink_N, none_N, own_N, np.repeat([1.0, 2.0], 20), "hidden size", 4)
    more_N = np.repeat([8.0, 16, 32, 64], 10)
    nic_N = np.where(more_N > 8, nvlink_N, 0)
    far_N = 3e-6 + 2e-6 * np.log2(more_N / 8) + np.where(more_N > 8, nic_N / 0.9, nvlink_N / 0.5)
    group_N = np.where(more_N > 8, -more_N / 8, 1.0 + np.arange(40) % 2)
    several = fit_phase(PhaseRows(more_N, none_N, nvlink_N - nic_N, nic_N, far_N, group_N, "hidden size", 8))
    found = fit_phase(rows, several)
    assert (found.fixed, found.per_slot, found.nvlink) == pytest.approx((5e-6, 1e-7, 0.5), rel=1e-3)
    assert (found.per_doubling, found.nic) == pytest.approx((2e-6, 0.9), rel=1e-3)
    assert (found.least, found.ranks, found.error_nodes) == (4, 4, None)
    assert several.held_out_nodes == pytest.approx(0, abs=1e-6)


def test_the_chance_of_a_hit_is_that_of_drawing_without_putting_back() -> None:
    """Eight experts on four GPUs: a token's one expert is on a GPU in 1 of 4 cases, of two in 13 of 28."""
    found = hit_chance(np.array([8.0, 8.0]), np.array([1.0, 2.0]), np.array([4.0, 4.0]))
    assert found == pytest.approx([1 / 4, 1 - 6 / 8 * 5 / 7])


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A folder without the tables, and a file that is no wheel."""
    with pytest.raises(BadInput, match="deepep_low_latency"):
        read_tables(tmp_path)
    (tmp_path / "aiconfigurator_core-1.whl").write_text("no zip", encoding="utf-8")
    with pytest.raises(BadInput, match="neither a wheel of aiconfigurator-core nor a folder of CSVs"):
        read_tables(tmp_path / "aiconfigurator_core-1.whl")


def test_without_figures_the_study_says_what_to_give() -> None:
    assert "--peer aiconfigurator_core" in run_bench(["constants"], [], 1)["constants"].notes[0]


SOURCES = (
    pytest.param(
        FIGURES,
        id="csv",
        marks=pytest.mark.skipif(not FIGURES.is_dir(), reason="shared/data/perf is not beside the checkout"),
    ),
    pytest.param(
        Path(WHEEL),
        id="wheel",
        marks=pytest.mark.skipif(not WHEEL, reason="MOEPLAN_AICONFIGURATOR_WHEEL names no wheel"),
    ),
)


@pytest.mark.parametrize("source", SOURCES)
def test_the_shipped_constants_are_the_refit(source: Path) -> None:
    """Every figure that the tables allow, to the third digit."""
    shipped = read_yaml(data_file("constants.yaml"))
    fits = list(refit(read_tables(source)))
    assert {one.kind[0] for one in fits} == {"dispatch", "combine", "compute"}
    for one in fits:
        line = shipped
        for key in (*one.kind, one.chip):
            line = line[key]
        again = entry(one.fit)
        assert {key: value for key, value in line.items() if isinstance(value, str)} == {
            key: value for key, value in again.items() if isinstance(value, str)
        }
        numbers = {key: value for key, value in line.items() if not isinstance(value, str)}
        assert {key: again[key] for key in numbers} == pytest.approx(numbers, rel=1e-2, abs=1e-6)


@pytest.mark.skipif(not FIGURES.is_dir(), reason="shared/data/perf is not beside the checkout")
def test_the_file_is_what_the_program_writes() -> None:
    """The text reads back to the figures of its fits, a line a chip."""
    fits: list[Refit] = list(refit(read_tables(FIGURES)))
    value = parse_yaml(constants_text(fits, "made up", "2026-01-01"), "constants.yaml")
    assert value["dispatch"]["slot"]["B200"] == entry(fits[1].fit)
    assert list(value["compute"]["masked"]["fp8"]) == ["H100"]
