"""Recording from a running server: what SGLang and vLLM return becomes the trace they chose; every fault of a server is one line and no file."""

import base64
import json
import socket
import threading
import time
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
from probes.routing import web
from probes.routing.server import dump_on_sglang, record_server
from probes.routing.web import Server, fetch
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
    serving,
    sglang_answer,
    vllm_answer,
)

PROMPTS = ("first prompt", "another one", "zzz")
PATHS = {"sglang": "/generate", "vllm": "/v1/completions"}
CONFIG = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": DENSE,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "hidden_size": 64,
    "moe_intermediate_size": 32,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with serving(Engine()) as running:
        yield running


@pytest.fixture
def model() -> ModelSpec:
    return spec_from_config(CONFIG, "toy", "toy")


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
    """Every token of prompt and answer but the last, in order; the dense layer's row is left out; mixed phases are not called prefill."""
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
    flags = [
        "--server",
        engine.url,
        "--engine",
        "vllm",
        "--model",
        tmp_path / "config.json",
        "--text",
        tmp_path / "prompts.jsonl",
        "-o",
        tmp_path / "t.npz",
    ]
    done = CliRunner().invoke(main, ["record", *map(str, flags)])
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
        yield (
            "another model's ids",
            kind,
            answer(routed_experts=encode(ids + EXPERTS)),
            "expert id .* another model",
        )
        yield "not recorded", kind, answer(routed_experts=encode(ids * 0)), "chooses expert 0 twice"
        yield "minus one", kind, answer(routed_experts=encode(ids - EXPERTS)), "expert id -"
    yield (
        "odd bytes",
        "sglang",
        sglang(routed_experts=base64.b64encode(b"\0" * 50).decode()),
        "no whole number of tokens of toy",
    )
    yield "tokens not told", "sglang", sglang(prompt_tokens=None), "how many tokens"
    yield "tokens are no number", "sglang", sglang(prompt_tokens=True), "how many tokens"
    yield (
        "npy of another shape",
        "vllm",
        vllm(routed_experts=npy(ids[:, 1:])),
        r"shape \[12, 3, 3\].*4 decoder layers",
    )
    yield "npy of two axes", "vllm", vllm(routed_experts=npy(ids[0])), "shape"
    yield "npy of floats", "vllm", vllm(routed_experts=npy(ids.astype(float))), "float64"
    yield (
        "pickled npy",
        "vllm",
        vllm(routed_experts=npy(np.array([{}], dtype=object), pickled=True)),
        "pickled arrays are not loaded",
    )
    yield (
        "npy cut short",
        "vllm",
        vllm(routed_experts=base64.b64encode(base64.b64decode(npy(ids))[:-9]).decode()),
        "not a NumPy array",
    )
    yield "no npy", "vllm", vllm(routed_experts=raw(ids)), "not a NumPy array"


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
    flags = [
        "--server",
        engine.url,
        "--engine",
        "sglang",
        "--model",
        "mixtral",
        "--text",
        tmp_path / "text.txt",
        "-o",
        tmp_path / "t.npz",
    ]
    done = CliRunner().invoke(main, ["record", *map(str, flags)])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert not (tmp_path / "t.npz").exists()


def test_server_that_hangs(engine: Engine, model: ModelSpec) -> None:
    """Left after the time limit."""
    release = threading.Event()

    def hang(_body: Any) -> Answer:
        release.wait(20)
        return 200, b"{}"

    engine.answers["/generate"] = hang
    started = time.monotonic()
    with pytest.raises(BadInput, match=r"no complete answer within 0\.3 s"):
        record(engine, "sglang", model, seconds=0.3)
    assert time.monotonic() - started < 5
    release.set()


def raw_server(talk: Callable[[socket.socket], None]) -> str:
    """The address of a server that reads one request and then talks as it likes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65536)
            try:
                talk(client)
            except OSError:
                return  # the client has left, as it should

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_server_that_drips() -> None:
    """A byte now and then keeps a socket alive; the limit is on the whole answer."""

    def talk(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            client.sendall(b" ")
            time.sleep(0.05)

    with pytest.raises(BadInput, match=r"no complete answer within 0\.4 s"):
        fetch(Server(raw_server(talk), 0.4), "/")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "98 bytes are missing"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no answer"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "no answer"),
        (b"", "no answer"),
    ],
)
def test_server_that_speaks_otherwise(said: bytes, told: str) -> None:
    """An answer cut short, a broken one, another protocol, a closed connection."""
    with pytest.raises(BadInput, match=told):
        fetch(Server(raw_server(lambda client: client.sendall(said)), 5), "/")


def test_answer_past_the_size_limit(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not read to its end."""
    monkeypatch.setattr(web, "LARGEST_ANSWER_BYTES", 1000)
    engine.answers["/big"] = (200, b"x" * 100_000)
    with pytest.raises(BadInput, match="larger than 1,000 bytes"):
        fetch(Server(engine.url, 5), "/big")


def test_nobody_listens(model: ModelSpec) -> None:
    """A port that was just closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BadInput, match="is the server up"):
        record_server(Server(f"http://127.0.0.1:{port}", 5), "vllm", model, PROMPTS)


def test_redirect_is_not_followed(engine: Engine) -> None:
    """Only the address that was given is asked."""
    with serving(Engine()) as other:
        engine.answers["/v1/completions"] = (302, f"{other.url}/v1/completions".encode())
        with pytest.raises(BadInput, match="answered 302"):
            fetch(Server(engine.url, 5), "/v1/completions")
        assert other.asked == []


def test_proxy_of_the_environment_is_not_used(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert fetch(Server(engine.url, 5), "/server_info")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:30000",
        "file:///etc/passwd",
        "ftp://h/x",
        "http://",
        "http://u:p@h",
        "http://h?x=1",
        "http://h:x",
        "http://h/\n",
    ],
)
def test_address_that_is_none(url: str) -> None:
    """Only http and https, with a host and nothing after the path."""
    with pytest.raises(BadInput, match="--server"):
        Server(url)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e6])
def test_time_limit_that_is_none(seconds: float) -> None:
    """A limit is never absent."""
    with pytest.raises(BadInput, match="timeout"):
        Server("http://h", seconds)


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
    """A server without a recorder would die of the request: it is not sent where the server does not say that it has one."""
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
    done = CliRunner().invoke(
        main,
        [
            "record",
            "--server",
            engine.url,
            "--engine",
            "sglang",
            "--dump-on-server",
            "--text",
            str(tmp_path / "text.txt"),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR" in done.output


@given(content=st.binary(max_size=200), at=st.integers(0, 400))
def test_damaged_array_never_ends_in_a_traceback(content: bytes, at: int) -> None:
    """Any bytes in the place of vLLM's array, or in the middle of a good one: BadInput or a trace of the model."""
    good = bytearray(base64.b64decode(npy(routing(PROMPTS[0]).astype(np.uint8))))
    good[at : at + len(content)] = content
    toy = spec_from_config(CONFIG, "toy", "toy")
    with pytest.MonkeyPatch.context() as patch:
        answer = vllm_answer(PROMPTS[0], 1, routed_experts=base64.b64encode(good).decode())
        patch.setattr("probes.routing.server.post_json", lambda *_args: answer)
        try:
            trace = record_server(Server("http://h"), "vllm", toy, PROMPTS[:1])
        except BadInput:
            return
    assert trace.experts_LTK.shape == (LAYERS - DENSE, len(PROMPTS[0]), TOP_K)
