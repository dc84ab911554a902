"""Memory of the GPU that keeps least, and how many requests it leaves room for."""

from planner.base import human_bytes
from planner.cost import grouped_bytes, ledger
from planner.page.charts import stacked
from planner.page.document import paragraphs
from planner.page.evidence_kind import kind_of, kind_tag
from planner.page.html import Content, figure
from planner.page.tables import table_of
from planner.page.told import Told

TITLE = "Memory and concurrency"


def section(told: Told) -> Content:
    found, workload = ledger(told.problem, told.engine), told.problem.workload
    groups = told.problem.gpus // workload.attention_tp
    left = max(found.kv_left_bytes, 0.0)
    parts = [(name, size, human_bytes(size)) for name, size in grouped_bytes(found).items() if size]
    parts.append(("left for the KV cache", left, human_bytes(left)))
    rows: list[list[Content]] = [
        [
            line.name.replace("_", " "),
            figure(human_bytes(line.size_bytes), line.size_bytes, f"memory.{line.name}_bytes"),
            kind_tag(kind_of(line.basis)),
            line.basis,
        ]
        for line in found.lines
    ]
    kv = figure(human_bytes(found.kv_left_bytes), found.kv_left_bytes, "memory.kv_left_bytes")
    rows.append(["left for the KV cache", kv, None, "what the lines above leave"])
    request = figure(human_bytes(found.request_bytes), found.request_bytes, "memory.request_bytes")
    rows.append(["a request at full context", request, kind_tag(kind_of(found.kv_basis)), found.kv_basis])
    lengths = f"{found.context_tokens:,} tokens" + ("" if workload.context_given else " (assumed)")
    shared = f", {workload.attention_tp} GPUs to a request" if workload.attention_tp > 1 else ""
    planned = f"; {found.planned_requests * groups:,} are planned" if not found.kv_floor_bytes else ""
    memory = human_bytes(found.memory_bytes)
    fits = "It fits" if found.fits else "It does not fit"
    return [
        paragraphs(
            f"{fits}: room for {found.requests * groups:,} requests of "
            f"{lengths} at once on {told.problem.gpus} GPUs{shared}{planned}."
        ),
        stacked(f"Memory of GPU {found.gpu}, {memory}", parts),
        table_of(
            ("use", "bytes", "evidence", "of what"), rows, f"GPU {found.gpu} of {memory}", words=(0, 2, 3)
        ),
    ]
