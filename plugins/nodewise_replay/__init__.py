"""The replay of recorded steps: their graph, what changes it, and what it predicts."""
