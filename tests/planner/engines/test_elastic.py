"""Sizes that engines go to while they serve, and what each does after a loss."""

import pytest

from planner.base import Infeasible
from planner.engines import elastic_of, engine_names, find_engine
from planner.engines.common.elastic import FIXED, Elastic, check_resize

BOTH = Elastic(grows=True, shrinks=True, most_redundant=40, resizes_source="read")


def test_what_engines_do_is_said_with_what_was_read() -> None:
    """Every engine has an answer; who resizes says by which request, and who replaces by which words."""
    for name in engine_names():
        found = elastic_of(name)
        assert found.replaces_source
        assert found.resizes_source
        assert bool(found.replaces_by) == found.replaces
        assert bool(found.request) == bool(found.resizes_by) == (found.grows or found.shrinks)
    assert elastic_of("sglang").request == 'POST /scale_elastic_ep {"new_ep_size": GPUS}'
    assert elastic_of("vllm").request == 'POST /scale_elastic_ep {"new_data_parallel_size": GPUS}'
    assert elastic_of("lmdeploy") == FIXED


@pytest.mark.parametrize("new", range(1, 40))
def test_sizes_that_are_taken_hold_every_expert(new: int) -> None:
    """32 experts, 4 slots a GPU, from 16 GPUs: 8 to 18 of them, the bounds named."""
    redundant = 4 * new - 32
    if 0 <= redundant <= 40:
        check_resize("It", BOTH, 16, new, experts=32, slots_per_gpu=4)
        return
    with pytest.raises(
        Infeasible, match="smallest size is 8 GPUs" if redundant < 0 else "largest size is 18"
    ):
        check_resize("It", BOTH, 16, new, experts=32, slots_per_gpu=4)


def test_sglang_lets_no_ranks_go() -> None:
    """One line with what to do instead."""
    found = elastic_of("sglang")
    check_resize("SGLang", found, 16, 24, experts=256, slots_per_gpu=18)
    with pytest.raises(Infeasible, match=r"SGLang lets no ranks go .*without --from, and restart"):
        check_resize(find_engine("sglang").TITLE, found, 24, 16, experts=256, slots_per_gpu=18)
    with pytest.raises(Infeasible, match="takes no ranks in"):
        check_resize("LMDeploy", elastic_of("lmdeploy"), 8, 16, experts=256, slots_per_gpu=33)
