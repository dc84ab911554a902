"""Names -> shipped files: the model catalogue, the data folder, the topology presets."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from planner.base import BadInput, check_keys, data_file, nearest, read_yaml
from planner.model.body import body_from_dict
from planner.model.config_file import existing, read_config
from planner.model.hf_config import shown
from planner.model.model import ModelSpec
from planner.model.releases import dtype_of, entry_of, same_weights

_Kinds = dict[str, type | tuple[type, ...]]
_FACTS: _Kinds = {
    **dict.fromkeys(("architecture", "weight_dtype", "source"), str),
    **dict.fromkeys(("layers", "experts", "top_k", "hidden", "expert_intermediate", "dispatch_width"), int),
}
_OPTIONAL_FACTS: _Kinds = {
    **dict.fromkeys(("shared_experts", "expert_groups", "groups_per_token", "expert_matrices"), int),
    "dtype_assumed": bool,
    "quant_method": str,
}


@dataclass(frozen=True)
class _Entry:
    spec: ModelSpec
    aliases: tuple[str, ...]


def find_model(text: str) -> ModelSpec:
    """The model of a catalogue name, an alias, a config.json or a folder that holds one.

    A catalogue name wins over a file of the same name.

    >>> find_model("mixtral").experts
    8
    """
    name = _names().get(text.strip().lower())
    if name is not None:
        return _catalogue()[name].spec
    path = existing(text)
    if path is not None:
        return read_config(path)
    if text.startswith((".", "/", "~")) or text.endswith(".json") or text.count("/") > 1:
        raise BadInput(
            f"{shown(text)}: there is no such file or folder; "
            "give a model's config.json, or a name from 'moeplan model list'"
        )
    release = _release(text.strip())
    if release is not None:
        return release
    raise BadInput(
        f"unknown model {shown(text)}, and no entry of the catalogue is known to have its facts; "
        "give the path of its config.json (hf download OWNER/NAME config.json). "
        f"Nearest names are {nearest(text, _names())}; 'moeplan model list' lists all"
    )


def recorded_on_another(recorded: str, model: ModelSpec) -> bool:
    """Whether what was recorded on the model named `recorded` is known to be no load of `model`.

    A name that nobody knows, such as that of a local folder, may be any model's.
    """
    names = (model.name, *model_aliases(model.name))
    if any(same_weights(recorded, name) for name in names):
        return False
    try:
        known = find_model(recorded)
    except BadInput:
        return False
    return not any(same_weights(known.name, name) for name in names)


def model_names() -> list[str]:
    """Hugging Face ids of the catalogue, sorted."""
    return sorted(_catalogue())


def model_aliases(name: str) -> tuple[str, ...]:
    """The short names of a catalogue model, beside its id without the owner.

    A model from a config.json has none.
    """
    entry = _catalogue().get(name)
    return entry.aliases if entry else ()


def _release(text: str) -> ModelSpec | None:
    """A release that only its training or its weight dtype sets apart from an entry; None where none is."""
    listed = _releases()
    spelled = {spelling.lower(): name for name in listed for spelling in (name, name.split("/")[-1])}
    canonical = spelled.get(text.lower())
    entry, dtype = listed[canonical] if canonical else (entry_of(text, _spellings()), None)
    if entry is None:
        return None
    spec = _catalogue()[entry].spec
    stated = (dtype, "") if dtype else None if canonical else dtype_of(text, entry)
    owned = canonical or (text if "/" in text or stated else f"{entry.split('/')[0]}/{text}")
    source = f"{spec.source}; facts of {entry}, the same architecture by its name"
    found = replace(spec, name=owned, source=source, facts_of=entry)
    if stated is None or stated == (spec.weight_dtype, spec.quant_method):
        return found
    return replace(found, weight_dtype=stated[0], quant_method=stated[1], dtype_assumed=not canonical)


@cache
def _releases() -> dict[str, tuple[str, str | None]]:
    """The releases that are listed by an entry: (entry, its weight dtype where that is another)."""
    found: dict[str, tuple[str, str | None]] = {}
    for entry, releases in read_yaml(data_file("releases.yaml")).items():
        for release in releases:
            named = release if isinstance(release, dict) else {"name": release}
            found[named["name"]] = (entry, named.get("weight_dtype"))
    return found


def _spellings() -> dict[str, str]:
    """Every spelling of an entry or of a listed release that keeps its dtype -> entry."""
    return {**_names(), **{name: entry for name, (entry, dtype) in _releases().items() if not dtype}}


@cache
def _names() -> dict[str, str]:
    """Every accepted spelling, in lower case -> id."""
    names: dict[str, str] = {}
    for name, entry in _catalogue().items():
        for spelling in (name, name.split("/")[-1], *entry.aliases):
            owner = names.setdefault(spelling.lower(), name)
            assert owner == name, f"{spelling} names both {owner} and {name}"
    return names


@cache
def _catalogue() -> dict[str, _Entry]:
    return {name: _entry(name, facts) for name, facts in read_yaml(data_file("models.yaml")).items()}


def _entry(name: str, facts: Any) -> _Entry:
    where = f"models.yaml: {name}"
    optional: _Kinds = {**_OPTIONAL_FACTS, "draft_layers": (str, int), "aliases": list, "body": dict}
    facts = check_keys(facts, where, {**_FACTS, "moe_layers": (str, int)}, optional)
    given = {key: facts[key] for key in (*_FACTS, *_OPTIONAL_FACTS) if key in facts}
    given["moe_layer_ids"] = parse_ids(facts["moe_layers"])
    given["draft_layer_ids"] = parse_ids(facts.get("draft_layers", ""))
    given["body"] = body_from_dict(facts["body"], where) if "body" in facts else None
    return _Entry(ModelSpec(name=name, **given), tuple(facts.get("aliases", ())))


def parse_ids(text: str | int) -> tuple[int, ...]:
    """Layer ids in short form.

    >>> parse_ids("0, 3-5, 8-12/2")
    (0, 3, 4, 5, 8, 10, 12)
    """
    ids: list[int] = []
    for part in str(text).split(",") if text != "" else ():
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        ids += range(int(first), int(last or first) + 1, int(step or 1))
    return tuple(ids)
