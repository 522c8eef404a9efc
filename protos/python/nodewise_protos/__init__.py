"""Generated messages and gRPC stubs of the Nodewise contract."""
