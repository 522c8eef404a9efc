"""A server of the Model Context Protocol: agents ask by tools what people ask by commands."""
