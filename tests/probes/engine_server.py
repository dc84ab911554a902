"""A small HTTP server on 127.0.0.1 that answers as SGLang 0.5.23 and vLLM 0.33.0 do, or misbehaves."""

import base64
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt

Answer = tuple[int, bytes]  # status, body
LAYERS, DENSE, EXPERTS, TOP_K = 4, 1, 16, 3


def routing(prompt: str, new_tokens: int = 1) -> npt.NDArray[np.int32]:
    """[token, decoder layer, k] of a prompt whose tokens are its bytes, as the engine would have chosen.

    Zero in the dense layer.
    """
    tokens = len(prompt.encode()) + new_tokens - 1
    seeds = np.frombuffer((prompt * 2).encode()[:1] * tokens, dtype=np.uint8).astype(np.int32) + np.arange(
        tokens, dtype=np.int32
    )
    ids = (
        seeds[:, None, None]
        + np.arange(LAYERS, dtype=np.int32)[:, None]
        + 5 * np.arange(TOP_K, dtype=np.int32)
    ) % EXPERTS
    ids[:, :DENSE] = 0
    return np.ascontiguousarray(ids, dtype=np.int32)


def npy(array: npt.NDArray[Any], *, pickled: bool = False) -> str:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=pickled)
    return base64.b64encode(content.getvalue()).decode()


def sglang_answer(prompt: str, new_tokens: int, **changes: Any) -> dict[str, Any]:
    meta = {
        "id": "r0",
        "prompt_tokens": len(prompt.encode()),
        "completion_tokens": new_tokens,
        "cached_tokens": 0,
        "routed_experts": base64.b64encode(routing(prompt, new_tokens).tobytes()).decode(),
    }
    return {"text": "x" * new_tokens, "output_ids": [1] * new_tokens, "meta_info": meta | changes}


def vllm_answer(prompt: str, new_tokens: int, **changes: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "text": "x",
        "finish_reason": "length",
        "routed_experts": npy(routing(prompt, new_tokens).astype(np.uint8)),
    }
    usage = {
        "prompt_tokens": len(prompt.encode()),
        "completion_tokens": new_tokens,
        "total_tokens": len(prompt.encode()) + new_tokens,
    }
    return {
        "id": "cmpl-0",
        "object": "text_completion",
        "model": "m",
        "choices": [choice | changes],
        "usage": usage,
    }


class Engine:
    """What the server was asked, and how it answers: `answers` maps a path to a status and body, or to a
    function of the request's JSON.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []  # method, path, JSON
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.answers: dict[str, Answer | Callable[[Any], Answer]] = {
            "/generate": lambda body: ok(self._generate(body)),
            "/v1/completions": lambda body: ok(vllm_answer(body["prompt"], body["max_tokens"])),
            "/server_info": ok(
                {"model_path": "m", "expert_distribution_recorder_mode": "stat", "version": "0.5.23"}
            ),
            "/start_expert_distribution_record": (200, b"Start recording the expert distribution.\n"),
            "/stop_expert_distribution_record": (200, b"Stop recording the expert distribution.\n"),
            "/dump_expert_distribution_record": (200, b"Dump expert distribution record.\n"),
        }

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]

    def answer(self, method: str, path: str, body: Any) -> Answer:
        self.asked.append((method, path, body))
        found = self.answers.get(path, (404, b'{"detail":"Not Found"}'))
        return found(body) if callable(found) else found

    @staticmethod
    def _generate(body: Any) -> dict[str, Any]:
        found = sglang_answer(body["text"], body["sampling_params"]["max_new_tokens"])
        if not body.get("return_routed_experts"):
            del found["meta_info"]["routed_experts"]
        return found


def ok(value: Any) -> Answer:
    return 200, json.dumps(value).encode()


@contextmanager
def serving(engine: Engine) -> Iterator[Engine]:
    """The engine behind a free port of 127.0.0.1, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            engine.headers.append(dict(self.headers))
            status, content = engine.answer(self.command, self.path, body)
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", content.decode())
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    engine.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
