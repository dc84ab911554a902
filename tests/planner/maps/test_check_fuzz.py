"""Whatever a map file holds, its judge answers with a report or one line.

A single damaged cell that breaks a rule never passes.
"""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.engines import engine_names, map_formats
from planner.maps import check_file
from planner.maps.check import check_value
from planner.model import ModelSpec
from tests.planner.engines.examples import TINY, random_placement

FOUR = ModelSpec("four", "mixtral", 1, (0,), 4, 1, 8, 8, 8, "bf16", "made for tests")

# Numbers of JSON past every float, up to the most digits that are read of one.
HUGE = st.sampled_from([10**308, 10**309, 10**400, -(10**400), 10**4299])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | HUGE | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.integers(-2, 5), inner, max_size=3)
    ),
    max_leaves=12,
)
rows = (
    st.lists(st.integers(-2, 9) | HUGE | st.sampled_from([1.0, True, None, "0", 2**40, 10**20]), max_size=9)
    | json_values
)

devices = st.fixed_dictionaries({"device_id": st.integers(0, 2), "device_expert": rows}) | json_values
expert_layers = json_values | st.fixed_dictionaries(
    {
        "layer_id": st.integers(0, 2),
        "device_count": st.integers(0, 3),
        "device_list": st.lists(devices, max_size=3) | json_values,
    }
)


@given(
    value=json_values
    | st.fixed_dictionaries(
        {"physical_to_logical_map": st.lists(rows, max_size=4) | json_values}, optional={"x": json_values}
    )
    | st.fixed_dictionaries(
        {
            "num_slots": st.integers(0, 9) | json_values,
            "initial_global_assignments": st.dictionaries(st.integers(-1, 6), rows, max_size=4) | json_values,
        },
        optional={"layer_updates_per_iter": json_values},
    )
    | st.fixed_dictionaries(
        {
            "physical_to_logical_map": st.lists(rows, max_size=4),
            "layer_ids": st.lists(st.integers(-1, 6), max_size=4) | json_values,
        }
    )
    | st.fixed_dictionaries(
        {
            "moe_layer_count": st.integers(0, 3) | json_values,
            "layer_list": st.lists(expert_layers, max_size=3) | json_values,
        }
    )
    | st.fixed_dictionaries(
        {
            "ranks": st.integers(0, 3) | json_values,
            "moe": st.lists(rows, max_size=3) | json_values,
            "layer_ids": st.lists(st.integers(-1, 6), max_size=4) | json_values,
        },
        optional=dict.fromkeys(("experts", "slots", "draft", "x"), rows | json_values),
    ),
    model=st.sampled_from([None, FOUR, TINY]),
    gpus=st.none() | st.integers(-1, 9),
    engine=st.sampled_from([None, *sorted({*engine_names(), *map_formats()})]),
)
def test_any_value_gets_a_report_or_one_line(
    value: Any, model: ModelSpec | None, gpus: int | None, engine: str | None
) -> None:
    """Whatever parses: a report that can be printed, or BadInput; never another exception."""
    with contextlib.suppress(BadInput):
        report = check_value(value, "map", model, gpus, engine)
        assert report.text()
        assert json.dumps(report.to_dict())


@given(
    content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode),
    suffix=st.sampled_from([".json", ".yaml", ""]),
)
def test_any_bytes_get_one_line(
    content: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random files never end in a traceback."""
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        check_file(path)


@given(st.data())
def test_every_damaged_cell_that_breaks_a_rule_is_found(data: st.DataObject) -> None:
    """One cell of a good map is replaced.

    By hand: it breaks a rule iff it is no id, leaves an expert without a slot, or doubles one on its GPU.
    """
    gpus, redundant = data.draw(st.sampled_from([(4, 8), (8, 0), (8, 24)]))
    placement = random_placement(TINY, gpus, redundant, seed=data.draw(st.integers(0, 5)))
    row_of = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    layer, slot = (
        data.draw(st.sampled_from(TINY.moe_layer_ids)),
        data.draw(st.integers(0, placement.slots - 1)),
    )
    cell: Any = data.draw(
        st.integers(-3, 70)
        | st.sampled_from([1.0, True, None, "1", [1], float("nan"), 2**63, -(2**31), 10**400])
    )
    row = row_of[layer]
    before, row[slot] = row[slot], cell
    first = slot // placement.slots_per_gpu * placement.slots_per_gpu
    on_gpu = row[first : first + placement.slots_per_gpu]
    broken = type(cell) is not int or not 0 <= cell < 64 or before not in row or on_gpu.count(cell) > 1
    dense = [slot % 64 for slot in range(placement.slots)]
    sglang = {"physical_to_logical_map": [row_of.get(layer, dense) for layer in range(6)]}
    trtllm = {"num_slots": placement.slots, "initial_global_assignments": row_of}
    for value in (sglang, trtllm):
        report = check_value(value, "map", TINY, gpus)
        assert report.ok is not broken
        assert all(f"layer {layer}" in problem for problem in report.problems)
