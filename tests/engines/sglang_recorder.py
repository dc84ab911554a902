"""Run by an interpreter that has SGLang 0.5.23: its own recorder writes its own dumps, without a GPU.

It counts what it is handed.

argv: folder, mode (stat, per_pass, per_token). stdin: {"experts": E, "map": [layer][slot], "buffer": steps,
"passes": [rank][pass][token][layer][k]}, ids of slots; layers without ids are dense. Only what asks for a
device, for other processes or for server arguments is replaced.
"""

import importlib
import json
import os
import sys
import types
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

TORCHVISION = (
    "",
    ".io",
    ".ops",
    ".transforms",
    ".transforms.functional",
    ".transforms.v2",
    ".transforms.v2.functional",
)


def main() -> None:
    folder, mode = sys.argv[1:]
    os.environ["SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR"] = folder
    request = json.load(sys.stdin)
    for auto in (
        "image_processing",
        "modeling",
        "processing",
        "video_processing",
    ):  # these look for torchvision themselves: before it is replaced
        importlib.import_module(f"transformers.models.auto.{auto}_auto")
    for part in TORCHVISION:
        module = MagicMock()
        module.__spec__, module.__path__ = ModuleSpec(f"torchvision{part}", None), []
        sys.modules[f"torchvision{part}"] = module
    import torch

    recorder = importlib.import_module("sglang.srt.eplb.expert_distribution")
    moe = types.SimpleNamespace(
        expert_distribution_recorder_mode=mode,
        moe_a2a_backend="none",
        deepep_mode="normal",
        elastic_ep_backend=None,
        expert_distribution_recorder_buffer_size=request["buffer"],
        eplb_min_rebalancing_utilization_threshold=1.0,
    )
    settings = types.SimpleNamespace(moe=moe, overlap=types.SimpleNamespace(enable_two_batch_overlap=False))
    replaced = {
        "get_exec": lambda: settings,
        "get_schedule": lambda: types.SimpleNamespace(chunked_prefill_size=16),
        "get_device": lambda: "cpu",
        "get_device_namespace": lambda: types.SimpleNamespace(device="cpu"),
        "get_platform": lambda: types.SimpleNamespace(is_hip=False),
        "reports_expert_balancedness": lambda: False,
    }
    for name, value in replaced.items():
        assert hasattr(recorder, name), name
        setattr(recorder, name, value)
    device = types.SimpleNamespace(is_current_stream_capturing=lambda: False, empty_cache=lambda: None)
    vars(torch)["get_device_module"] = lambda *_: device
    vars(torch.distributed)["all_reduce"] = lambda *_, **__: None
    slot_map = torch.tensor(request["map"])
    location = types.SimpleNamespace(
        num_layers=len(slot_map),
        num_physical_experts=slot_map.shape[1],
        num_logical_experts=request["experts"],
        physical_to_logical_map=slot_map,
        ep_size=1,
    )
    for rank, passes in enumerate(request["passes"]):
        engine = recorder.ExpertDistributionRecorder.init_new(location, rank)
        engine.start_record()
        for number, ids in enumerate(passes):
            ids_TLK = torch.tensor(ids, dtype=torch.int32)
            positions = torch.arange(len(ids))
            batch = types.SimpleNamespace(
                input_ids=positions,
                positions=positions,
                extend_seq_lens_cpu=[len(ids)],
                forward_mode=types.SimpleNamespace(value=1),
                extend_num_tokens=len(ids),
            )
            with engine.with_forward_pass(number, batch):
                for layer in range(1, len(slot_map)):
                    with engine.with_current_layer(layer):
                        engine.on_select_experts(topk_ids=ids_TLK[:, layer])
        engine.stop_record()
        engine.dump_record()


if __name__ == "__main__":
    main()
