"""Messages and gRPC stubs that plugins in other processes speak."""
