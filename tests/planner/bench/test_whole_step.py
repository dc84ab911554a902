"""The study of whole steps, on a list of rows made up for it."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput, write_json
from planner.bench import run_bench, whole_peer, whole_step
from planner.bench.whole_fit import fit
from planner.bench.whole_law import TPOT, errors, halves
from planner.bench.whole_rows import ROWS, Row, read_rows, repaired, rows_folder
from planner.bench.whole_terms import Measured, measured, possible
from planner.cost import calibration
from planner.report.bench import bench_tables

CONFIG = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 4,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "hidden_size": 1024,
    "moe_intermediate_size": 512,
    "intermediate_size": 2048,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
COLUMNS = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "batch_size")
ENTRY = {
    "silicon_data_source": "db-dump/2026-04-27; silicon_concurrency=8",
    "backend": "vllm",
    "model_path": "lab/tiny",
    "system": "h100_sxm",
    "precision": "fp8",
    "mode": "agg",
    "isl": "1024",
    "osl": "512",
    "gemm_quant_mode": "fp8",
    "moe_quant_mode": "fp8",
    "silicon_ttft_ms": "120",
    "silicon_tpot_ms": "5",
    **dict.fromkeys(COLUMNS, "1"),
    **{f"{phase}_{column}": "" for phase in ("prefill", "decode") for column in (*COLUMNS, "num_workers")},
}


def entry(name: str, sizes: tuple[int, int, int, int], **changes: object) -> dict[str, str]:
    """One line of the list: (tp, dp, MoE tp, MoE ep)."""
    keys = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    given = {key: str(value) for key, value in changes.items()}
    return {"id": name, **ENTRY, **dict(zip(keys, map(str, sizes), strict=True)), **given}


def listed(folder: Path, entries: Sequence[Mapping[str, str]]) -> Path:
    """A folder like that of the package, with these entries."""
    (folder / ROWS).parent.mkdir(parents=True)
    (folder / "model_configs").mkdir()
    write_json(folder / "model_configs/lab--tiny_config.json", CONFIG)
    with (folder / ROWS).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, entries[0])
        writer.writeheader()
        writer.writerows(entries)
    return folder


def many(folder: Path) -> list[Row]:
    """Forty configurations of two systems and two engines."""
    entries = [
        entry(
            f"{system} {engine} {batch} {tp}",
            (tp, 4 // tp, 1, 4),
            system=system,
            backend=engine,
            batch_size=batch,
            silicon_tpot_ms=4 + batch / 10,
        )
        for system in ("h100_sxm", "b200_sxm")
        for engine in ("vllm", "sglang")
        for batch in (4, 8, 16, 32, 64)
        for tp in (1, 4)
    ]
    return read_rows(listed(folder, entries))


@pytest.mark.parametrize(
    ("sizes", "engine", "mended", "batch"),
    [
        ((64, 1, 8, 8), "sglang", ("8", "1", "1", "8"), "8"),
        ((1, 64, 8, 8), "sglang", ("1", "8", "1", "8"), "1"),
        ((4, 4, 1, 16), "vllm", ("4", "1", "1", "4"), "8"),
        ((4, 4, 1, 16), "trtllm", ("4", "4", "1", "16"), "1"),
        ((8, 1, 2, 4), "vllm", ("8", "1", "2", "4"), "1"),
    ],
)
def test_multiplied_sizes_are_mended(
    sizes: tuple[int, int, int, int], engine: str, mended: tuple[str, ...], batch: str
) -> None:
    """Three patterns leave no doubt; others are as they are listed."""
    found = repaired(entry("x", sizes, backend=engine))
    keys = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    assert tuple(found[key] for key in keys) == mended
    assert found["batch_size"] == batch


def test_sizes_of_other_sources_are_believed() -> None:
    """tp4 with experts over 2 x 2 GPUs is a way to serve; only two dumps multiply."""
    given = entry("x", (4, 1, 2, 2), silicon_data_source="source_file=2026-03-25.csv; silicon_concurrency=8")
    assert repaired(given) == given


def test_rows_without_experts_apart_or_batch_are_left_out(tmp_path: Path) -> None:
    wide = entry("wide", (4, 1, 1, 4))
    entries = [
        wide,
        entry("one GPU of experts", (4, 1, 4, 1)),
        entry("no batch", (4, 1, 1, 4), mode="disagg", decode_moe_ep_size=4),
        entry("another GPU", (4, 1, 1, 4), system="l40s"),
    ]
    assert [row.name for row in read_rows(listed(tmp_path, entries))] == ["wide"]


def test_a_measurement_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    """Within 1 % it is the same one; beyond it is another measurement of one configuration."""
    entries = [
        entry(f"took {took}", (4, 1, 1, 4), silicon_tpot_ms=took) for took in ("5.04", "5", "7", "5.02")
    ]
    rows = read_rows(listed(tmp_path, entries))
    assert [row.name for row in rows] == ["took 5", "took 7"]
    assert len({row.configuration for row in rows}) == 1


def test_another_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the column decode_moe_ep_size is missing"):
        read_rows(listed(tmp_path, [{"id": "x"}]))


def test_one_configuration_is_on_one_side(tmp_path: Path) -> None:
    """However its measurements came out, and in whatever order they are listed."""
    rows = [measured(row) for row in many(tmp_path)]
    fitted, held_out = halves(rows)
    assert {one.row.configuration for one in fitted}.isdisjoint(one.row.configuration for one in held_out)
    assert min(len(fitted), len(held_out)) > 5
    assert {one.row.name for one in halves(rows[::-1])[0]} == {one.row.name for one in fitted}


def test_a_law_that_holds_is_found() -> None:
    """Seconds made of known coefficients, of two systems; the ridge costs less than 2 % of each."""
    draw = np.random.default_rng(1)
    terms_NT = draw.lognormal(0, 1, (200, 2))
    fast = draw.random(200) < 0.5
    fixed_N = draw.random(200)
    took_N = fixed_N + terms_NT @ [1.5, 0.8] * np.where(fast, 0.7, 1.0)
    gpus = {"gpu": ["fast" if one else "slow" for one in fast]}
    base, factors = fit(terms_NT, took_N, ("a", "b"), gpus, (0.5, 3.0), fixed_N)
    slow = {term: base[term] * factors["gpu"]["slow"][term] for term in base}
    assert slow == pytest.approx({"a": 1.5, "b": 0.8}, rel=0.02)
    assert base["a"] * factors["gpu"]["fast"]["a"] == pytest.approx(1.05, rel=0.02)


def test_a_fitted_law_predicts_what_it_has_not_seen(tmp_path: Path) -> None:
    """Steps that take twice the seconds of their terms, dispatch and combine apart."""
    rows = [measured(row) for row in many(tmp_path)]
    took = [
        replace(one.row, tpot_seconds=2 * sum(one.step.values()) - one.step["dispatch"] - one.step["combine"])
        for one in rows
    ]
    fitted, held_out = halves(replace(one, row=row) for one, row in zip(rows, took, strict=True))
    found, _ = TPOT.judged(TPOT.fit(fitted), held_out)
    assert found.mean_error < 0.02


def test_errors_by_hand() -> None:
    judged, bias = errors([1.1, 0.9, 1.3], [1.0, 1.0, 1.0])
    assert judged.rows == 3
    assert judged.median_error == pytest.approx(0.1)
    assert judged.mean_error == pytest.approx(0.5 / 3)
    assert math.isclose(bias, 0.1)


def test_the_study_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hyphen does for an underscore."""
    monkeypatch.setattr(whole_step, "rows_folder", lambda: None)
    table = run_bench(["whole-step"], (), 1)["whole_step"]
    assert table.rows == ()
    assert "pip install 'moeplan[aiconfigurator]'" in table.notes[0]


