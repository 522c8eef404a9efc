"""The graph of a job as columns, and one pass over it: what is executed when."""
