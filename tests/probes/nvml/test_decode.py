"""What NVML's bit fields and states mean."""

import pytest

from probes.nvml.decode import decode_fabric, decode_health

NO_PARTITION = "no partition of the NVLink fabric is assigned"


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (0x0, ()),
        (0xAA, ()),
        (0xA1AA, (NO_PARTITION, "the NVLink fabric manager is not connected")),
        (0x51AA, ()),
        (0xA6, ("an NVLink route is being recovered",)),
        (0x5AA, ("the NVLink fabric is configured wrongly (too few NVLinks)",)),
    ],
)
def test_health_masks(mask: int, told: tuple[str, ...]) -> None:
    """0xaa is all false; 2 in the fields for partition and fabric manager is bad.

    1 in the configuration field is good.
    """
    assert decode_health(mask) == told


def test_health_summary_speaks_where_the_fields_do_not() -> None:
    """A driver may sum up what its fields do not say."""
    assert decode_health(0xAA, 3) == ("NVLink fabric health is summed up as limited capacity",)
    assert decode_health(0xA9, 3) == ("NVLink bandwidth is degraded",)


def test_no_fabric_on_an_ordinary_gpu() -> None:
    """Only rack-scale GPUs must be in one."""
    assert decode_fabric(None, "NVIDIA H100 80GB HBM3").not_ready is None
    assert decode_fabric(None, "NVIDIA GB300").not_ready == "NVLink fabric not ready: state NOT_SUPPORTED"
