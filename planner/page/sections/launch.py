"""How to load it: the commands, and what `emit` writes for the plan's engine."""

from shlex import quote

from planner.base import BadInput
from planner.engines import Emission, engine_names, find_engine, map_formats, plugin_engines
from planner.launch import job_for, launched
from planner.maps import emit_plan
from planner.page.document import paragraphs
from planner.page.html import Content, Html, tag
from planner.page.tables import fold
from planner.page.told import Told

TITLE = "How to load it"


def section(told: Told) -> Content:
    engine = told.engine
    if engine is None:
        named = ", ".join(name for name in engine_names() if find_engine(name).reads_map(told.problem.model))
        return [
            paragraphs(
                "The plan was made for no engine. Those that would serve this model by a plan: "
                + (named or "none")
                + "."
            ),
            _commands(
                [
                    f"moeplan evaluate {quote(str(told.file))} --all-engines",
                    f"moeplan emit {quote(str(told.file))} --engine ENGINE -o out",
                ]
            ),
        ]
    words, emission, refused = _emission(told, engine)
    plan, several = quote(str(told.file)), told.problem.topology.node_count > 1
    commands = [f"moeplan emit {plan} --engine {engine}{words} -o out"]
    if emission is None:
        return [paragraphs(f"`emit` refuses: {refused}"), _commands(commands)]
    if engine in map_formats() and not emission.ignored:
        commands.append("moeplan check out")
    start = "bash out/launch.sh" + ("  # on every node, as the notes say" if several else "")
    commands += [*([start] if emission.commands else []), f"moeplan validate {plan}"]
    return [
        paragraphs(
            "These write what the engine loads, judge it, start the engine, and run the plan's own dispatch."
        ),
        _commands(commands),
        paragraphs(emission.ignored and f"Without the map: {emission.ignored}."),
        tag("ul", [tag("li", note) for note in emission.notes]),
        [
            fold(f"out/{name} ({len(text.encode()):,} bytes)", _text(text))
            for name, text in sorted(emission.files.items())
        ],
    ]


def _emission(told: Told, engine: str) -> tuple[str, Emission | None, str]:
    """The words that `emit` needs, and what it would write; or why it writes nothing."""
    refused = ""
    for word in ("--plugin", "", "--flags-only"):
        if word == "--plugin" and engine not in plugin_engines():
            continue
        try:
            found = emit_plan(told.file, engine, plugin=word == "--plugin", flags_only=word == "--flags-only")
            if found.commands:
                found = launched(found, job_for(found, told.problem, engine), "shell")
        except BadInput as fault:
            refused = refused or str(fault)
        else:
            return f" {word}" if word else "", found, ""
    return "", None, refused


def _commands(lines: list[str]) -> Html:
    return _text("\n".join(lines))


MOST_CHARACTERS = 12_000  # of a file


def _text(text: str) -> Html:
    shown = (
        text
        if len(text) <= MOST_CHARACTERS
        else f"{text[:MOST_CHARACTERS]}\n... and {len(text) - MOST_CHARACTERS:,} characters more"
    )
    return tag("pre", shown, tabindex="0")
