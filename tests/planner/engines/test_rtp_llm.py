"""RTP-LLM: its map, its own placement, its releases and its launch."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.maps.check import check_value
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("rtp_llm")


def test_a_map_has_a_row_for_every_decoder_layer() -> None:
    """Rows 3 to 5 are the plan's; the dense ones before hold the trivial map; the draft layer has none."""
    placement = random_placement(TINY, 8, 8)
    rows = json.loads(ENGINE.emit(placement, question(TINY, machine(8), 8), "m").files["phy2log.json"])
    assert rows[3:] == placement.expert_LP[:3].tolist()
    assert rows[0] == [slot % 64 for slot in range(72)]
    assert check_value(rows, "map", TINY, 8, "rtp_llm").ok


def test_what_rtp_llm_itself_lets_pass_is_found() -> None:
    """It looks at the number of rows and the first one's length alone."""
    rows = json.loads(
        ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m").files["phy2log.json"]
    )
    rows[4] = rows[4][:-1]
    rows[5][0] = 64
    found = {violation.rule for violation in check_value(rows, "map", TINY, 8, "rtp_llm").violations}
    assert found == {"slots", "range"}


def test_other_files_are_no_map_of_it() -> None:
    others: tuple[Any, ...] = ({}, [], [1, 2], [[]], {"physical_to_logical_map": [[0]]})
    for value in others:
        assert ENGINE.read_map(value) is None


def test_its_own_map_copies_the_next_rank() -> None:
    """Four experts on two ranks, one slot more each: by hand."""
    four = TINY.__class__("four", "mixtral", 1, (0,), 4, 1, 8, 8, 8, "bf16", "made for tests")
    assert ENGINE.default_placement(four, 2, 2).expert_LP.tolist() == [[0, 1, 2, 2, 3, 0]]
    assert ENGINE.default_placement(four, 2, 0).expert_LP.tolist() == [[0, 1, 2, 3]]


def test_later_sources_are_refused() -> None:
    """Their router no longer follows a map: what is served would be wrong, and nothing would say so."""
    placement, problem = random_placement(TINY, 8, 8), question(TINY, machine(8), 8)
    with pytest.raises(BadInput, match="whatever the map says"):
        ENGINE.emit(placement, problem, "m", "0.3.0")
    assert any("for the release 0.2.0 only" in text for text in ENGINE.emit(placement, problem, "m").notes)


def test_the_launch_keeps_statistics(tmp_path: Path) -> None:
    """Without them, and without replicas, RTP-LLM makes no table from experts to slots."""
    emission = ENGINE.emit(random_placement(TINY, 16, 0), question(TINY, machine(8, 8), 0), "m")
    words = started(emission, tmp_path, "python3", 1)
    assert words[:2] == ["-m", "rtp_llm.start_server"]
    assert words[words.index("--eplb_mode") + 1] == "STATS"
    assert words[words.index("--world_rank") + 1] == "8"
    assert words[words.index("--model_type") + 1] == "deepseek3"
    assert Path(words[words.index("--phy2log_path") + 1]).is_file()
    assert dict(emission.commands[1].environment)["WORLD_INDEX"] == "1"


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_every_batch_goes_through_normal_mode(phase: str, tmp_path: Path) -> None:
    """Low latency, its default, takes prompts too, and its buffer is made for the requests that run."""
    problem = question(TINY, machine(8), 0, phase, 64)
    words = started(ENGINE.emit(random_placement(TINY, 8, 0), problem, "m"), tmp_path, "python3")
    assert words[words.index("--use_deepep_low_latency") + 1] == "0"
    assert ("--concurrency_limit" in words) == (phase == "decode")
    assert ENGINE.transport(phase, machine(8, 8)) == "node"


def test_a_machine_without_normal_mode_is_refused() -> None:
    """Two nodes of four: NVLink does not join each eight ranks."""
    with pytest.raises(BadInput, match="normal mode needs NVLink"):
        ENGINE.emit(random_placement(TINY, 8, 0), question(TINY, machine(4, 4), 0), "m")


def test_more_than_one_replica_an_expert_is_refused() -> None:
    with pytest.raises(BadInput, match="up to 64 redundant experts"):
        ENGINE.emit(random_placement(TINY, 8, 72), question(TINY, machine(8), 72), "m")
