"""An engine's command as a worker of ai-dynamo 1.6.1, which takes the engine's own flags but serves no HTTP.

Read in its wheel, not run; it pins SGLang 0.5.21, vLLM 0.31.0 and TensorRT-LLM 1.3.0rc29.
"""

from collections.abc import Mapping, Sequence

_SERVES = ("--host", "--port")  # the frontend's


def worker(
    words: Sequence[str],
    program: Sequence[str],
    instead: Sequence[str],
    renamed: Mapping[str, str] | None = None,
) -> list[str]:
    """The words with another program in the place of `program`, flags renamed, and where to listen left out.

    >>> worker(["vllm", "serve", "m", "--host", "h", "--port=1", "--x"], ["vllm", "serve"], ["dynamo.vllm"])
    ['dynamo.vllm', 'm', '--x']
    """
    start = next(at for at in range(len(words)) if list(words[at : at + len(program)]) == list(program))
    found, value = [*words[:start], *instead], False
    for word in words[start + len(program) :]:
        if not value and word.partition("=")[0] not in _SERVES:
            found.append((renamed or {}).get(word, word))
        value = not value and word in _SERVES
    return found
