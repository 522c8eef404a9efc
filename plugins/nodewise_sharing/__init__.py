"""Colocation: the share of its solo speed that each of several jobs keeps on one device. Pure functions.

`fit_shares` learns from pairs that ran on one device in one mode of sharing, none at all included; `share_device` says
what any set of jobs keeps, and whether that is worth it. `modes` has the laws of what was never measured, `placement`
whether kernels find room beside each other.
"""
