"""The router before a prefill and a decode server of vLLM, and what the two need to hand over the KV cache.

vllm-router 0.1.17: its flags were read in its README, not run.
"""

from planner.problem import Problem

PORT, ROUTER_PORT = 8000, 8090  # vLLM's own; one that a server on the router's host does not have
TRANSFER = (
    "the KV cache travels by NIXL: `pip install nixl` on every node. Each host tells its first address; set "
    "VLLM_NIXL_SIDE_CHANNEL_HOST where it has several, and VLLM_NIXL_SIDE_CHANNEL_PORT (5600, a port a rank) "
    "where both halves share a host"
)
ROUTER = """\
#!/usr/bin/env bash
# Written by moeplan: the router of the two servers. It runs once, where it reaches node 0 of both.
# Needs: pip install vllm-router
set -euo pipefail
: "${{PREFILL_HEAD:?set it to the host name or address of node 0 of the prefill server}}"
: "${{DECODE_HEAD:?set it to the host name or address of node 0 of the decode server}}"
exec vllm-router \\
    --vllm-pd-disaggregation \\
    --prefill "http://$PREFILL_HEAD:{port}" \\
    --decode "http://$DECODE_HEAD:{port}" \\
    --policy consistent_hash \\
    --host 0.0.0.0 \\
    --port {router} \\
    "$@"
"""


def router_text(prefill: Problem, decode: Problem) -> str:
    """The script that starts the router."""
    del prefill, decode
    return ROUTER.format(port=PORT, router=ROUTER_PORT)
