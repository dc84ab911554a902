"""Recording from a running server: what SGLang and vLLM return becomes the trace they chose.

Every fault of a server is one line and no file.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.cli import main
from planner.load import read_load
from planner.model import ModelSpec, spec_from_config
from probes.routing.server import dump_on_sglang, record_server
from probes.routing.web import Server
from tests.probes.engine_server import (
    DENSE,
    EXPERTS,
    LAYERS,
    TOP_K,
    Answer,
    Engine,
    npy,
    ok,
    routing,
    sglang_answer,
    vllm_answer,
)
from tests.probes.routing.toy import CONFIG, PROMPTS

PATHS = {"sglang": "/generate", "vllm": "/v1/completions"}


def raw(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=np.int32).tobytes()).decode()


def sglang(**changes: Any) -> Callable[[Any], Answer]:
    return lambda body: ok(sglang_answer(body["text"], 1, **changes))


def vllm(**changes: Any) -> Callable[[Any], Answer]:
    return lambda body: ok(vllm_answer(body["prompt"], 1, **changes))


def record(engine: Engine, kind: str, model: ModelSpec, seconds: float = 10.0, new_tokens: int = 1) -> Any:
    return record_server(Server(engine.url, seconds), kind, model, PROMPTS, new_tokens)


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("new_tokens", [1, 4])
def test_trace_is_what_the_server_chose(kind: str, new_tokens: int, engine: Engine, model: ModelSpec) -> None:
    """Every token of prompt and answer but the last, in order; the dense layer's row is left out; mixed
    phases are not called prefill.
    """
    trace = record(engine, kind, model, new_tokens=new_tokens)
    expected_TDK = np.concatenate([routing(prompt, new_tokens) for prompt in PROMPTS])
    assert np.array_equal(trace.experts_LTK, expected_TDK[:, DENSE:].transpose(1, 0, 2))
    assert trace.sequence_lengths == tuple(len(prompt) + new_tokens - 1 for prompt in PROMPTS)
    assert trace.phase == ("prefill" if new_tokens == 1 else "unknown")
    assert set(engine.paths) == {PATHS[kind]}


def test_what_sglang_is_asked(engine: Engine, model: ModelSpec) -> None:
    """The request of SGLang's own API: text, greedy, one token, routing."""
    record(engine, "sglang", model)
    sampling = {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True}
    assert engine.asked[0] == (
        "POST",
        "/generate",
        {"text": PROMPTS[0], "sampling_params": sampling, "return_routed_experts": True},
    )


def test_what_vllm_is_asked(engine: Engine, model: ModelSpec) -> None:
    """The request of the completions API; the server's own model."""
    record(engine, "vllm", model)
    assert engine.asked[0] == (
        "POST",
        "/v1/completions",
        {"prompt": PROMPTS[0], "max_tokens": 1, "temperature": 0, "ignore_eos": True},
    )


def test_command_writes_what_load_reads(engine: Engine, tmp_path: Path) -> None:
    """From a URL and prompts to the load of each sequence."""
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    served = ["--server", engine.url, "--engine", "vllm", "--model", str(tmp_path / "config.json")]
    files = ["--text", str(tmp_path / "prompts.jsonl"), "-o", str(tmp_path / "t.npz")]
    done = CliRunner().invoke(main, ["record", *served, *files])
    assert (done.exit_code, done.output.count("\n")) == (0, 2), done.output
    load = read_load([tmp_path / "t.npz"], spec_from_config(CONFIG, "toy", "toy"))
    assert load.layer_ids == (1, 2, 3)
    assert load.tokens_WLE.sum(axis=2).tolist() == [[TOP_K * len(prompt)] * 3 for prompt in PROMPTS]


def test_api_key_is_sent_and_not_shown(engine: Engine, model: ModelSpec) -> None:
    """In the header that both engines read, and in no message."""
    server = Server(engine.url, 10, "geheim")
    record_server(server, "vllm", model, PROMPTS)
    assert engine.headers[0]["Authorization"] == "Bearer geheim"
    assert "geheim" not in repr(server)


