"""What a replay says of configurations that were not recorded."""
