"""Whatever bytes come in, only BadInput comes out of the importers of fabrics and adapters, and soon."""

import time
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.importers import cloud_labels, iblinkinfo, ibnetdiscover, ibstat, slurm, sysfs, topograph
from tests.probes.ib_text import SmallFabric
from tests.probes.ib_text import iblinkinfo as link_text
from tests.probes.ib_text import ibnetdiscover as net_text
from tests.probes.sysfs_files import Adapter, packed

_ADAPTER = Adapter("mlx5_0")
SAMPLES: dict[ModuleType, tuple[bytes, ...]] = {
    cloud_labels: (
        (
            b'{"items": [{"metadata": {"name": "n1", "labels": {'
            b'"topology.k8s.aws/network-node-layer-1": "a", '
            b'"topology.k8s.aws/network-node-layer-2": "b"}}}]}'
        ),
        b'{"Instances": [{"InstanceId": "i-1", "NetworkNodes": ["a", "b"], "CapacityBlockId": null}]}',
    ),
    iblinkinfo: (link_text(SmallFabric()).encode(),),
    ibnetdiscover: (net_text(SmallFabric()).encode(),),
    ibstat: (
        (
            b"CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tNode GUID: 0x00b1\n"
            b"\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: Ethernet\n"
        ),
        (
            b"Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80:0:0:0:0015:5dff:fd34:11eb\n"
            b"\tstate: 4: ACTIVE\n\trate:\t 200 Gb/sec (4X HDR)\n"
        ),
        b"VM_hostname vm1\n00000000000000b1\n",
    ),
    slurm: (
        (
            b"SwitchName=root Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n[01-03]\n"
            b"BlockName=b Nodes=n[1-4]\nBlockSizes=4,8\n"
        ),
        b"- topology: t\n  tree:\n    switches:\n      - switch: s\n        nodes: n[1-2]\n",
    ),
    sysfs: (
        packed({**_ADAPTER.files()}, _ADAPTER.links(), ""),
        packed({**_ADAPTER.files()}, _ADAPTER.links()),
    ),
    topograph: (
        (
            b"switches:\n  core:\n    switches: [a]\n"
            b"blocks:\n- switch: a\n  nodes: ['n[1-2]']\n  labels: {x/domain: d}\n"
        ),
        b'{"instances": [{"id": "i", "network_layers": ["a", "b"], "labels": {"x/domain": "d"}}]}',
    ),
}
MODULES = sorted(SAMPLES, key=lambda module: module.__name__)
each_module = pytest.mark.parametrize(
    "module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2]
)
PIECES = st.sampled_from(
    [
        b"",
        b"\0",
        b"\xff\xfe",
        b"\n",
        b'"',
        b"[",
        b"]",
        b"-1",
        b"99999999999999999999",
        b"0x",
        b"nan",
        b"4xNDR",
        b"{",
        b"}",
        b"\x1f\x8b",
        b"\t",
        b"#",
        b"=",
    ]
)


def try_read(module: ModuleType, content: bytes) -> None:
    """Recognised or not, reading ends in facts or in one line."""
    module.recognise(content, "fuzz")
    try:
        facts = module.read(content, "fuzz")
    except BadInput as error:
        message = str(error)
    else:
        message = "one line" if facts else ""
    assert message
    assert "\n" not in message


@each_module
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(content=st.binary(max_size=300))
def test_junk_is_refused(module: ModuleType, content: bytes) -> None:
    """Random bytes, also where nothing recognised them."""
    try_read(module, content)


@each_module
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_samples_end_in_facts_or_one_line(module: ModuleType, data: st.DataObject) -> None:
    """Pieces of a good sample replaced, cut out or doubled."""
    content = data.draw(st.sampled_from(SAMPLES[module]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.sampled_from([0, 1, 2, 8, 40])))
        content = content[:start] + data.draw(PIECES) + content[end:]
    try_read(module, content)


@each_module
def test_large_input_ends_soon(module: ModuleType) -> None:
    """Megabytes of the line that a pattern looks at longest: no pattern may take more than linear time."""
    started = time.monotonic()
    for sample in SAMPLES[module]:
        for filler in (b"[", b" ", b"SwitchName=", b"==(", b"CA '", b"a", b"\n\n"):
            try_read(
                module,
                sample[: len(sample) // 2] + filler * ((1 << 20) // len(filler)) + sample[len(sample) // 2 :],
            )
    assert time.monotonic() - started < 20
