"""Nodewise in cluster managers: integrations ask, act on the answer, and fail open without one."""
