"""What the events of Chrome traces mean: lanes, categories, exchanges, steps, links; and the trace they add up to."""
