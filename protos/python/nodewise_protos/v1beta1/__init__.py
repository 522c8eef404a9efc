"""Messages and gRPC stubs of nodewise.v1beta1, two modules a file."""
