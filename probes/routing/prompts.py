"""A text file becomes prompts, the sequences that a model or a server is given.

Each of them is one window of the load.
"""

from pathlib import Path

from planner.base import BadInput, parse_json, read_text

LARGEST_TEXT_BYTES = 256 << 20


def read_prompts(path: Path, characters: int = 2000, most: int | None = None) -> tuple[str, ...]:
    """The prompts of a text file, cut at white space into at most `characters`.

    Of a .jsonl file, one a line: a text, or a mapping with 'prompt' or 'text'. At most `most` of them, the
    first ones.
    """
    if characters < 1 or (most is not None and most < 1):
        asked = f"{characters} characters a sequence and {most} sequences were asked for"
        raise BadInput(f"{path}: {asked}; both are at least 1")
    text = read_text(path, LARGEST_TEXT_BYTES)
    found = _lines(text, path) if path.suffix.lower() == ".jsonl" else cut(text, characters)
    prompts = [prompt for prompt in found if prompt.strip()][:most]
    if not prompts:
        raise BadInput(f"{path}: holds white space only; give a text that the model would serve")
    return tuple(prompts)


def cut(text: str, characters: int) -> list[str]:
    """Pieces that join to the text again, each of at most `characters`.

    A piece ends after white space where it has any.

    >>> cut("one two three", 6)
    ['one ', 'two ', 'three']
    """
    pieces, start = [], 0
    while start < len(text):
        end = min(start + characters, len(text))
        if end < len(text):
            space = next((at for at in range(end - 1, start, -1) if text[at].isspace()), None)
            end = end if space is None else space + 1
        pieces.append(text[start:end])
        start = end
    return pieces


def _lines(text: str, path: Path) -> list[str]:
    prompts = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        value = parse_json(line, f"{path}, line {number}")
        prompt = value.get("prompt", value.get("text")) if isinstance(value, dict) else value
        if not isinstance(prompt, str):
            wanted = "each line is a JSON text, or a mapping whose 'prompt' or 'text' is one"
            raise BadInput(f"{path}: line {number} is no prompt; {wanted}")
        prompts.append(prompt)
    return prompts
