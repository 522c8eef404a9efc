"""Messages and gRPC stubs of nodewise.v1, two modules a file."""
