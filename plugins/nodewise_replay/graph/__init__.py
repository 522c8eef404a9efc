"""The global graph: what a recorded job executes, on every rank, and what waits for what."""
