"""Which release of an engine can do what: a table in its module, and the row that holds for a version."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.base import BadInput
from planner.model import ModelSpec

_VERSION = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){0,3})(?:[.\-+]?(?:a|b|rc|post|dev)\d*|\+[\w.]+)*")


@dataclass(frozen=True)
class Release:
    """One known release.

    Its rules hold for later ones up to the next known, unless that one is `refused`, which says why.
    """

    version: str
    source: str
    # `model_type`s that are served from a map file; None: every one
    architectures: frozenset[str] | None = frozenset()
    flags: frozenset[str] = frozenset()  # flags that an earlier or later known release has not
    refused: str = ""

    def reads_map(self, model: ModelSpec) -> bool:
        return self.architectures is None or model.architecture in self.architectures


def find_release(
    title: str, releases: Sequence[Release], version: str | None
) -> tuple[Release, tuple[str, ...]]:
    """The newest known release that is no later than `version`, and a note where that is another one.

    None: the last in the table that is not refused.

    >>> later = Release("2.0", "read", refused="2.0 reads other files")
    >>> table = (Release("1.0", "read"), Release("1.2", "read"), later)
    >>> find_release("Engine", table, "1.1.3")[0].version, find_release("Engine", table, None)[0].version
    ('1.0', '1.2')
    """
    known = [release for release in releases if not release.refused]
    if version is None:
        return known[-1], ()
    asked = version_key(version)
    not_later = [release for release in releases if version_key(release.version) <= asked]
    found = not_later[-1] if not_later else releases[0]
    names = ", ".join(release.version for release in known)
    if found.refused:
        raise BadInput(f"{title} {version}: {found.refused}; known releases are {names}")
    if version_key(found.version) == asked:
        return found, ()
    assumed = f"the rules of {found.version} are assumed"
    return found, (f"WARNING: {title} {version} is not known here (known: {names}); {assumed}",)


def check_known(title: str, releases: Sequence[Release], version: str | None) -> None:
    """BadInput where `version` is a release whose rules nobody has read, with those that are known."""
    if version is None or any(version_key(one.version) == version_key(version) for one in releases):
        return
    nearest, _ = find_release(title, releases, version)
    known = ", ".join(release.version for release in releases if not release.refused)
    raise BadInput(
        f"{title} {version} is not known here; known releases are {known}; "
        f"--trust writes it by the rules of {nearest.version}"
    )


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a release, without trailing zeros; what follows them (rc1, .post1) does not count."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise BadInput(f"engine version {version!r} is not a release number; expected one like 0.5.23")
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
