"""Records: what is packed comes out, in every dtype, and sums stay exact."""

import pytest

from planner.problem import BYTES_PER_ELEMENT
from probes.dispatch.records import (
    pack_records,
    pack_vectors,
    sums_of,
    unpack_headers,
    unpack_vectors,
    vector_bytes,
)

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", BYTES_PER_ELEMENT)
def test_a_record_comes_out_as_it_went_in(dtype: str) -> None:
    """The largest ids, gate weights and origins that there may be, beside small ones."""
    entry_Rn3 = torch.tensor([[[(1 << 15) - 1, 65_535, 3], [0, 1, 1]], [[5, 0, 2], [7, 300, 3]]])
    origin_R = torch.tensor([(1 << 23) - 1, 12])
    vectors_RH = torch.tensor([[-2.0, -1, 0, 1], [2, 2, -2, 0]], dtype=torch.float32)
    records_RB = pack_records(entry_Rn3, origin_R, vectors_RH, dtype, 64)
    assert records_RB.shape == (2, 64)
    back_R, back_Rn3 = unpack_headers(records_RB, 2)
    assert back_R.tolist() == origin_R.tolist()
    assert back_Rn3.tolist() == entry_Rn3.tolist()
    assert unpack_vectors(records_RB[:, 16:], dtype, 4).tolist() == vectors_RH.tolist()


def test_one_record_of_an_odd_size_is_read_from_anywhere() -> None:
    """82 bytes, as of fp8 and 64 elements: rows neither begin nor follow at whole words."""
    entry_Rn3 = torch.tensor([[[1, 2, 1]], [[3, 4, 1]], [[5, 6, 1]]])
    vectors_RH = torch.ones((3, 64))
    records_RB = pack_records(entry_Rn3, torch.arange(3), vectors_RH, "fp8", 83)
    for row in range(3):
        origin_R, back_Rn3 = unpack_headers(records_RB[row : row + 1], 1)
        assert (origin_R.tolist(), back_Rn3.tolist()) == ([row], entry_Rn3[row : row + 1].tolist())
        assert unpack_vectors(records_RB[row : row + 1, 8:], "fp8", 64).tolist() == [[1.0] * 64]


@pytest.mark.parametrize("dtype", BYTES_PER_ELEMENT)
def test_sums_stay_exact(dtype: str) -> None:
    """The most experts a token may have, each with the largest result and gate weight."""
    sums = sums_of(dtype)
    largest = sums.most_experts * (sums.results - 1) * sums.gates
    whole_R1 = torch.arange(largest + 1, dtype=torch.float32)[:, None]
    packed_RB = pack_vectors(whole_R1, dtype, vector_bytes(dtype, 2))
    assert unpack_vectors(packed_RB, dtype, 1).tolist() == whole_R1.tolist()
