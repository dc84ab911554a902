"""Judge a folder that `emit` wrote: its plan, its maps, and the digest of every file."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from planner.base import BadInput, unfinished
from planner.engines import find_format, map_formats
from planner.maps.check import Asked, check_one
from planner.maps.manifest import MANIFEST, PAIR_MANIFEST, Manifest, digest, read_manifest
from planner.maps.pair import HALVES, ROUTER
from planner.maps.report import MapReport
from planner.plan import EMITTED_PLAN
from planner.problem import Violation

LAUNCH = "launch.sh"
MOST_FILES = 10_000  # looked at in a folder that may have become anybody's
SHOWN = 5


def check_file(
    path: str | Path,
    model_name: str | None = None,
    ep: int | None = None,
    engine: str | None = None,
    role: str = "mixed",
) -> MapReport:
    """Judge a plan, a map, or a folder of an emission or of a pair, also as `engine` would take it in a role.

    `engine`: an engine's name, or a map format's. BadInput where it is none of these, or cannot be read.
    """
    asked, folder = Asked(model_name, ep, engine, role), Path(path)
    if not folder.is_dir():
        return check_one(path, asked)
    manifest = read_manifest(folder)
    if manifest is not None:
        report = _emission_report(manifest, asked)
        return replace(report, notes=(*_interrupted(folder, [manifest]), *report.notes))
    found = {half: read_manifest(folder / half) for half in HALVES}
    halves = {half: one for half, one in found.items() if one is not None}
    if not halves:
        raise BadInput(f"{folder}: no {MANIFEST} is here; give a plan, a map, or a folder that `emit` wrote")
    reports = {half: _emission_report(one, asked._replace(role=half)) for half, one in halves.items()}
    report = _pair_report(folder, reports)
    return replace(report, notes=(*_interrupted(folder, halves.values()), *report.notes))


def _emission_report(manifest: Manifest, asked: Asked) -> MapReport:
    """Everything in the folder of one emission."""
    maps = _maps(manifest)
    plugins = {getattr(find_format(form), "PLUGIN_OF", None) for form in maps.values()}
    asked = asked._replace(plugin=asked.engine is not None and asked.engine in plugins)
    there = (name for name in (EMITTED_PLAN, *maps) if (manifest.folder / name).is_file())
    parts = {name: _part(manifest.folder / name, asked) for name in there}
    broken = [*_altered(manifest, {*maps}), *_of_parts(parts)]
    notes = [f"{name}: {note}" for name, report in parts.items() for note in report.notes]
    unchecked = [f"{name}: {line}" for name, report in parts.items() for line in report.unchecked]
    extra = sorted(islice(_extra(manifest), MOST_FILES))
    if extra:
        more = f" and {len(extra) - SHOWN} more" if len(extra) > SHOWN else ""
        notes.append(f"not of this emission: {', '.join(extra[:SHOWN])}{more}")
    known = parts[EMITTED_PLAN].facts if EMITTED_PLAN in parts else {}
    facts = {**known, "files": len(manifest.digests), "maps": ", ".join(maps) or "none"}
    return MapReport("emission", tuple(broken), tuple(unchecked), facts, tuple(notes))


def _interrupted(folder: Path, manifests: Iterable[Manifest]) -> Iterator[str]:
    """What somebody who was ended while he wrote this folder has left here: the earlier files or the new."""
    own = digest(b"".join((one.folder / MANIFEST).read_bytes() for one in manifests))
    for sign in unfinished(folder):
        which = "the new files, all of them" if sign == own else "what was here before, all of it"
        yield f"an emission into {folder} was interrupted: the folder holds {which}"


def _maps(manifest: Manifest) -> dict[str, str]:
    """Listed files that are maps, by their names, and a format that names its file so."""
    formats = {find_format(name).MAP_NAME: name for name in map_formats()}
    return {name: formats[Path(name).name] for name in manifest.digests if Path(name).name in formats}


def _part(path: Path, asked: Asked) -> MapReport:
    """The report of one file; one that cannot be read is wrong, and the others are still judged."""
    try:
        return check_one(path, asked)
    except BadInput as fault:
        return MapReport("unread", (Violation("format", str(fault)),))


def _of_parts(parts: dict[str, MapReport]) -> Iterator[Violation]:
    """What is wrong with plan and maps, each thing once: of a map, what is not already said of the plan."""
    said: set[str] = set()
    for name, report in parts.items():
        for found in report.violations:
            about = found.rule if found.rule in {"other-model", "other-ep", "ignored"} else found.text
            if about not in said:
                yield replace(found, text=f"{name}: {found.text}")
            said.add(about)


def _altered(manifest: Manifest, maps: set[str]) -> Iterator[Violation]:
    """Files that are gone or have other bytes. A map's bytes are judged with its rows."""
    for name in manifest.digests:
        if manifest.present(name) is None:
            yield Violation("missing", f"{name} was emitted and is missing")
        elif name not in maps and manifest.changed(name):
            yield Violation(
                "changed", f"{name} was changed after the emission: {MANIFEST} has another SHA-256"
            )
    for name in (LAUNCH, EMITTED_PLAN):
        if name not in manifest.digests:
            yield Violation("missing", f"{name} is not among the files that {MANIFEST} lists")


def _extra(manifest: Manifest) -> Iterator[str]:
    """Files that the list does not name."""
    for root, _, names in os.walk(manifest.folder):
        for name in names:
            path = (Path(root) / name).relative_to(manifest.folder).as_posix()
            if path not in manifest.digests and path != MANIFEST:
                yield path


def _pair_report(folder: Path, reports: dict[str, MapReport]) -> MapReport:
    """The reports of both halves as one."""
    broken = [
        Violation("missing", f"{half} is no folder of an emission: it has no {MANIFEST}")
        for half in HALVES
        if half not in reports
    ]
    listed = read_manifest(folder, PAIR_MANIFEST)
    if not (folder / ROUTER).is_file():
        broken.append(Violation("missing", f"{ROUTER} is missing"))
    elif listed is not None and listed.changed(ROUTER):
        text = f"{ROUTER} was changed after the emission: {PAIR_MANIFEST} has another SHA-256"
        broken.append(Violation("changed", text))
    merged = {half: report.violations for half, report in reports.items()}
    broken += [replace(one, text=f"{half}: {one.text}") for half, found in merged.items() for one in found]
    notes = [f"{half}: {note}" for half, report in reports.items() for note in report.notes]
    unchecked = [f"{half}: {line}" for half, report in reports.items() for line in report.unchecked]
    facts = {
        f"{half} {name}": fact for half, report in reports.items() for name, fact in report.facts.items()
    }
    return MapReport("pair of emissions", tuple(broken), tuple(unchecked), facts, tuple(notes))
