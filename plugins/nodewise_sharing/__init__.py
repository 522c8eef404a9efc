"""Colocation: the share of its solo speed that each of several jobs keeps on one device. Pure functions.

`fit_shares` learns from pairs that ran on one device in one mode of sharing, none at all included; `share_device` says
what any set of jobs keeps, and whether that is worth it. `modes` has the laws of what was never measured, `placement`
whether kernels find room beside each other.
"""

from nodewise_sharing.jobs import PairRun, SharingMode, SoloJob, busy_share
from nodewise_sharing.modes import mps_range, overlap_shares, slice_range, turn_shares
from nodewise_sharing.placement import KernelShape, Processors, blocks_per_processor, processors_filled
from nodewise_sharing.shares import Basis, PairShares, ShareModel, fit_shares
from nodewise_sharing.verdict import DeviceShares, Verdict, share_device

__all__ = [
    "Basis",
    "DeviceShares",
    "KernelShape",
    "PairRun",
    "PairShares",
    "Processors",
    "ShareModel",
    "SharingMode",
    "SoloJob",
    "Verdict",
    "blocks_per_processor",
    "busy_share",
    "fit_shares",
    "mps_range",
    "overlap_shares",
    "processors_filled",
    "share_device",
    "slice_range",
    "turn_shares",
]
