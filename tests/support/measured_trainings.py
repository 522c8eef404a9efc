"""Run in an environment with training frameworks: a small training on the CPU, measured by its callback.

`measured_trainings.py FRAMEWORK TABLE.csv`: 48 steps, and behind every twelfth an evaluation and a checkpoint. The
measurement's clock moves by what the model does, so that the row is the same on every machine. Standard output gets
the framework's version. Of several ranks a launcher starts each.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEPS = 48
EVERY = 12
BATCH = 4
FORWARD_S = 0.5
"""Of a micro-batch."""
ACCUMULATION = {"lightning": 2, "transformers": 2, "deepspeed": 2, "torchtitan": 1}
EVALUATION_S = 600.0
CHECKPOINT_S = 900.0


class Clock:
    """A clock that the model moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()
OPTIONS: dict[str, Any] = {"device": "CPU", "clock": CLOCK, "every_minutes": None}


def network() -> Any:
    import torch  # of the other environment

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 1)

        def forward(self, values: Any) -> Any:
            CLOCK.now += FORWARD_S if self.training else EVALUATION_S
            return self.linear(values)

        def state_dict(self, *arguments: Any, **options: Any) -> Any:
            CLOCK.now += CHECKPOINT_S
            return super().state_dict(*arguments, **options)

    return Network()


