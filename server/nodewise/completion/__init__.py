"""Completion on machines that can be revoked: speeds of sets of nodes, each offer's outcome, and the choice."""
