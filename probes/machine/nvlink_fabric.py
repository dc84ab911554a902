"""What NVML says of an NVLink fabric that may span hosts: its key, and what is wrong with it. Pure."""

_FAULTS = (  # fields of two bits: 0 not supported, 1 true, 2 false
    "NVLink bandwidth is degraded",
    "an NVLink route is being recovered",
    "an NVLink route is unhealthy",
    "NVLink accesses time out",
)
_WRONG = {
    2: "wrong system GUID",
    3: "wrong chassis serial number",
    4: "no partition",
    5: "too few NVLinks",
    6: "incompatible firmware",
    7: "invalid location",
}


def fabric_key(uuid: bytes, clique: int, state: int, status: int) -> tuple[str | None, str | None]:
    """('UUID.CLIQUE', None) of a ready NVLink fabric that may span hosts, else (None, why not).

    state: 0 not supported, 1 not started, 2 in progress, 3 completed. Only completed, without error and with
    a UUID that is not zero joins hosts: single hosts report completed with a zero UUID, and a clique id alone
    is not unique.
    """
    state &= 0xFF  # an unsigned char that some bindings read with its padding
    if state == 0:
        return None, None
    if state in {1, 2}:
        word = "has not started" if state == 1 else "is still in progress"
        unready = f"the NVLink fabric is not ready (registration {word})"
        return None, f"{unready}; which hosts share it is not known yet"
    if state != 3 or status != 0:
        reported = f"the NVLink fabric reports state {state}, status {status}"
        return None, f"{reported}; which hosts share it is not known"
    if not any(uuid):
        return None, None
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}.{clique}", None


def fabric_faults(health: int) -> tuple[str, ...]:
    """What NVML's fabric health mask complains of, a sentence each. Counting ones would mislead."""
    told = [sentence for place, sentence in enumerate(_FAULTS) if health >> 2 * place & 3 == 1]
    wrong = health >> 8 & 15
    if wrong > 1:
        reason = _WRONG.get(wrong, f"reason {wrong}")
        told.append(f"the NVLink fabric is configured wrongly ({reason})")
    return tuple(told)
