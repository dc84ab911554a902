"""Traffic matrices as the benchmarks of others read them. Pure.

`rows_text`: rows of bytes, from rank i to rank j, between single spaces. nccl-tests 2.19.0 and later reads it
(`NCCL_TESTS_ALLTOALLV_MATRIX_FILE`; src/alltoallv.cu of a0b82b2), so do the build that cloudai 5b5c0f7 starts
(`ALLTOALLV_MATRIX_FILE`; it looks for a file called nccl_matrix.txt) and a UCC with pull request 967
(`UCC_PT_COLL_ALLTOALLV_TRANSFER_MATRIX_FILE`). nccl-tests rounds each cell down to 16 bytes.

`pattern_text`: UCC 1.5.0 and later, `ucc_perftest --gen file:name=` (tools/perf/generator/
ucc_pt_generator_file.cc of 8263de4); cloudai's ucc_matrix.txt. Counts are elements of the benchmark's `-d`:
of 4 bytes here, which is its default as well as what the file says. They are 32-bit, and a line of the file
has at most 8191 characters.

Shapes: G ranks.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, human_bytes

Whole = npt.NDArray[np.int64]

GRAIN = 16  # bytes: what nccl-tests rounds down to, and a multiple of UCC's elements
ELEMENT_BYTES, ELEMENT = 4, "INT32"
A_LINE = 256  # counts: of 10 digits and a comma each, well below 8191 characters


def whole_GG(bytes_GG: npt.NDArray[np.float64]) -> Whole:
    """To the nearest 16 bytes, so that no benchmark rounds: at most 8 bytes off in a cell."""
    return np.rint(bytes_GG / GRAIN).astype(np.int64) * GRAIN


def most_bytes(sent_GG: Whole) -> int:
    """What the busiest rank sends or receives: the size that nccl-tests prints, and its `-b` and `-e`."""
    return int(max(sent_GG.sum(axis=1).max(), sent_GG.sum(axis=0).max()))


def rows_text(sent_GG: Whole) -> str:
    r"""
    >>> rows_text(np.array([[0, 32], [16, 0]]))
    '0 32\n16 0\n'
    """
    return "".join(" ".join(map(str, row)) + "\n" for row in sent_GG.tolist())


def pattern_text(sent_GG: Whole) -> str:
    """One pattern. BadInput where its counts do not fit into 32 bits."""
    ranks, largest = len(sent_GG), most_bytes(sent_GG) // ELEMENT_BYTES
    if largest >= 1 << 32:
        raise BadInput(
            f"a rank sends or receives {human_bytes(largest * ELEMENT_BYTES)} in one exchange; UCC counts "
            "elements in 32 bits: plan fewer tokens a rank (--tokens-per-rank)"
        )
    lines = [
        "[format]", "version = 1.0", "description = traffic of a moeplan plan", "", "[collective]",
        "type = ALLTOALLV", f"team_size = {ranks}", f"datatype = {ELEMENT}", "flags = COUNT_32BIT",
        "counts = {",
    ]  # fmt: skip
    for row in (sent_GG // ELEMENT_BYTES).tolist():
        parts = [row[start : start + A_LINE] for start in range(0, ranks, A_LINE)]
        lines += [f"    {','.join(map(str, part))}" for part in parts]
    return "\n".join([*lines, "    }", ""])
