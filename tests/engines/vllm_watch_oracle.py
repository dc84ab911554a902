"""Run by an interpreter that has vLLM 0.33.0: its balancer on four processes, asked for one window at a time.

The first line of stdin is {"package": folder of the plugin's module, "folder": where maps and windows lie,
"experts", "slots", "layers", "keep": windows that stay}. Each later line is {"counts": tokens [layer, expert]
of a window} or {"clock": seconds that rank 0's clock is put on or back}. Each line of stdout answers one of
them: {"rows" in force after the rearrangement that the window ends with, "same" on every rank, "follow": a
slot's weights are those of its expert}. Groups, devices and the model are stand-ins, as in
`vllm_live_oracle.py`.
"""

import importlib
import json
import sys
import time
from typing import Any

live: Any = importlib.import_module("vllm_live_oracle")


def served(own: Any, counts: Any) -> None:
    """Forward steps until the policy was asked again, with the window's tokens shared out over its steps.

    Rank 0 counts them all, at the first slot of each expert: vLLM sums over ranks, and by expert.
    """
    torch, before, state = own.torch, own.calls, own.model_state
    whole = torch.tensor(counts, dtype=torch.int64)
    while own.calls == before:
        own.steps += 1
        part = whole // live.WINDOW + (whole % live.WINDOW > own.steps % live.WINDOW)
        load = torch.zeros(live.LAYERS, live.SLOTS, dtype=torch.int32)
        if own.rank == 0:
            rows = state.physical_to_logical_map
            for layer in range(live.LAYERS):
                first = {expert: slot for slot, expert in reversed(list(enumerate(rows[layer].tolist())))}
                load[layer, [first[expert] for expert in range(live.EXPERTS)]] = part[layer].to(torch.int32)
        own.load["load"][:] = load
        own.state.step()


def serve(rank: int, asked: dict[str, Any], questions: Any, answers: Any) -> None:
    live.EXPERTS, live.SLOTS, live.LAYERS = asked["experts"], asked["slots"], asked["layers"]
    live.LOCAL, live.PORT = live.SLOTS // live.RANKS, "29583"
    own = live.Rank(rank, asked)
    distributed, clock, off = own.torch.distributed, time.time_ns, [0]
    time.time_ns = lambda: clock() + off[0]
    answers.put({"ready": rank})
    while (found := questions.get()) is not None:
        if "clock" in found:
            off[0] += int(found["clock"] * 1e9)
            continue
        served(own, found["counts"])
        gathered: list[Any] = [None] * live.RANKS
        distributed.all_gather_object(gathered, own.report())
        rows = gathered[0][0]
        if rank == 0:
            alike, follow = all(one[0] == rows for one in gathered), all(one[1] for one in gathered)
            answers.put({"rows": rows, "same": alike, "follow": follow})
        distributed.barrier()


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    context = importlib.import_module("torch.multiprocessing").get_context("spawn")
    answers, questions = context.SimpleQueue(), [context.SimpleQueue() for _ in range(live.RANKS)]
    ranks = [
        context.Process(target=serve, args=(rank, asked, questions[rank], answers), daemon=True)
        for rank in range(live.RANKS)
    ]
    for process in ranks:
        process.start()
    for _ in ranks:
        answers.get()
    print("ready", flush=True)  # noqa: T201 - a program
    for line in sys.stdin:
        found = json.loads(line)
        for queue in questions:
            queue.put(found)
        if "counts" in found:
            print(json.dumps(answers.get()), flush=True)  # noqa: T201 - a program
    for queue in questions:
        queue.put(None)
    for process in ranks:
        process.join(30)


if __name__ == "__main__":
    main()
