"""The raw rows of an nccl-tests run, as they were printed. Pure."""

from dataclasses import dataclass

ELEMENT_BYTES = {
    name: size
    for size, names in {
        1: "int8 char uint8 f8e4m3 f8e5m2 fp8_e4m3 fp8_e5m2",
        2: "half float16 bfloat16",
        4: "int int32 uint32 float float32",
        8: "int64 uint64 double float64",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True)
class Half:
    """One measurement of a row, as printed.

    `wrong` is a count, 'N/A', or an error of old versions like '2e-07'.
    """

    in_place: bool
    seconds: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    wrong: str


@dataclass(frozen=True)
class Row:
    where: str  # 'line 12'
    size: int
    count: int
    dtype: str
    redop: str
    halves: tuple[Half, ...]


@dataclass(frozen=True)
class Device:
    rank: int
    group: int
    host: str
    gpu: str
    index: int


@dataclass(frozen=True)
class Table:
    """One run as printed. `name` is the collective where the output says it; `hint` the file's name."""

    source: str
    hint: str
    name: str | None = None
    rows: tuple[Row, ...] = ()
    devices: tuple[Device, ...] = ()
    average_busbw_bytes_per_s: float | None = None
    date: str | None = None
    warnings: tuple[str, ...] = ()
