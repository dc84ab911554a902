"""The InfiniBand subnet of this host, asked live with ibnetdiscover where it is installed.

One host asks for all.
"""

from dataclasses import replace

from planner.base import BadInput
from probes.base.command import run
from probes.base.facts import FabricFacts
from probes.importers import ibnetdiscover

COMMAND = "ibnetdiscover"
SUBNET_TIMEOUT_SECONDS = 120.0  # a subnet of thousands of ports takes a minute


def probe_subnet(timeout_seconds: float = SUBNET_TIMEOUT_SECONDS) -> FabricFacts:
    """Switches, cables and hosts.

    Where the tool is missing, hangs or may not ask, no cables and the reason in `unknown`; output before a
    fault is used.
    """
    output = run([COMMAND], timeout_seconds)
    fault = output.fault or f"'{COMMAND}' printed nothing"
    if output.stdout.strip():
        try:
            (facts,) = ibnetdiscover.read(output.stdout.encode(), COMMAND)
        except BadInput as broken:
            fault = f"{broken}; {output.fault}" if output.fault else str(broken)
        else:
            return replace(
                facts,
                evidence="read",
                warnings=(*facts.warnings, output.fault) if output.fault else facts.warnings,
            )
    unknown = f"the switches between hosts: {fault}; it asks as root on a host with an active InfiniBand port"
    return FabricFacts(COMMAND, "ibnetdiscover", "read", unknown=(unknown,))
