"""What to do about faults and gaps, with the line to change in PyTorch, NCCL, the data loader, Megatron, DeepSpeed."""

from __future__ import annotations

from typing import Final

__all__ = ["FAULTS", "GAPS"]

GAPS: Final = {
    "blocking_copy": (
        "copies that do not block the host",
        (
            "low: DataLoader(pin_memory=True) and batch.to(device, non_blocking=True); results to the host in one step "
            "of a hundred"
        ),
    ),
    "allocation": (
        "reuse device memory instead of reallocating it",
        (
            "low: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no torch.cuda.empty_cache() in the loop, equal "
            "shapes in all steps; Megatron --empty-unused-memory-level 0"
        ),
    ),
    "preprocessing": (
        "prepare batches in the loader's workers",
        (
            "medium: move it into Dataset.__getitem__ or collate_fn, with DataLoader(num_workers=8, prefetch_factor=4, "
            "persistent_workers=True); Megatron --num-workers 8"
        ),
    ),
    "host_computation": (
        "take computation off the launching thread",
        "medium: do it on the device (tensor.to(device) first), or in another thread or process, every few steps",
    ),
    "garbage_collection": (
        "collect garbage seldom and on all ranks at once",
        (
            "low: gc.freeze() after start-up, gc.disable(), and gc.collect(1) every hundred steps; Megatron "
            "--manual-gc --manual-gc-interval 100"
        ),
    ),
    "python": (
        "move other code off the launching thread",
        (
            "medium: do it in another thread or process, or every few steps; where it is the model's own, "
            "model = torch.compile(model)"
        ),
    ),
}
"""By kind of part in which a device waits for its host: what to do, and the line to change."""

FAULTS: Final = {
    "": (
        "find the cause: nvidia-smi -q -d CLOCK,PERFORMANCE and top on its machine show clock rates, heat and other "
        "processes; otherwise exclude the machine (Slurm --exclude)"
    ),
    "loader": (
        "low: DataLoader(num_workers=8, prefetch_factor=4) on that rank, its data on a local disk; check that its "
        "storage and processors are not shared"
    ),
    "link": (
        "find the cause: NCCL_DEBUG=INFO shows whether that rank uses the same NCCL_IB_HCA and NCCL_SOCKET_IFNAME as "
        "the others, ibstat and ethtool the rate of its ports"
    ),
    "collective": (
        "find the cause: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=COLL,TUNING shows its algorithm and protocol; check "
        "that NCCL_ALGO and NCCL_PROTO are unset, and measure its size with nccl-tests"
    ),
    "imbalance": (
        "medium: batches of equal work: by length (Hugging Face Trainer group_by_length=True), packed sequences, or "
        "balanced experts (Megatron --moe-aux-loss-coeff 1e-2)"
    ),
    "outlier": (
        "find what only these steps do: a checkpoint (torch.distributed.checkpoint.async_save; Megatron "
        "--async-save), evaluation, gc.collect(), logging"
    ),
}
"""By kind of fault, empty for any other: where to look, and the line to change."""
