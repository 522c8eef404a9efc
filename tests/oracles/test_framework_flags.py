"""Generated settings, read by each framework's own parser or configuration class, for random layouts."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodewise_client import Recomputation, Transformer, Workload
from nodewise_client.frameworks import FRAMEWORKS, Layout, LayoutError, launch

ROOT = Path(__file__).resolve().parents[2]
READER = ROOT / "tests" / "support" / "framework_reader.py"
PYTHON = Path(os.environ.get("NODEWISE_FRAMEWORKS_PYTHON", ROOT / ".venv-frameworks" / "bin" / "python"))
LAYOUTS = 200
NEEDED = {"nemo": "megatron.training", "megatron": "megatron.training"}


def random_layout(chance: random.Random) -> Layout | None:
    """A layout whose degrees fit together; None = these do not."""
    experts = chance.choice([0, 0, 8, 64])
    transformer = Transformer(
        layers_count=32 if not experts else 24,
        hidden_size=4096,
        attention_heads_count=32,
        key_value_heads_count=chance.choice([None, 8]),
        sequence_length_tokens=chance.choice([2048, 4096, 8192]),
        vocabulary_size=32000,
        feed_forward_size=14336,
        gated_feed_forward=True,
        untied_embeddings=chance.random() < 0.8,
        experts_count=experts or None,
        experts_per_token_count=2 if experts else None,
        expert_feed_forward_size=1024 if experts else None,
    )
    workload = Workload(
        transformer=transformer,
        dropout=chance.choice([None, False]),
        optimizer=chance.choice(["", "adamw", "sgd"]),
        pipeline_schedule=chance.choice(["", "1f1b", "gpipe"]),
        execution=chance.choice(["", "compiled"]),
        master_weights=chance.choice([None, True, False]),
    )
    tensor, pipeline, context = (chance.choice(degrees) for degrees in ((1, 1, 2, 4, 8), (1, 1, 2, 4, 8), (1, 1, 1, 2)))
    data = chance.choice([1, 2, 4, 8, 16])
    devices = tensor * pipeline * context * data
    expert = chance.choice([1, 2, 4, 8]) if experts else 1
    if (data * context) % expert or devices > 512:
        return None
    interleave = chance.choice([1, 1, 2, 4]) if pipeline > 1 else 1
    micro_batch = chance.choice([1, 2, 4])
    accumulation = chance.choice([1, 2, 3, 4, 8]) * (pipeline if interleave > 1 else 1)
    return Layout(
        workload=workload,
        nodes=max(devices // 8, 1),
        devices_per_node=min(devices, 8),
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        interleave=interleave,
        micro_batch=micro_batch,
        global_batch=micro_batch * accumulation * data,
        recomputation=chance.choice(list(Recomputation)),
        sequence_parallel=tensor > 1 and chance.random() < 0.7,
        zero_stage=chance.choice([0, 1, 2, 3]) if data > 1 else 0,
        # Experts in fp8 need Transformer Engine, which is a build for a GPU.
        precision=chance.choice(["bf16", "bf16", "fp16", "fp32", *([] if experts else ["fp8"])]),
    )


def generated(framework: str) -> list[dict[str, Any]]:
    """Layouts that the framework can express, with their settings and what should be read of them."""
    chance, layouts = random.Random(37), []
    while len(layouts) < LAYOUTS:
        layout = random_layout(chance)
        try:
            result = None if layout is None else launch(layout, framework)
        except LayoutError:
            continue
        if layout is not None and result is not None:
            layouts.append(
                {
                    "command": result.command,
                    "settings": result.settings,
                    "files": result.files,
                    "devices": layout.devices,
                    "data": layout.data,
                    "accumulation": layout.accumulation,
                    "interleave": layout.interleave,
                    "sequence_parallel": layout.sequence_parallel,
                    "zero_stage": layout.zero_stage,
                    "layers": layout.transformer.layers_count,
                    "experts": layout.transformer.experts_count,
                }
            )
    return layouts


def has(module: str) -> bool:
    """Whether the environment of the frameworks has a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", code], check=False, capture_output=True).returncode == 0


@pytest.mark.oracle
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `python3.12 tools/environment.py frameworks`")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_frameworks_accept_what_is_generated(framework: str) -> None:
    if not has(NEEDED.get(framework, framework)):
        pytest.skip(f"the environment has no {NEEDED.get(framework, framework)}: it needs Python 3.12")
    question = json.dumps({"framework": framework, "layouts": generated(framework)})
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    finished = subprocess.run(
        [PYTHON, READER], input=question, capture_output=True, text=True, check=False, env=environment
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    answer = json.loads(finished.stdout.splitlines()[-1])
    assert answer["accepted"] == LAYOUTS, f"{len(answer['errors'])} errors: " + "\n".join(answer["errors"][:5])
