"""The router before a prefill and a decode server of SGLang, and what the two must agree on.

sglang-router 0.3.2; its flags were parsed by its own parser.
"""

from planner.base import BadInput
from planner.engines.common.capability import generation
from planner.engines.sglang.launch import BOOTSTRAP_PORT
from planner.engines.sglang.models import SPARSE_ATTENTION
from planner.problem import Problem

PORT, ROUTER_PORT = 30000, 8000  # SGLang's own; the router's own is the same
TRANSFER = (
    "the KV cache travels by mooncake: `pip install mooncake-transfer-engine` on every node, "
    "or add --disaggregation-transfer-backend to both halves"
)
ROUTER = """\
#!/usr/bin/env bash
# Written by moeplan: the router of the two servers. It runs once, where it reaches node 0 of both.
# Needs: pip install sglang-router
set -euo pipefail
: "${{PREFILL_HEAD:?set it to the host name or address of node 0 of the prefill server}}"
: "${{DECODE_HEAD:?set it to the host name or address of node 0 of the decode server}}"
exec python3 -m sglang_router.launch_router \\
    --pd-disaggregation \\
    --prefill "http://$PREFILL_HEAD:{port}" {bootstrap} \\
    --decode "http://$DECODE_HEAD:{port}" \\
    --host 0.0.0.0 \\
    --port {router} \\
    "$@"
"""


def router_text(prefill: Problem, decode: Problem) -> str:
    """The script that starts the router. BadInput where the halves could not hand over the KV cache."""
    model, kinds = decode.model, {generation(half.topology) for half in (prefill, decode)}
    if model.architecture in SPARSE_ATTENTION and len(kinds) > 1:
        raise BadInput(
            f"SGLang keeps the KV cache of {model.architecture} in fp8 on SM100 and in 16 bits on SM90, "
            "and refuses to hand it over between the two: plan both halves for GPUs of one kind"
        )
    return ROUTER.format(port=PORT, bootstrap=BOOTSTRAP_PORT, router=ROUTER_PORT)
