"""Whether kernels of two jobs find room on a device at once, from their launch shapes.

The blocks that a processor holds at once: NVIDIA, CUDA C++ Programming Guide, "Hardware Multithreading". A block is
placed when it fits, the next kernel's only after all of the one in front ("leftover"): Gilman, Ogden, Guo, Walls,
"Demystifying the placement policies of the NVIDIA GPU thread block scheduler for concurrent kernels", PER 48(3), 2020.
"""

from __future__ import annotations

import math
from typing import Final

from nodewise.plugin import KernelShape, Processors

__all__ = ["blocks_per_processor", "processors_filled"]

WARP: Final = 32


def blocks_per_processor(kernel: KernelShape, device: Processors) -> int:
    """Blocks of one kernel that one processor holds at once; 0 = the kernel cannot be launched."""
    threads = math.ceil(kernel.threads_per_block / WARP) * WARP
    limits = [device.blocks, device.threads // threads]
    if kernel.registers_per_thread:
        limits.append(device.registers // (kernel.registers_per_thread * threads))
    if kernel.shared_bytes_per_block:
        limits.append(device.shared_bytes // kernel.shared_bytes_per_block)
    return min(limits)


def processors_filled(kernel: KernelShape, device: Processors) -> float:
    """Waves of blocks: at 1 or more the kernel fills the device and nothing runs beside it; below, that share of it."""
    held = blocks_per_processor(kernel, device)
    return math.inf if held == 0 else kernel.blocks / (device.processors * held)
