"""From traces to the graph: what each rank executed, what waits for what, and what ranks share."""
