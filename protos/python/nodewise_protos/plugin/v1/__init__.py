"""Messages and gRPC stubs of nodewise.plugin.v1, two modules a file."""
