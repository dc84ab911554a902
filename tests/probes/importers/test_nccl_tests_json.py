"""The JSON that nccl-tests writes with -J: it says the same as the text, and any damage to it is borne."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.importers.nccl_tests import read, recognise
from tests.probes.importers.nccl_runs import EXPECTED, as_json, attempt, figures, one


class TestJson:
    """The file that -J writes."""

    def test_it_says_the_same_as_the_text(self) -> None:
        """Figures, ranks, hosts and models, and the date besides."""
        facts = one(json.dumps(as_json()))
        assert figures(facts) == EXPECTED
        assert (facts.collective, facts.ranks, facts.hosts, facts.gpu_names) == (
            "alltoall",
            4,
            ("host0",) * 4,
            ("NVIDIA H100 80GB HBM3",),
        )
        assert (facts.warnings, facts.unknown, facts.date) == ((), (), "2026-01-15")

    @pytest.mark.parametrize(
        "damage",
        [{}, {"results": []}, {"results": "hunter2"}, {"env": {"A": "hunter2"}}, {"args": ["hunter2"]}],
    )
    def test_its_environment_is_never_shown(self, damage: dict[str, Any]) -> None:
        """Neither in the facts nor in a message."""
        content = json.dumps(as_json(**damage) | {"args": ["alltoall_perf"]}).encode()
        for text in (content, content[:-40]):
            try:
                shown = repr(read(text, "x.json"))
            except BadInput as error:
                shown = f"{error!r} {error.__cause__!r}"
            assert "hunter2" not in shown

    def test_an_aborted_run_says_so(self) -> None:
        """No average and no end."""
        data = as_json()
        del data["average_bus_bandwidth"], data["end_time"]
        assert any("did not come to its end" in warning for warning in one(json.dumps(data)).warnings)

    def test_cpu_time_is_a_time_too(self) -> None:
        """-C 1 reports the CPU's."""
        data = as_json()
        data["results"][0]["out_of_place"]["cpu_time"] = data["results"][0]["out_of_place"].pop("time")
        assert figures(one(json.dumps(data))) == EXPECTED

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b'{"nccl_version": 1, "results": [', "not valid JSON"),
            (b'{"nccl_version": 1, "results": {}}', "no list 'results'"),
            (
                b'{"nccl_version": 1, "results": [{"size": true}, 7, {"size": 1, "count": 1}]}',
                "no row of results can be used",
            ),
            (b'{"bus_bw": ' + b"[" * 50_000, "not JSON as nccl-tests writes it|not valid JSON"),
            (b'{"bus_bw": ' + b"9" * 5_000 + b"}", "not JSON as nccl-tests writes it"),
        ],
    )
    def test_damage_is_one_line(self, content: bytes, says: str) -> None:
        """Cut, of another shape, nested without end, a number without end."""
        assert recognise(content, "x.json")
        with pytest.raises(BadInput, match=says) as caught:
            read(content, "x.json")
        assert "\n" not in str(caught.value)


PLACES = [
    ("results", 0, "out_of_place"),
    ("results", 0),
    ("results",),
    ("config", "devices", 0),
    ("config", "devices"),
    ("config",),
    ("average_bus_bandwidth",),
    (),
]
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.just({})
)


@settings(max_examples=100)
@given(st.sampled_from(PLACES), VALUES, st.data())
def test_any_value_anywhere_in_the_json_is_borne(
    path: tuple[Any, ...], value: Any, data: st.DataObject
) -> None:
    """Facts or BadInput, never another exception."""
    whole: Any = as_json()
    place = whole
    for key in path:
        place = place[key]
    place[data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))] = value
    attempt(json.dumps(whole).encode())
