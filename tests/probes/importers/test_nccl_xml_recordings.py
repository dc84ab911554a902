"""NCCL's topology XML: published files of other machines, where the recordings are here."""

from collections import Counter

import pytest

from probes.importers import nccl_xml
from tests.places import SHARED

FOLDER = SHARED / "data/topology"

# From the index of the recordings: GPUs, NICs, kind, NVLinks of each GPU, rate of the first NIC.
RECORDINGS = {
    "xml_azure_ndv2": (8, 1, None, None, None),
    "xml_azure_ndv5": (8, 8, None, None, None),
    "xml_azure_ncv4": (4, 1, None, 12, 12.5e9),
    "xml_azure_nc48v4": (2, 1, "bridge", 12, 12.5e9),
    "xml_aws_p4de": (8, 4, None, None, None),
    "xml_oci_H100-topology": (8, 16, "switch", 18, 22.5e9),
    "xml_oci_topo-flattened": (8, 8, None, None, None),
    "xml_rccl_8p_940": (8, 8, "mesh", 7, 50e9),
    "xml_4x4090_virtualnets": (4, 16, "none", 0, 1.25e9),
}


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"recordings of other machines are not beside this checkout: {FOLDER}"
)
class TestRecordings:
    @pytest.mark.parametrize("name", sorted(RECORDINGS))
    def test_facts(self, name: str) -> None:
        """Counts, kind of NVLink and rates of published files."""
        (host,) = nccl_xml.read((FOLDER / f"{name}.xml").read_bytes(), name)
        gpus, nics, kind, links, rate = RECORDINGS[name]
        assert (len(host.gpus), len(host.nics), host.nvlink_kind) == (gpus, nics, kind)
        assert {fact.nvlinks for fact in host.gpus} == {links}
        assert host.nics[0].rate_bytes_per_s == rate

    def test_every_recording_is_checked(self) -> None:
        """A recording that is added must be added here."""
        assert {path.stem for path in FOLDER.glob("xml_*.xml")} == set(RECORDINGS)

    def test_each_gpu_of_a_cloud_host_has_its_nic(self) -> None:
        """Azure ND H100 v5: one GPU and one NIC on each of eight switches; AWS p4de: two GPUs a NIC.

        OCI: two ports a GPU.
        """
        for name, near in {"xml_azure_ndv5": 8, "xml_aws_p4de": 8, "xml_oci_H100-topology": 16}.items():
            (host,) = nccl_xml.read((FOLDER / f"{name}.xml").read_bytes(), name)
            assert Counter(host.nic_paths.values())["PIX"] == near, name