def train_torch(table: str) -> None:
    """A plain loop, as a launcher starts it on each rank."""
    import torch

    from nodewise_client.callbacks import StepMeter

    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    settings = {"framework": "torch", "precision": "fp32", "batch_per_worker": BATCH, "accumulation": 1}
    with StepMeter("torch", file=table, **settings, **OPTIONS) as meter:
        for _ in range(STEPS):
            model(torch.ones(BATCH, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            meter.step()
    torch.distributed.destroy_process_group()


def train_lightning(table: str) -> None:
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from nodewise_client.callbacks.lightning import ThroughputCallback

    class Module(LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.network(batch).sum()

        def validation_step(self, batch: Any, index: int) -> None:
            self.network(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    folder = str(Path(table).parent)
    trainer = Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("WORLD_SIZE", "1")),
        max_steps=STEPS,
        accumulate_grad_batches=2,
        val_check_interval=2 * EVERY,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        callbacks=[
            ModelCheckpoint(folder, every_n_train_steps=EVERY),
            ThroughputCallback("lightning", file=table, **OPTIONS),
        ],
        enable_progress_bar=False,
        logger=False,
    )
    data = torch.ones(2 * STEPS * BATCH, 8)
    trainer.fit(Module(), torch.utils.data.DataLoader(data, BATCH), torch.utils.data.DataLoader(data[:BATCH], BATCH))


def train_transformers(table: str) -> None:
    import torch
    from transformers import Trainer, TrainingArguments

    from nodewise_client.callbacks.transformers import ThroughputCallback

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def forward(self, values: Any, labels: Any = None) -> dict[str, Any]:
            return {"loss": self.network(values).sum(), "logits": values}

    arguments = TrainingArguments(
        str(Path(table).parent / "hf"),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        gradient_accumulation_steps=2,
        eval_strategy="steps",
        eval_steps=EVERY,
        save_steps=EVERY,
        logging_steps=5,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    data = [{"values": torch.ones(8), "labels": torch.ones(1)} for _ in range(2 * STEPS * BATCH)]
    callback = ThroughputCallback("transformers", file=table, **OPTIONS)
    Trainer(Module(), arguments, train_dataset=data, eval_dataset=data[:BATCH], callbacks=[callback]).train()


def train_deepspeed(table: str) -> None:
    os.environ |= {"DS_ACCELERATOR": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    import deepspeed
    import torch

    from nodewise_client.callbacks.deepspeed import measure_engine

    model = network()
    store = torch.distributed.FileStore(str(Path(table).parent / "meeting"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    settings = {
        "train_micro_batch_size_per_gpu": BATCH,
        "gradient_accumulation_steps": 2,
        "zero_optimization": {"stage": 0},
        "steps_per_print": 10,
    }
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3), config=settings
    )
    meter = measure_engine(engine, "deepspeed", file=table, **OPTIONS)
    batch = torch.ones(BATCH, 8)
    for micro_step in range(1, 2 * STEPS + 1):
        engine.backward(engine(batch).sum())
        engine.step()
        if micro_step % (2 * EVERY) == 0:
            engine.eval()
            engine(batch)
            engine.train()
            engine.save_checkpoint(str(Path(table).parent / "saved"))
    meter.close()


def train_torchtitan(table: str) -> None:
    """On a CPU, which torchtitan asks for its memory as it does a GPU, and which has no FlexAttention backwards."""
    import torch

    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    store = torch.distributed.FileStore(str(Path(table).parent / "meeting"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    torch.distributed.set_timeout = lambda *_: None  # of a newer PyTorch
    from torchtitan.tools import utils

    class Device(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(torch.cpu, name)

    device = Device("device")
    device.__dict__.update(
        get_device_name=lambda *_: "CPU",
        get_device_properties=lambda *_: types.SimpleNamespace(total_memory=1 << 33),
        current_device=lambda: 0,
        memory_stats=lambda *_: {},
        **dict.fromkeys(("empty_cache", "reset_peak_memory_stats", "set_device"), lambda *_: None),
    )
    utils.device_type, utils.device_module, utils.get_local_device = "cpu", device, lambda: torch.device("cpu")
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.tokenizer import BaseTokenizer
    from torchtitan.models.common.attention import FlexAttention
    from torchtitan.models.llama3.config_registry import llama3_debugmodel
    from torchtitan.tools.logging import init_logger

    from nodewise_client.callbacks.torchtitan import measure_trainer

    def attention(self: Any, q_BLNH: Any, k_BLNH: Any, v_BLNH: Any, **_: Any) -> Any:  # noqa: N803  # its names
        heads = (values.transpose(1, 2) for values in (q_BLNH, k_BLNH, v_BLNH))
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(*heads, is_causal=True, enable_gqa=True).transpose(1, 2)

    FlexAttention.forward = attention

    class Data(BaseDataLoader):  # type: ignore[misc]
        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):  # type: ignore[misc]
            pass

        def __init__(self, *, seq_len: int, local_batch_size: int, **_: Any) -> None:
            self.shape = (local_batch_size, seq_len)

        def __iter__(self) -> Any:
            while True:
                CLOCK.now += FORWARD_S
                tokens = torch.zeros(self.shape, dtype=torch.int64)
                yield {"input": tokens, "positions": torch.arange(self.shape[1]).expand(self.shape)}, tokens

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            pass

    class Tokenizer(BaseTokenizer):  # type: ignore[misc]
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):  # type: ignore[misc]
            pass

        def __init__(self, **_: Any) -> None:
            super().__init__()

        def encode(self, *_: Any) -> list[int]:
            return []

        def decode(self, *_: Any) -> str:
            return ""

        def get_vocab_size(self) -> int:
            return 2048

    init_logger()
    config = llama3_debugmodel()
    config.dump_folder = str(Path(table).parent)
    config.dataloader, config.tokenizer = Data.Config(), Tokenizer.Config()
    config.training.local_batch_size, config.training.seq_len, config.training.steps = BATCH, 32, STEPS
    config.training.mixed_precision_param, config.training.disable_cuda_graphs = "float32", True
    config.validator.enable, config.checkpoint.enable = False, False
    config.metrics.log_freq, config.metrics.enable_tensorboard = 4, True
    trainer = config.build()
    meter = measure_trainer(trainer, "torchtitan", file=table, **OPTIONS)
    trainer.train()
    meter.close()
    trainer.close()


TRAININGS = {
    "torch": train_torch,
    "lightning": train_lightning,
    "transformers": train_transformers,
    "deepspeed": train_deepspeed,
    "torchtitan": train_torchtitan,
}


if __name__ == "__main__":
    _, name, path = sys.argv
    TRAININGS[name](path)
    print(importlib.metadata.version(name))
