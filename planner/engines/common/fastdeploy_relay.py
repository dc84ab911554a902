"""The program that hands a plan's counts to FastDeploy's balancer, while FastDeploy serves.

There is one way in. A server that is told to rearrange asks each address of a list for counts, adds them up
and sends the sum back to each. So each rank's address in the list is one of this program's, which answers
that question with the plan's counts, or with none, and passes all others on to the rank.
Source: FastDeploy at 09aeac7, eplb/experts_manager.py and entrypoints/engine_client.py. Its two loops were
run against the program; no engine was.
"""

PROGRAM = '''"""Hands a plan's counts to FastDeploy's balancer. Written by moeplan.

usage: FD_EPLB_USER=.. FD_EPLB_PASSWORD=.. python3 rearrange.py HOST:PORT [HOST:PORT ..], every rank in order
"""

import json
import os
import socket
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COUNTS = json.loads(Path(__file__).with_name("expert_stats.json").read_text(encoding="utf-8"))
USER = {"user": os.environ.get("FD_EPLB_USER", ""), "passwd": os.environ.get("FD_EPLB_PASSWORD", "")}
SECONDS = 1500  # what FastDeploy itself gives its ranks to load their experts


def post(address, route, value):
    body = json.dumps(value).encode()
    request = urllib.request.Request(f"http://{address}{route}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def relay(address, tables):
    """A server that stands for a rank: it gives the plan's counts as the rank's own."""

    class Stand(BaseHTTPRequestHandler):
        def do_POST(self):
            value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            counts = self.path == "/get_per_expert_tokens_stats"
            answer = {"code": 0, "msg": "ok", "data": tables} if counts else post(address, self.path, value)
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass  # no line a request on the terminal

    server = ThreadingHTTPServer(("", 0), Stand)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def own_address(address):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as line:
        return line.getsockname()[0]


def main(ranks):
    if not ranks:
        sys.exit(__doc__)
    here = own_address(ranks[0])
    stands = [f"{here}:{relay(rank, [COUNTS] if not number else [])}" for number, rank in enumerate(ranks)]
    print(post(ranks[0], "/rearrange_experts", {**USER, "ips": stands}))
    seen = set()
    for _ in range(SECONDS):
        status = post(ranks[0], "/check_redundant", USER)["status"]
        if status not in seen:
            print(status, flush=True)
        seen.add(status)
        if status not in ("FREE", "DOING"):
            return
        if status == "FREE" and "DOING" in seen:
            break
        time.sleep(1)
    sys.exit("FastDeploy did not rearrange; see its log eplb_expert_manager")


main(sys.argv[1:])
'''