def test_the_study_judges_beside_the_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the rows that both predict; what the peer cannot answer is counted nowhere."""
    many(tmp_path)
    monkeypatch.setattr(whole_step, "rows_folder", lambda: tmp_path)
    monkeypatch.setattr(whole_step, "peer_found", lambda: True)
    monkeypatch.setattr(
        whole_step, "peer_tpot_seconds", lambda row: None if row.engine == "vllm" else row.tpot_seconds * 2
    )
    told: list[str] = []
    table = run_bench(["whole_step"], (), 1, lambda share, text: told.append(text))["whole_step"]
    both = [row for row in table.rows if row["instance"] == "tpot, by both, all"]
    assert [row["method"] for row in both] == ["moeplan", "trivial", "AIConfigurator"]
    assert both[-1]["mean_error_share"] == both[-1]["bias_share"] == pytest.approx(1.0)
    alone = next(row for row in table.rows if row["instance"] == "tpot, held out, all")
    assert both[0]["rows"] < alone["rows"]  # type: ignore[operator]  # cells of a table are objects; these are counts
    assert any("are up to" in note for note in table.notes)
    assert told
    bench_tables({"whole_step": table})


def test_the_peer_is_asked_with_the_repaired_sizes(tmp_path: Path) -> None:
    row = read_rows(listed(tmp_path, [entry("x", (64, 1, 8, 8))]))[0]
    asked = whole_peer.asked(row.listed, "1.0")
    assert (asked["tp_size"], asked["moe_tp_size"], asked["moe_ep_size"], asked["batch_size"]) == (8, 1, 8, 8)
    assert asked["backend_version"] == "1.0"


def test_what_ships_is_what_the_rows_say() -> None:
    """Refitted on the measured steps: a cost that has changed asks for `python docs/make_whole_step.py`."""
    folder = rows_folder()
    if folder is None:
        pytest.skip("aiconfigurator-core is not installed")
    fitted, held_out = halves(measured(row) for row in read_rows(folder))
    shipped = calibration().tpot
    assert TPOT.fit(fitted).base == pytest.approx(shipped.law.base, rel=0.02)
    by_gpu: dict[str, list[Measured]] = {}
    for one in held_out:
        by_gpu.setdefault(str(one.values["gpu"]), []).append(one)
    for gpu, own in by_gpu.items():
        found, _ = TPOT.judged(shipped.law, own)
        assert found.mean_error == pytest.approx(shipped.errors[gpu].mean_error, abs=0.005)


def test_rows_without_expert_parallelism_are_those_of_one_server_with_sliced_experts(tmp_path: Path) -> None:
    """Not two stages' or wide ones', nor rows with expert parallelism; they are priced as slices."""
    entries = [
        entry("sliced", (4, 1, 4, 1), batch_size=8),
        entry("apart", (1, 4, 4, 1), batch_size=2),
        entry("stages", (4, 1, 4, 1), batch_size=8, pp_size=2),
        entry("wide", (16, 1, 16, 1), batch_size=8),
        entry("whole", (4, 1, 1, 4), batch_size=8),
        entry("one", (1, 1, 1, 1), batch_size=8),
    ]
    folder = listed(tmp_path, entries)
    rows = read_rows(folder, sliced=True)
    assert {row.name for row in rows} == {"sliced", "apart"}
    assert {row.name for row in read_rows(folder)} == {"whole"}
    sliced = next(measured(row) for row in rows if row.name == "sliced")
    whole = measured(read_rows(folder)[0])
    assert whole.least_seconds == sliced.least_seconds > 0
    assert sliced.step["dispatch"] < whole.step["dispatch"]  # whoever holds all experts routes by itself
    assert sliced.step == pytest.approx(  # an even load keeps no GPU waiting, sliced or whole
        {**whole.step, "dispatch": sliced.step["dispatch"]}
    )


def test_what_took_less_than_reading_is_left_out(tmp_path: Path) -> None:
    entries = [entry(f"{ms} ms", (4, 1, 4, 1), batch_size=8, silicon_tpot_ms=ms) for ms in (0.0001, 5)]
    rows = [measured(row) for row in read_rows(listed(tmp_path, entries), sliced=True)]
    assert [one.row.name for one in possible(rows)] == ["5 ms"]
