"""Partitioned transformers: step time and memory from facts, corrected by what was observed."""
