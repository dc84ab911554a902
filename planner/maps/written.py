"""The files of an emission or a pair, and how they are put into their folder: all of them or none.

What is in the folder and is not ours, or was edited since we wrote it, is never overwritten unasked.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.base import BadInput, harmless, read_text, shown, write_folder
from planner.engines import Emission
from planner.maps.manifest import MANIFEST, PAIR_MANIFEST, digest, manifest_text, read_manifest
from planner.maps.pair import HALVES, ROUTER
from planner.plan import EMITTED_PLAN, kept_bytes, kept_file, kept_of, read_plan

Files = Mapping[str, str | bytes]


def write_emission(emission: Emission, plan_file: Path, folder: Path, *, force: bool = False) -> list[Path]:
    """Write the files, a copy of the plan with its rows of a trace, and a list of all into the folder, made
    where it is absent.

    All of that or nothing, whatever happens. Files that an earlier emission wrote here and this one does not
    are removed: an engine must not find a map of another plan. BadInput where a file would be overwritten or
    removed that is not ours or was edited since, unless `force` asks for it.
    """
    return _write(_files(emission, plan_file), folder, force=force)


def write_pair(
    halves: Mapping[str, tuple[Emission, Path]], router: str, folder: Path, *, force: bool = False
) -> list[Path]:
    """The same of both halves of a pair, each in its own folder, and the script of their router."""
    files: dict[str, str | bytes] = {ROUTER: router, PAIR_MANIFEST: manifest_text({ROUTER: router})}
    for role, (emission, plan_file) in halves.items():
        files |= {f"{role}/{name}": text for name, text in _files(emission, plan_file).items()}
    return _write(files, folder, force=force)


def _files(emission: Emission, plan_file: Path) -> dict[str, str | bytes]:
    _check_texts(emission, plan_file)
    files: dict[str, str | bytes] = {**emission.files, EMITTED_PLAN: read_text(plan_file)}
    files |= _kept_rows(plan_file)
    return {**files, MANIFEST: manifest_text(files)}


def _write(files: Files, folder: Path, *, force: bool) -> list[Path]:
    pair = ROUTER in files or (folder / PAIR_MANIFEST).is_file()
    earlier = dict(_earlier(folder, HALVES if pair else ()))
    stale = {name for name in earlier if name not in files}
    if not force:
        _refuse_foreign(files, stale, earlier, folder)
    sign = "".join(
        str(files[name]) for name in (MANIFEST, *(f"{half}/{MANIFEST}" for half in HALVES)) if name in files
    )
    return write_folder(folder, files, frozenset(stale), digest(sign.encode()))


def _earlier(folder: Path, halves: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(name, digest) of what earlier emissions wrote here; a name that leads out of the folder is none."""
    for inside in ("", *halves):
        for listed in (MANIFEST, PAIR_MANIFEST):
            manifest = read_manifest(folder / inside, listed)
            for name, known in manifest.digests.items() if manifest else ():
                if manifest and manifest.present(name):
                    yield (Path(inside) / name).as_posix(), known
            if manifest:
                own = (folder / inside / listed).read_bytes()
                yield (Path(inside) / listed).as_posix(), digest(own)


def _refuse_foreign(files: Files, stale: set[str], earlier: Mapping[str, str], folder: Path) -> None:
    for name in sorted({*files, *stale}):
        path = folder / name
        if not (path.exists() or path.is_symlink()):
            continue
        found = digest(path.read_bytes()) if path.is_file() else ""
        if name in files and found == digest(_bytes(files[name])):
            continue
        if name not in earlier:
            raise BadInput(
                f"{path}: is there and no emission wrote it; move it away, name another folder, or --force"
            )
        if found != earlier[name]:
            gone = "" if name in files else ", and this one has no such file"
            raise BadInput(
                f"{path}: an earlier emission wrote it, it was changed since{gone}: move it away, name "
                "another folder, or --force"
            )


def _check_texts(emission: Emission, plan_file: Path) -> None:
    """BadInput where a script or manifest would hold a character that acts, of a name in the plan."""
    for name, text in emission.files.items():
        odd = next((line for line in text.split("\n") if harmless(line) != line), None)
        if odd is not None:
            raise BadInput(
                f"{plan_file}: {name} would hold a control character, in {shown(odd.strip())}; take it out "
                "of the names in the plan and in the flags; nothing was written"
            )


def _kept_rows(plan_file: Path) -> dict[str, bytes]:
    """The rows of a trace that lie beside the plan, to lie beside its copy."""
    kept = kept_of(read_plan(plan_file).value)
    content = kept_bytes(kept, plan_file) if kept else None
    return {kept_file(Path(EMITTED_PLAN)).name: content} if content is not None else {}


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