def faults() -> Iterator[tuple[str, str, Any, str]]:
    """(name, engine, what its endpoint answers, what the line says)."""
    ids = routing(PROMPTS[0])
    for kind, answer, encode in (("sglang", sglang, raw), ("vllm", vllm, npy)):
        yield "404", kind, (404, b'{"detail":"Not Found"}'), r"answered 404 \(.*Not Found"
        yield "500", kind, (500, b"Internal Server Error"), "answered 500"
        yield "503", kind, (503, b""), r"answered 503 \(Service Unavailable"
        yield "redirect", kind, (302, b"http://127.0.0.2/elsewhere"), "answered 302"
        yield "escape codes", kind, (500, b"\x1b[31mred\x07\n\nline"), r"answered 500 \(\[31mred line\)"
        yield "not json", kind, (200, b"<html>"), "not valid JSON"
        yield "not text", kind, (200, b"\xff\xfe\x00"), "not JSON"
        yield "empty", kind, (200, b""), "not valid JSON"
        yield "json of another kind", kind, ok([1, 2]), "is this a"
        yield "another server's json", kind, ok({"message": "hi"}), "is this a"
        yield "flag not given", kind, answer(routed_experts=None), "--enable-return-routed-experts"
        yield "garbage base64", kind, answer(routed_experts="@@not base64@@"), "not base64"
        yield "not a text", kind, answer(routed_experts=[1, 2]), "not base64"
        yield "lost rows", kind, answer(routed_experts=encode(ids[1:])), "routing of 11 tokens for 13 tokens"
        yield "no rows", kind, answer(routed_experts=encode(ids[:0])), "routing of 0 tokens"
        others = answer(routed_experts=encode(ids + EXPERTS))
        yield "another model's ids", kind, others, "expert id .* another model"
        yield "not recorded", kind, answer(routed_experts=encode(ids * 0)), "chooses expert 0 twice"
        yield "minus one", kind, answer(routed_experts=encode(ids - EXPERTS)), "expert id -"
    odd = sglang(routed_experts=base64.b64encode(b"\0" * 50).decode())
    yield "odd bytes", "sglang", odd, "no whole number of tokens of toy"
    yield "tokens not told", "sglang", sglang(prompt_tokens=None), "how many tokens"
    yield "tokens are no number", "sglang", sglang(prompt_tokens=True), "how many tokens"
    fewer = vllm(routed_experts=npy(ids[:, 1:]))
    yield "npy of another shape", "vllm", fewer, r"shape \[12, 3, 3\].*4 decoder layers"
    yield "npy of two axes", "vllm", vllm(routed_experts=npy(ids[0])), "shape"
    yield "npy of floats", "vllm", vllm(routed_experts=npy(ids.astype(float))), "float64"
    pickled = vllm(routed_experts=npy(np.array([{}], dtype=object), pickled=True))
    yield "pickled npy", "vllm", pickled, "pickled arrays are not loaded"
    cut_short = vllm(routed_experts=base64.b64encode(base64.b64decode(npy(ids))[:-9]).decode())
    yield "npy cut short", "vllm", cut_short, "not a readable NumPy file|the file is cut short"
    yield "no npy", "vllm", vllm(routed_experts=raw(ids)), "not a readable NumPy file|the file is cut short"


@pytest.mark.parametrize(
    ("kind", "answer", "told"), [pytest.param(*fault[1:], id=f"{fault[1]}-{fault[0]}") for fault in faults()]
)
def test_fault_of_a_server(kind: str, answer: Any, told: str, engine: Engine, model: ModelSpec) -> None:
    """One line that names the address and what to do; no later prompt is sent."""
    engine.answers[PATHS[kind]] = answer
    with pytest.raises(BadInput, match=told) as fault:
        record(engine, kind, model)
    assert engine.url in str(fault.value)
    assert "\n" not in str(fault.value)
    assert len(engine.asked) == 1


