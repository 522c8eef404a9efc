"""Nodewise inside cluster managers: asks, acts on the answer, and fails open where there is none."""
