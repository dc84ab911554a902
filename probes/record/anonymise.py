"""Names that point at a person's machines, replaced by pseudonyms that are stable under one key."""

import hashlib
import hmac
import re
from dataclasses import replace

from probes.base.facts import GpuFact, MeasureFacts, NicFact
from probes.record.file import ProbeRecord

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_GUID = re.compile(r"\b(?:0x)?[0-9a-f]{16}\b|\b(?:[0-9a-f]{4}:){3}[0-9a-f]{4}\b", re.IGNORECASE)


def anonymise(record: ProbeRecord, key: str = "") -> ProbeRecord:
    """The record without host name, GPU UUIDs, fabric UUID, GUIDs, machine and launch id.

    PCI addresses, device and product names stay. A name that can be guessed can be confirmed by whoever knows
    `key`: give a secret one, the same on all hosts, for what is published.
    """
    host = record.host
    alias = _Aliases(key, host.host or "")
    names = replace(
        host,
        source=alias.text(host.source),
        host=alias.host,
        machine=host.machine and alias.hex(host.machine, 16),
        gpus=tuple(_gpu(gpu, alias) for gpu in host.gpus),
        nics=tuple(_nic(nic, alias) for nic in host.nics),
        unknown=alias.texts(host.unknown),
        warnings=alias.texts(host.warnings),
    )
    launch = record.launch
    if launch and launch.run:
        launch = replace(launch, run=alias.hex(launch.run, 8))
    return replace(record, host=names, launch=launch)


def anonymise_measured(facts: MeasureFacts, key: str = "") -> MeasureFacts:
    """The measurement with its hosts under the pseudonyms that their probe files have with the same key."""
    alias = {host: _Aliases(key, host) for host in dict.fromkeys(facts.hosts)}

    def text(sentence: str) -> str:
        for names in alias.values():
            sentence = names.text(sentence)
        return sentence

    hosts = tuple(alias[host].host for host in facts.hosts)
    return replace(
        facts,
        source=text(facts.source),
        hosts=hosts,
        unknown=tuple(map(text, facts.unknown)),
        warnings=tuple(map(text, facts.warnings)),
    )


class _Aliases:
    """Pseudonyms under one key, in the shape of what they replace."""

    def __init__(self, key: str, host: str) -> None:
        self._key = key.encode()
        self.host = f"host-{self.hex(host, 8)}"
        names = sorted({host, host.split(".", maxsplit=1)[0]} - {""}, key=len, reverse=True)
        patterns = [rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names]
        self._host = re.compile("|".join(patterns)) if names else None

    def hex(self, name: str, digits: int) -> str:
        return hmac.new(self._key, name.lower().encode(), hashlib.sha256).hexdigest()[:digits]

    def uuid(self, name: str) -> str:
        """Every UUID inside `name` replaced: of 'GPU-…', of 'MIG-…', of a fabric before its clique."""
        return _UUID.sub(lambda match: _dashed(self.hex(match[0], 32)), name)

    def guid(self, name: str) -> str:
        return self.hex(name.replace(":", "").removeprefix("0x").zfill(16), 16)

    def text(self, sentence: str) -> str:
        clean = _GUID.sub(lambda match: self.guid(match[0]), self.uuid(sentence))
        return self._host.sub(self.host, clean) if self._host else clean

    def texts(self, sentences: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(sentence) for sentence in sentences)


def _gpu(gpu: GpuFact, alias: _Aliases) -> GpuFact:
    return replace(
        gpu,
        uuid=gpu.uuid and alias.uuid(gpu.uuid),
        fabric=gpu.fabric and alias.uuid(gpu.fabric),
        faults=alias.texts(gpu.faults),
    )


def _nic(nic: NicFact, alias: _Aliases) -> NicFact:
    card = nic.card and (alias.guid(nic.card) if _GUID.fullmatch(nic.card) else nic.card)  # else a PCI slot
    return replace(nic, guid=nic.guid and alias.guid(nic.guid), card=card, faults=alias.texts(nic.faults))


def _dashed(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
