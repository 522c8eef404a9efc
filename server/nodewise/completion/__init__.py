"""Completion on machines that can be taken away: speeds of who is alive, each offer's outcome, the one to take."""