def test_fault_in_the_command_writes_nothing(engine: Engine, tmp_path: Path) -> None:
    """Exit code 2, one line, no file."""
    engine.answers["/generate"] = (500, b"boom")
    (tmp_path / "text.txt").write_text("words")
    served = ["--server", engine.url, "--engine", "sglang", "--model", "mixtral"]
    files = ["--text", str(tmp_path / "text.txt"), "-o", str(tmp_path / "t.npz")]
    done = CliRunner().invoke(main, ["record", *served, *files])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert not (tmp_path / "t.npz").exists()


def test_unknown_engine(engine: Engine, model: ModelSpec) -> None:
    """Names those that can be recorded; nothing is asked."""
    with pytest.raises(BadInput, match="sglang and vllm"):
        record(engine, "trtllm", model)
    assert engine.asked == []


def test_recorder_is_driven_in_order(engine: Engine) -> None:
    """Start, the prompts, stop, dump."""
    assert dump_on_sglang(Server(engine.url, 5), PROMPTS) == "stat"
    start, stop, dump = (f"/{word}_expert_distribution_record" for word in ("start", "stop", "dump"))
    assert engine.paths == ["/server_info", start, *["/generate"] * len(PROMPTS), stop, dump]


@pytest.mark.parametrize("told", [{"expert_distribution_recorder_mode": None}, {"version": "0.5.23"}, []])
def test_recorder_that_is_off_is_not_started(told: Any, engine: Engine) -> None:
    """A server without a recorder would die of the request: it is not sent where the server does not say that
    it has one.
    """
    engine.answers["/server_info"] = ok(told)
    with pytest.raises(BadInput, match="--expert-distribution-recorder-mode"):
        dump_on_sglang(Server(engine.url, 5), PROMPTS)
    assert engine.paths == ["/server_info"]


def test_recorder_of_an_older_server(engine: Engine) -> None:
    """Before 0.5.23 the settings stood at another address."""
    engine.answers["/get_server_info"] = engine.answers.pop("/server_info")
    assert dump_on_sglang(Server(engine.url, 5), PROMPTS[:1]) == "stat"


def test_recorder_is_stopped_after_a_fault(engine: Engine) -> None:
    """A prompt fails: recording stops, nothing is dumped, the fault is told."""
    engine.answers["/generate"] = (500, b"boom")
    with pytest.raises(BadInput, match="boom"):
        dump_on_sglang(Server(engine.url, 5), PROMPTS)
    assert engine.paths[-1] == "/stop_expert_distribution_record"


def test_dump_command_says_where_to_look(engine: Engine, tmp_path: Path) -> None:
    """The files are on the server's disk, which only the user can reach."""
    (tmp_path / "text.txt").write_text("words")
    served = ["--server", engine.url, "--engine", "sglang", "--dump-on-server"]
    done = CliRunner().invoke(main, ["record", *served, "--text", str(tmp_path / "text.txt")])
    assert done.exit_code == 0, done.output
    assert "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR" in done.output


@given(content=st.binary(max_size=200), at=st.integers(0, 400))
def test_damaged_array_never_ends_in_a_traceback(content: bytes, at: int) -> None:
    """Any bytes in the place of vLLM's array, or in the middle of a good one: BadInput or a trace of the
    model.
    """
    good = bytearray(base64.b64decode(npy(routing(PROMPTS[0]).astype(np.uint8))))
    good[at : at + len(content)] = content
    toy = spec_from_config(CONFIG, "toy", "toy")
    with pytest.MonkeyPatch.context() as patch:
        answer = vllm_answer(PROMPTS[0], 1, routed_experts=base64.b64encode(good).decode())
        patch.setattr("probes.routing.engines.post_json", lambda *_args: answer)
        try:
            trace = record_server(Server("http://h"), "vllm", toy, PROMPTS[:1])
        except BadInput:
            return
    assert trace.experts_LTK.shape == (LAYERS - DENSE, len(PROMPTS[0]), TOP_K)
