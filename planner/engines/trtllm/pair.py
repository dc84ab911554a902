"""The router before a context and a generation server of TensorRT-LLM: `trtllm-serve disaggregated`.

Source: commands/serve.py, llmapi/disagg_utils.py and examples/disaggregated; read, not run.
"""

from planner.engines.common.command import Endpoint
from planner.problem import Problem

ROUTER_PORT = 8080
TRANSFER = (
    "the KV cache travels by what cache_transceiver_config names, the same in both halves "
    "(DEFAULT: NIXL, or UCX where TRTLLM_USE_UCX_KVCACHE=1); max_tokens_in_buffer bounds its buffers"
)
ROUTER = """\
#!/usr/bin/env bash
# Written by moeplan: the router of the two servers. It runs once, where it reaches node 0 of both.
set -euo pipefail
: "${{PREFILL_HEAD:?set it to the host name or address of node 0 of the prefill server}}"
: "${{DECODE_HEAD:?set it to the host name or address of node 0 of the decode server}}"
CONFIG="$(mktemp)"
trap 'rm -f -- "$CONFIG"' EXIT
cat > "$CONFIG" <<END
hostname: 0.0.0.0
port: {router}
backend: pytorch
context_servers:
  num_instances: 1
  urls: ["$PREFILL_HEAD:{port}"]
generation_servers:
  num_instances: 1
  urls: ["$DECODE_HEAD:{port}"]
END
trtllm-serve disaggregated \\
    --config_file "$CONFIG" \\
    --server_start_timeout 3600 \\
    "$@"
"""


def router_text(prefill: Problem, decode: Problem) -> str:
    """The script that starts the router: it is told of the two servers' addresses alone."""
    del prefill, decode
    return ROUTER.format(port=Endpoint().port, router=ROUTER_PORT)
