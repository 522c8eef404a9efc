"""What profilers write, read into columns: one module per format, and what they share."""
