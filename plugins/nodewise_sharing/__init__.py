"""Colocation: the share of its solo speed that each of several jobs keeps on one device. Pure functions.

`fit_shares` learns from pairs that ran on one device in one mode of sharing, none at all included; `share_device` says
what any set of jobs keeps, and whether that is worth it. `modes` has the laws of what was never measured, `placement`
whether kernels find room beside each other.
"""

from nodewise_sharing.jobs import busy_of, busy_share
from nodewise_sharing.modes import mps_range, overlap_shares, slice_range, turn_shares
from nodewise_sharing.placement import blocks_per_processor, processors_filled
from nodewise_sharing.shares import PairShares, ShareModel, fit_shares
from nodewise_sharing.verdict import share_device, share_devices, verdict_of

__all__ = [
    "PairShares",
    "ShareModel",
    "blocks_per_processor",
    "busy_of",
    "busy_share",
    "fit_shares",
    "mps_range",
    "overlap_shares",
    "processors_filled",
    "share_device",
    "share_devices",
    "slice_range",
    "turn_shares",
    "verdict_of",
]
